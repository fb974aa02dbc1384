// Products whose rows stay in shared memory by themselves: src/device/product/row_product.cuh with
// what follows written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/product/row_product.cuh", "device/reduce.cuh"};

// What a warp makes of a row of kColumns sums: themselves, a softmax, a layer normalisation.
constexpr const char* kSum = R"(
struct Row {
  static __device__ void finish(const Tile::S* row, float* y, int lane) {
    float sum = 0;
    for (int c = lane; c < Tile::kColumns; c += 32) sum += Element<Tile::S>::get(row[c]);
    sum = warp_reduce<SumOp>(sum);
    if (lane == 0) *y = sum;
  }
};
)";
constexpr const char* kSoftmax = R"(
struct Row {
  static __device__ void finish(const Tile::S* row, float* y, int lane) {
    float most = -__uint_as_float(0x7f800000u), sum = 0;
    for (int c = lane; c < Tile::kColumns; c += 32) {
      most = MaxOp::apply(most, Element<Tile::S>::get(row[c]));
    }
    most = warp_reduce<MaxOp>(most);
    for (int c = lane; c < Tile::kColumns; c += 32) {
      sum += expf(Element<Tile::S>::get(row[c]) - most);
    }
    sum = warp_reduce<SumOp>(sum);
    for (int c = lane; c < Tile::kColumns; c += 32) {
      y[c] = expf(Element<Tile::S>::get(row[c]) - most) / sum;
    }
  }
};
)";
constexpr const char* kLayerNorm = R"(
struct Row {
  static __device__ void finish(const Tile::S* row, float* y, int lane) {
    float sum = 0, squares = 0;
    for (int c = lane; c < Tile::kColumns; c += 32) sum += Element<Tile::S>::get(row[c]);
    const float mean = warp_reduce<SumOp>(sum) / Tile::kColumns;
    for (int c = lane; c < Tile::kColumns; c += 32) {
      const float d = Element<Tile::S>::get(row[c]) - mean;
      squares += d * d;
    }
    const float scale = rsqrtf(warp_reduce<SumOp>(squares) / Tile::kColumns + 1e-5f);
    for (int c = lane; c < Tile::kColumns; c += 32) {
      y[c] = (Element<Tile::S>::get(row[c]) - mean) * scale;
    }
  }
};
)";

// The arguments of a RowProductTile, and blocks of a multiprocessor.
struct Product {
  const char *name, *tile;
  int resident;
};

constexpr Product kProducts[] = {
    {"one_block", "half_t, half_t, 64, 128, 136, 1, 1, true", 1},
    {"cluster", "bfloat_t, float, 128, 256, 260, 4, 1, false", 1},
    {"two_resident", "half_t, float, 64, 64, 68, 2, 2, false", 2},
};

std::string kernel(const Product& product, const char* row) {
  return codegen::device_prelude(kHeaders) +
         fmt::format("using Tile = RowProductTile<{}>;\n", product.tile) + row +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__(Tile::kThreads + 32, {}) product(\n"
             "    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,\n"
             "    float* y, long long rows, int depth) {{\n"
             "  multiply_rows<Tile>(a, b, rows, depth,\n"
             "                      [&](const Tile::S* from, long long first, long long end) {{\n"
             "    for (long long r = first + (threadIdx.x >> 5); r < end; r += Tile::kWarps) {{\n"
             "      Row::finish(from + r * Tile::kPitch, y + r * Tile::kColumns,\n"
             "                  threadIdx.x & 31);\n    }}\n  }});\n}}\n",
             product.resident);
}

// The products are Hopper's.
TEST(RowProductTemplate, CompilesWithRowsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const Product& product : kProducts) {
    for (const char* row : {kSum, kSoftmax, kLayerNorm}) {
      expect_in_registers(kernel(product, row), 90, product.name);
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
