// Texts in NumPy's array files: fixed widths, filled up with zeros.
#pragma once

#include <string>

#include "io/byte_source.h"
#include "io/npy_header.h"

namespace redfuser::io {

// Reads the elements of `texts`, a String tensor of the header's dims, in the file's order.
// UserError, naming `what`, for characters that Unicode does not have.
void read_texts(ByteSource& source, const NpyHeader& header, const std::string& what,
                Tensor& texts);

// uint32 [..., longest]: the characters of a String tensor, filled up with zeros; `longest` is at
// least 1. UserError for a text that is not UTF-8 or ends in a zero byte.
Tensor wide_texts(const Tensor& tensor);

}  // namespace redfuser::io
