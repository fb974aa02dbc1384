// Every choice that tuning offers, on a GPU: the default's results, and stored measurements.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct TuneCase {
  const char* name;
  std::string graph;
  std::map<std::string, int64_t> sizes;
  double tolerance = 4e-3;
};

// Softmax attention over halves [b, h, queries, d] and [b, kv, keys, d]; `scores` makes t of s.
std::string attention(const std::string& d, const std::string& scores = "t = Identity(s)",
                      const std::string& batch = "2, 4") {
  const std::string k = "float16[" + batch + ", m, " + d + "]";
  return "g (float16[" + batch + ", n, " + d + "] q, " + k + " k, " + k + " v) => (float16[" +
         batch + ", n, " + d +
         "] y) { z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() "
         "c = Constant<value = float {0.125}>() kt = Transpose<perm = [0, 1, 3, 2]>(k) "
         "a = MatMul(q, kt) w = Cast<to = 1>(a) s = Mul(w, c) " +
         scores + " p = Softmax<axis = -1>(t) x = Cast<to = 10>(p) y = MatMul(x, v) }";
}

// Rows of the last n of m positions see keys up to their own.
const char* const kCausal =
    "sk = Shape<start = 2, end = 3>(k) sq = Shape<start = 2, end = 3>(q) x0 = Constant<value = "
    "int64[1] {0}>() x1 = Constant<value = int64[1] {1}>() mk = Squeeze(sk, x0) mq = Squeeze(sq, "
    "x0) ki = Range(z, mk, o) f = Sub(mk, mq) qr = Range(f, mk, o) qi = Unsqueeze(qr, x1) "
    "keep = GreaterOrEqual(qi, ki) none = Constant<value = float {-inf}>() "
    "t = Where(keep, s, none)";

std::string product(const std::string& type, const std::string& body) {
  return "g (" + type + "[r, n] x, " + type + "[n, 384] w, " + type + "[384, 384] v) => (" + type +
         "[r, 384] y) { " + body + " }";
}

// A product of `inner` columns with a map, then another one.
std::string chain(int64_t inner, bool gated) {
  const std::string w = "float16[512, " + std::to_string(inner) + "]";
  return "g (float16[r, 512] x, " + w + " w, " + w + " u, float16[" + std::to_string(inner) +
         ", 200] d) => (float16[r, 200] y) { c = Constant<value = float {0.05}>() "
         "e = Cast<to = 1>(x) l = Mul(e, c) s = Cast<to = 10>(l) p = MatMul(s, w) "
         "q = MatMul(s, u) f = Relu(p) " +
         (gated ? "h = Mul(f, q)" : "h = Identity(f)") + " y = MatMul(h, d) }";
}

// A layer of 256 units in both directions, whose products with the state stay near 1.
std::string recurrent(const std::string& op, int gates) {
  const std::string rows = std::to_string(gates * 256);
  return "g (float16[s, n, 64] x, float16[2, " + rows + ", 64] w, float[2, " + rows +
         ", 256] u) => (float16[s, 2, n, 256] y) { c = Constant<value = float {0.05}>() "
         "t = Mul(u, c) r = Cast<to = 10>(t) y = " +
         op + "<hidden_size = 256, direction = \"bidirectional\">(x, w, r) }";
}

std::vector<TuneCase> tune_cases() {
  const std::string softmax = "g (float16[r, n] x) => (float16[r, n] y) { y = Softmax(x) }";
  const std::string norm =
      "g (float16[r, n] x, float16[n] g, float16[n] b) => (float16[r, n] y) "
      "{ y = LayerNormalization(x, g, b) }";
  const std::string sum =
      "g (float16[r, n] x) => (float[r] y) { a = Constant<value = int64[1] {-1}>() f = "
      "Cast<to = 1>(x) y = ReduceLogSumExp<keepdims = 0>(f, a) }";
  const std::string integers =
      "g (uint8[r, n] x, int8[n, 384] w, uint8 z, int8[384] v) => (int32[r, 384] y) "
      "{ y = MatMulInteger(x, w, z, v) }";
  return {
      {"chain", chain(512, false), {{"r", 100}}},
      {"chain_of_clusters", chain(2048, false), {{"r", 16}}},
      {"chain_gated", chain(1000, true), {{"r", 40}}},
      {"prefill_64", attention("64"), {{"n", 300}, {"m", 333}}},
      {"prefill_128", attention("128"), {{"n", 257}, {"m", 500}}},
      {"prefill_256", attention("256"), {{"n", 200}, {"m", 300}}},
      {"causal_64", attention("64", kCausal), {{"n", 300}, {"m", 300}}},
      {"causal_128", attention("128", kCausal), {{"n", 400}, {"m", 777}}},
      {"decode_64", attention("64"), {{"n", 1}, {"m", 3000}}},
      {"decode_128", attention("128"), {{"n", 3}, {"m", 5000}}},
      {"decode_many", attention("128", "t = Identity(s)", "8, 32"), {{"n", 1}, {"m", 700}}},
      {"decode_odd", attention("80"), {{"n", 2}, {"m", 1001}}},
      {"some_rows", attention("64", kCausal, "1, 2"), {{"n", 70}, {"m", 4000}}},
      {"softmax_short", softmax, {{"r", 999}, {"n", 128}}, 2e-3},
      {"softmax_odd", softmax, {{"r", 77}, {"n", 1025}}, 2e-3},
      {"softmax_middle", softmax, {{"r", 500}, {"n", 8192}}, 2e-3},
      {"softmax_long", softmax, {{"r", 9}, {"n", 131072}}, 2e-3},
      {"softmax_longest", softmax, {{"r", 2}, {"n", 1048576}}, 4e-3},
      {"norm_short", norm, {{"r", 999}, {"n", 512}}, 4e-3},
      {"norm_middle", norm, {{"r", 200}, {"n", 12288}}, 4e-3},
      {"norm_long", norm, {{"r", 5}, {"n", 200000}}, 4e-3},
      {"sum_short", sum, {{"r", 999}, {"n", 257}}, 1e-4},
      {"sum_middle", sum, {{"r", 300}, {"n", 20000}}, 1e-4},
      {"product", product("float16", "y = MatMul(x, w)"), {{"r", 300}, {"n", 512}}},
      {"product_map",
       product("float16",
               "c = Constant<value_float = 0.01>() h = CastLike(c, x) u = MatMul(x, w) "
               "s = Mul(u, h) p = MatMul(s, v) t = Tanh(p) y = Mul(t, p)"),
       {{"r", 1000}, {"n", 256}}},
      {"product_float", product("float", "y = MatMul(x, w)"), {{"r", 300}, {"n", 512}}, 1e-4},
      // Clusters of more blocks than the contracted axis has stages.
      {"most_of_product",
       "g (bfloat16[r, n] x, bfloat16[n, 224] w) => (bfloat16[r, 1] y) { a = Constant<value = "
       "int64[1] {1}>() s = MatMul(x, w) y = ReduceMax(s, a) }",
       {{"r", 53}, {"n", 120}},
       1e-2},
      {"sum_long", sum, {{"r", 3}, {"n", 1000003}}, 1e-4},
      {"integers_of_a_row", integers, {{"r", 1}, {"n", 2048}}, 0},
      {"integers", integers, {{"r", 300}, {"n", 512}}, 0},
      {"lstm", recurrent("LSTM", 4), {{"s", 12}, {"n", 20}}},
      {"gru", recurrent("GRU", 3), {{"s", 12}, {"n", 5}}},
  };
}

class CudaTune : public testing::TestWithParam<TuneCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    folder_ = fs::path(testing::TempDir()) / ("redfuser_tune_" + std::string(GetParam().name));
    fs::remove_all(folder_);
    options_.device = "cuda";
    options_.kernel_cache_folder = folder_.string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Model model(const std::string& graph) {
    return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
  }
  // Sizes in place of their names.
  static std::string constant(std::string graph, const std::map<std::string, int64_t>& sizes) {
    for (const auto& [name, size] : sizes) {
      for (const auto& [before, after] :
           {std::pair("[", ","), {"[", "]"}, {" ", ","}, {" ", "]"}}) {
        const std::string from = before + name + after;
        const std::string to = before + std::to_string(size) + after;
        for (size_t at = graph.find(from); at != std::string::npos; at = graph.find(from)) {
          graph.replace(at, from.size(), to);
        }
      }
    }
    return graph;
  }

  // Runs once with choices, which it returns.
  std::vector<StepTuning> tuned(const Program& program, const NamedTensors& inputs,
                                NamedTensors& outputs) {
    SessionOptions options = options_;
    options.tune = true;
    Session session(program, options);
    outputs = session.run(inputs);
    for (const std::string& note : session.notes()) {
      EXPECT_FALSE(note.starts_with("warning")) << note;
    }
    return session.tunings();
  }

  // Has the next session that tunes take a choice where it was measured.
  void force(const std::string& choice) const {
    for (const auto& file : fs::directory_iterator(folder_ / "choices")) {
      Json entry = Json::parse(std::ifstream(file.path()));
      for (const Json& measured : entry["measured"]) {
        if (measured["choice"] == choice) entry["choice"] = choice;
      }
      std::ofstream(file.path()) << entry.dump();
    }
  }

  void expect_every_choice_right(const std::string& graph, const RandomOptions& random) {
    fs::remove_all(folder_ / "choices");
    const Model m = model(graph);
    const Program program = compile(m);
    const NamedTensors inputs = random_inputs(m, random);
    Session by_default(program, options_);
    const Tensor expected = by_default.run(inputs).at("y");
    NamedTensors outputs;
    const std::vector<StepTuning> found = tuned(program, inputs, outputs);
    ASSERT_FALSE(found.empty());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_GE(found[i].measured.size(), 2u);
      for (const auto& [choice, us] : found[i].measured) {
        force(choice);
        const std::vector<StepTuning> forced = tuned(program, inputs, outputs);
        ASSERT_EQ(forced.size(), found.size());
        EXPECT_TRUE(forced[i].remembered);
        EXPECT_EQ(forced[i].choice, choice);
        const Tolerance tolerance{GetParam().tolerance, GetParam().tolerance};
        const auto compared = compare(outputs, {{"y", expected}}, tolerance);
        EXPECT_TRUE(compared[0].passed) << choice << ": " << describe(compared[0]);
      }
      std::printf("%zu choices, default %.1f us, best %.1f us: %s\n", found[i].measured.size(),
                  found[i].default_us, found[i].us, found[i].choice.c_str());
    }
  }

  fs::path folder_;
  SessionOptions options_;
};

TEST_P(CudaTune, EveryChoiceGivesTheDefaultsResults) {
  // Sizes of run time, and the same as constants: their kernels differ.
  RandomOptions random;
  for (const auto& [name, size] : GetParam().sizes) random.symbols[name] = size;
  expect_every_choice_right(GetParam().graph, random);
  expect_every_choice_right(constant(GetParam().graph, GetParam().sizes), {});
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaTune, testing::ValuesIn(tune_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
