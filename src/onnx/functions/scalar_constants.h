// Constants of ONNX's function bodies.
#pragma once

namespace onnx {
class FunctionProto;
}

namespace redfuser::onnx {

// Some bodies write a number as a vector of one element, which gives a result of rank 1 for an
// argument of rank 0. Turns such vectors into scalars if only elementwise operators read them on
// the way to the results. Results for arguments of higher rank do not change.
void make_scalars(::onnx::FunctionProto& function);

}  // namespace redfuser::onnx
