// NumPy's array files. Format: numpy.lib.format, versions 1 to 3.
#pragma once

#include <string>

#include "io/byte_source.h"
#include "redfuser/tensor.h"

namespace redfuser::io {

// Reads one array, which must fill the source, into row-major order and native byte order. `what`
// names it in errors.
Tensor read_npy(ByteSource& source, const std::string& what);

// A .npy file.
struct NpyFile {
  std::string header;
  Tensor elements;  // whose bytes follow the header
};

// A tensor in NumPy's types: bfloat16 and floats of 8 bits and fewer as float32, integers below 8
// bits as bytes, texts as <U. UserError for lists, and for texts that <U cannot hold: those that
// are not UTF-8 or end in a zero byte.
NpyFile npy_file(const Tensor& tensor);

}  // namespace redfuser::io
