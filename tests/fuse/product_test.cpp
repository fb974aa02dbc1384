// Product steps as reductions.
#include "fuse/product.h"

#include <gtest/gtest.h>

#include "ir/expr.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

// The sum is in fp32, and the epilogue reads what the user's fp16 product holds.
TEST(FuseProduct, AsAReductionRoundsTheProductOfNarrowTypes) {
  for (const auto& [dtype, body] :
       {std::pair<const char*, const char*>{"float16", "float16(sum_"}, {"float", "= sum_"}}) {
    const std::string model = fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[7, 8] a, {0}[8, 5] b) => "
        "({0}[7, 5] y) {{ s = MatMul(a, b) y = Mul(s, s) }}",
        dtype);
    const Program program = compile(Model::parse(model));
    const runtime::CompiledProgram& compiled = *program.handle();
    const ir::Graph graph = clone(compiled.graph());
    const auto* step = std::get_if<fuse::ProductStep>(&compiled.plan.steps.at(0).kind);
    ASSERT_NE(step, nullptr);
    const std::string text =
        "= " + ir::to_string(*graph.pool, fuse::as_reduction(*graph.pool, *step).body);
    EXPECT_NE(text.find(body), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace redfuser
