// The text header of a .npy file: a Python dictionary literal.
#pragma once

#include <string>
#include <string_view>

#include "redfuser/tensor.h"

namespace redfuser::io {

struct NpyHeader {
  DType dtype = DType::Undefined;
  size_t width = 0;      // bytes per element in the file
  bool wide = false;     // texts: 4 bytes per character, not UTF-8
  bool swapped = false;  // the file's bytes are in the other order
  bool fortran_order = false;
  Dims dims;
};

// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. Texts (<U7, |S7) are
// String. UserError, naming `what`, for anything else and for dtypes that RedFuser does not have.
NpyHeader parse_npy_header(std::string_view text, const std::string& what);

}  // namespace redfuser::io
