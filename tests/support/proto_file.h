// ONNX models written in ONNX's text syntax, changed as protos, and read back as files.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace redfuser {

// A model in a folder of its own, which goes with it.
class ProtoFile {
 public:
  // `graph` as in `g (float[n] x) => (float[n] y) {...}`; `functions` follow, in the domain "f".
  explicit ProtoFile(const std::string& graph, const std::string& functions = "", int opset = 20) {
    static int counter = 0;
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("redfuser_proto_" + std::to_string(getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(folder_);
    const std::string text = "<ir_version: 9, opset_import: [\"\" : " + std::to_string(opset) +
                             ", \"f\" : 1]> " + graph + functions;
    ::onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(model_);
    if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
  }
  ~ProtoFile() { std::filesystem::remove_all(folder_); }
  ProtoFile(const ProtoFile&) = delete;
  ProtoFile& operator=(const ProtoFile&) = delete;

  ::onnx::ModelProto& model() { return model_; }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string bytes() const { return model_.SerializeAsString(); }
  std::string beside(const std::string& name) const { return (folder_ / name).string(); }
  // Writes the model as it is now.
  std::string path() const { return write("model.onnx", bytes()); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return beside(name);
  }

 private:
  std::filesystem::path folder_;
  ::onnx::ModelProto model_;
};

// Functions f.b1, f.b2, ... for ProtoFile, of which each calls the next twice: 2^levels nodes.
inline std::string doubling_functions(int levels) {
  std::string functions;
  for (int level = 1; level <= levels; ++level) {
    const std::string callee = level == levels ? "Neg" : "f.b" + std::to_string(level + 1);
    functions += "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]> b" + std::to_string(level) +
                 " (p) => (r) { q = " + callee + "(p) r = " + callee + "(q) }\n";
  }
  return functions;
}

}  // namespace redfuser
