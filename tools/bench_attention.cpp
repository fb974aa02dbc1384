// Attention: prefill with many queries and decoding with one.
#include <cmath>

#include "bench_attention.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

// Keys or values repeated for the heads that share them.
std::string repeated(const Attention& a, const std::string& name, int64_t size) {
  if (a.key_heads == a.heads) return fmt::format("{0}h = Identity({0}) ", name);
  return fmt::format(
      "{0}u = Unsqueeze({0}, two) "
      "{0}s = Constant<value = int64[5] {{{1}, {2}, {3}, {4}, {5}}}>() {0}e = Expand({0}u, {0}s) "
      "{0}r = Constant<value = int64[4] {{{1}, {6}, {4}, {5}}}>() {0}h = Reshape({0}e, {0}r) ",
      name, a.batch, a.key_heads, a.heads / a.key_heads, a.keys, size, a.heads);
}

// Inputs by head.
std::string transposed(const Attention& a) {
  std::string text;
  for (const char* name : {"q", "k", "v"}) {
    text += a.by_token ? fmt::format("{0} = Transpose<perm = [0, 2, 1, 3]>({0}t) ", name) : "";
  }
  return text;
}

Dims dims_of(const Attention& a, int64_t heads, int64_t tokens, int64_t size) {
  return a.by_token ? Dims{a.batch, tokens, heads, size} : Dims{a.batch, heads, tokens, size};
}

// "float16[1, 8, 64, 128] q"
std::string declared(const Attention& a, const std::string& name, int64_t heads, int64_t tokens,
                     int64_t size) {
  std::vector<std::string> dims;
  for (const int64_t dim : dims_of(a, heads, tokens, size)) dims.push_back(fmt::to_string(dim));
  if (a.symbolic) {
    dims[0] = "batch";
    dims[a.by_token ? 1 : 2] = name == "q" || name == "y" ? "queries" : "keys";
  }
  return fmt::format("{}[{}] {}{}", type_name(a.dtype()), fmt::join(dims, ", "), name,
                     a.by_token && name != "y" ? "t" : "");
}

std::string integer(const std::string& name, int64_t value) {
  return fmt::format("{} = Constant<value = int64 {{{}}}>() ", name, value);
}

std::string real(const std::string& name, double value) {
  return fmt::format("{} = Constant<value = float {{{}}}>() ", name, value);
}

std::string positions(const Attention& a) {
  return integer("zero", 0) + integer("step", 1) + integer("keys", a.keys) +
         integer("first", a.position(0)) +
         "one = Constant<value = int64[1] {1}>() ki = Range(zero, keys, step) "
         "qr = Range(first, keys, step) qi = Unsqueeze(qr, one) gap = Sub(qi, ki) ";
}

std::string biased(const Attention& a) {
  std::string slopes;
  for (int64_t h = 0; h < a.heads; ++h) {
    slopes += fmt::format("{}{}", h > 0 ? ", " : "", static_cast<float>(a.slope(h)));
  }
  return fmt::format(
      "sl = Constant<value = float[{}, 1, 1] {{{}}}>() gf = Cast<to = 1>(gap) ng = Neg(gf) "
      "bias = Mul(sl, ng) s4 = Add(s3, bias) ",
      a.heads, slopes);
}

std::string masked(const Attention& a) {
  std::string text = real("none", -HUGE_VAL), seen;
  const auto also = [&](const std::string& name, const std::string& condition) {
    text += fmt::format("{} = {} ", name, condition);
    if (!seen.empty()) text += fmt::format("{0}_too = And({1}, {0}) ", name, seen);
    seen = seen.empty() ? name : name + "_too";
  };
  if (a.causal) also("past", "GreaterOrEqual(gap, zero)");
  if (a.window > 0) {
    text += integer("window", a.window);
    also("near", "Less(gap, window)");
  }
  if (a.radius > 0) {
    text += integer("radius", a.radius) + "distance = Abs(gap) ";
    also("around", "LessOrEqual(distance, radius)");
  }
  if (a.prefix > 0) {
    text += integer("prefix", a.prefix) +
            fmt::format("early = Less(ki, prefix) or_early = Or({}, early) ", seen);
    seen = "or_early";
  }
  return text + fmt::format("s5 = Where({}, s4, none) ", seen);
}

std::string graph(const Attention& a) {
  std::string body = "two = Constant<value = int64[1] {2}>() " + real("scale", a.scale()) +
                     transposed(a) + repeated(a, "k", a.size) + repeated(a, "v", a.values()) +
                     "kx = Transpose<perm = [0, 1, 3, 2]>(kh) s0 = MatMul(q, kx) "
                     "s1 = Cast<to = 1>(s0) s2 = Mul(s1, scale) ";
  body += a.cap > 0 ? real("cap", a.cap) + "d = Div(s2, cap) t = Tanh(d) s3 = Mul(t, cap) "
                    : std::string("s3 = Identity(s2) ");
  if (a.alibi || a.masked()) body += positions(a);
  body += a.alibi ? biased(a) : "s4 = Identity(s3) ";
  body += a.masked() ? masked(a) : "s5 = Identity(s4) ";
  body += fmt::format("p = Softmax<axis = -1>(s5) ph = Cast<to = {}>(p) ", type_number(a.dtype()));
  body += a.by_token ? "yh = MatMul(ph, vh) y = Transpose<perm = [0, 2, 1, 3]>(yh)"
                     : "y = MatMul(ph, vh)";
  return fmt::format("g ({}, {}, {}) => ({}) {{ {} }}",
                     declared(a, "q", a.heads, a.queries, a.size),
                     declared(a, "k", a.key_heads, a.keys, a.size),
                     declared(a, "v", a.key_heads, a.keys, a.values()),
                     declared(a, "y", a.heads, a.queries, a.values()), body);
}

double dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += element(x, i + c) * element(y, j + c);
  return sum;
}

// softmax(scores) · values, whose rows are `stride` apart.
std::vector<double> weighted(const std::vector<double>& scores, const Tensor& values, int64_t start,
                             int64_t stride, int64_t width) {
  double largest = -HUGE_VAL, total = 0;
  for (const double s : scores) largest = std::max(largest, s);
  std::vector<double> result(static_cast<size_t>(width));
  for (size_t j = 0; j < scores.size(); ++j) {
    const double weight = std::exp(scores[j] - largest);
    if (weight == 0) continue;
    total += weight;
    for (int64_t c = 0; c < width; ++c) {
      result[static_cast<size_t>(c)] +=
          weight * element(values, start + static_cast<int64_t>(j) * stride + c);
    }
  }
  for (double& value : result) value /= total;
  return result;
}

std::vector<double> reference(const Attention& a, const NamedTensors& inputs, int64_t row) {
  const int64_t inner = a.by_token ? a.heads : a.queries;
  const int64_t outer = a.by_token ? a.queries : a.heads;
  const int64_t batch = row / inner / outer;
  const int64_t query = a.by_token ? row / inner % outer : row % inner;
  const int64_t head = a.by_token ? row % inner : row / inner % outer;
  const int64_t shared = head / (a.heads / a.key_heads);
  // Of a key's or value's row of `width` elements.
  const int64_t stride = a.by_token ? a.key_heads : 1;
  const int64_t start =
      a.by_token ? batch * a.keys * a.key_heads + shared : (batch * a.key_heads + shared) * a.keys;
  std::vector<double> scores;
  for (int64_t j = 0; j < a.keys; ++j) {
    double score = -HUGE_VAL;
    if (a.sees(query, j)) {
      score = a.scale() * dot(inputs.at(a.by_token ? "qt" : "q"), row * a.size,
                              inputs.at(a.by_token ? "kt" : "k"), (start + j * stride) * a.size,
                              a.size);
      if (a.cap > 0) score = a.cap * std::tanh(score / a.cap);
      if (a.alibi) score += a.slope(head) * static_cast<double>(j - a.position(query));
    }
    scores.push_back(score);
  }
  return weighted(scores, inputs.at(a.by_token ? "vt" : "v"), start * a.values(),
                  stride * a.values(), a.values());
}

WorkloadMaker maker(const Attention& a) {
  return {a.name, [a] { return attention_workload(a); }};
}

// Absorbed multi-head latent attention, one query: scores over all of a latent, values its columns
// from `first` on.
struct Latent {
  const char* suite;
  std::string name;
  int64_t batch, heads, keys;
  int64_t size = 576, first = 0, values = 512;
  bool bfloat = true;

  DType dtype() const { return bfloat ? DType::BFloat16 : DType::Float16; }
};

WorkloadMaker latent_maker(const Latent& a) {
  return {
      a.name, [=] {
        const double scale = 1 / std::sqrt(192.0);
        Workload w;
        w.suite = a.suite;
        w.name = a.name;
        w.model = model_text(fmt::format(
            "g ({6}[{0}, {1}, {2}] q, {6}[{0}, {3}, {2}] kv) => "
            "({6}[{0}, {1}, {5}] y) {{ {8} first = Constant<value = int64[1] {{{4}}}>() "
            "two = Constant<value = int64[1] {{2}}>() end = Constant<value = int64[1] {{{9}}}>() "
            "t = Transpose<perm = [0, 2, 1]>(kv) s = MatMul(q, t) f = Cast<to = 1>(s) "
            "m = Mul(f, scale) p = Softmax<axis = -1>(m) h = Cast<to = {7}>(p) "
            "v = Slice(kv, first, end, two) y = MatMul(h, v) }}",
            a.batch, a.heads, a.size, a.keys, a.first, a.values, a.bfloat ? "bfloat16" : "float16",
            a.bfloat ? 16 : 10, real("scale", scale), a.first + a.values));
        const Tensor q = normal_tensor("q", a.dtype(), {a.batch, a.heads, a.size});
        const Tensor kv = normal_tensor("kv", a.dtype(), {a.batch, a.keys, a.size});
        w.inputs = {{"q", q}, {"kv", kv}};
        w.rows = a.batch * a.heads;
        w.width = a.values;
        w.reference = [=](int64_t row) {
          const int64_t start = row / a.heads * a.keys * a.size;
          std::vector<double> scores;
          for (int64_t j = 0; j < a.keys; ++j) {
            scores.push_back(scale * dot(q, row * a.size, kv, start + j * a.size, a.size));
          }
          return weighted(scores, kv, start + a.first, a.size, a.values);
        };
        return w;
      }};
}

}  // namespace

std::string attention_model(const Attention& a) { return model_text(graph(a)); }

Workload attention_workload(const Attention& a) {
  Workload w;
  w.suite = a.suite;
  w.name = a.name;
  w.model = attention_model(a);
  auto input = [&](const char* name, int64_t heads, int64_t tokens, int64_t size) {
    w.inputs[a.by_token ? fmt::format("{}t", name) : name] =
        normal_tensor(name, a.dtype(), dims_of(a, heads, tokens, size));
  };
  input("q", a.heads, a.queries, a.size);
  input("k", a.key_heads, a.keys, a.size);
  input("v", a.key_heads, a.keys, a.values());
  w.rows = a.batch * a.heads * a.queries;
  w.width = a.values();
  const NamedTensors inputs = w.inputs;
  w.reference = [a, inputs](int64_t row) { return reference(a, inputs, row); };
  return w;
}

std::vector<WorkloadMaker> attention_workloads(bool quick) {
  const std::vector<int64_t> lengths =
      quick ? std::vector<int64_t>{1024, 8192} : std::vector<int64_t>{512, 2048, 8192, 16384};
  const char* suite = "attention";
  std::vector<WorkloadMaker> makers;
  for (const int64_t s : lengths) {
    auto name = [s](const char* kind) { return fmt::format("{}_pf_{}", kind, s); };
    makers.push_back(maker({suite, name("global"), 1, 32, 32, s, s, 128}));
    makers.push_back(maker({suite, name("causal"), 1, 32, 32, s, s, 128, true}));
    makers.push_back(maker({suite, name("gqa"), 1, 64, 8, s, s, 128, true}));
    makers.push_back(maker({suite, name("alibi"), 1, 32, 32, s, s, 128, true, true}));
    makers.push_back(maker({suite, name("softcap"), 1, 32, 16, s, s, 128, true, false, 50}));
    makers.push_back(maker({suite, name("window"), 1, 32, 8, s, s, 128, true, false, 50, 4096}));
  }
  makers.push_back(maker({suite, "bert_base_b32_512", 32, 12, 12, 512, 512, 64}));
  makers.push_back(maker({suite, "vit_l_b16_577", 16, 16, 16, 577, 577, 64}));
  makers.push_back(maker({suite, "llama65b_pf_2048", 1, 64, 64, 2048, 2048, 128, true}));
  return makers;
}

std::vector<WorkloadMaker> shape_workloads() {
  std::vector<WorkloadMaker> makers;
  auto add = [&](Attention a) {
    a.suite = "shapes";
    a.name = fmt::format(
        "b{}_h{}_{}_q{}_k{}_d{}_{}{}{}{}{}{}{}{}", a.batch, a.heads, a.key_heads, a.queries, a.keys,
        a.size, a.values(), a.causal ? "_causal" : "", a.alibi ? "_alibi" : "",
        a.cap > 0 ? "_cap" : "", a.window > 0 ? fmt::format("_window{}", a.window) : "",
        a.bfloat ? "_bf16" : "", a.by_token ? "_token" : "", a.symbolic ? "_symbolic" : "");
    makers.push_back(maker(a));
  };
  for (const int64_t size : {64, 128}) {
    for (const int64_t length : {64, 128, 129, 257, 577, 1000}) {
      add({"", "", 1, 2, 2, length, length, size});
      add({"", "", 2, 4, 2, length, length, size, true});
    }
  }
  for (const int64_t size : {16, 24, 40, 80, 96, 192, 256}) {
    add({"", "", 1, 2, 2, 200, 300, size});
    add({"", "", 1, 2, 1, 300, 333, size, true, false, 0, 0, 0, true});
  }
  add({"", "", 1, 2, 2, 200, 300, 64, false, false, 0, 0, 128});
  add({"", "", 1, 2, 2, 200, 300, 128, true, false, 0, 0, 64});
  add({"", "", 2, 4, 4, 200, 300, 128, true, true, 0, 0, 48, true});
  for (const int64_t keys : {1, 7, 127, 129, 1000, 4097, 65536}) {
    add({"", "", 2, 8, 2, 1, keys, 128});
    add({"", "", 1, 6, 6, 1, keys, 64, false, true, 0, 0, 0, true});
  }
  for (const int64_t queries : {1, 2, 5, 16, 63}) {
    add({"", "", 2, 8, 2, queries, 1000, 128, true, true, 30});
    add({"", "", 1, 12, 4, queries, 2000, 64, true, false, 0, 300, 0, true, true});
  }
  for (const int64_t size : {16, 24, 80, 192, 256}) add({"", "", 1, 4, 2, 3, 700, size, true});
  add({"", "", 1, 128, 1, 1, 5000, 128});
  for (const int64_t queries : {1, 200}) {
    add({"", "", 1, 4, 2, queries, 300, 512, true});
    add({"", "", 2, 3, 3, queries, 300, 320, false, true, 30, 0, 260, true, true});
  }
  auto add_latent = [&](Latent a) {
    a.suite = "shapes";
    a.name = fmt::format("latent_b{}_h{}_k{}_d{}_{}+{}{}", a.batch, a.heads, a.keys, a.size,
                         a.first, a.values, a.bfloat ? "_bf16" : "");
    makers.push_back(latent_maker(a));
  };
  for (const int64_t keys : {1, 7, 64, 127, 129, 1000, 4097}) add_latent({"", "", 2, 128, keys});
  for (const int64_t keys : {7, 333}) {
    add_latent({"", "", 3, 16, keys, 576, 64, 512, false});
    add_latent({"", "", 1, 70, keys, 320, 0, 320, false});
    add_latent({"", "", 40, 70, keys, 384, 64, 257, true});
    add_latent({"", "", 2, 100, keys, 512, 8, 264, true});
  }
  add({"", "", 2, 4, 2, 1, 700, 64, false, false, 0, 0, 128});
  for (const bool by_token : {false, true}) {
    add({"", "", 2, 4, 2, 300, 300, 64, true, true, 0, 0, 0, false, by_token});
    add({"", "", 2, 4, 2, 300, 300, 128, true, false, 30, 0, 0, false, by_token});
    add({"", "", 2, 4, 2, 300, 300, 128, true, false, 30, 100, 0, true, by_token});
    add({"", "", 2, 4, 1, 64, 1000, 128, false, false, 0, 70, 0, false, by_token});
    for (const int64_t queries : {1, 70, 300}) {
      add({"", "", 2, 3, 3, queries, 333, 64, false, false, 0, 0, 0, true, by_token, true});
      add({"", "", 2, 3, 3, queries, 333, 128, false, false, 0, 0, 0, false, by_token, true});
    }
  }
  return makers;
}

std::vector<WorkloadMaker> decode_workloads(bool quick) {
  const std::vector<int64_t> lengths =
      quick ? std::vector<int64_t>{4096, 32768} : std::vector<int64_t>{1024, 4096, 8192, 32768};
  const char* suite = "decode";
  std::vector<WorkloadMaker> makers;
  for (const int64_t s : lengths) {
    auto name = [s](const char* kind) { return fmt::format("{}_dc_{}", kind, s); };
    makers.push_back(maker({suite, name("causal"), 1, 32, 32, 1, s, 128}));
    makers.push_back(maker({suite, name("gqa"), 1, 64, 8, 1, s, 128}));
    makers.push_back(maker({suite, name("alibi"), 1, 32, 32, 1, s, 128, false, true}));
    makers.push_back(maker({suite, name("softcap"), 1, 32, 16, 1, s, 128, false, false, 50}));
  }
  makers.push_back(latent_maker({suite, "mla_dc_b1_4096", 1, 128, 4096}));
  makers.push_back(latent_maker({suite, "mla_dc_b32_4096", 32, 128, 4096}));
  return makers;
}

}  // namespace redfuser::tools
