#include "onnx/proto/external_data.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "onnx/proto/packing.h"

namespace redfuser::onnx {
namespace {

namespace fs = std::filesystem;

uint64_t parse_count(const std::string& model, const std::string& tensor, const std::string& key,
                     const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    user_error("{}: tensor \"{}\": external data {} \"{}\" is not a number", model, tensor, key,
               text);
  }
  return value;
}

fs::path folder_of(const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [rest, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

}  // namespace

ExternalData::ExternalData(const std::string& model_path, const NamedTensors& given)
    : model_path_(model_path) {
  for (const auto& [location, bytes] : given) {
    auto owner = std::make_shared<const Tensor>(bytes);
    files_[location] = {{bytes.as<uint8_t>(), bytes.bytes()}, std::move(owner)};
  }
}

const ExternalData::File& ExternalData::file(const std::string& tensor,
                                             const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() ||
      std::any_of(relative.begin(), relative.end(), [](const fs::path& p) { return p == ".."; })) {
    user_error("{}: tensor \"{}\": external data location \"{}\" leaves the model's folder",
               model_path_, tensor, location);
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_of(model_path_), error);
  const fs::path path = error ? fs::path() : fs::canonical(folder / relative, error);
  if (error) {
    user_error("{}: tensor \"{}\": external data file \"{}\": {}", model_path_, tensor, location,
               error.message());
  }
  if (!is_inside(path, folder)) {
    user_error("{}: tensor \"{}\": external data location \"{}\" links out of the model's folder",
               model_path_, tensor, location);
  }
  auto mapped = MappedFile::open(path.string());
  const std::span<const uint8_t> bytes = mapped->bytes();
  return files_[location] = {bytes, std::move(mapped)};
}

Tensor ExternalData::read(const ::onnx::TensorProto& proto, DType dtype, const Dims& dims) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      offset = parse_count(model_path_, proto.name(), "offset", entry.value());
    }
    if (entry.key() == "length") {
      length = parse_count(model_path_, proto.name(), "length", entry.value());
      has_length = true;
    }
  }
  const File& read = file(proto.name(), location);
  const std::span<const uint8_t> bytes = read.bytes;
  if (dtype == DType::String) {
    user_error("{}: tensor \"{}\": strings may not be external data", model_path_, proto.name());
  }
  const uint64_t needed = stored_bytes(dtype, element_count(dims));
  if (!has_length) length = needed;
  if (length != needed) {
    user_error("{}: tensor \"{}\": {} bytes of external data where its type and shape need {}",
               model_path_, proto.name(), length, needed);
  }
  if (offset > bytes.size() || length > bytes.size() - offset) {
    user_error("{}: tensor \"{}\": bytes {}+{} lie outside \"{}\", which has {}", model_path_,
               proto.name(), offset, length, location, bytes.size());
  }
  const uint8_t* data = bytes.data() + offset;
  if (is_packed(dtype)) return unpacked(dtype, dims, data);
  if (needed == 0 || offset % size_of(dtype) != 0) {
    Tensor copy(dtype, dims);
    if (needed != 0) std::memcpy(copy.mutable_data(), data, needed);
    return copy;
  }
  return Tensor::wrap(dtype, dims, data, read.owner);
}

}  // namespace redfuser::onnx
