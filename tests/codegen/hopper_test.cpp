// Which attention cascades the Hopper family takes, and how it sees their operands.
#include "codegen/attention/hopper/select.h"
#include "codegen/attention/recognize.h"
#include "codegen/select/generate.h"
#include "ir/evaluate.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Operands {
  std::string q, k, v;  // type and dims
  std::string before;   // makes qh, kh, vh of [batch, heads, tokens, size] from q, k, v
};

Model attention_of(const Operands& o) {
  return Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (" + o.q + " q, " + o.k + " k, " + o.v +
      " v) => (y) { " + o.before +
      "kt = Transpose<perm = [0, 1, 3, 2]>(kh) s = MatMul(qh, kt) p = Softmax<axis = -1>(s) "
      "y = MatMul(p, vh) }");
}

const char* const kSame = "qh = Identity(q) kh = Identity(k) vh = Identity(v) ";
const char* const kByToken =
    "qh = Transpose<perm = [0, 2, 1, 3]>(q) kh = Transpose<perm = [0, 2, 1, 3]>(k) "
    "vh = Transpose<perm = [0, 2, 1, 3]>(v) ";

// Kernels with the program that owns their expressions.
struct Generated {
  Program program;
  std::vector<codegen::KernelLaunch> kernels;
};

Program compiled(const Model& model) {
  CompileOptions options;
  options.certify = false;
  return compile(model, options);
}

Generated generated(const Model& model, bool portable = false) {
  codegen::Target target;
  target.portable = portable;
  Generated result{compiled(model), {}};
  const runtime::CompiledProgram& program = *result.program.handle();
  for (const fuse::Step& step : program.plan.steps) {
    for (const codegen::GpuCall& call : generate(program.graph(), step, target).calls) {
      if (const auto* launch = std::get_if<codegen::KernelLaunch>(&call))
        result.kernels.push_back(*launch);
    }
  }
  return result;
}
Generated generated(const Operands& operands, bool portable = false) {
  return generated(attention_of(operands), portable);
}

std::vector<int64_t> values(const std::vector<ir::Expr>& sizes) {
  const std::vector<int64_t> symbols(1024, 128);
  std::vector<int64_t> result;
  for (const ir::Expr size : sizes) result.push_back(evaluate_size(size, symbols));
  return result;
}

TEST(CodegenHopper, TakesWhatTheCopyEngineReads) {
  const std::string same = kSame;
  struct Case {
    const char* what;
    Operands operands;
    bool portable;
    const char* kernel;
  };
  auto all = [&](const std::string& type, const std::string& before = kSame) {
    return Operands{type, type, type, before};
  };
  const Case cases[] = {
      {"halves", all("float16[4, 12, 1024, 64]"), false, "attention_hopper"},
      {"bfloats", all("bfloat16[4, 12, 1024, 64]"), false, "attention_hopper"},
      {"by token", all("float16[4, 1024, 12, 64]", kByToken), false, "attention_hopper"},
      {"large heads", all("float16[4, 12, 1024, 256]"), false, "attention_hopper"},
      {"a second opinion", all("float16[4, 12, 1024, 64]"), true, "attention"},
      {"floats", all("float[4, 12, 1024, 64]"), false, "attention"},
      {"rows not aligned to 16 bytes", all("float16[4, 12, 1024, 20]"), false, "attention"},
      {"wide heads", all("float16[1, 2, 128, 320]"), false, "attention_wide"},
      {"the widest",
       {"bfloat16[1, 2, 128, 576]", "bfloat16[1, 2, 128, 576]", "bfloat16[1, 2, 128, 512]", same},
       false,
       "attention_wide"},
      {"few rows",
       {"float16[1, 2, 8, 64]", "float16[1, 2, 1024, 64]", "float16[1, 2, 1024, 64]", same},
       false,
       "attention_split"},
      {"windows", all("float16[512, 4, 49, 32]"), false, "attention"},
  };
  for (const Case& c : cases) {
    const auto [program, kernels] = generated(c.operands, c.portable);
    ASSERT_EQ(kernels.size(), 1u) << c.what;
    EXPECT_EQ(kernels[0].family, c.kernel) << c.what;
  }
}

TEST(CodegenHopper, ReadsLayoutsWhereTheyLie) {
  const auto [program, kernels] = generated(
      {"float16[3, 200, 4, 64]", "float16[3, 300, 4, 64]", "float16[3, 300, 4, 32]", kByToken});
  ASSERT_EQ(kernels.size(), 1u);
  const std::vector<codegen::TmaView>& views = kernels[0].views;
  ASSERT_EQ(views.size(), 3u);
  struct Case {
    int64_t tokens, size;
  };
  const Case cases[] = {{200, 64}, {300, 64}, {300, 32}};
  for (size_t i = 0; i < 3; ++i) {
    const auto [tokens, size] = cases[i];
    ASSERT_EQ(views[i].dims.size(), 4u) << i;
    EXPECT_EQ(values(views[i].dims)[0], size) << i;
    EXPECT_EQ(values(views[i].dims)[1], tokens) << i;
    const std::vector<int64_t> strides = values(views[i].strides);
    EXPECT_EQ(strides[0], 4 * size) << i;
    // Heads and batches, in either order.
    EXPECT_EQ(std::min(strides[1], strides[2]), size) << i;
    EXPECT_EQ(std::max(strides[1], strides[2]), tokens * 4 * size) << i;
    EXPECT_TRUE(views[i].offset->is_constant(0)) << i;
    EXPECT_EQ(views[i].box[0], 64) << i;
  }
}

// Few tiles of many rows would leave multiprocessors without work.
TEST(CodegenHopper, RowsOfATileByTheWork) {
  struct Case {
    std::string type;
    int groups;
  };
  const Case cases[] = {
      {"float16[1, 12, 1024, 64]", 2},  {"float16[8, 12, 512, 64]", 2},
      {"float16[32, 12, 512, 64]", 3},  {"float16[1, 16, 512, 128]", 1},
      {"float16[4, 32, 1024, 128]", 2},
  };
  for (const Case& c : cases) {
    const auto [program, kernels] = generated({c.type, c.type, c.type, kSame});
    ASSERT_EQ(kernels.size(), 1u) << c.type;
    EXPECT_EQ(kernels[0].block, (c.groups + 1) * 128) << c.type;
  }
}

// The maximum that scores are taken from is of the product itself.
void expect_maxima_of_products(const Program& program, const std::string& graph) {
  const fuse::Plan& plan = program.handle()->plan;
  ASSERT_EQ(plan.steps.size(), 1u) << graph;
  const codegen::Target target;
  codegen::StepBuilder builder(*plan.graph, plan.steps[0], target);
  const auto attention =
      recognize_attention(builder, std::get<fuse::CascadeStep>(plan.steps[0].kind));
  ASSERT_TRUE(attention) << graph;
  const codegen::ScoreSpec scores = hopper_scores(builder.pool(), *attention).whole;
  const cascade::Accumulator& maximum = scores.rows.accumulators.front();
  ASSERT_EQ(maximum.reduction, ir::Reduction::Max) << graph;
  EXPECT_EQ(codegen::factored(builder.pool(), maximum.lift).rest, scores.raw)
      << graph << ": " << to_string(builder.pool(), maximum.lift);
}

// max(c·s) = c·max(s): whatever spelling brings the factor, no element is multiplied by it.
TEST(CodegenHopper, MaximaAreOfProducts) {
  const char* const scores[] = {
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, kt)",
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) r = MatMul(q, kt) s = Mul(r, c)",
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) r = MatMul(q, kt) d = Div(r, c) s = Mul(c, d)",
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) qc = Mul(q, c) s = MatMul(qc, kt)",
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) qc = Mul(q, c) kc = Mul(kt, c) s = MatMul(qc, kc)",
      "kt = Transpose<perm = [0, 1, 3, 2]>(k) qc = Mul(q, c) kc = Mul(kt, c) r = MatMul(qc, kc) "
      "g = Cast<to = 1>(r) s = Cast<to = 10>(g)",
  };
  for (const char* score : scores) {
    for (const char* rest :
         {"p = Softmax<axis = -1>(s)",
          "f = Cast<to = 1>(s) pf = Softmax<axis = -1>(f) p = Cast<to = 10>(pf)"}) {
      const std::string graph = std::string(score) + " " + rest;
      const Program program = compiled(Model::parse(
          "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[1, 2, 128, 64] q, float16[1, 2, "
          "128, 64] k, float16[1, 2, 128, 64] v) => (y) { h = Constant<value = float {0.25}>() c = "
          "Cast<to = 10>(h) " +
          graph + " y = MatMul(p, v) }"));
      expect_maxima_of_products(program, graph);
    }
  }
}

TEST(CodegenHopper, SharedHeadsHaveNoDimension) {
  const auto [program, kernels] = generated(
      {"float16[1, 8, 200, 64]", "float16[1, 1, 300, 64]", "float16[1, 1, 300, 64]", kSame});
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].family, "attention_hopper");
  EXPECT_EQ(values(kernels[0].views[0].dims), (std::vector<int64_t>{64, 200, 8}));
  EXPECT_EQ(values(kernels[0].views[1].dims), (std::vector<int64_t>{64, 300, 1}));
}

// Values that are columns of the keys come with them; others have tiles of their own.
TEST(CodegenHopper, LatentValuesAreNotCopiedTwice) {
  struct Case {
    const char *what, *values;
    size_t views;
  };
  const Case cases[] = {
      {"the first columns",
       "from = Constant<value = int64[1] {0}>() to = Constant<value = int64[1] {512}>() v = "
       "Slice(kv, from, to, axis)",
       2},
      {"columns from a slab on",
       "from = Constant<value = int64[1] {64}>() to = Constant<value = int64[1] {576}>() v = "
       "Slice(kv, from, to, axis)",
       2},
      {"columns within a slab",
       "from = Constant<value = int64[1] {8}>() to = Constant<value = int64[1] {520}>() v = "
       "Slice(kv, from, to, axis)",
       3},
      {"all columns", "v = Identity(kv)", 2},
  };
  for (const Case& c : cases) {
    const bool all = std::string(c.what) == "all columns";
    const std::string size = all ? "512" : "576";
    const GeneratedModel generated = generate_model(Model::parse(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (bfloat16[2, 128, " + size +
        "] q, bfloat16[2, 4096, " + size +
        "] kv) => (bfloat16[2, 128, 512] y) { axis = Constant<value = int64[1] {2}>() "
        "t = Transpose<perm = [0, 2, 1]>(kv) s = MatMul(q, t) p = Softmax<axis = -1>(s) " +
        std::string(c.values) + " y = MatMul(p, v) }"));
    ASSERT_EQ(generated.kernels.size(), 2u) << c.what;  // the second merges segments
    EXPECT_EQ(generated.kernels[0].family, "attention_wide") << c.what;
    EXPECT_EQ(generated.kernels[0].views.size(), c.views) << c.what;
    if (Compiler::find()) expect_compiles(generated.kernels, 90);
  }
}

// Two segments of a row tile are a cluster; a second kernel merges the states of more segments.
TEST(CodegenHopper, SegmentsOfWideValuesAreClusters) {
  struct Case {
    const char *queries, *keys;
    int cluster;
    size_t kernels;
    int64_t blocks;
  };
  const Case cases[] = {
      {"1, 128, 576", "1, 4096, 576", 1, 2, 64},
      {"32, 128, 576", "32, 4096, 576", 2, 1, 128},
      {"32, 128, 576", "32, keys, 576", 2, 1, 128},
      {"32, 128, 576", "32, 64, 576", 1, 1, 64},
      {"2, 128, 576", "2, 256, 576", 1, 2, 8},
      {"1, 128, 576", "1, keys, 576", 1, 2, 64},
      {"22, 128, 576", "22, 4096, 576", 1, 2, 132},
      {"66, 128, 576", "66, 4096, 576", 1, 1, 132},
      {"batch, 128, 576", "batch, 4096, 576", 1, 2, 128},
  };
  for (const Case& c : cases) {
    const auto [program, kernels] = generated(Model::parse(
        std::string("<ir_version: 9, opset_import: [\"\" : 20]> g (bfloat16[") + c.queries +
        "] q, bfloat16[" + c.keys +
        "] kv) => (bfloat16[b, 128, 512] y) { axis = Constant<value = int64[1] {2}>() from = "
        "Constant<value = int64[1] {0}>() to = Constant<value = int64[1] {512}>() t = "
        "Transpose<perm = [0, 2, 1]>(kv) s = MatMul(q, t) p = Softmax<axis = -1>(s) v = "
        "Slice(kv, from, to, axis) y = MatMul(p, v) }"));
    const std::string what = std::string(c.queries) + " by " + c.keys;
    ASSERT_EQ(kernels.size(), c.kernels) << what;
    const codegen::KernelLaunch& kernel = kernels[0];
    EXPECT_EQ(kernel.cluster, c.cluster) << what;
    const bool batch = std::string(c.queries).find("batch") == 0;
    EXPECT_EQ(evaluate_size(kernel.grid[0], std::vector<int64_t>(1024, batch ? 2 : 4096)), c.blocks)
        << what;
    if (Compiler::find()) expect_compiles(kernels, 90);
  }
}

TEST(CodegenHopper, LengthsOfRunTimeHaveAPortableKernelForFewRows) {
  const std::string type = "float16[1, 2, tokens, 64]";
  const auto [program, kernels] = generated({type, type, type, kSame});
  ASSERT_EQ(kernels.size(), 2u);
  for (const int64_t tokens : {1, 63, 64, 500}) {
    const std::vector<int64_t> symbols(1024, tokens);
    for (const codegen::KernelLaunch& kernel : kernels) {
      const bool hopper = kernel.family == "attention_hopper";
      EXPECT_EQ(evaluate_size(kernel.grid[0], symbols) > 0, hopper == (tokens >= 64))
          << kernel.family << " " << tokens;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
