// Row cascades: softmax, norms, statistics, and the moment of inertia.
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Row = std::vector<double>;

Row read_row(const Tensor& x, int64_t row, int64_t width) {
  Row values(static_cast<size_t>(width));
  for (int64_t j = 0; j < width; ++j) values[static_cast<size_t>(j)] = element(x, row * width + j);
  return values;
}

double mean(const Row& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum / static_cast<double>(row.size());
}

double variance(const Row& row) {
  const double centre = mean(row);
  double sum = 0;
  for (const double x : row) sum += (x - centre) * (x - centre);
  return sum / static_cast<double>(row.size());
}

double logsumexp(const Row& row) {
  double largest = -HUGE_VAL, sum = 0;
  for (const double x : row) largest = std::max(largest, x);
  for (const double x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

struct RowKind {
  const char* name;
  int parameters;    // vectors g and b of one row's width
  bool whole_row;    // y has the row's elements and type, else one number in fp32
  const char* body;  // over x, and constants `last` and `eps`; TYPE is the number of x's type
  double epsilon;
  Row (*reference)(const Row& x, const Row& g, const Row& b, double epsilon);
};

constexpr double kHalfEpsilon = 0x1p-10;  // what F.rms_norm adds for fp16

const RowKind kKinds[] = {
    {"softmax", 0, true, "y = Softmax<axis = -1>(x)", 0,
     [](const Row& x, const Row&, const Row&, double) {
       const double scale = logsumexp(x);
       Row y;
       for (const double v : x) y.push_back(std::exp(v - scale));
       return y;
     }},
    {"layernorm", 2, true, "y = LayerNormalization<axis = -1, epsilon = 0.00001>(x, g, b)", 1e-5,
     [](const Row& x, const Row& g, const Row& b, double epsilon) {
       const double centre = mean(x), scale = 1 / std::sqrt(variance(x) + epsilon);
       Row y;
       for (size_t j = 0; j < x.size(); ++j) y.push_back((x[j] - centre) * scale * g[j] + b[j]);
       return y;
     }},
    {"rmsnorm", 1, true,
     "f = Cast<to = 1>(x) s = Mul(f, f) m = ReduceMean<keepdims = 1>(s, last) a = Add(m, eps) "
     "r = Sqrt(a) n = Div(f, r) h = Cast<to = TYPE>(n) y = Mul(h, g)",
     kHalfEpsilon,
     [](const Row& x, const Row& g, const Row&, double epsilon) {
       double sum = 0;
       for (const double v : x) sum += v * v;
       const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
       Row y;
       for (size_t j = 0; j < x.size(); ++j) y.push_back(x[j] * scale * g[j]);
       return y;
     }},
    {"variance", 0, false,
     "f = Cast<to = 1>(x) m = ReduceMean<keepdims = 1>(f, last) d = Sub(f, m) s = Mul(d, d) "
     "y = ReduceMean<keepdims = 0>(s, last)",
     0, [](const Row& x, const Row&, const Row&, double) { return Row{variance(x)}; }},
    {"logsumexp", 0, false,
     "f = Cast<to = 1>(x) m = ReduceMax<keepdims = 1>(f, last) d = Sub(f, m) e = Exp(d) "
     "s = ReduceSum<keepdims = 0>(e, last) l = Log(s) k = Squeeze(m, last) y = Add(l, k)",
     0, [](const Row& x, const Row&, const Row&, double) { return Row{logsumexp(x)}; }},
};

constexpr const char* kParameters[] = {"g", "b"};

const RowKind& kind_of(const std::string& name) {
  for (const RowKind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  fail("no kind of row is called \"{}\"", name);
}

std::string term_name(const RowShape& shape, int i) {
  return shape.terms == 1 ? "x" : fmt::format("x{}", i);
}

// "t1 = Add(x0, x1) x = Add(t1, x2) "
std::string sum_of_terms(const RowShape& shape) {
  std::string text, sum = term_name(shape, 0);
  for (int i = 1; i < shape.terms; ++i) {
    const std::string next = i + 1 < shape.terms ? fmt::format("t{}", i) : "x";
    text += fmt::format("{} = Add({}, {}) ", next, sum, term_name(shape, i));
    sum = next;
  }
  return text;
}

Row reference_row(const RowKind& kind, const RowShape& shape, const NamedTensors& inputs,
                  int64_t row) {
  Row parameters[2];
  for (int i = 0; i < kind.parameters; ++i) {
    parameters[i] = read_row(inputs.at(kParameters[i]), 0, shape.length);
  }
  Row sum(static_cast<size_t>(shape.length));
  for (int i = 0; i < shape.terms; ++i) {
    const Row term = read_row(inputs.at(term_name(shape, i)), row, shape.length);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += term[j];
  }
  return kind.reference(sum, parameters[0], parameters[1], kind.epsilon);
}

double inertia(const Tensor& masses, const Tensor& places, int64_t system, int64_t n) {
  double total = 0, centre[3] = {}, sum = 0;
  for (int64_t j = system * n; j < (system + 1) * n; ++j) {
    total += element(masses, j);
    for (int64_t c = 0; c < 3; ++c) centre[c] += element(masses, j) * element(places, j * 3 + c);
  }
  for (double& c : centre) c /= total;
  for (int64_t j = system * n; j < (system + 1) * n; ++j) {
    for (int64_t c = 0; c < 3; ++c) {
      const double d = element(places, j * 3 + c) - centre[c];
      sum += element(masses, j) * d * d;
    }
  }
  return sum;
}

// Of n particles about their centre of mass, m systems.
Workload inertia_workload(const std::string& name, int64_t m, int64_t n) {
  Workload workload;
  workload.suite = "rows";
  workload.name = name;
  workload.model = model_text(fmt::format(
      "g (float[{0}, {1}] m, float[{0}, {1}, 3] r) => (float[{0}] y) {{"
      " one = Constant<value = int64[1] {{1}}>() two = Constant<value = int64[1] {{2}}>()"
      " w = Unsqueeze(m, two) mr = Mul(w, r) s = ReduceSum<keepdims = 1>(mr, one)"
      " t = ReduceSum<keepdims = 1>(w, one) c = Div(s, t) d = Sub(r, c) q = Mul(d, d)"
      " u = ReduceSum<keepdims = 0>(q, two) v = Mul(m, u) y = ReduceSum<keepdims = 0>(v, one) }}",
      m, n));
  Tensor masses = normal_tensor("m", DType::Float32, {m, n});
  for (int64_t i = 0; i < masses.size(); ++i) {
    masses.as<float>()[i] = std::fabs(masses.as<float>()[i]);
  }
  const Tensor places = normal_tensor("r", DType::Float32, {m, n, 3});
  workload.inputs = {{"m", masses}, {"r", places}};
  workload.rows = m;
  workload.sampled_rows = 8;
  workload.reference = [=](int64_t row) { return Row{inertia(masses, places, row, n)}; };
  return workload;
}

}  // namespace

std::vector<std::string> row_kinds() {
  std::vector<std::string> names;
  for (const RowKind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::string row_model(const std::string& name, const RowShape& shape) {
  const RowKind& kind = kind_of(name);
  const std::string type = type_name(shape.dtype);
  const std::string rows = shape.symbolic ? "m" : fmt::to_string(shape.rows);
  const std::string length = shape.symbolic ? "n" : fmt::to_string(shape.length);
  std::vector<std::string> arguments;
  for (int i = 0; i < shape.terms; ++i) {
    arguments.push_back(fmt::format("{}[{}, {}] {}", type, rows, length, term_name(shape, i)));
  }
  for (int i = 0; i < kind.parameters; ++i) {
    arguments.push_back(fmt::format("{}[{}] {}", type, length, kParameters[i]));
  }
  std::string body = kind.body;
  if (const size_t at = body.find("TYPE"); at != std::string::npos) {
    body.replace(at, 4, fmt::to_string(type_number(shape.dtype)));
  }
  return model_text(
      fmt::format("g ({}) => ({}[{}] y) {{ last = Constant<value = int64[1] {{-1}}>() "
                  "eps = Constant<value = float {{{}}}>() {}{} }}",
                  fmt::join(arguments, ", "), kind.whole_row ? type : "float",
                  kind.whole_row ? fmt::format("{}, {}", rows, length) : rows, kind.epsilon,
                  sum_of_terms(shape), body));
}

Workload row_workload(const std::string& kind_name, const std::string& name,
                      const RowShape& shape) {
  const RowKind& kind = kind_of(kind_name);
  Workload workload;
  for (int i = 0; i < shape.terms; ++i) {
    const std::string term = term_name(shape, i);
    workload.inputs[term] = normal_tensor(term, shape.dtype, {shape.rows, shape.length});
  }
  for (int i = 0; i < kind.parameters; ++i) {
    workload.inputs[kParameters[i]] = normal_tensor(kParameters[i], shape.dtype, {shape.length});
  }
  workload.suite = "rows";
  workload.name = name;
  workload.model = row_model(kind_name, shape);
  workload.rows = shape.rows;
  workload.width = kind.whole_row ? shape.length : 1;
  const NamedTensors inputs = workload.inputs;
  workload.reference = [=, &kind](int64_t row) { return reference_row(kind, shape, inputs, row); };
  return workload;
}

std::vector<WorkloadMaker> row_workloads(bool quick) {
  using Shape = std::pair<int64_t, int64_t>;
  const std::vector<Shape> shapes =
      quick ? std::vector<Shape>{{8192, 1024}, {4096, 8192}, {256, 131072}}
            : std::vector<Shape>{{65536, 128},  {8192, 1024},  {4096, 8192},
                                 {1024, 32768}, {256, 131072}, {8, 1048576}};
  std::vector<WorkloadMaker> makers;
  for (const auto& [m, n] : shapes) {
    for (const RowKind& kind : kKinds) {
      const std::string name = fmt::format("{}_{}x{}", kind.name, m, n);
      makers.push_back({name, [=, &kind, m = m, n = n] {
                          return row_workload(kind.name, name, {m, n});
                        }});
    }
  }
  for (const auto& [m, n] : {Shape{1024, 8192}, Shape{16, 1048576}}) {
    const std::string name = fmt::format("inertia_{}x{}", m, n);
    makers.push_back({name, [=, m = m, n = n] { return inertia_workload(name, m, n); }});
  }
  return makers;
}

// Rows of all lengths, their number such that every workload moves about as many bytes.
std::vector<WorkloadMaker> row_curve_workloads() {
  constexpr int64_t kElements = int64_t{1} << 25;
  std::vector<WorkloadMaker> makers;
  for (const int64_t n : {32,     64,     127,    256,    512,    1000,    1024,    1025,    2048,
                          3001,   4096,   8192,   10007,  16384,  32000,   32768,   50257,   65536,
                          128256, 131072, 262144, 300007, 524288, 1048576, 4194304, 16777216}) {
    const int64_t m = std::max<int64_t>(1, kElements / n);
    for (const RowKind& kind : kKinds) {
      const std::string name = fmt::format("{}_{}x{}", kind.name, m, n);
      makers.push_back({name, [=, &kind] { return row_workload(kind.name, name, {m, n}); }});
    }
  }
  return makers;
}

}  // namespace redfuser::tools
