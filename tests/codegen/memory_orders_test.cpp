// Which values are in memory with their channels last, and which matrices by columns.
#include "codegen/orders/memory_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

struct Case {
  const char *name, *outputs, *body;
  std::vector<std::string> last;  // names of the values with their channels last
};

// Every graph is over float16[2, 16, 12, 12] x and filters float16[16, 16, 3, 3] w.
const Case kCases[] = {
    {"between_maps", "float16[2, 16, 10, 10] y", "h = Tanh(x) c = Conv(h, w) y = Erf(c)", {"h"}},
    {"of_the_caller", "float16[2, 16, 10, 10] y", "y = Conv(x, w)", {}},
    {"residual",
     "float16[2, 16, 10, 10] y",
     "h = Tanh(x) k = Conv<pads = [1, 1, 1, 1]>(h, w) s = Add(k, h) y = Conv(s, w)",
     {"h", "s"}},
    {"two_in_a_row", "float16[2, 16, 8, 8] y", "c = Conv(x, w) d = Relu(c) y = Conv(d, w)", {"d"}},
    {"pools",
     "float16[2, 16, 3, 3] y",
     "c = Conv(x, w) m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c) y = Conv(m, w)",
     {"c", "m"}},
    {"reshaped", "float16[2, 1600] y", "c = Conv(x, w) y = Flatten(c)", {}},
    // A group's mean is over channels and places.
    {"group_norm",
     "float16[2, 16, 10, 10] y",
     "c = Conv(x, w) one = Constant<value = float16[16] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1}>() y = GroupNormalization<num_groups = 4>(c, one, one)",
     {}},
    {"means_of_channels",
     "float16[2, 16, 1, 1] y",
     "c = Conv(x, w) y = GlobalAveragePool(c)",
     {"c"}},
    {"concatenated",
     "float16[2, 16, 8, 8] y",
     "c = Conv(x, w) t = Tanh(c) h = Concat<axis = 1>(t, c) v = Concat<axis = 1>(w, w) "
     "y = Conv(h, v)",
     {"c", "h"}},
};

class MemoryOrders : public testing::TestWithParam<Case> {};

std::vector<std::string> ordered(const Program& program, const std::set<size_t>& on_host) {
  const runtime::CompiledProgram& compiled = *program.handle();
  std::vector<std::string> names;
  for (const auto& [value, order] : codegen::memory_orders(compiled.plan, on_host)) {
    EXPECT_EQ(order, (codegen::MemoryOrder{0, 2, 3, 1}));
    names.push_back(compiled.graph().values[static_cast<size_t>(value)].name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Program program_of(const Case& c) {
  return compile(
      Model::parse(std::string("<ir_version: 10, opset_import: [\"\" : 22]> g "
                               "(float16[2, 16, 12, 12] x, float16[16, 16, 3, 3] w) => (") +
                   c.outputs + ") { " + c.body + " }"));
}

TEST_P(MemoryOrders, OfAPlan) {
  std::vector<std::string> expected = GetParam().last;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(ordered(program_of(GetParam()), {}), expected);
}

// Images of fp32 and of three dimensions have their channels last. Integers, and images of more
// dimensions, stay row-major.
TEST(MemoryOrdersOfConvolutions, HaveChannelsLastForTypesAndRanks) {
  const auto between = [](const std::string& type, const std::string& spatial) {
    const Program program = compile(Model::parse(
        "<ir_version: 10, opset_import: [\"\" : 22]> g (" + type + "[2, 16" + spatial + "] x, " +
        type + "[16, 16" + spatial + "] w) => (y) { h = Tanh(x) c = Conv(h, w) y = Erf(c) }"));
    codegen::MemoryOrders orders = codegen::memory_orders(program.handle()->plan, {});
    return orders.size() == 1 ? orders.begin()->second : codegen::MemoryOrder{};
  };
  EXPECT_EQ(between("float", ", 3, 3"), (codegen::MemoryOrder{0, 2, 3, 1}));
  EXPECT_EQ(between("float", ", 5"), (codegen::MemoryOrder{0, 2, 1}));
  EXPECT_EQ(between("float", ", 3, 3, 3"), (codegen::MemoryOrder{0, 2, 3, 4, 1}));
  EXPECT_EQ(between("bfloat16", ", 3, 3, 3"), (codegen::MemoryOrder{0, 2, 3, 4, 1}));
  EXPECT_EQ(between("double", ", 3, 3"), codegen::MemoryOrder{});
}

INSTANTIATE_TEST_SUITE_P(Plans, MemoryOrders, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// A group's elements are of several channels: written with the channels last they are apart, which
// takes longer than a copy where they are many.
TEST(MemoryOrdersOfGroups, AreRowMajorWhereElementsAreMany) {
  const auto has_channels_last = [](int size) {
    const Program program = compile(Model::parse(
        fmt::format("<ir_version: 10, opset_import: [\"\" : 22]> g (float16[1, 16, {0}, {0}] x, "
                    "float16[16, 16, 3, 3] w, float16[16] a, float16[16] b) => (y) {{ h = Tanh(x) "
                    "n = GroupNormalization<num_groups = 4>(h, a, b) y = Conv(n, w) }}",
                    size)));
    const std::vector<std::string> names = ordered(program, {});
    return std::find(names.begin(), names.end(), "n") != names.end();
  };
  EXPECT_TRUE(has_channels_last(16));
  EXPECT_FALSE(has_channels_last(128));
}

// A constant matrix whose rows are not whole vectors is kept by columns, if those are. What is no
// whole vector is padded, unless most of a matrix were padding.
TEST(MemoryOrdersOfMatrices, HaveVectorsAlongBothDimensions) {
  const auto order_of = [](const std::string& type, int64_t rows, int64_t columns) {
    std::string elements = "1";
    for (int64_t i = 1; i < rows * columns; ++i) elements += ", " + std::to_string(i % 7);
    const std::string r = std::to_string(rows);
    const std::string matrix = type + "[" + r + ", " + std::to_string(columns) + "] w";
    const Program program = compile(Model::parse(
        "<ir_version: 10, opset_import: [\"\" : 22]> g (" + type + "[m, " + r + "] x) => (y) <" +
        matrix + " = {" + elements + "}> { h = MatMul(x, w) y = Tanh(h) }"));
    const codegen::MemoryOrders orders = codegen::memory_orders(program.handle()->plan, {});
    return orders.size() == 1 ? orders.begin()->second : codegen::MemoryOrder{};
  };
  const auto padded = [](codegen::MemoryOrder order) {
    order.padded = true;
    return order;
  };
  const codegen::MemoryOrder by_rows = {0, 1}, by_columns = {1, 0}, none = {};
  EXPECT_EQ(order_of("float16", 8, 9), by_columns);
  EXPECT_EQ(order_of("float16", 16, 9), padded(by_columns));
  EXPECT_EQ(order_of("bfloat16", 16, 9), padded(by_columns));
  EXPECT_EQ(order_of("float16", 8, 16), none);
  EXPECT_EQ(order_of("float16", 9, 16), padded(by_rows));
  EXPECT_EQ(order_of("float16", 9, 9), padded(by_rows));
  EXPECT_EQ(order_of("float16", 9, 7), none);
  EXPECT_EQ(order_of("float", 8, 9), none);
}

// The CPU takes what its steps touch row-major.
TEST(MemoryOrdersOfHostSteps, AreRowMajor) {
  const Program program = program_of(kCases[0]);
  const size_t steps = program.handle()->plan.steps.size();
  for (size_t i = 0; i < steps; ++i) {
    EXPECT_LT(ordered(program, {i}).size(), 2u) << i;
  }
}

}  // namespace
}  // namespace redfuser
