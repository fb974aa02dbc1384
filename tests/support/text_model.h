// ONNX models written in ONNX's text syntax (onnx/defs/parser.h), as files.
#pragma once

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace redfuser {

// A model file that goes with its owner. `text` is a graph: `g (float[n] x) => (float[n] y) {...}`.
class TextModel {
 public:
  explicit TextModel(const std::string& text, int opset = 20) {
    static int counter = 0;
    path_ =
        (std::filesystem::path(testing::TempDir()) /
         ("redfuser_model_" + std::to_string(getpid()) + "_" + std::to_string(counter++) + ".onnx"))
            .string();
    const std::string model_text =
        "<ir_version: 9, opset_import: [\"\" : " + std::to_string(opset) + "]> " + text;
    ::onnx::ModelProto model;
    const auto status = ::onnx::OnnxParser::Parse(model, model_text.c_str());
    if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
    std::ofstream file(path_, std::ios::binary);
    if (!model.SerializeToOstream(&file)) throw std::runtime_error("cannot write " + path_);
  }
  ~TextModel() { std::filesystem::remove(path_); }
  TextModel(const TextModel&) = delete;
  TextModel& operator=(const TextModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace redfuser
