#include "bench_sweep.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "bench_attention.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32};

// A few roundings of inputs and results to the type.
double tolerance_of(DType dtype) {
  return dtype == DType::Float32 ? 2e-5 : dtype == DType::Float16 ? 2e-3 : 1.6e-2;
}

// A sum of tensors may be rounded to their type, and the exponential enlarges its last bit.
constexpr double kSumTolerance = 3;

SweepCase row_case(const std::string& kind, const RowShape& shape) {
  SweepCase result;
  result.name = fmt::format("{}_{}x{}_{}_sum{}", kind, shape.rows, shape.length,
                            type_name(shape.dtype), shape.terms);
  result.tolerance = tolerance_of(shape.dtype) * (shape.terms > 1 ? kSumTolerance : 1);
  // An element of a softmax is about 1 / length, where the steps of fp16 are 2^-24.
  if (kind == "softmax" && shape.dtype == DType::Float16) {
    result.tolerance += 0x1p-25 * static_cast<double>(shape.length);
  }
  result.elements = shape.rows * shape.length * shape.terms;
  result.work = static_cast<double>(result.elements);
  result.model = [=] { return row_model(kind, shape); };
  result.make = [=, name = result.name] { return row_workload(kind, name, shape); };
  return result;
}

SweepCase layout_case(const LayoutShape& shape) {
  static const char* const kNames[] = {"softmax", "norm", "sum", "max", "variance"};
  SweepCase result;
  result.name =
      fmt::format("layout_{}_{}_over{}_{}", kNames[static_cast<size_t>(shape.kind)],
                  fmt::join(shape.dims, "x"), fmt::join(shape.reduced, ""), type_name(shape.dtype));
  result.tolerance = tolerance_of(shape.dtype);
  result.elements = 1;
  for (const int64_t size : shape.dims) result.elements *= size;
  if (shape.kind == LayoutKind::Softmax && shape.dtype == DType::Float16) {
    int64_t length = 1;
    for (const int axis : shape.reduced) length *= shape.dims[static_cast<size_t>(axis)];
    result.tolerance += 0x1p-25 * static_cast<double>(length);
  }
  result.work = static_cast<double>(result.elements);
  result.model = [=] { return layout_model(shape); };
  result.make = [=, name = result.name] { return layout_workload(name, shape); };
  return result;
}

SweepCase attention_case(Attention a) {
  a.suite = "sweep";
  a.name = fmt::format("attention_h{}_{}_q{}_k{}_d{}{}_{}", a.heads, a.key_heads, a.queries, a.keys,
                       a.size, a.causal ? "_causal" : "", type_name(a.dtype()));
  SweepCase result;
  result.name = a.name;
  result.tolerance = tolerance_of(a.dtype());
  result.elements = (a.heads * a.queries + 2 * a.key_heads * a.keys) * a.size;
  result.work = 2.0 * static_cast<double>(a.heads * a.queries * a.keys * a.size);
  result.model = [a] { return attention_model(a); };
  result.make = [a] { return attention_workload(a); };
  return result;
}

struct ProductShape {
  int64_t batch, m, k, n;
  DType dtype;
  bool epilogue;
};

std::string product_model(const ProductShape& p) {
  const std::string type = type_name(p.dtype);
  return model_text(fmt::format(
      "g ({0}[{1}, {2}, {3}] x, {0}[{3}, {4}] w, {0}[{4}] c) => ({0}[{1}, {2}, {4}] y) {{ {5} }}",
      type, p.batch, p.m, p.k, p.n,
      p.epilogue ? "p = MatMul(x, w) q = Add(p, c) y = Gelu(q)"
                 : "p = MatMul(x, w) y = Add(p, c)"));
}

Workload product_workload(const ProductShape& p, const std::string& name) {
  Workload w;
  w.suite = "sweep";
  w.name = name;
  w.model = product_model(p);
  const Tensor x = normal_tensor("x", p.dtype, {p.batch, p.m, p.k});
  const Tensor weights = normal_tensor("w", p.dtype, {p.k, p.n});
  const Tensor bias = normal_tensor("c", p.dtype, {p.n});
  w.inputs = {{"x", x}, {"w", weights}, {"c", bias}};
  w.rows = p.batch * p.m;
  w.width = p.n;
  w.sampled_rows = 4;
  w.reference = [=](int64_t row) {
    std::vector<double> y(static_cast<size_t>(p.n));
    for (int64_t i = 0; i < p.k; ++i) {
      const double factor = element(x, row * p.k + i);
      for (int64_t j = 0; j < p.n; ++j) {
        y[static_cast<size_t>(j)] += factor * element(weights, i * p.n + j);
      }
    }
    for (int64_t j = 0; j < p.n; ++j) {
      double& value = y[static_cast<size_t>(j)];
      value += element(bias, j);
      if (p.epilogue) value *= 0.5 * std::erfc(-value / std::sqrt(2.0));
    }
    return y;
  };
  return w;
}

SweepCase product_case(const ProductShape& p) {
  SweepCase result;
  result.name = fmt::format("product_b{}_{}x{}x{}{}_{}", p.batch, p.m, p.k, p.n,
                            p.epilogue ? "_gelu" : "", type_name(p.dtype));
  result.tolerance = tolerance_of(p.dtype);
  result.elements = p.batch * p.m * p.k + p.k * p.n;
  result.work = static_cast<double>(p.batch * p.m * p.k * p.n);
  result.model = [p] { return product_model(p); };
  result.make = [p, name = result.name] { return product_workload(p, name); };
  return result;
}

}  // namespace

std::vector<int64_t> row_lengths() {
  constexpr int64_t kLongest = int64_t{1} << 21;
  std::set<int64_t> lengths;
  for (int64_t power = 1; power <= kLongest; power *= 2) {
    for (const int64_t quarters : {4, 5, 6, 7}) {
      if (power * quarters % 4 != 0) continue;
      for (const int64_t step : {-1, 0, 1}) {
        const int64_t length = power * quarters / 4 + step;
        if (length >= 1 && length <= kLongest + 1) lengths.insert(length);
      }
    }
  }
  return {lengths.begin(), lengths.end()};
}

std::vector<SweepCase> row_sweep() {
  std::vector<SweepCase> cases;
  for (const int64_t length : row_lengths()) {
    for (const DType dtype : kTypes) {
      for (const int terms : {1, 2, 3, 4}) {
        for (const int64_t rows : {1, 333}) {
          for (const std::string& kind : row_kinds()) {
            cases.push_back(row_case(kind, {rows, length, dtype, terms}));
          }
        }
      }
    }
  }
  return cases;
}

std::vector<SweepCase> layout_sweep() {
  std::vector<SweepCase> cases;
  for (const int64_t length : {1, 2, 3, 7, 31, 64, 100, 257, 512, 1000, 4099, 65536}) {
    for (const int64_t columns : {1, 3, 4, 8, 31, 49, 64, 196, 1027}) {
      for (const DType dtype : kTypes) {
        for (const LayoutKind kind : {LayoutKind::Softmax, LayoutKind::Norm, LayoutKind::Sum,
                                      LayoutKind::Max, LayoutKind::Variance}) {
          const LayoutShape shapes[] = {
              {kind, {length, columns}, {0}, {1}, dtype},
              {kind, {3, length, columns}, {1}, {2}, dtype},
              {kind, {3, columns, length}, {2}, {1}, dtype},
              {kind, {3, 5, length, columns}, {0, 2}, {1, 3}, dtype},
              {kind, {3, columns, length}, {0, 2}, {1}, dtype},
              {kind, {2, 3, length, columns}, {2, 3}, {1, 2}, dtype},
              {kind, {2, length, 3, columns}, {1, 3}, {2, 3}, dtype},
          };
          for (const LayoutShape& shape : shapes) cases.push_back(layout_case(shape));
        }
      }
    }
  }
  return cases;
}

std::vector<SweepCase> attention_sweep() {
  std::vector<SweepCase> cases;
  for (const int64_t size :
       {1,  2,   3,   5,   8,   15,  16,  17,  24,  31,  32,  33,  40,  48,  63,  64,  65,  80,
        96, 100, 127, 128, 129, 160, 191, 192, 193, 224, 255, 256, 257, 288, 320, 384, 511, 512}) {
    for (const DType dtype : kTypes) {
      for (const int64_t heads : {1, 3, 12, 64}) {
        for (const auto& [queries, keys] : {std::pair{1, 1},
                                            {1, 333},
                                            {1, 4097},
                                            {7, 129},
                                            {63, 1000},
                                            {129, 129},
                                            {333, 577},
                                            {1000, 1000}}) {
          for (const bool causal : {false, true}) {
            Attention a{"", "", 1, heads, heads, queries, keys, size, causal};
            if (heads == 12 && keys % 2 == 1) a.key_heads = 4;
            a.bfloat = dtype == DType::BFloat16;
            a.single = dtype == DType::Float32;
            cases.push_back(attention_case(a));
          }
        }
      }
    }
  }
  return cases;
}

std::vector<SweepCase> product_sweep() {
  std::vector<SweepCase> cases;
  for (const DType dtype : kTypes) {
    for (const bool epilogue : {false, true}) {
      for (const int64_t batch : {1, 3}) {
        for (const int64_t m : {1, 17, 333, 2040}) {
          for (const int64_t k : {1, 63, 256, 1001, 4096}) {
            for (const int64_t n : {1, 65, 512, 1999, 2048}) {
              cases.push_back(product_case({batch, m, k, n, dtype, epilogue}));
            }
          }
        }
      }
    }
  }
  return cases;
}

// (The standard's distributions differ between libraries; its generators do not.)
std::vector<SweepCase> sampled(std::vector<SweepCase> cases, size_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  count = std::min(count, cases.size());
  for (size_t i = 0; i < count; ++i) {
    std::swap(cases[i], cases[i + generator() % (cases.size() - i)]);
  }
  cases.resize(count);
  return cases;
}

}  // namespace redfuser::tools
