// Ranks beyond what a block's shared memory holds: whole rows sorted, and large k.
#pragma once

#include <fmt/format.h>

#include <string>

#include "redfuser/tensor.h"

namespace redfuser::testing {

struct SortCase {
  const char* name;
  const char* type;
  DType dtype;
  bool largest = true;
  bool columns = false;  // ranks along the first axis
  bool open = false;     // sizes known at run time only
};

inline const SortCase kSortCases[] = {
    {"floats", "float", DType::Float32},
    {"rising", "float", DType::Float32, false},
    {"halves", "float16", DType::Float16},
    {"bfloats", "bfloat16", DType::BFloat16, false},
    {"doubles", "double", DType::Float64},
    {"words", "int64", DType::Int64, false},
    {"integers", "int32", DType::Int32},
    {"bytes", "uint8", DType::UInt8},
    {"columns", "float", DType::Float32, false, true},
    {"open", "float", DType::Float32, true, false, true},
    {"open_words", "int64", DType::Int64, true, false, true},
};

// The first k of each of `rows` lines.
inline std::string sort_graph(const SortCase& c, int64_t rows, int64_t length, int64_t k) {
  const auto dims = [&](const std::string& lines, const std::string& size) {
    return c.columns ? size + "," + lines : lines + "," + size;
  };
  const std::string lines = c.open ? "m" : std::to_string(rows), first = std::to_string(k);
  return fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1}] x) => ({0}[{2}] y, int64[{2}] i) {{ "
      "k = Constant<value = int64[1] {{{3}}}>() y, i = TopK<axis = {4}, largest = {5}>(x, k) }}",
      c.type, dims(lines, c.open ? "n" : std::to_string(length)), dims(lines, first), k,
      c.columns ? 0 : 1, c.largest ? 1 : 0);
}

}  // namespace redfuser::testing
