// Graphs that convolve 8-bit integers. Their inputs are those of integer_products.h.
#pragma once

#include "support/integer_products.h"

namespace redfuser {

inline std::vector<IntegerProductGraph> integer_convolution_graphs() {
  const auto graph = [](const std::string& name, const std::string& inputs,
                        const std::string& output, const std::string& body) {
    return IntegerProductGraph{name, "<ir_version: 10, opset_import: [\"\" : 21]> g (" + inputs +
                                         ") => (" + output + " y) { " + body + " }"};
  };
  const auto convolved = [](const std::string& attributes, const std::string& zeros) {
    return "y = ConvInteger<" + attributes + ">(x, w" + zeros + ")";
  };
  const std::string same = "pads = [1, 1, 1, 1]";
  return {
      graph("without_zeros", "int8[m, 20, 9, 11] x, int8[48, 20, 3, 3] w", "int32[m, 48, 7, 9]",
            convolved("group = 1", "")),
      graph("padded", "uint8[m, 32, 14, 14] x, uint8[40, 32, 3, 3] w, uint8 zx, uint8 zw",
            "int32[m, 40, 14, 14]", convolved(same, ", zx, zw")),
      graph("zeros_of_filters",
            "uint8[m, 35, 15, 13] x, int8[17, 35, 3, 3] w, uint8 zx, int8[17] zw",
            "int32[m, 17, 8, 7]", convolved(same + ", strides = [2, 2]", ", zx, zw")),
      graph("pointwise", "int8[m, 64, 7, 7] x, uint8[32, 64, 1, 1] w, int8 zx",
            "int32[m, 32, 7, 7]", convolved("group = 1", ", zx")),
      graph("patches", "uint8[m, 40, 16, 16] x, int8[48, 40, 4, 4] w, uint8 zx",
            "int32[m, 48, 4, 4]", convolved("strides = [4, 4]", ", zx")),
      graph("dilated", "uint8[m, 64, 12, 12] x, int8[32, 64, 3, 3] w, uint8 zx",
            "int32[m, 32, 11, 9]", convolved("dilations = [2, 2], pads = [1, 0, 2, 1]", ", zx")),
      graph("one_dimension", "int8[m, 20, 101] x, int8[33, 20, 5] w, int8 zx, int8 zw",
            "int32[m, 33, 99]", convolved("pads = [1, 1]", ", zx, zw")),
      graph("volume", "uint8[m, 48, 5, 6, 7] x, int8[32, 48, 2, 2, 2] w, uint8 zx",
            "int32[m, 32, 4, 5, 6]", convolved("group = 1", ", zx")),
      graph("groups", "uint8[m, 12, 9, 9] x, int8[18, 4, 3, 3] w, uint8 zx, int8[18] zw",
            "int32[m, 18, 9, 9]", convolved(same + ", group = 3", ", zx, zw")),
      graph("depthwise", "uint8[m, 24, 10, 10] x, uint8[24, 1, 3, 3] w, uint8 zx, uint8 zw",
            "int32[m, 24, 10, 10]", convolved(same + ", group = 24", ", zx, zw")),
      graph("dynamic",
            "float[m, 16, 8, 8] x, int8[32, 16, 3, 3] w, float[32, 1, 1] sb, float[32, 1, 1] bias",
            "float[m, 32, 8, 8]",
            "q, s, z = DynamicQuantizeLinear(x) p = ConvInteger<" + same +
                ">(q, w, z) f = Cast<to = 1>(p) g = Mul(f, s) h = Mul(g, sb) i = Add(h, bias) "
                "y = Relu(i)"),
      graph("quantised",
            "uint8[m, 16, 8, 8] x, float sx, uint8 zx, int8[32, 16, 3, 3] w, float[32] sw, "
            "int8[32] zw, float sy, uint8 zy, int32[32] b",
            "uint8[m, 32, 8, 8]", "y = QLinearConv<" + same + ">(x, sx, zx, w, sw, zw, sy, zy, b)"),
      graph("quantised_groups",
            "int8[m, 16, 8, 8] x, float sx, int8 zx, int8[16, 1, 3, 3] w, float sw, int8 zw, "
            "float sy, int8 zy",
            "int8[m, 16, 6, 6]", "y = QLinearConv<group = 16>(x, sx, zx, w, sw, zw, sy, zy)"),
  };
}

}  // namespace redfuser
