// Products of 8-bit floats: the launches that graphs become, and what the product library is asked
// for on each architecture.
#include "support/code_products.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Expected {
  const char* graph;
  int launches;  // of kernels
  DType operands, result;
  bool scale, line_scales, bias;
};

const Expected kOnHopper[] = {
    // Few rows have a kernel of their own.
    {"casts", 2, DType::Float8E4M3FN, DType::BFloat16, true, true, false},
    {"in_float", 2, DType::Float8E4M3FN, DType::Float32, true, true, false},
    {"pairs", 2, DType::Float8E4M3FN, DType::BFloat16, true, true, false},
    // The scales' product, and the copy of weights that do not lie along the sum.
    {"by_tensor", 3, DType::Float8E4M3FN, DType::BFloat16, true, false, false},
    {"biased", 2, DType::Float8E4M3FN, DType::BFloat16, true, true, true},
    {"activated", 2, DType::Float8E4M3FN, DType::Float32, false, false, false},
    // The weights' floats, copies of the rows', and their scales behind the product.
    {"by_block", 4, DType::Float32, DType::Float32, false, false, false},
    {"unnegative_zero", 4, DType::Float16, DType::Float32, false, false, false},
    {"of_floats", 2, DType::Float32, DType::Float32, false, false, false},
    {"ragged", 4, DType::Float16, DType::Float32, false, false, false},
};

std::string text_of(const std::string& name) {
  for (const CodeProductGraph& graph : code_product_graphs()) {
    if (graph.name == name) return graph.text;
  }
  throw std::runtime_error(name);
}

TEST(CodeProducts, OnHopper) {
  for (const Expected& e : kOnHopper) {
    const GeneratedModel made =
        generate_model(Model::parse(text_of(e.graph)), codegen::target_named("sm_90a"));
    EXPECT_EQ(made.launches, e.launches) << e.graph;
    ASSERT_EQ(made.product_calls.size(), 1u) << e.graph;
    const codegen::ProductCall& call = made.product_calls[0];
    EXPECT_EQ(call.dtype, e.operands) << e.graph;
    EXPECT_EQ(call.result, e.result) << e.graph;
    EXPECT_EQ(call.a_scale.defined(), e.scale) << e.graph;
    EXPECT_EQ(call.line_scales, e.line_scales) << e.graph;
    EXPECT_EQ(call.bias.defined(), e.bias) << e.graph;
    if (e.operands != DType::Float8E4M3FN) continue;
    // Both operands along the sum.
    EXPECT_TRUE(call.a_column->is_constant(1)) << e.graph;
    EXPECT_TRUE(call.b_row->is_constant(1)) << e.graph;
  }
}

// Blackwell's library does not scale lines; Ampere has no products of 8-bit floats.
TEST(CodeProducts, OnOthers) {
  for (const auto& [target, dtype] : {std::pair{"sm_100a", DType::Float8E4M3FN},
                                      {"sm_89", DType::Float8E4M3FN},
                                      {"sm_80", DType::Float16}}) {
    const GeneratedModel made =
        generate_model(Model::parse(text_of("casts")), codegen::target_named(target));
    ASSERT_EQ(made.product_calls.size(), 1u) << target;
    EXPECT_EQ(made.product_calls[0].dtype, dtype) << target;
    EXPECT_FALSE(made.product_calls[0].a_scale.defined()) << target;
  }
}

// Several products of one quantised value read its codes.
TEST(CodeProducts, ShareTheirRows) {
  const CodeProductGraph graph = code_product_graph(
      "three", "float8e4m3fn[48, 64] w, float8e4m3fn[48, 64] v", "bfloat16[m, 48]",
      std::string(kQuantisedRows) +
          "wt = Transpose<perm = [1, 0]>(w) vt = Transpose<perm = [1, 0]>(v) wf = Cast<to = 1>(wt) "
          "vf = Cast<to = 1>(vt) a0 = MatMul(f, wf) b0 = MatMul(f, vf) a1 = Mul(a0, s) "
          "b1 = Mul(b0, s) a2 = Cast<to = 16>(a1) b2 = Cast<to = 16>(b1) a3 = Sigmoid(a2) "
          "b3 = Softmax<axis = -1>(b2) y = Mul(a3, b3)");
  const GeneratedModel made =
      generate_model(Model::parse(graph.text), codegen::target_named("sm_90a"));
  for (const codegen::ProductCall& call : made.product_calls) {
    EXPECT_EQ(call.dtype, DType::Float8E4M3FN);
  }
  EXPECT_EQ(made.product_calls.size(), 2u);
}

// Rounded values that no product reads are not stored as codes.
TEST(CodeProducts, OtherReadersGetFloats) {
  const CodeProductGraph graph =
      code_product_graph("rounded", "float[1, 64] z", "float[m, 64]",
                         std::string(kQuantisedRows) + "g = Mul(f, s) y = Mul(g, z)");
  EXPECT_EQ(generate_model(Model::parse(graph.text)).launches, 1);
}

TEST(CodeProducts, Compile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const codegen::Target& target : kTargets) {
    std::map<std::string, std::string> origins;
    for (const CodeProductGraph& graph : code_product_graphs()) {
      const GeneratedModel made = generate_model(Model::parse(graph.text), target);
      for (const codegen::KernelLaunch& kernel : made.kernels) origins[kernel.source] = graph.name;
    }
    for (const Compiler::Result& result : compile_all(origins, target.architecture)) {
      EXPECT_EQ(result.spilled, 0) << result.log;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
