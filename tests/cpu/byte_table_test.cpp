// Functions of one value of 8 bits: from tables, which long maps have, and as short maps compute
// them, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cpu/simd/byte_table.h"
#include "redfuser/redfuser.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

// Nodes that make y of bytes x and floats f, with scales s and t and zero points p and q.
struct Function {
  const char* nodes;
  const char* result;  // dtype of y
};
constexpr Function kFunctions[] = {
    {"a = DequantizeLinear(x, s, p) b = Sigmoid(a) y = QuantizeLinear(b, t, q)", ""},
    {"a = DequantizeLinear(x, s, p) b = HardSwish(a) c = QuantizeLinear(b, t, q) "
     "d = DequantizeLinear(c, t, q) e = Div(d, s) y = QuantizeLinear(e, s, p)",
     ""},
    {"a = DequantizeLinear(x, s, p) b = Erf(a) y = Mul(a, b)", "float"},
    // The bytes are computed.
    {"a = QuantizeLinear(f, s, p) b = DequantizeLinear(a, s, p) c = Exp(b) d = Div(b, c) "
     "y = QuantizeLinear(d, t, q)",
     ""},
    // Of two bytes, each behind a function of its own.
    {"a = DequantizeLinear(x, s, p) b = Sigmoid(a) c = Mul(a, b) g = QuantizeLinear(f, t, q) "
     "h = DequantizeLinear(g, t, q) k = Tanh(h) m = Add(c, k) y = QuantizeLinear(m, t, q)",
     ""},
    {"a = Mul(x, x) b = Cast<to = 1>(a) c = Sqrt(b) d = Exp(c) y = Neg(d)", "float"},
    // Also infinite, and not a number.
    {"a = DequantizeLinear(x, s, p) b = Log(a) c = Sqrt(b) y = Reciprocal(c)", "float"},
};

Tensor run(const Function& function, const char* dtype, int64_t rows, int64_t columns,
           const NamedTensors& inputs) {
  const std::string result = *function.result == '\0' ? dtype : function.result;
  const Model model = Model::parse(fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1},{2}] x, float[{1},{2}] f) => "
      "({3}[{1},{2}] y) <float s = {{0.0371}}, float t = {{0.0113}}, {0} p = {{{4}}}, "
      "{0} q = {{{5}}}> {{ {6} }}",
      dtype, rows, columns, result, *dtype == 'u' ? 117 : -3, *dtype == 'u' ? 4 : 55,
      function.nodes));
  Session session(compile(model), {.device = "cpu", .threads = 1});
  return session.run(inputs).at("y");
}

// The sign and the payload of a NaN are not those of a function.
void make_nans_equal(Tensor& values) {
  if (values.dtype() != DType::Float32) return;
  for (int64_t i = 0; i < values.size(); ++i) {
    float& value = values.as<float>()[i];
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
}

TEST(ByteTables, HaveTheBitsOfTheirFunctions) {
  constexpr int64_t kRows = 8, kColumns = 250;
  for (const char* dtype : {"uint8", "int8"}) {
    const DType bytes = *dtype == 'u' ? DType::UInt8 : DType::Int8;
    for (const Function& function : kFunctions) {
      SCOPED_TRACE(fmt::format("{} {}", dtype, function.nodes));
      Tensor x(bytes, {kRows, kColumns}), f(DType::Float32, {kRows, kColumns});
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        static_cast<uint8_t*>(x.mutable_data())[i] = static_cast<uint8_t>(i * 37 % 256);
        f.as<float>()[i] = static_cast<float>(i * 7919 % 2001 - 1000) * 0.005f;
      }
      const Tensor y = run(function, dtype, kRows, kColumns, {{"x", x}, {"f", f}});
      const auto row_of = [&](const Tensor& all, int64_t row) {
        Tensor one(all.dtype(), {1, kColumns});
        std::memcpy(one.mutable_data(),
                    static_cast<const char*>(all.data()) + row * static_cast<int64_t>(one.bytes()),
                    one.bytes());
        return one;
      };
      for (int64_t row = 0; row < kRows; ++row) {
        Tensor one =
            run(function, dtype, 1, kColumns, {{"x", row_of(x, row)}, {"f", row_of(f, row)}});
        Tensor wanted = row_of(y, row);
        make_nans_equal(one);
        make_nans_equal(wanted);
        ASSERT_EQ(std::memcmp(one.data(), wanted.data(), one.bytes()), 0) << row;
      }
    }
  }
}

// Of any count, by every instruction set, of bytes and of words.
TEST(ByteTables, KernelsLookUp) {
  constexpr int64_t kMost = 200;
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const int64_t lowest : {0, -128}) {
      for (const uint32_t factor : {1u, 0x9e3779b1u}) {
        uint32_t elements[cpu::ByteTable::kValues];
        uint8_t bytes[cpu::ByteTable::kValues];
        for (uint32_t i = 0; i < cpu::ByteTable::kValues; ++i) {
          elements[i] = (i * 167 + 5) % 256 * factor;
          bytes[i] = static_cast<uint8_t>(elements[i] >> 3);
        }
        const cpu::ByteTable words(elements, lowest);
        EXPECT_EQ(words.bytes, factor == 1);
        for (int64_t count = 0; count <= kMost; ++count) {
          std::vector<int32_t> in(kMost + 1);
          std::vector<uint8_t> codes(kMost + 1), mapped(kMost + 1, 77);
          std::vector<uint32_t> out(kMost + 1, 77);
          for (int64_t i = 0; i < count; ++i) {
            const int64_t code = (i * 91 + count) % 256;
            in[i] = static_cast<int32_t>(code + lowest);
            codes[i] = static_cast<uint8_t>(code);
          }
          table->look_up(words, count, in.data(), out.data());
          table->map_bytes(count, codes.data(), bytes, mapped.data());
          for (int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(out[i], elements[codes[i]]) << table->name << " " << i << " of " << count;
            ASSERT_EQ(mapped[i], bytes[codes[i]]) << table->name << " " << i << " of " << count;
          }
          ASSERT_EQ(out[count], 77u);
          ASSERT_EQ(mapped[count], 77);
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
