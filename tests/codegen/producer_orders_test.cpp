// Values that rows write along another dimension than the last, and those of rows that data pick:
// their order in memory on a GPU, and the results on it (skipped where there is none).
#include <gtest/gtest.h>

#include "codegen/orders/memory_orders.h"
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "runtime/program/compiled_program.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

struct Case {
  const char *name, *outputs, *body;
  codegen::MemoryOrder order;  // of t; empty for row-major
};

// Every graph is over float16[2, 196, 64] x and u, and constants of ones and of small numbers.
const Case kCases[] = {
    {"norm_by_matrix",
     "float16[2, 64, 40] y",
     "h = LayerNormalization(x, g) t = Transpose<perm = [0, 2, 1]>(h) y = MatMul(t, w)",
     {0, 2, 1}},
    {"of_the_caller",
     "float16[2, 64, 196] t",
     "h = LayerNormalization(x, g) t = Transpose<perm = [0, 2, 1]>(h)",
     {}},
    {"reshaped",
     "float16[2, 12544] y",
     "h = LayerNormalization(x, g) t = Transpose<perm = [0, 2, 1]>(h) y = Flatten(t)",
     {}},
    {"reduced_along_the_last",
     "float16[2, 64, 196] y",
     "h = LayerNormalization(x, g) t = Transpose<perm = [0, 2, 1]>(h) y = Softmax(t)",
     {}},
    {"of_columns",
     "float16[2, 196, 64] y",
     "h = Tanh(x) t = Softmax<axis = 1>(h) y = MatMul(t, o)",
     {}},
    {"keys_of_attention",
     "float16[2, 4, 196, 16] y",
     "h = LayerNormalization(x, g) z = Reshape(h, heads) t = Transpose<perm = [0, 2, 3, 1]>(z) "
     "r = Reshape(u, heads) q = Transpose<perm = [0, 2, 1, 3]>(r) a = MatMul(q, t) "
     "p = Softmax(a) y = MatMul(p, q)",
     {0, 3, 1, 2}},
    {"rows_that_data_pick",
     "float16[2, 64, 40] y",
     "i = ArgMax<axis = 2, keepdims = 0>(u) h = Gather(o, i) z = Transpose<perm = [0, 2, 1]>(h) "
     "t = Tanh(z) y = MatMul(t, w)",
     {0, 2, 1}},
    {"elements_that_data_pick",
     "float16[64, 2, 64] y",
     "s = Constant<value_int = 64>() a = ArgMax<axis = 1, keepdims = 0>(x) i = Mod(a, s) "
     "h = Gather<axis = 1>(o, i) t = Tanh(h) y = MatMul(t, o)",
     {}},
};

Model model_of(const Case& c) {
  const auto numbers = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(i * 29 % 17 - 8);
    return text;
  };
  return Model::parse(
      "<ir_version: 10, opset_import: [\"\" : 22]> g (float16[2, 196, 64] x, float16[2, 196, 64] "
      "u) "
      "=> (" +
      std::string(c.outputs) + ") <float[64] gs = {" + numbers(64) + "}, float[196, 40] ws = {" +
      numbers(196 * 40) + "}, float[64, 40] vs = {" + numbers(64 * 40) + "}, float[64, 64] os = {" +
      numbers(64 * 64) +
      "}, int64[4] heads = {0, 0, 4, 16}> { kf = Constant<value = float {0.05}>() k = Cast<to = "
      "10>(kf)"
      " gh = Cast<to = 10>(gs) g = Mul(gh, k) wh = Cast<to = 10>(ws) w = Mul(wh, k) "
      "vh = Cast<to = 10>(vs) v = Mul(vh, k) "
      "oh = Cast<to = 10>(os) o = Mul(oh, k) " +
      c.body + " }");
}

class ProducerOrders : public testing::TestWithParam<Case> {};

codegen::MemoryOrder order_in(const Case& c) {
  const Program program = compile(model_of(c));
  const runtime::CompiledProgram& compiled = *program.handle();
  codegen::MemoryOrder found;
  for (const auto& [value, order] : codegen::memory_orders(compiled.plan, {})) {
    if (compiled.graph().values[static_cast<size_t>(value)].name == "t") found = order;
  }
  return found;
}

TEST_P(ProducerOrders, OfAPlan) { EXPECT_EQ(order_in(GetParam()), GetParam().order); }

// Matrix units take adjacent terms of bytes, whose sums are along the last dimension here.
TEST(ProducerOrdersOfBytes, KeepTheTermsAdjacent) {
  const Case bytes = {"bytes",
                      "int32[2, 64, 40] y",
                      "h = LayerNormalization(x, g) b = QuantizeLinear(h, k) "
                      "t = Transpose<perm = [0, 2, 1]>(b) wb = Cast<to = 3>(ws) "
                      "y = MatMulInteger(t, wb)",
                      {}};
  EXPECT_EQ(order_in(bytes), bytes.order);
}

class CudaProducerOrders : public testing::TestWithParam<Case> {};

TEST_P(CudaProducerOrders, AgreeWithTheReference) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = model_of(GetParam());
  const Program program = compile(model);
  const NamedTensors inputs = random_inputs(model, {.seed = 5});
  Session reference(program, {.device = "reference"}), gpu(program, {.device = "cuda"});
  const NamedTensors got = gpu.run(inputs), expected = reference.run(inputs);
  for (const auto& [name, value] : got) EXPECT_LE(distance(value, expected.at(name)), 3e-3) << name;
}

const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Graphs, ProducerOrders, testing::ValuesIn(kCases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Graphs, CudaProducerOrders, testing::ValuesIn(kCases), name_of_case);

}  // namespace
}  // namespace redfuser
