// Steps that only move elements of types that registers hold otherwise: every bit stays.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cpu/tile/bytes/words.h"
#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

struct Type {
  const char* name;
  int number, other;  // of ONNX; another type of as many bits
};

constexpr Type kTypes[] = {{"uint8", 2, 3}, {"int8", 3, 2}, {"uint32", 12, 6}, {"int32", 6, 12}};

// {0}: the type, {1}: its number, {2}: another of as many bits.
constexpr const char* kGraphs[] = {
    "({0}[5, 37, 19] x) => (y) {{ y = Transpose<perm = [2, 1, 0]>(x) }}",
    "({0}[40, 50, 3] x) => (y) {{ y = Transpose<perm = [2, 0, 1]>(x) }}",
    "({0}[40, 50] x) => (y) {{ y = Cast<to = {2}>(x) }}",
    "({0}[40, 50] x) => (y) {{ t = Cast<to = {2}>(x) y = Transpose(t) }}",
    "({0}[40, 50] x, bool[40, 50] c) => (y) {{ n = Constant<value = int64 {{200}}>() "
    "k = Cast<to = {1}>(n) y = Where(c, x, k) }}",
    "({0}[40, 50] x, {0}[50] z, bool[40, 1] c) => (y) {{ y = Where(c, z, x) }}",
    "({0}[40, 9] x, {0}[40, 1] z) => (y) {{ y = Concat<axis = 1>(x, z) }}",
    "({0}[6, 9] x) => (y) {{ n = Constant<value = int64[2] {{3, 4}}>() y = Tile(x, n) }}",
    "({0}[6, 9] x) => (y) {{ n = Constant<value = int64[4] {{1, 2, 0, 3}}>() "
    "y = Pad<mode = \"edge\">(x, n) }}",
    "({0}[40, 50] x, {0}[40, 50] z) => (y, b) {{ c = Equal(x, z) y = Cast<to = {1}>(c) "
    "b = Cast<to = 3>(c) }}",
    "({0}[40, 50] x) => (a, b, c, d, e, f) {{ a = Cast<to = 2>(x) b = Cast<to = 5>(x) "
    "c = Cast<to = 12>(x) d = Cast<to = 13>(x) e = Cast<to = 7>(x) f = Cast<to = 4>(x) }}",
    // Elements that a comparison picks.
    "({0}[40, 50] x, {0}[50] z) => (y, w) {{ y = Max(x, z) t = Min(x, z) w = Max(t, y) }}",
    "({0}[40, 50] x) => (y) {{ p = Constant<value = int64 {{30}}>() k = Cast<to = {1}>(p) "
    "q = Constant<value = int64 {{90}}>() m = Cast<to = {1}>(q) y = Clip(x, k, m) }}",
    "({0}[40, 50] x) => (a, b, c, d) {{ p = Constant<value = int64[1] {{0}}>() "
    "q = Constant<value = int64[1] {{1}}>() a = ReduceMax<keepdims = 0>(x, p) "
    "b = ReduceMin<keepdims = 0>(x, p) c = ReduceMax<keepdims = 0>(x, q) "
    "d = ReduceMin<keepdims = 0>(x, q) }}",
    "({0}[2, 3000] x) => (a, b) {{ q = Constant<value = int64[1] {{1}}>() "
    "a = ReduceMax<keepdims = 0>(x, q) b = ReduceMin<keepdims = 0>(x, q) }}",
    // The same elements as words and as numbers.
    "({0}[40, 50] x, {0}[40, 50] z, bool[40, 50] c) => (y, s, f) {{ y = Where(c, x, z) "
    "s = Add(y, x) f = Cast<to = 1>(y) }}",
    // The same numbers in types of other sizes.
    "({0}[40] x, bool[40] c) => (y, b, w) {{ p = Constant<value = int64 {{1}}>() "
    "q = Constant<value = int64 {{3}}>() t = Where(c, p, q) y = Cast<to = {1}>(t) "
    "b = Cast<to = 3>(t) w = Cast<to = 12>(t) }}"};

Tensor any_bits(DType dtype, const Dims& dims, std::mt19937& random) {
  Tensor t(dtype, dims);
  auto* bytes = static_cast<uint8_t*>(t.mutable_data());
  const size_t count = static_cast<size_t>(t.size()) * size_of(dtype);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<uint8_t>(random());
    if (dtype == DType::Bool) bytes[i] &= 1;
  }
  return t;
}

TEST(Words, KeepEveryBit) {
  std::mt19937 random(11);
  for (const Type& type : kTypes) {
    for (const char* graph : kGraphs) {
      const std::string text = "<ir_version: 9, opset_import: [\"\" : 20]> g " +
                               fmt::format(fmt::runtime(graph), type.name, type.number, type.other);
      SCOPED_TRACE(text);
      const Model model = Model::parse(text);
      NamedTensors inputs;
      for (const auto& input : model.inputs()) {
        Dims dims;
        for (const auto& dim : input.dims) dims.push_back(dim.size);
        inputs.emplace(input.name, any_bits(input.dtype, dims, random));
      }
      CompileOptions unfused;
      unfused.fuse = false;
      Session session(compile(model), {.device = "cpu", .threads = 1});
      Session exact(compile(model, unfused), {.device = "reference"});
      const NamedTensors wanted = exact.run(inputs);
      for (const auto& [name, y] : session.run(inputs)) {
        const Tensor& w = wanted.at(name);
        ASSERT_EQ(y.dims(), w.dims());
        ASSERT_EQ(y.dtype(), w.dtype());
        EXPECT_EQ(
            std::memcmp(y.data(), w.data(), static_cast<size_t>(y.size()) * size_of(y.dtype())), 0)
            << name;
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
