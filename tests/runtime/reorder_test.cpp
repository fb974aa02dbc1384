#include "runtime/load/reorder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// With elements as wide as Word.
template <typename Word>
void check_every_element(DType dtype) {
  const Dims dims = {3, 4, 2, 5};
  Tensor tensor(dtype, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    static_cast<Word*>(tensor.mutable_data())[i] = static_cast<Word>(i);
  }
  for (const codegen::MemoryOrder& order :
       {codegen::MemoryOrder{0, 2, 3, 1}, {2, 3, 0, 1}, {0, 1, 2, 3}, {3, 2, 1, 0}}) {
    const Tensor result = reordered(tensor, order);
    EXPECT_EQ(result.dims(), dims);
    EXPECT_EQ(std::memcmp(restored(result, order).data(), tensor.data(), tensor.bytes()), 0);
    int64_t at[4], element = 0;
    for (at[0] = 0; at[0] < dims[0]; ++at[0]) {
      for (at[1] = 0; at[1] < dims[1]; ++at[1]) {
        for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
          for (at[3] = 0; at[3] < dims[3]; ++at[3], ++element) {
            int64_t offset = 0;
            for (const int d : order) offset = offset * dims[static_cast<size_t>(d)] + at[d];
            EXPECT_EQ(static_cast<const Word*>(result.data())[offset], element);
          }
        }
      }
    }
  }
}

TEST(Reordered, EveryElementIsWhereTheOrderPutsIt) {
  check_every_element<uint16_t>(DType::Float16);
  check_every_element<uint32_t>(DType::Float32);
}

TEST(Reordered, HasZerosBehindPaddedDimensions) {
  Tensor tensor(DType::Float16, {9, 11});
  auto* elements = static_cast<uint16_t*>(tensor.mutable_data());
  for (int64_t i = 0; i < tensor.size(); ++i) elements[i] = static_cast<uint16_t>(i + 1);
  for (codegen::MemoryOrder order : {codegen::MemoryOrder{0, 1}, {1, 0}}) {
    order.padded = true;
    const Tensor result = reordered(tensor, order);
    EXPECT_EQ(result.dims(), (Dims{16, 16}));
    for (int64_t i = 0; i < result.size(); ++i) {
      const bool turned = order[0] == 1;
      const int64_t row = turned ? i % 16 : i / 16, column = turned ? i / 16 : i % 16;
      const int64_t expected = row < 9 && column < 11 ? row * 11 + column + 1 : 0;
      EXPECT_EQ(static_cast<const uint16_t*>(result.data())[i], expected) << i;
    }
    EXPECT_THROW(restored(result, order), InternalError);
  }
}

TEST(Reordered, TakesTheTensorsDimensionsAlone) {
  EXPECT_THROW(reordered(Tensor(DType::Float16, {2, 2}), {0, 2, 3, 1}), InternalError);
}

}  // namespace
}  // namespace redfuser::runtime
