#include "codegen/text/type_text.h"

#include "base/error.h"

namespace redfuser::codegen {

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "float";
    case DType::Float64:
      return "double";
    case DType::Float16:
      return "half_t";
    case DType::BFloat16:
      return "bfloat_t";
    case DType::Bool:
      return "bool";
    case DType::Int8:
    case DType::Int4:
    case DType::Int2:
      return "signed char";
    case DType::UInt8:
    case DType::UInt4:
    case DType::UInt2:
      return "unsigned char";
    case DType::Int16:
      return "short";
    case DType::UInt16:
      return "unsigned short";
    case DType::Int32:
      return "int";
    case DType::UInt32:
      return "unsigned";
    case DType::Int64:
      return "long long";
    case DType::UInt64:
      return "unsigned long long";
    case DType::Float8E4M3FN:
      return "e4m3fn_t";
    case DType::Float8E4M3FNUZ:
      return "e4m3fnuz_t";
    case DType::Float8E5M2:
      return "e5m2_t";
    case DType::Float8E5M2FNUZ:
      return "e5m2fnuz_t";
    case DType::Float8E8M0:
      return "e8m0_t";
    case DType::Float4E2M1:
      return "e2m1_t";
    default:
      user_error("tensors of type {} have no form on a GPU", name_of(dtype));
  }
}

std::string_view value_type(DType dtype) {
  if (bits_of(dtype) == 0) user_error("values of type {} have no form on a GPU", name_of(dtype));
  if (is_low_bit_float(dtype)) return storage_type(dtype);
  if (dtype == DType::Float64) return "double";
  if (is_float(dtype)) return "float";
  if (dtype == DType::UInt64) return "unsigned long long";
  return dtype == DType::Bool ? "bool" : "long long";
}

}  // namespace redfuser::codegen
