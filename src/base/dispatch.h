// From a run-time dtype to a C++ type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/error.h"
#include "base/half.h"
#include "redfuser/tensor.h"

namespace redfuser {

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<T>{}) with the storage type of `dtype` and returns its result. Bool is `bool`,
// Float16 is Half, BFloat16 is BFloat16; integers of 4 and 2 bits are bytes, and low-bit floats
// their codes. Throws InternalError for types that are not numbers.
template <typename Body>
decltype(auto) dispatch(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float32:
      return body(TypeTag<float>{});
    case DType::Float64:
      return body(TypeTag<double>{});
    case DType::Float16:
      return body(TypeTag<Half>{});
    case DType::BFloat16:
      return body(TypeTag<BFloat16>{});
    case DType::Int8:
    case DType::Int4:
    case DType::Int2:
      return body(TypeTag<int8_t>{});
    case DType::Int16:
      return body(TypeTag<int16_t>{});
    case DType::Int32:
      return body(TypeTag<int32_t>{});
    case DType::Int64:
      return body(TypeTag<int64_t>{});
    case DType::UInt8:
    case DType::UInt4:
    case DType::UInt2:
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
    case DType::Float4E2M1:
      return body(TypeTag<uint8_t>{});
    case DType::UInt16:
      return body(TypeTag<uint16_t>{});
    case DType::UInt32:
      return body(TypeTag<uint32_t>{});
    case DType::UInt64:
      return body(TypeTag<uint64_t>{});
    case DType::Bool:
      return body(TypeTag<bool>{});
    default:
      internal_error("no element type for dtype {}", name_of(dtype));
  }
}

// The type that arithmetic on T happens in: float for the 16-bit floats, else T.
template <typename T>
using Arithmetic =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

}  // namespace redfuser
