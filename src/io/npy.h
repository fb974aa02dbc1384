// NumPy's array files. Format: numpy.lib.format, versions 1 to 3.
#pragma once

#include <string>

#include "io/byte_source.h"
#include "redfuser/tensor.h"

namespace redfuser::io {

// Reads one array, which must fill the source, into row-major order and native byte order. `what`
// names it in errors.
Tensor read_npy(ByteSource& source, const std::string& what);

// The bytes that precede the elements of `tensor` in a .npy file. bfloat16 has no NumPy type: pass
// for_numpy(tensor).
std::string npy_header(const Tensor& tensor);

// The tensor itself, or as float32 if it is bfloat16.
Tensor for_numpy(const Tensor& tensor);

}  // namespace redfuser::io
