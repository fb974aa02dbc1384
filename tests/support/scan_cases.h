// Running sums, products and extremes as graphs: by operators, and written out with a mask.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace redfuser::testing {

struct ScanCase {
  const char* name;
  const char* type;
  const char* x;         // dimensions
  const char* dims = x;  // of the result
  const char* body;      // y from x; `a` is the axis
  int axis = 1;
  bool exact = false;  // integers
};

inline const ScanCase kScanCases[] = {
    {"rows", "float", "m,n", "m,n", "y = CumSum(x, a)"},
    {"reverse", "float", "m,n", "m,n", "y = CumSum<reverse = 1>(x, a)"},
    {"exclusive", "float", "m,n", "m,n", "y = CumSum<exclusive = 1>(x, a)"},
    {"both", "float16", "m,n", "m,n", "y = CumSum<reverse = 1, exclusive = 1>(x, a)"},
    {"bfloats", "bfloat16", "m,n", "m,n", "y = CumSum(x, a)"},
    {"of_a_chain", "float", "m,n", "m,n", "t = Tanh(x) s = Mul(t, x) y = CumSum(s, a)"},
    {"doubles", "double", "m,n", "m,n", "y = CumSum(x, a)"},
    {"integers", "int32", "m,n", "m,n", "y = CumSum(x, a)", 1, true},
    {"words", "uint64", "m,n", "m,n", "y = CumSum<reverse = 1>(x, a)", 1, true},
    {"columns", "float", "m,n", "m,n", "y = CumSum(x, a)", 0},
    {"columns_reverse", "float16", "m,n", "m,n", "y = CumSum<reverse = 1, exclusive = 1>(x, a)", 0},
    {"columns_of_words", "int64", "m,n", "m,n", "y = CumSum(x, a)", 0, true},
    {"middle", "float", "3,m,n", "3,m,n", "y = CumSum(x, a)", 1},
    {"middle_of_four", "float", "2,m,n,4", "2,m,n,4", "y = CumSum<exclusive = 1>(x, a)", 1},
    {"transposed", "float", "m,n", "n,m", "t = Transpose(x) y = CumSum(t, a)", 1},
    {"written_out", "float", "m,n", "m,n",
     "s = Shape<start = 1>(x) z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() "
     "e = Squeeze(s) r = Range(z, e, o) i = Unsqueeze(r, o) j = Unsqueeze(r, z) "
     "c = LessOrEqual(j, i) u = Unsqueeze(x, o) f = Constant<value = float {0}>() "
     "w = Where(c, u, f) l = Constant<value = int64[1] {2}>() y = ReduceSum<keepdims = 0>(w, l)"},
    {"largest_so_far", "float", "m,n", "m,n",
     "s = Shape<start = 1>(x) z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() "
     "e = Squeeze(s) r = Range(z, e, o) i = Unsqueeze(r, o) j = Unsqueeze(r, z) "
     "c = Less(i, j) u = Unsqueeze(x, o) f = Constant<value = float {-inf}>() "
     "w = Where(c, f, u) l = Constant<value = int64[1] {2}>() y = ReduceMax<keepdims = 0>(w, l)"},
};

// With sizes of its own in place of m and n, if given.
inline std::string scan_graph(const ScanCase& c, const std::string& m = "m",
                              const std::string& n = "n") {
  const auto dims = [&](const char* from) {
    std::string text;
    for (const char* at = from; *at != 0; ++at) {
      text += *at == 'm' ? m : *at == 'n' ? n : std::string(1, *at);
    }
    return text;
  };
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]> g ({0}[{1}] x) => ({0}[{2}] y) {{ "
      "a = Constant<value = int64 {{{3}}}>() {4} }}",
      c.type, dims(c.x), dims(c.dims), c.axis, c.body);
}

}  // namespace redfuser::testing
