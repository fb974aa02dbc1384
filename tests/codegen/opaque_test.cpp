// Operators without a lowering, from ONNX text to kernels that NVRTC accepts.
#include <fmt/format.h>

#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  size_t kernels = 1;  // 0: as estimates for the GPU have it
};

std::vector<Case> cases() {
  return {
      {"scatter_elements_max",
       "g (float16[m, n] x, int64[k, n] i, float16[k, n] u) => (float16[m, n] y) "
       "{ y = ScatterElements<axis = 0, reduction = \"max\">(x, i, u) }",
       5},
      {"scatter_nd_add",
       "g (float[m, n] x, int64[k, 1] i, float[k, n] u) => (float[m, n] y) "
       "{ y = ScatterND<reduction = \"add\">(x, i, u) }",
       6},
      {"scatter_nd_few",
       "g (float[3, 4] x, int64[5, 1] i, float[5, 4] u) => (float[3, 4] y) "
       "{ y = ScatterND<reduction = \"add\">(x, i, u) }"},
      {"max_pool",
       "g (float[b, 4, 16, 16] x) => (float[b, 4, 8, 8] y) "
       "{ y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }"},
      // Lines of windows, then windows of lines.
      {"max_pool_of_large_windows",
       "g (float16[16, 64, 40, 40] x) => (float16[16, 64, 40, 40] y) "
       "{ y = MaxPool<kernel_shape = [9, 9], pads = [4, 4, 4, 4]>(x) }",
       2},
      {"average_pool_of_large_volumes",
       "g (float16[4, 16, 20, 40, 40] x) => (float16[4, 16, 14, 34, 34] y) "
       "{ y = AveragePool<kernel_shape = [7, 7, 7]>(x) }",
       3},
      // Parts of windows, then windows of parts.
      {"max_pool_of_long_windows",
       "g (float[16, 256, 8192] x) => (float[16, 256, 8192] y) "
       "{ y = MaxPool<kernel_shape = [31], pads = [15, 15]>(x) }",
       2},
      {"lp_pool_of_large_windows",
       "g (float[16, 512, 40, 40] x) => (float[16, 512, 40, 40] y) "
       "{ y = LpPool<kernel_shape = [13, 13], pads = [6, 6, 6, 6]>(x) }",
       4},
      // The ends are those of the boxes.
      {"max_of_boxes",
       "g (float[1, 64, 50, 50] x, float[30, 5] r) => (float[30, 64, 7, 7] y) "
       "{ y = MaxRoiPool<pooled_shape = [7, 7]>(x, r) }"},
      {"max_pool_of_windows_apart",
       "g (float[16, 64, 40, 40] x) => (float[16, 64, 10, 10] y) "
       "{ y = MaxPool<kernel_shape = [4, 4], strides = [4, 4]>(x) }"},
      {"average_pool_larger_than_its_input",
       "g (float[b, 4, h, 7] x) => (float[b, 4, p, q] y) "
       "{ y = AveragePool<kernel_shape = [2560, 2560], strides = [2560, 2560], ceil_mode = 1>(x) "
       "}"},
      {"max_pool_indices",
       "g (float[b, 4, h, w] x) => (float[b, 4, k, l] y, int64[b, 4, k, l] i) "
       "{ y, i = MaxPool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1], "
       "storage_order = 1>(x) }",
       2},
      {"lp_pool",
       "g (float16[b, 4, h, w] x) => (float16[b, 4, k, l] y) "
       "{ y = LpPool<kernel_shape = [2, 2], pads = [1, 1, 0, 0], p = 3>(x) }"},
      {"max_unpool",
       "g (float[1, 2, h, w] x, int64[1, 2, h, w] i) => (float[1, 2, 8, 9] y) "
       "{ s = Constant<value = int64[4] {1, 2, 8, 9}>() "
       "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i, s) }",
       2},
      {"scan_along_data",
       "g (float16[a, b, c] x, int64 axis) => (float16[a, b, c] y) "
       "{ y = CumSum<reverse = 1, exclusive = 1>(x, axis) }"},
      // Flags, then places; of rows that are picked, then the rows.
      {"nonzero", "g (float16[a, b, c] x) => (int64[3, m] y) { y = NonZero(x) }", 2},
      {"compress",
       "g (bfloat16[a, b, c] x, bool[b] k) => (bfloat16[a, m, c] y) { y = Compress<axis = 1>(x, k) "
       "}",
       3},
      // Seven kernels sort; four find the boxes, the overlaps of a chunk, its kept boxes, the
      // result.
      {"non_max_suppression",
       "g (float[b, 700, 4] x, float[b, c, 700] s, int64 most, float overlap, float least) => "
       "(int64[m, 3] y) { y = NonMaxSuppression<center_point_box = 1>(x, s, most, overlap, least) "
       "}",
       12},
      // By points, or by tiles where there are many.
      {"dft",
       "g (bfloat16[b, n, 2] x) => (bfloat16[b, n, 2] y) { y = DFT<inverse = 1, axis = 1>(x) }", 0},
      {"dft_real_result",
       "g (float[b, n, 2] x) => (float[b, m, 1] y) "
       "{ y = DFT<inverse = 1, onesided = 1, axis = 1>(x) }",
       0},
      {"stft",
       "g (float[b, n, 1] x, float[16] w) => (float[b, f, 9, 2] y) "
       "{ s = Constant<value = int64 {4}>() y = STFT(x, s, w) }"},
      {"det", "g (double[b, 3, 3] x) => (double[b] y) { y = Det(x) }"},
      {"col2im",
       "g (float[b, 12, 20] x) => (float[b, 3, 5, 6] y) "
       "{ i = Constant<value = int64[2] {5, 6}>() k = Constant<value = int64[2] {2, 2}>() "
       "y = Col2Im(x, i, k) }"},
      {"deform_conv",
       "g (float[b, 4, 7, 7] x, float[6, 2, 3, 3] w, float[b, 18, 5, 5] o, float[6] c, "
       "float[b, 9, 5, 5] m) => (float[b, 6, 5, 5] y) "
       "{ y = DeformConv<group = 2, kernel_shape = [3, 3]>(x, w, o, c, m) }"},
      {"roi_align",
       "g (float16[b, 4, h, w] x, float16[r, 4] boxes, int64[r] i) => (float16[r, 4, 3, 5] y) "
       "{ y = RoiAlign<output_height = 3, output_width = 5, sampling_ratio = 2>(x, boxes, i) }"},
      {"max_roi_pool",
       "g (float[b, 4, h, w] x, float[r, 5] boxes) => (float[r, 4, 3, 5] y) "
       "{ y = MaxRoiPool<pooled_shape = [3, 5]>(x, boxes) }"},
  };
}

class CodegenOpaque : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenOpaque, CompilesEverywhere) {
  const TextModel model(GetParam().graph, 19);
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const int architecture : {80, 90, 100}) {
    codegen::Target target;
    target.architecture = architecture;
    const GeneratedModel generated = generate_model(model.path(), target);
    if (GetParam().kernels > 0) {
      ASSERT_EQ(generated.kernels.size(), GetParam().kernels);
    }
    expect_compiles(generated.kernels, architecture, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CodegenOpaque, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser::codegen_tests
