// Graphs that multiply 8-bit floats.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace redfuser {

struct CodeProductGraph {
  std::string name, text;
};

// `body` from float[m, 64] x and the inputs after it to y.
inline CodeProductGraph code_product_graph(const std::string& name, const std::string& inputs,
                                           const std::string& output, const std::string& body) {
  return {name, fmt::format("<ir_version: 10, opset_import: [\"\" : 21]> g (float[m, 64] x, {}) => "
                            "({} y) {{ {} }}",
                            inputs, output, body)};
}

// Each row's scale s and codes q of x.
inline const char* const kQuantisedRows =
    "o = Constant<value = int64[1] {1}>() least = Constant<value = float {1e-12}>() "
    "most = Constant<value = float {448}>() a = Abs(x) r = ReduceMax(a, o) c = Max(r, least) "
    "s = Div(c, most) d = Div(x, s) q = Cast<to = 17>(d) f = Cast<to = 1>(q) ";

inline std::vector<CodeProductGraph> code_product_graphs() {
  const std::string rows = kQuantisedRows;
  const std::string along = "float8e4m3fn[48, 64] w", across = "float8e4m3fn[64, 48] w";
  const std::string floats = "u = Transpose<perm = [1, 0]>(w) v = Cast<to = 1>(u) ";
  const std::string product = floats + "p = MatMul(f, v) t = Mul(p, s) ";
  const std::string pairs =
      "o = Constant<value = int64[1] {1}>() least = Constant<value = float {1e-12}>() "
      "most = Constant<value = float {448}>() a = Abs(x) r = ReduceMax<keepdims = 0>(a, o) "
      "c = Max(r, least) s = Div(c, most) "
      "q = QuantizeLinear<axis = 0, output_dtype = 17>(x, s) f = DequantizeLinear<axis = 0>(q, s) ";
  return {
      code_product_graph("casts", along + ", float[1, 48] z", "bfloat16[m, 48]",
                         rows + product + "h = Mul(t, z) y = Cast<to = 16>(h)"),
      code_product_graph("in_float", along + ", float[48] z", "float[m, 48]",
                         rows + product + "y = Mul(t, z)"),
      code_product_graph("pairs", along + ", float[48] z", "bfloat16[m, 48]",
                         pairs + "v = DequantizeLinear<axis = 0>(w, z) "
                                 "u = Transpose<perm = [1, 0]>(v) p = MatMul(f, u) "
                                 "y = Cast<to = 16>(p)"),
      code_product_graph("by_tensor", across + ", float z, float s", "bfloat16[m, 48]",
                         "q = QuantizeLinear<output_dtype = 17>(x, s) f = DequantizeLinear(q, s) "
                         "v = DequantizeLinear(w, z) p = MatMul(f, v) y = Cast<to = 16>(p)"),
      code_product_graph("biased", along + ", float[48] z, bfloat16[48] b", "bfloat16[m, 48]",
                         rows + product + "h = Mul(t, z) g = Cast<to = 16>(h) y = Add(g, b)"),
      code_product_graph("activated", along + ", float[48] z", "float16[m, 48]",
                         rows + product + "h = Mul(t, z) g = Sigmoid(h) y = Cast<to = 10>(g)"),
      code_product_graph("by_block", "float8e4m3fn[64, 48] w, float[2, 48] z", "float[m, 48]",
                         rows + "v = DequantizeLinear<axis = 0, block_size = 32>(w, z) "
                                "p = MatMul(f, v) y = Mul(p, s)"),
      code_product_graph("unnegative_zero", "float8e4m3fnuz[48, 64] w", "float[m, 48]",
                         rows + product + "y = Identity(t)"),
      code_product_graph("of_floats", along, "float[m, 48]", floats + "y = MatMul(x, v)"),
      code_product_graph("ragged", "float8e4m3fn[47, 64] w", "float[m, 47]",
                         rows + product + "y = Identity(t)"),
  };
}

}  // namespace redfuser
