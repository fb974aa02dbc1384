// SVMClassifier: one-against-one machines over support vectors, or one linear machine per class.
// Probabilities by pairwise coupling: Wu, Lin, Weng, "Probability Estimates for Multi-class
// Classification by Pairwise Coupling", JMLR 5 (2004), algorithm 2, as LIBSVM iterates it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

enum class KernelKind { Linear, Poly, Rbf, Sigmoid };

struct VectorMachine {
  Tensor labels;
  KernelKind kind = KernelKind::Linear;
  double gamma = 0, coef = 0, degree = 0;
  std::vector<int64_t> per_class;  // numbers of support vectors; empty: linear machines
  int64_t vectors = 0, features = 0;
  std::vector<double> support;  // by feature, then vector
  std::vector<double> coefficients, rho, prob_a, prob_b;
  ScoreTransform transform = ScoreTransform::None;
  bool positive = true;  // no coefficient is negative

  int64_t classes() const { return labels.size(); }
  int64_t pairs() const { return classes() * (classes() - 1) / 2; }
  bool probable() const { return !prob_a.empty(); }
  int64_t columns() const {
    return per_class.empty() || probable() || classes() == 2 ? classes() : pairs();
  }
};

void require(const OpaqueCall& call, const char* name, size_t length, int64_t wanted) {
  if (static_cast<int64_t>(length) != wanted) {
    call.fail(fmt::format("{} has {} values, not {}", name, length, wanted));
  }
}

void read_kernel(const OpaqueCall& call, VectorMachine& machine) {
  static constexpr const char* kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string name = call.text("kernel_type", "LINEAR");
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) call.fail(fmt::format("unknown kernel_type \"{}\"", name));
  machine.kind = static_cast<KernelKind>(found - std::begin(kNames));
  if (machine.kind == KernelKind::Linear) return;
  const std::vector<double> parameters = reals_attribute(call, "kernel_params");
  require(call, "kernel_params", parameters.size(), 3);
  machine.gamma = parameters[0];
  machine.coef = parameters[1];
  machine.degree = parameters[2];
}

void read_vectors(const OpaqueCall& call, VectorMachine& machine) {
  const int64_t classes = machine.classes();
  if (classes < 2) call.fail("support vectors need two classes");
  require(call, "vectors_per_class", machine.per_class.size(), classes);
  for (const int64_t count : machine.per_class) {
    if (count < 0 || count > static_cast<int64_t>(machine.support.size())) {
      call.fail(fmt::format("{} vectors of a class", count));
    }
    machine.vectors += count;
  }
  const auto size = static_cast<int64_t>(machine.support.size());
  if (machine.vectors == 0 || size % machine.vectors != 0) {
    call.fail(fmt::format("{} values for {} support vectors", size, machine.vectors));
  }
  machine.features = size / machine.vectors;
  const std::vector<double> by_vector = machine.support;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = i % machine.features * machine.vectors + i / machine.features;
    machine.support[static_cast<size_t>(place)] = by_vector[static_cast<size_t>(i)];
  }
  require(call, "coefficients", machine.coefficients.size(), (classes - 1) * machine.vectors);
  require(call, "rho", machine.rho.size(), machine.pairs());
  if (machine.prob_a.empty() && machine.prob_b.empty()) return;
  require(call, "prob_a", machine.prob_a.size(), machine.pairs());
  require(call, "prob_b", machine.prob_b.size(), machine.pairs());
}

VectorMachine machine_of(const OpaqueCall& call) {
  VectorMachine machine;
  machine.labels = class_labels(call, "classlabels_ints", "classlabels_strings");
  machine.per_class = call.integers("vectors_per_class", {});
  machine.support = reals_attribute(call, "support_vectors");
  machine.coefficients = reals_attribute(call, "coefficients");
  machine.rho = reals_attribute(call, "rho");
  machine.prob_a = reals_attribute(call, "prob_a");
  machine.prob_b = reals_attribute(call, "prob_b");
  machine.transform = score_transform(call);
  machine.positive = std::all_of(machine.coefficients.begin(), machine.coefficients.end(),
                                 [](double value) { return value >= 0; });
  read_kernel(call, machine);
  if (std::any_of(machine.per_class.begin(), machine.per_class.end(),
                  [](int64_t count) { return count != 0; })) {
    read_vectors(call, machine);
    return machine;
  }
  machine.per_class.clear();
  const auto size = static_cast<int64_t>(machine.coefficients.size());
  if (machine.classes() == 0 || size == 0 || size % machine.classes() != 0) {
    call.fail(fmt::format("{} coefficients for {} classes", size, machine.classes()));
  }
  machine.features = size / machine.classes();
  if (machine.rho.empty()) call.fail("it has no rho");
  return machine;
}

// x to the power n ≥ 0 by squaring.
double integer_power(double x, int n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) result *= x;
  }
  return result;
}

// The function of each sum, in place.
void apply(UnaryOp function, std::vector<double>& sums) {
  const auto count = static_cast<int64_t>(sums.size());
  kernels().unary[static_cast<int>(Elem::F64)][static_cast<int>(function)](
      1, count, sums.data(), count, {sums.data(), count});
}

// The value of the kernel from a product, or from the square of a distance.
void apply_kernel(const VectorMachine& machine, std::vector<double>& sums) {
  const double gamma = machine.gamma, coef = machine.coef, degree = machine.degree;
  constexpr int kMostSquared = 64;
  const bool squares = degree >= 0 && degree <= kMostSquared && degree == static_cast<int>(degree);
  switch (machine.kind) {
    case KernelKind::Poly:
      for (double& sum : sums) {
        sum = squares ? integer_power(gamma * sum + coef, static_cast<int>(degree))
                      : std::pow(gamma * sum + coef, degree);
      }
      break;
    case KernelKind::Rbf:
      for (double& sum : sums) sum *= -gamma;
      apply(UnaryOp::Exp, sums);
      break;
    case KernelKind::Sigmoid:
      for (double& sum : sums) sum = gamma * sum + coef;
      apply(UnaryOp::Tanh, sums);
      break;
    case KernelKind::Linear:
      break;
  }
}

// The kernel between x and each support vector. Sums of several vectors run side by side.
void kernel_values(const VectorMachine& machine, const double* x, std::vector<double>& sums) {
  sums.assign(static_cast<size_t>(machine.vectors), 0);
  const double* column = machine.support.data();
  for (int64_t f = 0; f < machine.features; ++f, column += machine.vectors) {
    const double own = x[f];
    if (machine.kind == KernelKind::Rbf) {
      for (size_t v = 0; v < sums.size(); ++v) sums[v] += (own - column[v]) * (own - column[v]);
    } else {
      for (size_t v = 0; v < sums.size(); ++v) sums[v] += own * column[v];
    }
  }
  apply_kernel(machine, sums);
}

// The score of each pair of classes, and the class with the most votes.
int64_t decide_pairs(const VectorMachine& machine, const double* x, std::vector<double>& products,
                     std::vector<double>& decisions) {
  const auto classes = static_cast<size_t>(machine.classes());
  const auto vectors = static_cast<size_t>(machine.vectors);
  kernel_values(machine, x, products);
  std::vector<size_t> starts(classes + 1, 0);
  for (size_t c = 0; c < classes; ++c) {
    starts[c + 1] = starts[c] + static_cast<size_t>(machine.per_class[c]);
  }
  std::vector<int64_t> votes(classes, 0);
  decisions.clear();
  // Row k of the coefficients serves a vector's k-th other class.
  const auto part = [&](size_t own, size_t row) {
    double sum = 0;
    for (size_t v = starts[own]; v < starts[own + 1]; ++v) {
      sum += machine.coefficients[row * vectors + v] * products[v];
    }
    return sum;
  };
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j) {
      const double sum = part(i, j - 1) + part(j, i) + machine.rho[decisions.size()];
      decisions.push_back(sum);
      ++votes[sum > 0 ? i : j];
    }
  }
  return std::max_element(votes.begin(), votes.end()) - votes.begin();
}

// Probabilities p of classes from r(i, j), that of class i among i and j.
std::vector<double> couple(const std::vector<double>& r, size_t classes) {
  std::vector<double> q(classes * classes, 0), p(classes, 1.0 / static_cast<double>(classes));
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      q[i * classes + i] += r[j * classes + i] * r[j * classes + i];
      q[i * classes + j] = -r[j * classes + i] * r[i * classes + j];
    }
  }
  const double tolerance = 0.005 / static_cast<double>(classes);
  std::vector<double> qp(classes);
  for (int step = 0; step < 100; ++step) {
    double pqp = 0, error = 0;
    for (size_t i = 0; i < classes; ++i) {
      qp[i] = std::inner_product(p.begin(), p.end(),
                                 q.begin() + static_cast<std::ptrdiff_t>(i * classes), 0.0);
      pqp += p[i] * qp[i];
    }
    for (const double value : qp) error = std::max(error, std::abs(value - pqp));
    if (error < tolerance) break;
    for (size_t i = 0; i < classes; ++i) {
      const double move = (pqp - qp[i]) / q[i * classes + i], whole = 1 + move;
      pqp = (pqp + move * (move * q[i * classes + i] + 2 * qp[i])) / whole / whole;
      p[i] += move;
      for (size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + move * q[i * classes + j]) / whole;
        p[j] /= whole;
      }
    }
  }
  return p;
}

std::vector<double> probabilities(const VectorMachine& machine,
                                  const std::vector<double>& decisions) {
  constexpr double kMin = 1e-7;
  const auto classes = static_cast<size_t>(machine.classes());
  std::vector<double> r(classes * classes, 0);
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const double slope = decisions[pair] * machine.prob_a[pair] + machine.prob_b[pair];
      const double first = std::clamp(1 / (1 + std::exp(slope)), kMin, 1 - kMin);
      r[i * classes + j] = first;
      r[j * classes + i] = 1 - first;
    }
  }
  return couple(r, classes);
}

// The scores of a row, transformed; returns the label's position.
int64_t decide(const VectorMachine& machine, const double* x, std::vector<double>& products,
               std::vector<double>& scores) {
  const auto count = static_cast<size_t>(machine.classes());
  if (!machine.per_class.empty()) {
    const int64_t label = decide_pairs(machine, x, products, scores);
    if (machine.probable()) scores = probabilities(machine, scores);
    if (scores.size() == 1) {
      const double score = scores[0];
      scores.resize(2);
      transform_pair(machine.transform, machine.transform != ScoreTransform::None, score,
                     scores.data());
    } else {
      transform_scores(machine.transform, scores.data(), static_cast<int64_t>(scores.size()));
    }
    return label;
  }
  scores.resize(count);
  for (size_t c = 0; c < count; ++c) {
    const double* weights = machine.coefficients.data() + c * static_cast<size_t>(machine.features);
    scores[c] = std::inner_product(weights, weights + machine.features, x, machine.rho[0]);
  }
  const auto largest = std::max_element(scores.begin(), scores.end());
  int64_t label = largest - scores.begin();
  // Two linear machines choose the second class by a threshold, as ONNX Runtime has it.
  const bool over = machine.positive ? *largest >= 0.5 : *largest > 0;
  if (count == 2 && !machine.probable() && over) label = 1;
  transform_scores(machine.transform, scores.data(), machine.classes());
  return label;
}

}  // namespace

void run_svm_classifier(OpaqueCall& call) {
  const auto& machine = call.prepared<VectorMachine>([&] { return machine_of(call); });
  const Dims& dims = call.dims(0);
  const int64_t rows = dims.size() == 1 ? 1 : dims[0], width = dims.back();
  if (width != machine.features) {
    call.fail(fmt::format("it is for {} features, the input has {}", machine.features, width));
  }
  const ChargedVector<double> x = call.reals_of(0);
  const Dims shape{rows, machine.columns()};
  Tensor unused_y(machine.labels.dtype(), {rows}), unused_z(DType::Float32, shape);
  Tensor& y = call.has_output(0) ? call.allocate(0, {rows}) : unused_y;
  Tensor& z = call.has_output(1) ? call.allocate(1, shape) : unused_z;
  parallel_ranges(call.threads(), rows, 16, [&](int64_t begin, int64_t end) {
    std::vector<double> products, scores;
    for (int64_t r = begin; r < end; ++r) {
      copy_element(machine.labels, decide(machine, x.data() + r * width, products, scores), y, r);
      std::copy(scores.begin(), scores.end(), z.as<float>() + r * shape[1]);
    }
  });
}

}  // namespace redfuser::cpu
