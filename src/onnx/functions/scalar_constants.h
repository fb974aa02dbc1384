// Constants of ONNX's function bodies.
#pragma once

namespace onnx {
class FunctionProto;
}

namespace redfuser::onnx {

// Some bodies write a number as a vector of one element, which gives a result of rank 1 for an
// argument of rank 0. Makes scalars of those that only elementwise operators read, all the way to
// the results: for arguments of higher rank nothing changes.
void make_scalars(::onnx::FunctionProto& function);

}  // namespace redfuser::onnx
