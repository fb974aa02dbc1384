// Attention beyond the usual: masks to both sides, operands of different types, short windows.
#include <cmath>

#include "bench_attention.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

Attention of(const char* name, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
             int64_t size) {
  Attention a{"accept", name, batch, heads, heads, queries, keys, size};
  return a;
}

std::vector<Attention> masked() {
  std::vector<Attention> all;
  Attention near = of("near512_8192", 1, 16, 8192, 8192, 64);
  near.radius = 512;
  all.push_back(near);
  near.name = "near512_8192_bf16_d128";
  near.size = 128;
  near.bfloat = true;
  all.push_back(near);
  Attention prefix = of("prefix_window_8192", 1, 16, 8192, 8192, 64);
  prefix.causal = true;
  prefix.window = 512;
  prefix.prefix = 4;
  all.push_back(prefix);
  prefix.name = "prefix_window_odd";
  prefix.queries = 700, prefix.keys = 1013;
  prefix.window = 90;
  all.push_back(prefix);
  Attention sink = of("sink_window_dc_32768", 1, 32, 1, 32768, 128);
  sink.window = 1024;
  sink.prefix = 4;
  all.push_back(sink);
  sink.name = "sink_window_dc_gqa_5000";
  sink.key_heads = 8;
  sink.keys = 5000;
  all.push_back(sink);
  Attention wide = of("near_large_head", 2, 4, 300, 333, 320);
  wide.radius = 40;
  wide.prefix = 3;
  all.push_back(wide);
  return all;
}

// Attention in fp32 arithmetic of operands that are stored in types of their own, with a bias per
// head where there is one.
struct Mixed {
  std::string name;
  int64_t batch, heads, queries, keys, size, values;
  DType query, key, value;
  bool bias = false;
  bool halves = false;  // the products are those of 16-bit operands

  Dims dims(int64_t tokens, int64_t width) const { return {batch, heads, tokens, width}; }
};

std::string declared(const Mixed& a, DType dtype, int64_t tokens, int64_t width) {
  return fmt::format("{}[{}, {}, {}, {}]", type_name(dtype), a.batch, a.heads, tokens, width);
}

std::string graph(const Mixed& a) {
  const std::string type = type_name(a.query);
  std::string inputs =
      fmt::format("{} q, {} k, {} v", declared(a, a.query, a.queries, a.size),
                  declared(a, a.key, a.keys, a.size), declared(a, a.value, a.keys, a.values));
  if (a.bias) inputs += fmt::format(", {}[{}, {}, {}] b", type, a.heads, a.queries, a.keys);
  const DType product = a.halves ? a.query : DType::Float32;
  return fmt::format(
      "g ({}) => ({} y) {{ scale = Constant<value = float {{{}}}>() qf = Cast<to = {}>(q) "
      "kf = Cast<to = {}>(k) vf = Cast<to = {}>(v) t = Transpose<perm = [0, 1, 3, 2]>(kf) "
      "s0 = MatMul(qf, t) s1 = Cast<to = 1>(s0) s2 = Mul(s1, scale) {} "
      "p = Softmax<axis = -1>(s3) pf = Cast<to = {}>(p) y = MatMul(pf, vf) }}",
      inputs, declared(a, product, a.queries, a.values), 1 / std::sqrt(a.size),
      type_number(product), type_number(product), type_number(product),
      a.bias ? "bf = Cast<to = 1>(b) s3 = Add(s2, bf)" : "s3 = Identity(s2)", type_number(product));
}

std::vector<double> reference(const Mixed& a, const NamedTensors& inputs, int64_t row) {
  const Tensor &q = inputs.at("q"), &k = inputs.at("k"), &v = inputs.at("v");
  const int64_t head = row / a.queries;
  std::vector<double> scores, result(static_cast<size_t>(a.values));
  double largest = -HUGE_VAL, total = 0;
  for (int64_t j = 0; j < a.keys; ++j) {
    double score = 0;
    for (int64_t c = 0; c < a.size; ++c) {
      score += element(q, row * a.size + c) * element(k, (head * a.keys + j) * a.size + c);
    }
    score /= std::sqrt(static_cast<double>(a.size));
    if (a.bias) {
      score += element(inputs.at("b"), (head % a.heads * a.queries + row % a.queries) * a.keys + j);
    }
    scores.push_back(score);
    largest = std::max(largest, score);
  }
  for (int64_t j = 0; j < a.keys; ++j) {
    const double weight = std::exp(scores[static_cast<size_t>(j)] - largest);
    total += weight;
    for (int64_t c = 0; c < a.values; ++c) {
      result[static_cast<size_t>(c)] += weight * element(v, (head * a.keys + j) * a.values + c);
    }
  }
  for (double& value : result) value /= total;
  return result;
}

Workload mixed_workload(const Mixed& a) {
  Workload w;
  w.suite = "accept";
  w.name = a.name;
  w.model = model_text(graph(a));
  w.inputs = {{"q", normal_tensor("q", a.query, a.dims(a.queries, a.size))},
              {"k", normal_tensor("k", a.key, a.dims(a.keys, a.size))},
              {"v", normal_tensor("v", a.value, a.dims(a.keys, a.values))}};
  if (a.bias) w.inputs["b"] = normal_tensor("b", a.query, {a.heads, a.queries, a.keys});
  w.rows = a.batch * a.heads * a.queries;
  w.width = a.values;
  const NamedTensors inputs = w.inputs;
  w.reference = [a, inputs](int64_t row) { return reference(a, inputs, row); };
  return w;
}

std::vector<Mixed> mixed() {
  const DType f = DType::Float32, h = DType::Float16, b = DType::BFloat16;
  return {
      {"fp32_1024_h16_d64", 1, 16, 1024, 1024, 64, 64, f, f, f},
      {"fp32_1024_h16_d128", 1, 16, 1024, 1024, 128, 128, f, f, f},
      {"fp32_odd", 2, 3, 333, 577, 40, 72, f, f, f},
      {"fp32_dc_4096", 4, 16, 1, 4096, 64, 64, f, f, f},
      {"hhf_b8_h12_512_d64", 8, 12, 512, 512, 64, 64, h, h, f},
      {"fhb_b8_h12_512_d64", 8, 12, 512, 512, 64, 64, f, h, b},
      {"hbf_odd", 2, 3, 333, 577, 40, 72, h, b, f},
      {"bhh_odd", 2, 3, 130, 257, 64, 32, b, h, h},
      {"bbf_few", 2, 4, 9, 700, 64, 128, b, b, f},
      {"fp32_dc_d256", 1, 8, 3, 1000, 256, 256, f, f, f},
      {"hfh_wide_values", 1, 4, 200, 300, 32, 128, h, f, h},
      {"swin_512x49_h4_d32", 512, 4, 49, 49, 32, 32, h, h, h, true, true},
      {"swin_fp32", 64, 4, 49, 49, 32, 32, f, f, f, true},
      {"windows_7", 300, 3, 7, 7, 16, 16, h, h, h, true, true},
      {"windows_20_100", 200, 4, 20, 100, 64, 64, b, b, b, true, true},
      {"windows_128", 64, 4, 128, 128, 32, 32, h, h, h, true, true},
      {"windows_64", 512, 4, 64, 64, 32, 32, h, h, h, true, true},
  };
}

}  // namespace

std::vector<WorkloadMaker> accept_attention_workloads() {
  std::vector<WorkloadMaker> makers;
  for (const Attention& a : masked()) {
    makers.push_back({a.name, [a] { return attention_workload(a); }});
  }
  for (const Mixed& a : mixed()) {
    makers.push_back({a.name, [a] { return mixed_workload(a); }});
  }
  return makers;
}

}  // namespace redfuser::tools
