// Chains of pointwise operations: their kernels of every instruction set, and which operations of a
// tile program become chains.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/pointwise/merge_chains.h"
#include "cpu/tile/tile_builder.h"
#include "support/cpu_harness.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

using cpu::ChainOp;

// As the kernel of the operation computes it.
float applied(const cpu::KernelTable& table, cpu::UnaryOp op, float v) {
  float result = 0;
  table.unary[static_cast<int>(cpu::Elem::F32)][static_cast<int>(op)](1, 1, &result, 1,
                                                                      {&v, 1, nullptr});
  return result;
}

template <typename T>
T applied(const cpu::KernelTable& table, ChainOp op, T v, T o) {
  const auto least = [](T a, T b) { return a < b || a != a ? a : b; };
  const auto largest = [](T a, T b) { return a > b || a != a ? a : b; };
  switch (op) {
    case ChainOp::Neg:
      return -v;
    case ChainOp::Abs:
      return std::abs(v);
    case ChainOp::Square:
      return v * v;
    case ChainOp::Round:
      return std::nearbyint(v);
    case ChainOp::Exp:
      return applied(table, cpu::UnaryOp::Exp, static_cast<float>(v));
    case ChainOp::Erf:
      return applied(table, cpu::UnaryOp::Erf, static_cast<float>(v));
    case ChainOp::Tanh:
      return applied(table, cpu::UnaryOp::Tanh, static_cast<float>(v));
    case ChainOp::Add:
      return v + o;
    case ChainOp::Sub:
      return v - o;
    case ChainOp::SubFrom:
      return o - v;
    case ChainOp::Mul:
      return v * o;
    case ChainOp::Div:
      return v / o;
    case ChainOp::DivInto:
      return o / v;
    case ChainOp::Max:
      return largest(v, o);
    case ChainOp::MaxOf:
      return largest(o, v);
    case ChainOp::Min:
      return least(v, o);
    case ChainOp::MinOf:
      return least(o, v);
  }
  return v;
}

// Random links over random numbers, some of them NaN and 0, on rows of every length.
template <typename T>
void expect_chains(const cpu::KernelTable& table, cpu::ChainFn chain, uint32_t seed) {
  constexpr int64_t kRows = 3, kStride = 160;
  constexpr int kOps = static_cast<int>(ChainOp::MinOf) + 1;
  std::mt19937 random(seed);
  const auto number = [&] {
    const uint32_t bits = random() % 40;
    if (bits == 0) return std::numeric_limits<T>::quiet_NaN();
    if (bits < 4) return T(bits == 1 ? 0.0 : -0.0);
    return (static_cast<T>(random() % 1024) - 512) / 64;
  };
  const auto count = static_cast<int>(1 + random() % cpu::kMostLinks);
  const auto cols = static_cast<int64_t>(1 + random() % kStride);
  const bool in_place = random() % 2 == 0;
  SCOPED_TRACE(fmt::format("{}, seed {}: {} links, {} columns", table.name, seed, count, cols));
  std::vector<T> first(kRows * kStride), out(kRows * kStride, T(7));
  for (T& x : first) x = number();
  std::vector<std::vector<T>> operands(static_cast<size_t>(count), first);
  std::vector<cpu::ChainLink> links;
  for (auto& operand : operands) {
    for (T& x : operand) x = number();
    const bool vector = random() % 2 == 0;
    auto op = static_cast<ChainOp>(random() % kOps);
    if (cpu::is_function(op) && sizeof(T) != sizeof(float)) op = ChainOp::Abs;
    links.push_back({op, vector, {operand.data(), vector ? kStride : 1, nullptr}});
  }
  std::vector<T> expected = in_place ? first : out;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      T v = first[static_cast<size_t>(r * kStride + c)];
      for (size_t i = 0; i < links.size(); ++i) {
        const int64_t at = links[i].vector ? r * kStride + c : r;
        v = applied(table, links[i].op, v, operands[i][static_cast<size_t>(at)]);
      }
      expected[static_cast<size_t>(r * kStride + c)] = v;
    }
  }
  cpu::ChainArgs args;
  args.rows = kRows, args.cols = cols, args.out_stride = kStride;
  args.out = in_place ? first.data() : out.data();
  args.first = {first.data(), kStride, nullptr};
  args.links = links.data(), args.count = count;
  chain(args);
  const T* actual = static_cast<const T*>(args.out);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << "at " << i;
    } else {
      ASSERT_EQ(actual[i], expected[i]) << "at " << i;
      ASSERT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << "at " << i;
    }
  }
}

// The value of an element in memory, and the element that a value becomes.
struct Ends {
  cpu::ChainType type;
  DType dtype;
};
constexpr Ends kEnds[] = {
    {cpu::ChainType::Own, DType::Float32},     {cpu::ChainType::UInt8, DType::UInt8},
    {cpu::ChainType::Int8, DType::Int8},       {cpu::ChainType::Int32, DType::Int32},
    {cpu::ChainType::Float16, DType::Float16}, {cpu::ChainType::BFloat16, DType::BFloat16}};

// As the kernels of the table convert: from a type to the class of its values, and from there.
void convert_with(const cpu::KernelTable& table, const Ends& from, int64_t count, const void* in,
                  float* out) {
  const bool integer = is_integer(from.dtype);
  std::vector<int32_t> words(static_cast<size_t>(count));
  table.load[static_cast<int>(from.dtype)](count, integer ? static_cast<void*>(words.data()) : out,
                                           in);
  if (!integer) return;
  table.convert[static_cast<int>(cpu::Elem::F32)][static_cast<int>(cpu::Elem::I32)](count, out,
                                                                                    words.data());
}
void convert_back(const cpu::KernelTable& table, const Ends& to, int64_t count, const float* in,
                  void* out) {
  std::vector<int32_t> words(static_cast<size_t>(count));
  const bool integer = is_integer(to.dtype);
  const auto elem = static_cast<int>(integer ? cpu::Elem::I32 : cpu::Elem::F32);
  table.convert[elem][static_cast<int>(cpu::Elem::F32)](count, words.data(), in);
  table.store[elem][static_cast<int>(to.dtype)](count, out, words.data());
}

TEST(ChainKernels, ConvertAtTheirEnds) {
  std::mt19937 random(5);
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int turn = 0; turn < 600; ++turn) {
      const Ends& from = kEnds[random() % std::size(kEnds)];
      const Ends& to = kEnds[random() % std::size(kEnds)];
      const auto count = static_cast<int64_t>(1 + random() % 300);
      SCOPED_TRACE(fmt::format("{}, {} to {}, {} elements", table->name, name_of(from.dtype),
                               name_of(to.dtype), count));
      const size_t in_bytes = static_cast<size_t>(count) * size_of(from.dtype);
      const size_t out_bytes = static_cast<size_t>(count) * size_of(to.dtype);
      const std::unique_ptr<char[]> in(new char[in_bytes]);
      for (size_t i = 0; i < in_bytes; ++i) in[i] = static_cast<char>(random());
      std::vector<float> values(static_cast<size_t>(count));
      convert_with(*table, from, count, in.get(), values.data());
      const float factor = 0.37f;
      for (float& x : values) x *= factor;
      const std::unique_ptr<char[]> expected(new char[out_bytes]), out(new char[out_bytes]);
      convert_back(*table, to, count, values.data(), expected.get());
      const cpu::ChainLink link{ChainOp::Mul, false, {&factor, 0, nullptr}};
      cpu::ChainArgs args;
      args.rows = 1, args.cols = count, args.out = out.get(), args.out_stride = count;
      args.first = {in.get(), count, nullptr};
      args.first_type = from.type, args.out_type = to.type;
      args.links = &link, args.count = 1;
      table->chain_f32(args);
      ASSERT_EQ(std::memcmp(out.get(), expected.get(), out_bytes), 0);
    }
  }
}

// A number, often at or beside the middle between two whole multiples of `scale`.
float near_middle(std::mt19937& random, float scale) {
  const auto drawn = random();
  if (drawn % 200 == 0) return std::numeric_limits<float>::quiet_NaN();
  if (drawn % 200 == 1) return std::numeric_limits<float>::infinity();
  if (drawn % 200 == 2) return -3e38f;
  const float middle = (static_cast<float>(drawn % 700) - 349.5f) * scale;
  const float beside = std::nextafter(middle, drawn & 1024 ? 1e9f : -1e9f);
  return drawn % 16 == 3 ? middle : drawn % 16 == 4 ? beside : middle * 1.37f;
}

// The same bytes as of the floats that the links give, whatever they take instead of a division.
TEST(ChainKernels, QuantiseAsTheirLinksDo) {
  std::mt19937 random(11);
  const float scales[] = {0.0371f, 1.0f / 128, 3.7f, -0.21f, 1e-30f, 1e-39f, 0.0f, HUGE_VALF};
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int turn = 0; turn < 400; ++turn) {
      const bool is_signed = random() % 2 == 0;
      const float scale = scales[random() % std::size(scales)];
      float low = is_signed ? -128 : 0, high = low + 255;
      if (random() % 4 == 0) low += 3, high -= 100;
      if (random() % 9 == 0) high += 0.5f;
      const float zero = static_cast<float>(random() % 256) + (is_signed ? -128 : 0);
      std::vector<cpu::ChainLink> links{{ChainOp::Div, false, {&scale, 0, nullptr}},
                                        {ChainOp::Round, false, {}}};
      if (random() % 4 != 0) links.push_back({ChainOp::Add, false, {&zero, 0, nullptr}});
      links.push_back({ChainOp::Max, false, {&low, 0, nullptr}});
      links.push_back({ChainOp::Min, false, {&high, 0, nullptr}});
      const auto count = static_cast<int64_t>(1 + random() % 400);
      std::vector<float> in(static_cast<size_t>(count)), values(in.size());
      for (float& x : in) x = near_middle(random, scale);
      std::vector<uint8_t> out(in.size()), expected(in.size());
      cpu::ChainArgs args;
      args.rows = 1, args.cols = count, args.out = values.data(), args.out_stride = count;
      args.first = {in.data(), count, nullptr};
      args.links = links.data(), args.count = static_cast<int>(links.size());
      table->chain_f32(args);
      const Ends& end = kEnds[is_signed ? 2 : 1];
      convert_back(*table, end, count, values.data(), expected.data());
      args.out = out.data(), args.out_type = end.type;
      table->chain_f32(args);
      ASSERT_EQ(out, expected) << table->name << " by " << scale << " and " << zero << ", "
                               << count;
    }
  }
}

TEST(ChainKernels, ComputeOneLinkAfterTheOther) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (uint32_t seed = 1; seed <= 400; ++seed) {
      expect_chains<float>(*table, table->chain_f32, seed);
      expect_chains<double>(*table, table->chain_f64, seed);
    }
  }
}

float folded(const float* row, int64_t cols, float first, bool largest) {
  float result = first;
  for (int64_t c = 0; c < cols && !std::isnan(result); ++c) {
    if (std::isnan(row[c]) || (largest ? row[c] > result : row[c] < result)) result = row[c];
  }
  return result;
}

// Random links over random numbers, on rows of every length, with a NaN in some of them: the
// results that the same chain writes are folded into what the accumulators have.
TEST(ChainKernels, FoldRowsOfResults) {
  constexpr int64_t kRows = 3, kStride = 700;
  constexpr ChainOp kOps[] = {ChainOp::Mul, ChainOp::Add, ChainOp::Sub,
                              ChainOp::Max, ChainOp::Exp, ChainOp::Erf};
  std::mt19937 random(7);
  const auto number = [&] { return static_cast<float>(random() % 1024) / 256 - 2; };
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int trial = 0; trial < 400; ++trial) {
      const auto cols = static_cast<int64_t>(random() % (trial % 2 == 0 ? 80 : kStride));
      SCOPED_TRACE(fmt::format("{}, trial {}: {} columns", table->name, trial, cols));
      std::vector<float> first(kRows * kStride), operand(first.size());
      for (float& x : first) x = number();
      for (float& x : operand) x = number();
      if (trial % 3 == 0 && cols > 0) first[random() % static_cast<size_t>(cols)] = NAN;
      std::vector<cpu::ChainLink> links;
      for (uint32_t i = random() % 4; i > 0; --i) {
        const bool vector = random() % 3 == 0;
        links.push_back(
            {kOps[random() % std::size(kOps)], vector, {operand.data(), vector ? kStride : 1, {}}});
      }
      std::vector<float> expected(first.size()), kept(first.size());
      cpu::ChainArgs args;
      args.rows = kRows, args.cols = cols, args.out_stride = kStride;
      args.out = expected.data();
      args.first = {first.data(), kStride, nullptr};
      args.links = links.data(), args.count = static_cast<int>(links.size());
      table->chain_f32(args);
      float greatest[kRows], least[kRows], sum[kRows];
      for (int64_t r = 0; r < kRows; ++r) greatest[r] = least[r] = sum[r] = number();
      const std::vector<float> before(greatest, greatest + kRows);
      const bool keeps = random() % 2 == 0, sums = random() % 2 == 0;
      args.out = keeps ? kept.data() : nullptr;
      args.folds = {greatest, least, sums ? sum : nullptr};
      table->chain_f32(args);
      for (int64_t r = 0; r < kRows; ++r) {
        const float* row = expected.data() + r * kStride;
        const float most = folded(row, cols, before[static_cast<size_t>(r)], true);
        const float less = folded(row, cols, before[static_cast<size_t>(r)], false);
        double total = before[static_cast<size_t>(r)], magnitude = std::fabs(total);
        for (int64_t c = 0; c < cols; ++c) total += row[c], magnitude += std::fabs(row[c]);
        ASSERT_EQ(std::isnan(greatest[r]), std::isnan(most));
        ASSERT_EQ(std::isnan(least[r]), std::isnan(most));
        ASSERT_EQ(std::isnan(sum[r]), sums && std::isnan(most));
        for (int64_t c = 0; c < cols && keeps && !std::isnan(most); ++c) {
          ASSERT_EQ(kept[static_cast<size_t>(r * kStride + c)], row[c]) << c;
        }
        if (std::isnan(most)) continue;
        ASSERT_EQ(greatest[r], most);
        ASSERT_EQ(least[r], less);
        if (sums && std::isfinite(total)) {
          ASSERT_NEAR(sum[r], total, 1e-6 * magnitude);
        }
      }
    }
  }
}

// Lengths of the chains of a map's program, and how many other operations are left.
struct Merged {
  std::vector<size_t> chains;
  int others = 0;
  bool operator==(const Merged&) const = default;
};

class Chains : public ::testing::Test {
 protected:
  Merged merged(ir::Expr body) {
    cpu::TileProgram program;
    cpu::TileBuilder builder(p, program, [](int64_t) { return Dims{8, 64}; });
    builder.set_rows({rows});
    const int scope = builder.fixed_scope({columns});
    builder.store(0, body->dtype, {8, 64}, {rows, columns}, builder.compile_to_store(body), scope);
    cpu::merge_chains(program);
    Merged result;
    for (const auto& i : program.block) {
      if (const auto* chain = dynamic_cast<const cpu::PointwiseChain*>(i.get())) {
        result.chains.push_back(chain->links.size());
      }
      result.others += dynamic_cast<const cpu::Unary*>(i.get()) != nullptr;
      result.others += dynamic_cast<const cpu::Binary*>(i.get()) != nullptr;
    }
    return result;
  }
  // Reductions within chains, by the chain's number of links, and those left, of a value by row.
  Merged folded(ir::Expr body) {
    cpu::TileProgram program;
    cpu::TileBuilder builder(p, program, [](int64_t) { return Dims{8, 64}; });
    builder.set_rows({rows});
    builder.store(0, body->dtype, {8}, {rows}, builder.compile_to_store(body), cpu::kNoScope);
    cpu::merge_chains(program);
    Merged result;
    for (const auto& i : program.block) {
      if (const auto* chain = dynamic_cast<const cpu::FoldedChain*>(i.get())) {
        for (const cpu::RegisterId r : chain->accumulators) {
          if (r != cpu::kNoRegister) result.chains.push_back(chain->links.size());
        }
      }
      result.others += dynamic_cast<const cpu::ReduceColumns*>(i.get()) != nullptr;
    }
    return result;
  }
  ir::Expr reduce(ir::Reduction reduction, ir::Expr body) {
    return p.reduce(reduction, columns, body);
  }
  ir::Expr number(double x) { return p.number(x, DType::Float32); }
  ir::Expr make(ir::ExprOp op, ir::Expr a, ir::Expr b) { return p.make(op, {a, b}); }

  ir::ExprPool p;
  ir::Expr rows = p.axis("r", p.integer(8)), columns = p.axis("c", p.integer(64));
  ir::Expr x = p.read(0, DType::Float32, {rows, columns});
  ir::Expr y = p.read(1, DType::Float32, {rows, columns});
};

TEST_F(Chains, AreOperationsWhoseResultsOneOtherReads) {
  const ir::Expr gate =
      make(ir::ExprOp::Min,
           make(ir::ExprOp::Max, p.add(p.mul(x, number(0.25)), number(0.5)), number(0)), number(1));
  EXPECT_EQ(merged(p.mul(x, gate)), (Merged{{5}, 0}));
  EXPECT_EQ(merged(p.add(p.mul(x, number(2)), y)), (Merged{{2}, 0}));
  // A sine is none of their operations.
  const auto quotient = [&](ir::ExprOp op) {
    return p.div(y, p.add(p.make(op, {p.mul(x, y)}), number(1)));
  };
  EXPECT_EQ(merged(quotient(ir::ExprOp::Exp)), (Merged{{4}, 0}));
  EXPECT_EQ(merged(quotient(ir::ExprOp::Tanh)), (Merged{{4}, 0}));
  EXPECT_EQ(merged(quotient(ir::ExprOp::Erf)), (Merged{{4}, 0}));
  EXPECT_EQ(merged(quotient(ir::ExprOp::Sin)), (Merged{{2}, 2}));
  // Two operations read the product.
  const ir::Expr product = p.mul(x, y);
  const ir::Expr shared = make(ir::ExprOp::Max, make(ir::ExprOp::Min, product, x), product);
  EXPECT_EQ(merged(shared), (Merged{{2}, 1}));
  EXPECT_EQ(merged(p.mul(x, y)), (Merged{{}, 1}));
}

TEST_F(Chains, TakeInReductionsOfTheirResults) {
  const ir::Expr scaled = p.add(p.mul(x, number(2)), y);
  const ir::Expr most = reduce(ir::Reduction::Max, scaled),
                 less = reduce(ir::Reduction::Min, scaled);
  EXPECT_EQ(folded(most), (Merged{{2}, 0}));
  EXPECT_EQ(folded(reduce(ir::Reduction::Sum, p.mul(x, x))), (Merged{{1}, 0}));
  const ir::Expr centred = p.sub(x, number(2));
  EXPECT_EQ(folded(reduce(ir::Reduction::Sum, p.mul(centred, centred))), (Merged{{2}, 0}));
  EXPECT_EQ(folded(p.sub(most, less)), (Merged{{2, 2}, 0}));
  EXPECT_EQ(folded(p.add(p.sub(most, less), reduce(ir::Reduction::Sum, scaled))),
            (Merged{{2, 2, 2}, 0}));
  // Several of one tensor are one pass; one alone has its kernel, as products have.
  EXPECT_EQ(folded(reduce(ir::Reduction::Max, x)), (Merged{{}, 1}));
  EXPECT_EQ(folded(p.sub(reduce(ir::Reduction::Max, x), reduce(ir::Reduction::Min, x))),
            (Merged{{0, 0}, 0}));
  EXPECT_EQ(folded(reduce(ir::Reduction::Prod, scaled)), (Merged{{}, 1}));
  // The second one reads the first one's result.
  EXPECT_EQ(folded(reduce(ir::Reduction::Sum, p.sub(scaled, most))), (Merged{{2, 3}, 0}));
}

// A chain cannot go down to one of two reductions of the same kind: the other one would read its
// result before.
TEST_F(Chains, ComputeTheirResultsBeforeEqualReductionsReadThem) {
  cpu::TileProgram program;
  cpu::TileBuilder builder(p, program, [](int64_t) { return Dims{8, 64}; });
  builder.set_rows({rows});
  const ir::Expr most = reduce(ir::Reduction::Max, p.add(p.mul(x, number(2)), y));
  builder.store(0, most->dtype, {8}, {rows}, builder.compile_to_store(most), cpu::kNoScope);
  const auto reduction = std::find_if(
      program.block.begin(), program.block.end(),
      [](const auto& i) { return dynamic_cast<const cpu::ReduceColumns*>(i.get()) != nullptr; });
  ASSERT_NE(reduction, program.block.end());
  auto equal = std::make_unique<cpu::ReduceColumns>(
      dynamic_cast<const cpu::ReduceColumns&>(*reduction->get()));
  const cpu::RegisterId value = equal->reads[0];
  const cpu::RegisterId accumulator = equal->writes[0];
  program.registers.push_back(program.registers[static_cast<size_t>(accumulator)]);
  const auto other = static_cast<cpu::RegisterId>(program.registers.size() - 1);
  std::replace(equal->reads.begin(), equal->reads.end(), accumulator, other);
  equal->writes[0] = other;
  program.block.insert(reduction + 1, std::move(equal));
  cpu::merge_chains(program);
  bool computed = false;
  int readers = 0;
  for (const auto& i : program.block) {
    computed |= std::count(i->writes.begin(), i->writes.end(), value) > 0;
    if (std::count(i->reads.begin(), i->reads.end(), value) == 0) continue;
    EXPECT_TRUE(computed);
    ++readers;
  }
  EXPECT_EQ(readers, 2);
}

}  // namespace
}  // namespace redfuser
