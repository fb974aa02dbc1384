#include "onnx/export/output_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files/output_file.h"
#include "onnx/export/model_check.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

constexpr size_t kSmallestExternal = 1024;
constexpr size_t kExternalAlignment = 4096;  // lets readers map a tensor by pages

void set_external(::onnx::TensorProto& proto, const std::string& key, const std::string& value) {
  auto* entry = proto.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

// Moves the large initializers to the data file.
std::unique_ptr<OutputFile> write_external(OutputModel& model, const std::string& path) {
  const std::string data_path = path + ".data";
  auto file = std::make_unique<OutputFile>(data_path);
  const std::string location = std::filesystem::path(data_path).filename().string();
  for (const auto& [name, tensor] : model.initializers) {
    // Strings and packed elements have another layout in the file than in memory.
    const bool as_held = bits_of(tensor.dtype()) >= 8;
    if (tensor.bytes() < kSmallestExternal || !as_held) {
      *model.proto.mutable_graph()->add_initializer() = to_proto(name, tensor);
      continue;
    }
    file->align(kExternalAlignment);
    ::onnx::TensorProto& proto = *model.proto.mutable_graph()->add_initializer();
    proto = tensor_header(name, tensor);
    proto.set_data_location(::onnx::TensorProto::EXTERNAL);
    set_external(proto, "location", location);
    set_external(proto, "offset", std::to_string(file->position()));
    set_external(proto, "length", std::to_string(tensor.bytes()));
    file->write(tensor.data(), tensor.bytes());
  }
  file->close();
  return file;
}

std::string serialise(const ::onnx::ModelProto& proto, const std::string& path) {
  if (proto.ByteSizeLong() > INT_MAX) {
    user_error("{}: cannot be written: {} bytes are more than protobuf's 2 GiB", path,
               proto.ByteSizeLong());
  }
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  RF_CHECK(proto.SerializeToCodedStream(&coded), "{}: protobuf cannot write the model", path);
  coded.Trim();
  return bytes;
}

void keep_inside(OutputModel& model) {
  for (const auto& [name, tensor] : model.initializers) {
    *model.proto.mutable_graph()->add_initializer() = to_proto(name, tensor);
  }
}

}  // namespace

std::string model_bytes(OutputModel model, const std::string& name) {
  if (model.checked) check_model(model, name);
  keep_inside(model);
  return serialise(model.proto, name);
}

void write_model(OutputModel model, int64_t external_threshold, const std::string& path) {
  if (model.checked) check_model(model, path);
  OutputFile file(path);
  size_t total = 0;
  for (const auto& [name, tensor] : model.initializers) total += tensor.bytes();
  std::unique_ptr<OutputFile> data;
  // There is no folder for a data file beside a device or a pipe.
  if (!file.in_place() && total > static_cast<size_t>(std::max<int64_t>(external_threshold, 0))) {
    data = write_external(model, path);
  } else {
    keep_inside(model);
  }
  file.write(serialise(model.proto, path));
  if (data) {
    commit_together({data.get(), &file});
  } else {
    file.commit();
  }
}

}  // namespace redfuser::onnx
