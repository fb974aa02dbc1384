#include "io/npy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/low_bit.h"
#include "base/memory_budget.h"
#include "io/npy_header.h"
#include "io/npy_text.h"

namespace redfuser::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint32_t kLargestHeader = 1 << 20;

std::string read_header_text(ByteSource& source, const std::string& what) {
  uint8_t head[8];
  if (source.remaining() < sizeof(head)) user_error("{}: too short for a .npy file", what);
  source.read(head, sizeof(head));
  if (std::memcmp(head, kMagic.data(), kMagic.size()) != 0) {
    user_error("{}: not a .npy file (its first bytes are wrong)", what);
  }
  const int version = head[6];
  if (version < 1 || version > 3) {
    user_error("{}: .npy format version {} is not supported", what, version);
  }
  uint8_t length_bytes[4] = {};
  const size_t width = version == 1 ? 2 : 4;
  if (source.remaining() < width) user_error("{}: the .npy header is truncated", what);
  source.read(length_bytes, width);
  uint32_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= static_cast<uint32_t>(length_bytes[i]) << (8 * i);
  if (length > kLargestHeader || length > source.remaining()) {
    user_error("{}: the .npy header is truncated or too long ({} bytes)", what, length);
  }
  std::string text(length, '\0');
  source.read(text.data(), text.size());
  return text;
}

void swap_bytes(void* data, size_t count, size_t width) {
  char* bytes = static_cast<char*>(data);
  for (size_t i = 0; i < count; ++i) std::reverse(bytes + i * width, bytes + (i + 1) * width);
}

// Bytes other than 0 and 1 are not valid C++ bools.
void normalise_bools(Tensor& tensor) {
  uint8_t* bytes = tensor.as<uint8_t>();
  for (int64_t i = 0; i < tensor.size(); ++i) bytes[i] = bytes[i] != 0;
}

// Row-major order of an array whose first dimension varies fastest.
Tensor from_fortran_order(const Tensor& tensor) {
  const Dims& dims = tensor.dims();
  Tensor result(tensor.dtype(), dims);
  const size_t width = size_of(tensor.dtype());
  Dims strides(dims.size()), index(dims.size());
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  const char* from = tensor.as<char>();
  char* to = result.as<char>();
  int64_t offset = 0;
  for (int64_t done = 0; done < tensor.size(); ++done) {
    std::memcpy(to + static_cast<size_t>(done) * width, from + static_cast<size_t>(offset) * width,
                width);
    for (size_t i = dims.size(); i-- > 0;) {
      offset += strides[i];
      if (++index[i] < dims[i]) break;
      offset -= strides[i] * dims[i];
      index[i] = 0;
    }
  }
  return result;
}

Tensor reordered(const NpyHeader& header, const Tensor& tensor) {
  const bool reorder = header.fortran_order && header.dims.size() > 1 && tensor.size() > 0;
  return reorder ? from_fortran_order(tensor) : tensor;
}

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return "<f2";
    case DType::Float32:
      return "<f4";
    case DType::Float64:
      return "<f8";
    case DType::Int8:
      return "|i1";
    case DType::Int16:
      return "<i2";
    case DType::Int32:
      return "<i4";
    case DType::Int64:
      return "<i8";
    case DType::UInt8:
      return "|u1";
    case DType::UInt16:
      return "<u2";
    case DType::UInt32:
      return "<u4";
    case DType::UInt64:
      return "<u8";
    case DType::Bool:
      return "|b1";
    default:
      user_error("a tensor of dtype {} has no NumPy form", name_of(dtype));
  }
}

Tensor made(const NpyHeader& header, const std::string& what) {
  try {
    return Tensor(header.dtype, header.dims);
  } catch (const MemoryLimitError& error) {
    user_error("{}: {}", what, error.what());
  }
}

}  // namespace

Tensor read_npy(ByteSource& source, const std::string& what) {
  const std::string text = read_header_text(source, what);
  const NpyHeader header = parse_npy_header(text, what);
  const int64_t count = element_count(header.dims);
  const uint64_t width = header.width;
  // Compared before anything is allocated: a header may claim any size.
  if (source.remaining() % width != 0 ||
      source.remaining() / width != static_cast<uint64_t>(count)) {
    user_error("{}: {}[{}] needs {} elements of {} bytes, but the file holds {} bytes", what,
               name_of(header.dtype), fmt::join(header.dims, ","), count, width,
               source.remaining());
  }
  Tensor tensor = made(header, what);
  if (header.dtype == DType::String) {
    read_texts(source, header, what, tensor);
    return reordered(header, tensor);
  }
  source.read(tensor.mutable_data(), tensor.bytes());
  if (header.swapped) swap_bytes(tensor.mutable_data(), static_cast<size_t>(count), width);
  if (header.dtype == DType::Bool) normalise_bools(tensor);
  return reordered(header, tensor);
}

namespace {

std::string header_of(std::string_view descr, const Dims& dims) {
  const char* trailing = dims.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, fmt::join(dims, ", "), trailing);
  // Elements start at a multiple of 64 bytes.
  const size_t prefix = kMagic.size() + 4;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text.push_back('\n');
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Tensor for_numpy(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (size_of(dtype) == 0) {
    user_error("NumPy files hold no values of type {}; a folder (of .pb files) does",
               name_of(dtype));
  }
  if (bits_of(dtype) < 8 && is_integer(dtype)) {
    const bool is_signed = dtype == DType::Int4 || dtype == DType::Int2;
    return Tensor::wrap(is_signed ? DType::Int8 : DType::UInt8, tensor.dims(), tensor.data(),
                        std::make_shared<const Tensor>(tensor));
  }
  if (dtype != DType::BFloat16 && !is_low_bit_float(dtype)) return tensor;
  Tensor wide(DType::Float32, tensor.dims());
  if (is_low_bit_float(dtype)) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      wide.as<float>()[i] = low_bit_value(dtype, tensor.as<uint8_t>()[i]);
    }
    return wide;
  }
  const BFloat16* from = tensor.as<BFloat16>();
  std::copy(from, from + tensor.size(), wide.as<float>());
  return wide;
}

}  // namespace

NpyFile npy_file(const Tensor& tensor) {
  if (tensor.dtype() == DType::String) {
    Tensor characters = wide_texts(tensor);
    const std::string descr = fmt::format("<U{}", characters.dims().back());
    return {header_of(descr, tensor.dims()), std::move(characters)};
  }
  Tensor plain = for_numpy(tensor);
  return {header_of(descr_of(plain.dtype()), plain.dims()), std::move(plain)};
}

}  // namespace redfuser::io
