// Element types and declared types of ONNX Runtime's values, as ONNX files have them.
#pragma once

#include "ep/api.h"
#include "redfuser/tensor.h"

namespace onnx {
class TypeProto;
}

namespace redfuser::ep {

// Undefined for types that RedFuser does not have.
DType dtype_of(ONNXTensorElementDataType type);

// The declared type of a value, left unset for values that are not tensors. A tensor has a shape
// where its rank is declared. ONNX Runtime 1.23 gives a tensor without a declared rank the rank 0,
// so there no tensor of rank 0 has a shape.
void write_type(const Api& api, const OrtValueInfo& value, ::onnx::TypeProto& type);

// The type and sizes of a tensor.
struct TensorType {
  DType dtype = DType::Undefined;
  Dims dims;
};
TensorType tensor_type(const Api& api, const OrtValue& value);

}  // namespace redfuser::ep
