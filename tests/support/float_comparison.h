// A graph of 16-bit tensors on the GPU, compared with its evaluation in fp32.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "support/float_reference.h"

namespace redfuser {

// Which rows and columns of the last dimension are far off.
inline std::string wrong_elements(const Tensor& a, const Tensor& b) {
  const Tensor x = as_floats(a), y = as_floats(b);
  const int64_t width = x.dims().back();
  int64_t count = 0, rows[2] = {INT64_MAX, -1}, columns[2] = {INT64_MAX, -1};
  std::string first;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double u = x.as<float>()[i], v = y.as<float>()[i];
    if (std::abs(u - v) <= 0.02 + 0.02 * std::abs(v)) continue;
    if (count++ < 4) {
      first += fmt::format(" [{}, {}] is {} for {};", i / width, i % width, u, v);
    }
    rows[0] = std::min(rows[0], i / width), rows[1] = std::max(rows[1], i / width);
    columns[0] = std::min(columns[0], i % width), columns[1] = std::max(columns[1], i % width);
  }
  if (count == 0) return "none far off";
  return fmt::format("{} of {} far off, rows {} to {}, columns {} to {}:{}", count, x.size(),
                     rows[0], rows[1], columns[0], columns[1], first);
}

// `y` of the fused graph on the GPU must be as near to fp32 as the unfused graph's on the CPU, and
// the same bits at every run.
class FloatComparison {
 public:
  // The same graph twice; the inputs of the second are fp32.
  FloatComparison(const Model& model, const Model& in_floats)
      : gpu_(compile(model), on_gpu()),
        cpu_(compile(model, unfused())),
        exact_(compile(in_floats, unfused())) {}

  void expect_near(const NamedTensors& inputs, const std::string& what) {
    constexpr double kShare = 1.2, kFloatError = 1e-5;
    NamedTensors floats;
    for (const auto& [name, tensor] : inputs) floats[name] = as_floats(tensor);
    const Tensor expected = exact_.run(floats).at("y"), got = gpu_.run(inputs).at("y");
    EXPECT_LE(distance(got, expected),
              kShare * distance(cpu_.run(inputs).at("y"), expected) + kFloatError)
        << what << ": " << wrong_elements(got, expected);
    const Tensor again = gpu_.run(inputs).at("y");
    EXPECT_EQ(std::memcmp(got.data(), again.data(), got.bytes()), 0) << what;
  }

 private:
  static SessionOptions on_gpu() {
    SessionOptions options;
    options.device = "cuda";
    return options;
  }
  static CompileOptions unfused() {
    CompileOptions options;
    options.fuse = false;
    return options;
  }

  Session gpu_, cpu_, exact_;
};

}  // namespace redfuser
