#include "ep/value_types.h"

#include <onnx/onnx_pb.h>

#include "ep/ort_graph.h"

namespace redfuser::ep {
namespace {

constexpr uint32_t kTellsRanks = 24;  // the version that tells a scalar from an open rank

Dims dims_of(const Api& api, const OrtTensorTypeAndShapeInfo& info) {
  Dims dims(answer<size_t>(api, &OrtApi::GetDimensionsCount, &info));
  if (!dims.empty()) check(api, api.ort->GetDimensions(&info, dims.data(), dims.size()));
  return dims;
}

void write_shape(const Api& api, const OrtTensorTypeAndShapeInfo& info,
                 ::onnx::TypeProto_Tensor& type) {
  const Dims dims = dims_of(api, info);
  const bool has_rank =
      api.version >= kTellsRanks ? api.ort->TensorTypeAndShape_HasShape(&info) : !dims.empty();
  if (!has_rank) return;
  std::vector<const char*> symbols(dims.size());
  if (!dims.empty()) {
    check(api, api.ort->GetSymbolicDimensions(&info, symbols.data(), symbols.size()));
  }
  auto* shape = type.mutable_shape();
  for (size_t i = 0; i < dims.size(); ++i) {
    auto* dim = shape->add_dim();
    if (dims[i] >= 0) {
      dim->set_dim_value(dims[i]);
    } else if (symbols[i] != nullptr && *symbols[i] != '\0') {
      dim->set_dim_param(symbols[i]);
    }
  }
}

}  // namespace

DType dtype_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128:
      return DType::Undefined;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2:
      return DType::UInt2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2:
      return DType::Int2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0:
      return DType::Float8E8M0;
    default:
      break;
  }
  // The others have the numbers of ONNX.
  return type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 ? static_cast<DType>(type)
                                                          : DType::Undefined;
}

void write_type(const Api& api, const OrtValueInfo& value, ::onnx::TypeProto& type) {
  const auto* info = answer<const OrtTypeInfo*>(api, &OrtApi::GetValueInfoTypeInfo, &value);
  if (info == nullptr) return;
  if (answer<ONNXType>(api, &OrtApi::GetOnnxTypeFromTypeInfo, info) != ONNX_TYPE_TENSOR) return;
  const auto* tensor =
      answer<const OrtTensorTypeAndShapeInfo*>(api, &OrtApi::CastTypeInfoToTensorInfo, info);
  const DType dtype =
      dtype_of(answer<ONNXTensorElementDataType>(api, &OrtApi::GetTensorElementType, tensor));
  if (dtype == DType::Undefined) return;
  type.mutable_tensor_type()->set_elem_type(static_cast<int>(dtype));
  write_shape(api, *tensor, *type.mutable_tensor_type());
}

TensorType tensor_type(const Api& api, const OrtValue& value) {
  const Released<OrtTensorTypeAndShapeInfo> info(
      answer<OrtTensorTypeAndShapeInfo*>(api, &OrtApi::GetTensorTypeAndShape, &value),
      api.ort->ReleaseTensorTypeAndShapeInfo);
  const auto type =
      answer<ONNXTensorElementDataType>(api, &OrtApi::GetTensorElementType, info.get());
  return {dtype_of(type), dims_of(api, *info)};
}

}  // namespace redfuser::ep
