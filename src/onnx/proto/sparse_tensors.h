// Sparse tensors of a model as dense ones.
#pragma once

#include <string>

namespace onnx {
class ModelProto;
}

namespace redfuser::onnx {

// Makes every sparse initializer of `model` an initializer, and every sparse_value of a Constant
// its value, with zeros where the sparse tensor stores nothing; so nothing behind this knows sparse
// tensors. Subgraphs and functions are included. Throws UserError, starting with `where` and naming
// the tensor or the node, for values that are not a list of numbers, indices that are not int64 of
// [count] or [count,rank], out of range or not ascending, and dense sizes that do not fit into
// memory.
void make_dense(::onnx::ModelProto& model, const std::string& where);

}  // namespace redfuser::onnx
