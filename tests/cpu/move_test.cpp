// The kernels that copy elements which do not lie side by side, of every instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

// Strides and tables at random: elements near each other and far apart, rows that lie beside each
// other, and tensors whose last elements are needed.
class Moves {
 public:
  explicit Moves(uint32_t seed) : random_(seed) {
    args_.rows = 1 + draw(random_() % 2 == 0 ? 4 : 40);
    args_.columns = 1 + draw(random_() % 2 ? 1200 : 70);
    args_.out_stride = args_.columns + draw(3);
    rows_ = offsets(args_.rows, args_.row_stride, args_.row_offsets, row_table_);
    columns_ = offsets(args_.columns, args_.column_stride, args_.column_offsets, column_table_);
    int64_t low = 0, high = 0;
    for (const int64_t r : rows_) low = std::min(low, r), high = std::max(high, r);
    int64_t least = columns_[0], most = columns_[0];
    for (const int64_t c : columns_) least = std::min(least, c), most = std::max(most, c);
    first_ = -(low + least);
    size_ = first_ + high + most + 1;
  }

  template <typename T>
  void expect_copied(const cpu::MoveFn& move) {
    // Exactly the tensor's elements, so that a sanitizer sees what lies beyond them.
    const std::unique_ptr<T[]> from(new T[static_cast<size_t>(size_)]);
    for (int64_t i = 0; i < size_; ++i)
      from[static_cast<size_t>(i)] = static_cast<T>(i * 40503 % 65537);
    std::vector<T> out(static_cast<size_t>(args_.rows * args_.out_stride), T(3)), expected = out;
    for (int64_t r = 0; r < args_.rows; ++r) {
      for (int64_t c = 0; c < args_.columns; ++c) {
        expected[static_cast<size_t>(r * args_.out_stride + c)] = from[static_cast<size_t>(
            first_ + rows_[static_cast<size_t>(r)] + columns_[static_cast<size_t>(c)])];
      }
    }
    cpu::MoveArgs args = args_;
    args.from = from.get() + first_, args.size = size_ - first_;
    args.out = out.data();
    move(args);
    ASSERT_EQ(out, expected);
  }

  std::string text() const {
    return fmt::format("{} rows{}, stride {}, {} columns{}, stride {}", args_.rows,
                       args_.row_offsets ? " by a table" : "", args_.row_stride, args_.columns,
                       args_.column_offsets ? " by a table" : "", args_.column_stride);
  }

 private:
  int64_t draw(int64_t most) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(most));
  }

  std::vector<int64_t> offsets(int64_t count, int64_t& stride, const int64_t*& table,
                               std::vector<int64_t>& memory) {
    constexpr int64_t kStrides[] = {0, 1, 1, 2, 3, 4, 5, -1, -2, -4, 7, 90, 1300};
    stride = kStrides[random_() % std::size(kStrides)];
    std::vector<int64_t> result(static_cast<size_t>(count));
    if (random_() % 2 == 0) {
      for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = i * stride;
      return result;
    }
    stride = 0;
    if (random_() % 4 == 0) {
      // Few runs, an element of each in turn.
      const int64_t runs = 2 + draw(4), apart = 1 + draw(500);
      for (int64_t i = 0; i < count; ++i) {
        result[static_cast<size_t>(i)] = i % runs * apart + i / runs;
      }
      memory = result;
      table = memory.data();
      return result;
    }
    const int64_t jump = 1 + draw(random_() % 2 ? 3 : 40), runs = 1 + draw(9);
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      result[static_cast<size_t>(i)] = at;
      at += i % runs != 0 ? 1 : draw(2 * jump) - jump / 2;
    }
    memory = result;
    table = memory.data();
    return result;
  }

  std::mt19937 random_;
  cpu::MoveArgs args_;
  std::vector<int64_t> row_table_, column_table_, rows_, columns_;
  int64_t first_ = 0, size_ = 0;
};

TEST(CpuMoves, CopyEveryElement) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (uint32_t seed = 1; seed <= 1500; ++seed) {
      Moves moves(seed);
      SCOPED_TRACE(fmt::format("{}, seed {}: {}", table->name, seed, moves.text()));
      moves.expect_copied<uint8_t>(table->move[0]);
      moves.expect_copied<uint16_t>(table->move[1]);
      moves.expect_copied<uint32_t>(table->move[2]);
      moves.expect_copied<uint64_t>(table->move[3]);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace redfuser
