// TensorProto <-> Tensor.
#pragma once

#include <memory>
#include <string>

#include "redfuser/tensor.h"

namespace onnx {
class TensorProto;
}

namespace redfuser::onnx {

class ExternalData;

// The tensor of `proto`, whatever field its data is in. Raw data is wrapped, not copied, where its
// alignment allows; `owner` then keeps `proto` alive (null: always copied). `external` may be null
// where external data is not allowed. Throws UserError, starting with `where` and naming the
// tensor, for unsupported types, dims that are negative or overflow, and data of the wrong size.
Tensor to_tensor(const ::onnx::TensorProto& proto, const std::shared_ptr<const void>& owner,
                 ExternalData* external, const std::string& where);

// `dims` of the tensor `name`, where none is negative and its bytes do not overflow. Otherwise
// throws UserError, starting with `where`.
Dims checked_dims(Dims dims, DType dtype, const std::string& name, const std::string& where);

// Type, dims and name, without data.
::onnx::TensorProto tensor_header(const std::string& name, const Tensor& tensor);
// With the data as raw_data, or as string_data.
::onnx::TensorProto to_proto(const std::string& name, const Tensor& tensor);

}  // namespace redfuser::onnx
