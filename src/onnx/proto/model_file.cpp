#include "onnx/proto/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include <climits>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "onnx/functions/functions.h"
#include "onnx/proto/sparse_tensors.h"

namespace redfuser::onnx {
namespace {

// Messages nest at most this deep. A subgraph nests three (a graph, its node, the attribute), and
// the importer refuses those that are too deep by name.
constexpr int kMaxNesting = 3 * kMaxCallDepth + 16;

// protobuf reports malformed input on stderr as well as by its result; the result is enough.
void silence_protobuf() {
  [[maybe_unused]] static auto* const previous = google::protobuf::SetLogHandler(nullptr);
}

void parse(std::span<const uint8_t> bytes, const std::string& path,
           google::protobuf::Message& message, const char* kind) {
  if (bytes.empty()) user_error("{}: is empty, not {}", path, kind);
  if (bytes.size() > INT_MAX) {
    user_error("{}: has {} bytes, more than protobuf's 2 GiB; keep its tensors as external data",
               path, bytes.size());
  }
  silence_protobuf();
  google::protobuf::io::CodedInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  stream.SetRecursionLimit(kMaxNesting);
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    user_error(
        "{}: is not {}, or is truncated or damaged, or its messages nest more than {} deep "
        "(protobuf cannot read it)",
        path, kind, kMaxNesting);
  }
}

void parse(const std::string& path, google::protobuf::Message& message, const char* kind) {
  const auto file = MappedFile::open(path);
  parse(file->bytes(), path, message, kind);
}

std::shared_ptr<::onnx::ModelProto> parsed_model(std::span<const uint8_t> bytes,
                                                 const std::string& path) {
  auto model = std::make_shared<::onnx::ModelProto>();
  parse(bytes, path, *model, "an ONNX model");
  if (!model->has_ir_version() || !model->has_graph()) {
    user_error("{}: is not an ONNX model: it has no {}", path,
               model->has_graph() ? "ir_version" : "graph");
  }
  make_dense(*model, path);
  return model;
}

}  // namespace

std::shared_ptr<::onnx::ModelProto> read_model_proto(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parsed_model(file->bytes(), path);
}

std::shared_ptr<::onnx::ModelProto> read_model_proto(std::string_view bytes,
                                                     const std::string& name) {
  return parsed_model({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, name);
}

::onnx::TensorProto read_tensor_proto(const std::string& path) {
  ::onnx::TensorProto tensor;
  parse(path, tensor, "an ONNX tensor");
  return tensor;
}

::onnx::SequenceProto read_sequence_proto(const std::string& path) {
  ::onnx::SequenceProto sequence;
  parse(path, sequence, "an ONNX sequence");
  return sequence;
}

::onnx::OptionalProto read_optional_proto(const std::string& path) {
  ::onnx::OptionalProto optional;
  parse(path, optional, "an ONNX optional");
  return optional;
}

}  // namespace redfuser::onnx
