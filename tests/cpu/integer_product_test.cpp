// Products of 8-bit integers on the CPU against sums of int64, bit for bit: the kernels of every
// instruction set of this machine, and steps with zero points.
#include "cpu/simd/integers/byte_pairs.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "fuse/product.h"
#include "support/cpu_harness.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

// Two matrices of bytes with zero points, as the kernels and as the definition multiply them.
class Factors {
 public:
  Factors(int64_t m, int64_t n, int64_t k, DType left, DType right, bool left_transposed,
          bool transposed)
      : m_(m),
        n_(n),
        k_(k),
        left_(left),
        right_(right),
        left_transposed_(left_transposed),
        transposed_(transposed) {
    // Extremes are as frequent as all other numbers together.
    const auto draw = [&](std::vector<uint8_t>& bytes, int64_t count, DType dtype) {
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t r = static_cast<uint32_t>(random_());
        const uint8_t extreme = dtype == DType::Int8 ? 0x80 : 0xff;
        bytes.push_back(r & 1 ? extreme : static_cast<uint8_t>(r >> 8));
      }
    };
    draw(a_, m * k, left);
    draw(b_, k * n, right);
  }

  int64_t left(int64_t i, int64_t p) const {
    return number(a_[static_cast<size_t>(left_transposed_ ? p * m_ + i : i * k_ + p)], left_);
  }
  int64_t right(int64_t p, int64_t j) const {
    return number(b_[static_cast<size_t>(transposed_ ? j * k_ + p : p * n_ + j)], right_);
  }

  void check(const cpu::KernelTable& table, const cpu::IntegerKernels& kernels, bool left_signed,
             bool row_zeros, bool column_zeros) {
    SCOPED_TRACE(testing::Message() << kernels.name << " " << m_ << "x" << n_ << "x" << k_ << " "
                                    << name_of(left_) << (left_transposed_ ? " transposed·" : "·")
                                    << name_of(right_) << (transposed_ ? " transposed" : "")
                                    << (left_signed ? " signed·unsigned" : " unsigned·signed"));
    const int64_t depth = kernels.packed_depth(k_), width = kernels.packed_columns(n_);
    Tensor a(DType::UInt8, {std::max<int64_t>(m_ * kernels.row_bytes(k_), 1)});
    Tensor b(DType::UInt8, {std::max<int64_t>(kernels.panel_bytes(n_, k_), 1)});
    std::vector<int32_t> row_sums(size(m_)), column_sums(size(n_)), c(size(m_ * width));
    const int64_t a_offset = kernels.left_offset(left_ == DType::Int8, left_signed);
    const int64_t b_offset = kernels.right_offset(right_ == DType::Int8, !left_signed);
    kernels.pack_rows({{a_.data(), static_cast<uint8_t>(left_), left_transposed_ ? 1 : k_,
                        left_transposed_ ? m_ : 1, nullptr, nullptr},
                       m_,
                       k_,
                       a_offset,
                       a.mutable_data(),
                       row_sums.data()});
    kernels.pack_columns({{b_.data(), static_cast<uint8_t>(right_), transposed_ ? 1 : n_,
                           transposed_ ? k_ : 1, nullptr, nullptr},
                          n_,
                          k_,
                          b_offset,
                          b.mutable_data(),
                          column_sums.data()});
    std::vector<int64_t> begins;
    std::vector<int32_t> split_groups;
    std::vector<uint32_t> split_words;
    if (&kernels == table.byte_pairs) {
      // Lines of the signed factor: rows of words, or panels of words of all columns.
      const int64_t lines = left_signed ? m_ : width / kernels.columns;
      const int64_t words = left_signed ? 1 : kernels.columns, groups = depth / 4;
      auto* word = static_cast<uint32_t*>((left_signed ? a : b).mutable_data());
      for (int64_t line = 0; line < lines; ++line) {
        begins.push_back(static_cast<int64_t>(split_groups.size()));
        for (int64_t group = 0; group < groups; ++group) {
          split_groups.push_back(static_cast<int32_t>(group));
          for (int64_t i = 0; i < words; ++i) {
            split_words.push_back(cpu::split_pairs(*word));
            for (const uint32_t part : {*word, split_words.back()}) {
              for (int at = 0; at < 32; at += 16) {
                const int pair =
                    static_cast<int8_t>(part >> at) + static_cast<int8_t>(part >> (at + 8));
                ASSERT_LE(std::abs(pair), 128);
              }
            }
            ++word;
          }
        }
      }
      begins.push_back(static_cast<int64_t>(split_groups.size()));
    }
    cpu::IntegerMultiplyArgs args{m_,       n_,       depth, a.data(),   kernels.row_bytes(k_),
                                  b.data(), c.data(), width, left_signed};
    if (!begins.empty()) args.rests = {begins.data(), split_groups.data(), split_words.data()};
    kernels.multiply(args);
    const auto zeros = [&](bool any, int64_t count, int64_t offset, DType dtype) {
      std::vector<int32_t> result;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t zero = any ? number(static_cast<uint8_t>(37 * i + 5), dtype) : 0;
        result.push_back(static_cast<int32_t>(zero + offset));
      }
      return result;
    };
    const std::vector<int32_t> za = zeros(row_zeros, m_, a_offset, left_),
                               zb = zeros(column_zeros, n_, b_offset, right_);
    for (int64_t j = 0; j < n_; ++j) {
      column_sums[size(j)] -= static_cast<int32_t>(k_) * zb[size(j)];
    }
    table.finish_i32({m_, n_, c.data(), width, za.data(), column_sums.data(), row_sums.data(),
                      zb.data(), c.data(), width});
    for (int64_t i = 0; i < m_; ++i) {
      for (int64_t j = 0; j < n_; ++j) {
        int64_t sum = 0;
        for (int64_t p = 0; p < k_; ++p) {
          sum += (left(i, p) - (za[size(i)] - a_offset)) * (right(p, j) - (zb[size(j)] - b_offset));
        }
        ASSERT_EQ(c[size(i * width + j)], static_cast<int32_t>(sum)) << i << ", " << j;
      }
    }
  }

 private:
  static size_t size(int64_t n) { return static_cast<size_t>(n); }
  static int64_t number(uint8_t bits, DType dtype) {
    return dtype == DType::Int8 ? static_cast<int8_t>(bits) : bits;
  }

  std::mt19937 random_{7};
  int64_t m_, n_, k_;
  DType left_, right_;
  bool left_transposed_, transposed_;
  std::vector<uint8_t> a_, b_;
};

TEST(CpuIntegerGemm, EveryKernelIsExact) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    std::vector<const cpu::IntegerKernels*> all(std::begin(table->integer),
                                                std::end(table->integer));
    all.push_back(table->byte_pairs);
    for (const cpu::IntegerKernels* kernels : all) {
      if (kernels == nullptr) continue;
      for (auto [m, n, k] : std::vector<std::tuple<int, int, int>>{{1, 1, 1},
                                                                   {7, 33, 3},
                                                                   {16, 16, 64},
                                                                   {45, 70, 131},
                                                                   {3, 129, 200},
                                                                   {1, 300, 37},
                                                                   {13, 5, 0}}) {
        for (int form = 0; form < 64; ++form) {
          Factors factors(m, n, k, form & 1 ? DType::Int8 : DType::UInt8,
                          form & 2 ? DType::Int8 : DType::UInt8, form & 32, form & 4);
          factors.check(*table, *kernels, form & 8, form & 16, (form & 16) != (form & 1) << 4);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Channels that are interleaved in groups, read in place at an offset for each of them.
TEST(CpuIntegerGemm, InterleavedColumnsAreExact) {
  std::mt19937 random(11);
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const cpu::IntegerKernels* kernels : table->integer) {
      if (kernels == nullptr || kernels->interleave == nullptr) continue;
      const int64_t group = kernels->group();
      for (auto [m, n, channels, step] :
           std::vector<std::tuple<int, int, int, int>>{{1, 70, 8, 1},
                                                       {7, 33, 5, 1},
                                                       {13, 5, 12, 2},
                                                       {6, 64, 1, 3},
                                                       {45, 17, 7, 1},
                                                       {20, 40, 130, 1}}) {
        SCOPED_TRACE(testing::Message()
                     << kernels->name << " " << m << "x" << n << "x" << channels);
        const int64_t groups = (channels + group - 1) / group, depth = groups * group;
        const int64_t planes = kernels->packed_depth(depth) / group;
        std::vector<uint8_t> image(static_cast<size_t>(channels * n * step));
        std::vector<int8_t> weights(static_cast<size_t>(m * depth));
        for (uint8_t& x : image) x = random() & 1 ? 255 : static_cast<uint8_t>(random());
        for (int8_t& w : weights) w = random() & 1 ? -128 : static_cast<int8_t>(random());
        const auto flip = static_cast<uint8_t>(random() & 1 ? 0x80 : 0);
        // Planes in the order opposite to that of the depth, and sums that are added to.
        const int64_t plane = n + kernels->columns;
        std::vector<uint32_t> words(static_cast<size_t>(planes * plane));
        std::vector<int64_t> offsets;
        std::vector<int32_t> sums(static_cast<size_t>(n), 7);
        for (int64_t g = 0; g < planes; ++g) {
          const int64_t at = (planes - 1 - g) * plane;
          offsets.push_back(4 * at);
          if (g >= groups) continue;
          kernels->interleave({image.data() + g * group * n * step, n * step,
                               std::min<int64_t>(group, channels - g * group), step, n, flip,
                               words.data() + at, sums.data()});
        }
        Tensor a(DType::UInt8, {m * kernels->row_bytes(depth)});
        kernels->pack_rows(
            {{weights.data(), static_cast<uint8_t>(DType::Int8), depth, 1, nullptr, nullptr},
             m,
             depth,
             0,
             a.mutable_data(),
             nullptr});
        const int64_t width = kernels->packed_columns(n);
        std::vector<int32_t> c(static_cast<size_t>(m * width));
        kernels->multiply({m, n, kernels->packed_depth(depth), a.data(), kernels->row_bytes(depth),
                           words.data(), c.data(), width, true, offsets.data()});
        for (int64_t j = 0; j < n; ++j) {
          const auto x = [&](int64_t channel) {
            return static_cast<int64_t>(image[static_cast<size_t>((channel * n + j) * step)] ^
                                        flip);
          };
          int64_t all = 7;
          for (int64_t channel = 0; channel < channels; ++channel) all += x(channel);
          ASSERT_EQ(sums[static_cast<size_t>(j)], all) << j;
          for (int64_t i = 0; i < m; ++i) {
            int64_t sum = 0;
            for (int64_t channel = 0; channel < channels; ++channel) {
              sum += weights[static_cast<size_t>(i * depth + channel)] * x(channel);
            }
            ASSERT_EQ(c[static_cast<size_t>(i * width + j)], sum) << i << ", " << j;
          }
        }
      }
    }
  }
}

// A zero point of a step: absent, a constant, one number of a tensor, or one for each row.
enum class Zero { None, Constant, Scalar, Rows };

struct CpuIntegerProduct : ::testing::Test {
  CpuHarness h;
  ir::ExprPool& p = h.pool();

  ir::Expr zero(Zero form, DType dtype, ir::Expr axis) {
    switch (form) {
      case Zero::None:
        return nullptr;
      case Zero::Constant:
        return p.number_int(dtype == DType::Int8 ? -128 : 200, DType::Int32);
      case Zero::Scalar:
        return p.cast(DType::Int32, h.read(h.integers(dtype, {}, 3, 90), {}));
      default:
        return p.cast(DType::Int32, h.read(h.integers(dtype, {axis->extent()}, 3, 90), {axis}));
    }
  }
  ir::ValueId bytes(DType dtype, std::vector<ir::Expr> shape) {
    return dtype == DType::Int8 ? h.integers(dtype, std::move(shape), -128, 127)
                                : h.integers(dtype, std::move(shape), 0, 255);
  }
  void check(const fuse::ProductStep& step, double tolerance) {
    h.run(step);
    h.expect(step.value, step.axes, fuse::as_reduction(p, step).body, tolerance);
  }
};

TEST_F(CpuIntegerProduct, ZeroPointsOfEveryForm) {
  ir::Expr leaf = p.leaf(ir::LeafKind::Product, 0, DType::Int32);
  for (auto [M, N, K] : std::vector<std::tuple<int, int, int>>{
           {17, 20, 64}, {1, 100, 51}, {35, 33, 130}, {5, 4, 0}}) {
    for (int form = 0; form < 64; ++form) {
      SCOPED_TRACE(testing::Message() << M << "x" << N << "x" << K << " form " << form);
      ir::Expr m = p.axis("m", p.integer(M)), n = p.axis("n", p.integer(N)),
               k = p.axis("k", p.integer(K));
      const DType left = form & 1 ? DType::Int8 : DType::UInt8,
                  right = form & 2 ? DType::Int8 : DType::UInt8;
      fuse::ProductStep step;
      step.m = {m};
      step.n = {n};
      step.k = k;
      step.a = h.read(bytes(left, {m->extent(), k->extent()}), {m, k});
      step.b = {h.read(bytes(right, {k->extent(), n->extent()}), {k, n})};
      step.a_zero = zero(static_cast<Zero>(form / 4 % 4), left, m);
      step.b_zeros = {zero(static_cast<Zero>(form / 16), right, n)};
      step.axes = {m, n};
      // As they are, as floats, and as both.
      ir::Expr real = p.cast(DType::Float32, leaf);
      const ir::Expr epilogues[] = {
          leaf, p.mul(real, h.number(0.5)),
          p.add(real, p.cast(DType::Float32, p.make(ir::ExprOp::Neg, {leaf})))};
      step.epilogue = epilogues[(form + K) % 3];
      step.value = h.value(step.epilogue->dtype, {m->extent(), n->extent()});
      check(step, 0);
      if (HasFailure()) return;
    }
  }
}

TEST_F(CpuIntegerProduct, BatchesAndConstantPanels) {
  // A constant that all batches share or not is packed once, for every number of rows.
  for (const bool shared : {false, true}) {
    ir::Expr B = p.integer(3), N = p.integer(50), K = p.integer(40);
    ir::Expr b = p.axis("b", B), n = p.axis("n", N), k = p.axis("k", K);
    const ir::ValueId w = shared ? bytes(DType::Int8, {K, N}) : bytes(DType::Int8, {B, K, N});
    h.graph.values[static_cast<size_t>(w)].constant = h.tensor(w);
    for (const int64_t rows : {9, 33}) {
      ir::Expr M = p.integer(rows), m = p.axis("m", M);
      const ir::ValueId x = bytes(DType::UInt8, {B, M, K});
      fuse::ProductStep step;
      step.value = h.value(DType::Int32, {B, M, N});
      step.batch = {b};
      step.m = {m};
      step.n = {n};
      step.k = k;
      step.a = h.read(x, {b, m, k});
      step.b = {shared ? h.read(w, {k, n}) : h.read(w, {b, k, n})};
      step.a_zero = zero(Zero::Scalar, DType::UInt8, m);
      step.b_zeros = {nullptr};
      step.epilogue = p.leaf(ir::LeafKind::Product, 0, DType::Int32);
      step.axes = {b, m, n};
      check(step, 0);
    }
  }
}

}  // namespace
}  // namespace redfuser
