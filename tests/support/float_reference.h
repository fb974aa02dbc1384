// Graphs of 16-bit tensors beside the same graphs in fp32.
#pragma once

#include <cmath>
#include <string>

#include "redfuser/convert.h"
#include "redfuser/redfuser.h"

namespace redfuser {

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// A graph in ONNX's text syntax whose inputs of type T are of this one.
inline Model model_of_type(const std::string& graph, const std::string& type) {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " +
                      replaced(replaced(graph, "(T[", "(" + type + "["), " T[", " " + type + "["));
}

inline Tensor as_floats(const Tensor& tensor) { return cast_floats(tensor, DType::Float32); }

// ‖a - b‖ / ‖b‖, infinite where an element is no number, 0 for empty tensors.
inline double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = as_floats(a), y = as_floats(b);
  double difference = 0, size = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double u = x.as<float>()[i], v = y.as<float>()[i];
    if (std::isnan(u)) return HUGE_VAL;
    difference += (u - v) * (u - v);
    size += v * v;
  }
  return x.size() == 0 ? 0 : std::sqrt(difference / size);
}

}  // namespace redfuser
