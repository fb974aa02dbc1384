#include "onnx/proto/tensor_proto.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/memory_pool.h"
#include "base/type_codes.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/packing.h"

namespace redfuser::onnx {
namespace {

// Typed fields hold one entry per element; narrow integers, bool, fp16 and bf16 bits share
// int32_data.
template <typename To, typename Field>
void copy_field(const Field& field, Tensor& tensor) {
  To* out = tensor.as<To>();
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<To>(field[i]);
}

// The same for integers of fewer bits than an entry. UserError for an entry that is none of them.
template <typename To>
void copy_narrow(const ::onnx::TensorProto& proto, Tensor& tensor, const std::string& where) {
  const auto& field = proto.int32_data();
  for (int i = 0; i < field.size(); ++i) {
    if (std::in_range<To>(field[i])) continue;
    user_error("{}: tensor \"{}\": element {} is {}, which {} does not have", where, proto.name(),
               i, field[i], name_of(tensor.dtype()));
  }
  copy_field<To>(field, tensor);
}

int typed_count(const ::onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return proto.float_data_size();
    case DType::Float64:
      return proto.double_data_size();
    case DType::Int64:
      return proto.int64_data_size();
    case DType::UInt32:
    case DType::UInt64:
      return proto.uint64_data_size();
    case DType::String:
      return proto.string_data_size();
    default:
      return proto.int32_data_size();
  }
}

// Fields hold the bytes that raw data would, one to an entry.
Tensor from_packed_field(const ::onnx::TensorProto& proto, DType dtype, const Dims& dims) {
  std::string bytes;
  for (const int32_t entry : proto.int32_data()) bytes += static_cast<char>(entry);
  return unpacked(dtype, dims, reinterpret_cast<const uint8_t*>(bytes.data()));
}

void copy_typed(const ::onnx::TensorProto& proto, Tensor& tensor, const std::string& where) {
  switch (tensor.dtype()) {
    case DType::Int8:
      return copy_narrow<int8_t>(proto, tensor, where);
    case DType::UInt8:
      return copy_narrow<uint8_t>(proto, tensor, where);
    case DType::Int16:
      return copy_narrow<int16_t>(proto, tensor, where);
    case DType::UInt16:
      return copy_narrow<uint16_t>(proto, tensor, where);
    case DType::Float32:
      return copy_field<float>(proto.float_data(), tensor);
    case DType::Float64:
      return copy_field<double>(proto.double_data(), tensor);
    case DType::Int64:
      return copy_field<int64_t>(proto.int64_data(), tensor);
    case DType::UInt32:
      return copy_field<uint32_t>(proto.uint64_data(), tensor);
    case DType::UInt64:
      return copy_field<uint64_t>(proto.uint64_data(), tensor);
    case DType::Int32:
      return copy_field<int32_t>(proto.int32_data(), tensor);
    case DType::Bool: {
      auto* out = tensor.as<uint8_t>();
      for (int i = 0; i < proto.int32_data_size(); ++i) out[i] = proto.int32_data(i) != 0;
      return;
    }
    default:
      break;
  }
  if (size_of(tensor.dtype()) == 1) return copy_field<uint8_t>(proto.int32_data(), tensor);
  copy_field<uint16_t>(proto.int32_data(), tensor);
}

// A Bool byte other than 0 and 1 would be read differently by different kernels.
bool all_bools(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.as<uint8_t>()[i] > 1) return false;
  }
  return true;
}

Tensor normalised(Tensor tensor) {
  if (tensor.dtype() != DType::Bool || all_bools(tensor)) return tensor;
  Tensor copy(DType::Bool, tensor.dims());
  for (int64_t i = 0; i < tensor.size(); ++i) copy.as<uint8_t>()[i] = tensor.as<uint8_t>()[i] != 0;
  return copy;
}

Tensor from_raw(const ::onnx::TensorProto& proto, DType dtype, const Dims& dims,
                const std::shared_ptr<const void>& owner) {
  const char* data = proto.raw_data().data();
  if (is_packed(dtype)) return unpacked(dtype, dims, reinterpret_cast<const uint8_t*>(data));
  // A file's data begin anywhere, where vectors cross cache lines. Such constants are copied where
  // a core's cache may hold them; larger ones are read from memory, and stay in the file.
  constexpr size_t kCached = size_t{1} << 21;
  const size_t alignment =
      proto.raw_data().size() <= kCached ? size_t{kTensorAlignment} : size_of(dtype);
  if (owner && reinterpret_cast<uintptr_t>(data) % alignment == 0) {
    return Tensor::wrap(dtype, dims, data, owner);
  }
  Tensor tensor(dtype, dims);
  if (tensor.bytes() != 0) std::memcpy(tensor.mutable_data(), data, tensor.bytes());
  return tensor;
}

// Readers that prefer different fields would see different tensors.
void check_fields(const ::onnx::TensorProto& proto, const std::string& where) {
  const bool fields[] = {!proto.raw_data().empty(),     proto.float_data_size() != 0,
                         proto.int32_data_size() != 0,  proto.int64_data_size() != 0,
                         proto.double_data_size() != 0, proto.uint64_data_size() != 0,
                         proto.string_data_size() != 0};
  const auto used = std::count(std::begin(fields), std::end(fields), true);
  const bool external = proto.data_location() == ::onnx::TensorProto::EXTERNAL;
  if (used + external > 1) {
    user_error("{}: tensor \"{}\" has data in {} places; only one is allowed", where, proto.name(),
               used + external);
  }
}

}  // namespace

Dims checked_dims(Dims dims, DType dtype, const std::string& name, const std::string& where) {
  uint64_t bytes = size_of(dtype);
  bool overflow = false;
  for (const int64_t dim : dims) {
    if (dim < 0) user_error("{}: tensor \"{}\" has the negative dimension {}", where, name, dim);
    overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim == 0 ? 1 : dim), &bytes) ||
                bytes > static_cast<uint64_t>(INT64_MAX);
  }
  if (overflow) user_error("{}: tensor \"{}\": its size overflows", where, name);
  return dims;
}

Tensor to_tensor(const ::onnx::TensorProto& proto, const std::shared_ptr<const void>& owner,
                 ExternalData* external, const std::string& where) {
  const DType dtype = dtype_of(proto.data_type());
  if (size_of(dtype) == 0) {
    user_error("{}: tensor \"{}\": element type {} is not supported", where, proto.name(),
               type_name(proto.data_type()));
  }
  if (proto.has_segment()) {
    user_error("{}: tensor \"{}\" is stored in segments, which is not supported", where,
               proto.name());
  }
  check_fields(proto, where);
  const Dims dims =
      checked_dims({proto.dims().begin(), proto.dims().end()}, dtype, proto.name(), where);
  const int64_t count = element_count(dims);
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    if (external == nullptr) {
      user_error("{}: tensor \"{}\" may not have external data here", where, proto.name());
    }
    return normalised(external->read(proto, dtype, dims));
  }
  if (proto.has_raw_data()) {
    const size_t needed = stored_bytes(dtype, count);
    if (dtype == DType::String) {
      user_error("{}: tensor \"{}\": strings may not be raw data", where, proto.name());
    }
    if (proto.raw_data().size() != needed) {
      user_error("{}: tensor \"{}\": {} bytes of data where its type and shape need {}", where,
                 proto.name(), proto.raw_data().size(), needed);
    }
    return normalised(from_raw(proto, dtype, dims, owner));
  }
  const int64_t entries =
      is_packed(dtype) ? static_cast<int64_t>(stored_bytes(dtype, count)) : count;
  if (typed_count(proto, dtype) != entries) {
    user_error("{}: tensor \"{}\": {} elements of data where its shape needs {}", where,
               proto.name(), typed_count(proto, dtype), entries);
  }
  if (is_packed(dtype)) return from_packed_field(proto, dtype, dims);
  if (dtype == DType::String) {
    return Tensor::strings(dims, {proto.string_data().begin(), proto.string_data().end()});
  }
  Tensor tensor(dtype, dims);
  copy_typed(proto, tensor, where);
  return tensor;
}

::onnx::TensorProto tensor_header(const std::string& name, const Tensor& tensor) {
  ::onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  for (const int64_t dim : tensor.dims()) proto.add_dims(dim);
  return proto;
}

::onnx::TensorProto to_proto(const std::string& name, const Tensor& tensor) {
  ::onnx::TensorProto proto = tensor_header(name, tensor);
  if (tensor.dtype() == DType::String) {
    for (int64_t i = 0; i < tensor.size(); ++i) proto.add_string_data(tensor.text(i));
  } else if (is_packed(tensor.dtype())) {
    proto.set_raw_data(packed(tensor));
  } else {
    proto.set_raw_data(tensor.data(), tensor.bytes());
  }
  return proto;
}

}  // namespace redfuser::onnx
