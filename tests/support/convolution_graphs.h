// Graphs of convolutions with constant filters, and the family that computes each
// on a GPU.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace redfuser {

struct ConvolutionGraph {
  std::string name, family, text;
};

// A constant of floats, without ties or zeros, as the text of an initialiser.
inline std::string filter_text(const std::string& name, const std::vector<int>& dims) {
  const int count = std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
  const double scale = 1 / std::sqrt(static_cast<double>(count) / dims[0]);
  std::string values;
  for (int i = 0; i < count; ++i) {
    const double value = scale * ((i * 7919 % 1009) / 504.5 - 1.0);
    values += fmt::format("{}{:.6f}", i > 0 ? ", " : "", value);
  }
  return fmt::format("float[{}] {} = {{{}}}", fmt::join(dims, ", "), name, values);
}

// The input and the result of most convolutions are no values of the caller.
inline std::vector<ConvolutionGraph> convolution_graphs() {
  const auto graph = [](const std::string& name, const std::string& family,
                        const std::string& input, const std::vector<int>& filter,
                        const std::string& body, const std::string& type = "float16") {
    const std::string code = type == "float16" ? "10" : type == "bfloat16" ? "16" : "1";
    const std::string dims = input.substr(input.find('['));
    return ConvolutionGraph{name, family,
                            "<ir_version: 10, opset_import: [\"\" : 22]> g (" + type + dims +
                                " x) => (" + type +
                                (filter.size() == 5   ? "[p, q, r, s, v]"
                                 : filter.size() == 4 ? "[p, q, r, s]"
                                                      : "[p, q, r]") +
                                " y) <" + filter_text("f", filter) + "> { w = Cast<to = " + code +
                                ">(f) " + body + " }"};
  };
  const std::string inside = "h = Tanh(x) c = Conv<";
  const std::string end = ">(h, w) y = Sigmoid(c)";
  return {
      graph("three_by_three", "convolution", "[n, 16, 19, 21]", {24, 16, 3, 3},
            inside + "pads = [1, 1, 1, 1]" + end),
      graph("of_the_caller", "convolution", "[n, 16, 19, 21]", {24, 16, 3, 3},
            "y = Conv<pads = [1, 1, 1, 1]>(x, w)"),
      graph("bfloats", "convolution", "[n, 32, h, w]", {40, 32, 3, 3},
            inside + "pads = [1, 1, 1, 1]" + end, "bfloat16"),
      graph("first_layer", "convolution", "[n, 3, 40, 36]", {32, 3, 7, 7},
            inside + "pads = [3, 3, 3, 3], strides = [2, 2]" + end),
      graph("odd_channels", "convolution", "[n, 37, 20, 23]", {45, 37, 3, 2},
            inside + "pads = [0, 1, 2, 0], strides = [1, 2]" + end),
      graph("dilated", "convolution", "[n, 24, 30, 17]", {16, 24, 3, 3},
            inside + "dilations = [2, 3], auto_pad = \"SAME_LOWER\"" + end),
      graph("strided_points", "convolution", "[n, 64, 28, 28]", {72, 64, 1, 1},
            inside + "strides = [2, 2]" + end),
      graph("groups", "convolution", "[n, 64, 15, 15]", {32, 16, 3, 3},
            inside + "group = 4, pads = [1, 1, 1, 1]" + end),
      graph("residual", "convolution", "[n, 32, 14, 14]", {32, 32, 3, 3},
            "h = Tanh(x) c = Conv<pads = [1, 1, 1, 1]>(h, w) s = Add(c, h) r = Relu(s) "
            "d = Conv<pads = [1, 1, 1, 1]>(r, w) t = Add(d, r) y = Relu(t)"),
      graph("choices", "convolution", "[n, 32, 14, 14]", {32, 32, 3, 3},
            "h = Tanh(x) c = Conv<pads = [1, 1, 1, 1]>(h, w) r = LeakyRelu(c) "
            "d = Conv<pads = [1, 1, 1, 1]>(r, w) y = Elu(d)"),
      graph("signals", "convolution", "[n, 40, t]", {48, 40, 5},
            inside + "pads = [2, 2], strides = [2]" + end),
      graph("patches_of_one_channel", "image_to_columns", "[n, 1, 32, 48]", {64, 1, 8, 8},
            inside + "strides = [8, 8]" + end, "float"),
      graph("many_channels", "convolution", "[n, 512, 7, 7]", {64, 512, 1, 1},
            "h = Tanh(x) m = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(h) "
            "c = Conv<pads = [1, 0, 1, 0]>(m, w) y = Sigmoid(c)"),
      graph("depthwise", "depthwise", "[n, 48, 29, 31]", {48, 1, 3, 3},
            inside + "group = 48, pads = [1, 1, 1, 1]" + end),
      graph("depthwise_seven", "depthwise", "[n, 40, h, w]", {40, 1, 7, 7},
            inside + "group = 40, pads = [3, 3, 3, 3]" + end),
      graph("depthwise_odd", "depthwise", "[n, 37, 30, 31]", {37, 1, 5, 3},
            inside + "group = 37, pads = [2, 0, 2, 1], strides = [2, 3]" + end),
      graph("depthwise_dilated", "depthwise", "[n, 18, 30, 31]", {18, 1, 5, 5},
            "h = Tanh(x) c = Conv<group = 18, pads = [4, 8, 4, 8], dilations = [2, 4]>(h, w) "
            "y = Mul(c, h)"),
      graph("depthwise_signals", "depthwise", "[n, 64, t]", {64, 1, 9},
            inside + "group = 64, pads = [4, 4]" + end, "bfloat16"),
      graph("floats", "convolution", "[n, 16, 19, 21]", {24, 16, 3, 3},
            inside + "pads = [1, 1, 1, 1]" + end, "float"),
      graph("floats_of_the_caller", "convolution", "[n, 12, 19, 21]", {24, 12, 3, 3},
            "y = Conv<pads = [1, 1, 1, 1]>(x, w)", "float"),
      graph("first_layer_of_floats", "convolution", "[n, 3, 40, 36]", {32, 3, 7, 7},
            inside + "pads = [3, 3, 3, 3], strides = [2, 2]" + end, "float"),
      graph("odd_floats", "convolution", "[n, 37, 20, 23]", {45, 37, 3, 2},
            inside + "pads = [0, 1, 2, 0], strides = [1, 2], dilations = [2, 1]" + end, "float"),
      graph("residual_floats", "convolution", "[n, 32, 14, 14]", {32, 32, 3, 3},
            "h = Tanh(x) c = Conv<pads = [1, 1, 1, 1]>(h, w) s = Add(c, h) r = Relu(s) "
            "d = Conv<pads = [1, 1, 1, 1]>(r, w) t = Add(d, r) y = Relu(t)",
            "float"),
      graph("signals_of_floats", "convolution", "[n, 80, t]", {48, 80, 3},
            inside + "pads = [1, 1], strides = [2]" + end, "float"),
      graph("many_channels_of_floats", "convolution", "[n, 512, 7, 7]", {64, 512, 1, 1},
            inside + "pads = [1, 0, 1, 0]" + end, "float"),
      graph("groups_of_four", "convolution", "[n, 64, 15, 15]", {64, 4, 3, 3},
            inside + "group = 16, pads = [1, 1, 1, 1]" + end),
      graph("groups_of_eight_floats", "convolution", "[n, 128, 56, 56]", {128, 8, 3, 3},
            inside + "group = 16, pads = [1, 1, 1, 1]" + end, "float"),
      graph("wide_groups_of_floats", "convolution", "[n, 96, t]", {96, 48, 16},
            inside + "group = 2, pads = [8, 7]" + end, "float"),
      graph("odd_groups", "convolution", "[n, 135, 17, 13]", {189, 45, 3, 3},
            inside + "group = 3, pads = [1, 1, 1, 1]" + end, "bfloat16"),
      graph("odd_groups_of_floats", "convolution", "[n, 135, 17, 13]", {189, 45, 3, 3},
            inside + "group = 3, pads = [1, 1, 1, 1]" + end, "float"),
      graph("two_filters_of_a_channel", "grouped_convolution", "[n, 32, 28, 28]", {64, 1, 3, 3},
            inside + "group = 32, pads = [1, 1, 1, 1]" + end, "float"),
      graph("volumes", "convolution", "[n, 16, 7, 9, 11]", {24, 16, 3, 3, 3},
            inside + "pads = [1, 1, 1, 1, 1, 1]" + end),
      graph("volumes_of_floats", "convolution", "[n, 12, 9, 8, 7]", {20, 12, 2, 3, 3},
            inside + "pads = [0, 1, 2, 1, 0, 1], strides = [2, 1, 2], dilations = [1, 2, 1]" + end,
            "float"),
      graph("first_volumes", "convolution", "[n, 3, 8, 14, 12]", {24, 3, 3, 5, 5},
            inside + "pads = [1, 2, 2, 1, 2, 2], strides = [1, 2, 2]" + end),
      graph("groups_of_volumes", "convolution", "[n, 24, 6, 7, 8]", {24, 6, 3, 3, 3},
            inside + "group = 4, pads = [1, 1, 1, 1, 1, 1]" + end, "float"),
      graph("depthwise_floats", "depthwise", "[n, 48, 29, 31]", {48, 1, 7, 7},
            inside + "group = 48, pads = [3, 3, 3, 3]" + end, "float"),
      graph("depthwise_odd_floats", "depthwise", "[n, 37, 30, 31]", {37, 1, 5, 3},
            inside + "group = 37, pads = [2, 0, 2, 1], strides = [2, 3]" + end, "float"),
  };
}

// Those that sm_90's tiles of warpgroups compute, with filters of the caller. Tiles do not divide
// the numbers of results, channels and filters.
inline std::vector<ConvolutionGraph> window_graphs() {
  const auto graph = [](const std::string& name, const std::string& input,
                        const std::string& filter, const std::string& result,
                        const std::string& body) {
    return ConvolutionGraph{name, "convolution_tile",
                            "<ir_version: 10, opset_import: [\"\" : 22]> g (float16" + input +
                                " x, float16" + filter + " w) => (float16" + result + " y) { " +
                                body + " }"};
  };
  return {
      graph("filters_by_positions", "[5, 64, 60, 68]", "[250, 64, 3, 3]", "[p, q, r, s]",
            "c = Conv<pads = [1, 1, 1, 1]>(x, w) y = Sigmoid(c)"),
      graph("positions_by_filters", "[5, 120, 61, 67]", "[248, 120, 3, 3]", "[p, q, r, s]",
            "c = Conv<pads = [1, 0, 2, 1]>(x, w) r = Relu(c) "
            "y = MaxPool<kernel_shape = [2, 2]>(r)"),
      graph("strided", "[2, 64, 129, 127]", "[256, 64, 3, 5]", "[p, q, r, s]",
            "c = Conv<pads = [1, 2, 1, 2], strides = [2, 1]>(x, w) y = Sigmoid(c)"),
      graph("dilated", "[4, 128, 64, 66]", "[256, 128, 3, 3]", "[p, q, r, s]",
            "c = Conv<pads = [2, 3, 2, 3], dilations = [2, 3]>(x, w) y = Sigmoid(c)"),
      graph("signals", "[1, 64, 16416]", "[256, 64, 9]", "[p, q, r]",
            "c = Conv<pads = [4, 4]>(x, w) y = Sigmoid(c)"),
      graph("volumes", "[1, 64, 17, 31, 33]", "[256, 64, 3, 2, 3]", "[p, q, r, s, v]",
            "c = Conv<pads = [1, 1, 1, 1, 0, 1]>(x, w) y = Sigmoid(c)"),
      graph("any_number_of_images", "[n, 64, 60, 68]", "[256, 64, 3, 3]", "[p, q, r, s]",
            "c = Conv<pads = [1, 1, 1, 1]>(x, w) y = Sigmoid(c)"),
  };
}

inline std::string name_of_convolution(const testing::TestParamInfo<ConvolutionGraph>& info) {
  return info.param.name;
}

}  // namespace redfuser
