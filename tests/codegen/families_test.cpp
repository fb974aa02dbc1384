// Which kernel family computes a fused step, and that no step of models/ or of the suites falls
// back to rows by element: the row kernels that contract, with scalar loads, for every output
// column.
#include <algorithm>
#include <filesystem>

#include "codegen/functor/flat_streaming.h"
#include "codegen/select/generate.h"
#include "ir/evaluate.h"
#include "support/codegen_harness.h"
#ifdef REDFUSER_TESTS_WORKLOADS
#include "bench_workload.h"
#endif

namespace redfuser::codegen_tests {
namespace {

namespace fs = std::filesystem;

const char* const kByElement = "rows by element";

// Of a cascade, with every symbol at 128: the name of its first kernel, "library" for a product.
std::string family(const fuse::Plan& plan, const fuse::Step& step, const codegen::Target& target) {
  const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
  if (cascade == nullptr) return "";
  const std::vector<int64_t> symbols(4096, 128);
  std::string first;
  const codegen::GpuStep form = generate(*plan.graph, step, target);
  for (const codegen::GpuCall& call : form.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch == nullptr && first.empty()) return "library";
    if (launch == nullptr) continue;
    if (first.empty() && evaluate_size(launch->grid[0], symbols) > 0) first = launch->family;
  }
  const bool columns =
      std::any_of(cascade->streaming.accumulators.begin(), cascade->streaming.accumulators.end(),
                  [](const cascade::Accumulator& a) { return !a.columns.empty(); });
  // The row kernels take a cascade's columns as rows of their own.
  const std::string& taken = form.offers.at(0).family;
  return columns && (taken == "row" || taken == "row_passes") ? kByElement : first;
}

Program compiled(const Model& model) {
  CompileOptions options;
  options.certify = false;
  return compile(model, options);
}

// By the names of the nodes that a step covers.
std::map<std::string, std::string> families(const Program& program, const codegen::Target& target) {
  std::map<std::string, std::string> result;
  for (const fuse::Step& step : program.handle()->plan.steps) {
    const std::string name = family(program.handle()->plan, step, target);
    if (!name.empty()) result[step.label] = name;
  }
  return result;
}

struct Case {
  const char *name, *graph, *family;
};

// b8 h12 l512 d64.
#define SCORES(q, k) "(" q "[8,12,512,64] q, " k "[8,12,64,512] k, "

const Case kCases[] = {
    {"softmax", "g (float16[64,1024] x) => (y) { y = Softmax<axis = -1>(x) }", "row_resident"},
    {"attention",
     "g (float16[8,12,512,64] q, float16[8,12,512,64] k, float16[8,12,512,64] v) => (y) { "
     "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis = -1>(s) "
     "y = MatMul(p, v) }",
     "attention_hopper"},
    {"attention_in_fp32",
     "g " SCORES("float", "float") "float[8,12,512,64] v) => (y) { s = MatMul(q, k) "
                                   "p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     "attention"},
    {"softmax_times_matrix",
     "g (float16[4096,1024] x, float16[1024,64] w) => (y) { p = Softmax<axis = -1>(x) "
     "y = MatMul(p, w) }",
     "row_resident"},
    {"softmax_times_narrow_matrix",
     "g (float[64,807] x, float[807,40] w) => (y) { p = Softmax<axis = -1>(x) y = MatMul(p, w) }",
     "column_streaming"},
    {"sums_of_small_products",
     "g (float[5176,9] x, float[9,139] w) => (y) { m = MatMul(x, w) r = Relu(m) "
     "a = Constant<value = int64[1] {-1}>() y = ReduceSum<keepdims = 0>(r, a) }",
     "row_resident"},
    {"scores_and_values_of_two_types",
     "g " SCORES("float16",
                 "float16") "float[8,12,512,64] v) => (y) { h = MatMul(q, k) "
                            "s = Cast<to = 1>(h) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     "attention"},
    {"scores_of_two_products",
     "g " SCORES("float16", "float16") "float16[8,12,64,512] r, float16[8,12,512,64] v) => (y) { "
                                       "a = MatMul(q, k) b = MatMul(q, r) s = Add(a, b) p = "
                                       "Softmax<axis = -1>(s) y = MatMul(p, v) }",
     "product_tile"},
};
#undef SCORES

class CodegenFamilies : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenFamilies, OfTheOnlyStep) {
  const std::string head = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  const Program program = compiled(Model::parse(head + GetParam().graph));
  const auto found = families(program, kTargets[1]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->second, GetParam().family);
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenFamilies, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Model or workload, and the step's nodes.
using Steps = std::set<std::pair<std::string, std::string>>;

// Steps that are known to be computed by element.
const Steps kExceptions = {};

void expect_families(const std::string& origin, const Model& model, Steps& unseen) {
  const Program program = compiled(model);
  for (const codegen::Target& target : kTargets) {
    for (const auto& [step, family] : families(program, target)) {
      const bool listed = kExceptions.count({origin, step}) > 0;
      EXPECT_EQ(family == kByElement, listed)
          << origin << ", step \"" << step << "\" on " << target.architecture << ": " << family;
      unseen.erase({origin, step});
    }
  }
}

TEST(CodegenFallback, NoModelOrWorkloadFallsBackToRowsByElement) {
  Steps unseen = kExceptions;
  for (const auto& entry : fs::directory_iterator(test_paths::models())) {
    const fs::path file = entry.path() / "model.onnx";
    if (!fs::exists(file)) continue;
    expect_families(entry.path().filename().string(), Model::load(file.string()), unseen);
  }
#ifdef REDFUSER_TESTS_WORKLOADS
  for (const auto& suite : {tools::row_workloads(false), tools::attention_workloads(false),
                            tools::decode_workloads(false), tools::shape_workloads(),
                            tools::select_workloads(false), tools::accept_attention_workloads()}) {
    for (const tools::WorkloadMaker& maker : suite) {
      expect_families(maker.name, Model::parse(maker.make().model), unseen);
    }
  }
#endif
  for (const auto& [origin, step] : unseen) ADD_FAILURE() << "no step " << step << " in " << origin;
}

}  // namespace
}  // namespace redfuser::codegen_tests
