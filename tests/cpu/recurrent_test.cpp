// Recurrent layers on the CPU: packed products and gates of every instruction set of this machine
// against double precision, and layers on any number of threads against each other.
#include "cpu/simd/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "cpu/recurrent/float_matrix.h"
#include "cpu/recurrent/layer.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

std::mt19937 random_source(23);

template <typename T>
std::vector<T> normals(int64_t count) {
  std::normal_distribution<double> normal;
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(normal(random_source)));
  return values;
}

template <typename T>
void check_packed(const cpu::KernelTable& table, int64_t m, int64_t n, int64_t k, bool transposed,
                  bool accumulate) {
  SCOPED_TRACE(testing::Message() << table.name << " " << m << "x" << n << "x" << k << " "
                                  << transposed << accumulate << " of " << sizeof(T) << " bytes");
  constexpr bool kSingle = sizeof(T) == 4;
  const auto storage = static_cast<uint8_t>(kSingle ? DType::Float32 : DType::Float64);
  const int64_t a_stride = k + 3, c_stride = n + 5;
  const auto a = normals<T>(m * a_stride), b = normals<T>(k * n), before = normals<T>(m * c_stride);
  auto c = before;
  Tensor panels(kSingle ? DType::Float32 : DType::Float64, {k * ((n + 15) / 16 * 16)});
  // The columns in reverse order.
  std::vector<int64_t> columns;
  for (int64_t j = 0; j < n; ++j) columns.push_back((n - 1 - j) * (transposed ? k : 1));
  const cpu::MatrixView view = {b.data(), storage, transposed ? 1 : n, 0, nullptr, columns.data()};
  (kSingle ? table.pack_f32 : table.pack_f64)(view, k, n, panels.mutable_data());
  cpu::GemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = {a.data(), storage, a_stride, 1, nullptr, nullptr};
  args.panels = panels.data();
  args.c = c.data();
  args.c_stride = c_stride;
  args.accumulate = accumulate;
  (kSingle ? table.gemm_f32 : table.gemm_f64)(args);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < c_stride; ++j) {
      const auto at = static_cast<size_t>(i * c_stride + j);
      double sum = accumulate || j >= n ? static_cast<double>(before[at]) : 0;
      for (int64_t p = 0; j < n && p < k; ++p) {
        sum += static_cast<double>(a[static_cast<size_t>(i * a_stride + p)]) *
               static_cast<double>(
                   b[static_cast<size_t>(p * view.row_stride + columns[static_cast<size_t>(j)])]);
      }
      ASSERT_NEAR(c[at], sum, kSingle ? 2e-4 : 1e-12) << i << ", " << j;
    }
  }
}

TEST(CpuPackedProduct, EveryTableAgreesWithTheDefinition) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (const int64_t m : {1, 2, 3, 5, 12, 31}) {
      for (const int64_t n : {1, 15, 16, 17, 40, 64, 129, 256}) {
        for (const int64_t k : {1, 7, 300}) {
          const bool transposed = random_source() % 2 == 0, accumulate = random_source() % 2 == 0;
          check_packed<float>(*table, m, n, k, transposed, accumulate);
          check_packed<double>(*table, m, n, k, transposed, accumulate);
          if (HasFailure()) return;
        }
      }
    }
  }
}

double gate_value(const cpu::Gate& gate, double x) {
  const double a = gate.alpha, b = gate.beta;
  switch (gate.function) {
    case cpu::GateFunction::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case cpu::GateFunction::Tanh:
      return std::tanh(x);
    case cpu::GateFunction::Relu:
      return x < 0 ? 0 : x;
    case cpu::GateFunction::Affine:
      return a * x + b;
    case cpu::GateFunction::LeakyRelu:
      return x < 0 ? a * x : x;
    case cpu::GateFunction::ThresholdedRelu:
      return x <= a ? 0 : x;
    case cpu::GateFunction::ScaledTanh:
      return a * std::tanh(b * x);
    case cpu::GateFunction::HardSigmoid:
      return std::clamp(a * x + b, 0.0, 1.0);
    case cpu::GateFunction::Elu:
      return x < 0 ? a * std::expm1(x) : x;
    case cpu::GateFunction::Softsign:
      return x / (1 + std::abs(x));
    case cpu::GateFunction::Softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return 0;
}

template <typename T>
void check_gates(const cpu::RecurrentKernels& kernels, double tolerance) {
  std::vector<T> x = normals<T>(77);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<T>(i % 3 == 0 ? 30 : 3);
  x.insert(x.end(), {T(0), T(-0.5), T(200), T(-200), std::numeric_limits<T>::quiet_NaN()});
  for (int function = 0; function <= static_cast<int>(cpu::GateFunction::Softplus); ++function) {
    for (const double clip : {0.0, 1.5}) {
      const cpu::Gate gate{static_cast<cpu::GateFunction>(function), 0.3, 0.6};
      std::vector<T> sums = x, h(x.size());
      cpu::CellArgs args;
      args.units = static_cast<int64_t>(x.size());
      args.sums = sums.data();
      args.h = h.data();
      args.gates = &gate;
      args.clip = clip;
      kernels.rnn(args);
      for (size_t i = 0; i + 1 < x.size(); ++i) {
        const auto value = static_cast<double>(x[i]);
        const double expected = gate_value(gate, clip > 0 ? std::clamp(value, -clip, clip) : value);
        ASSERT_NEAR(h[i], expected, tolerance * (1 + std::abs(expected)))
            << function << " of " << value << " cut to " << clip;
      }
      ASSERT_TRUE(std::isnan(h.back())) << function;
    }
  }
}

TEST(CpuGates, EveryTableAgreesWithTheDefinition) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    SCOPED_TRACE(table->name);
    check_gates<float>(*table->recurrent_f32, 4e-7);
    check_gates<double>(*table->recurrent_f64, 1e-14);
  }
}

// The states of all steps on some number of threads.
std::vector<float> layer_values(const cpu::RecurrentShape& shape, int threads,
                                const std::vector<float>& data) {
  using Matrix = cpu::FloatMatrix<float>;
  const int64_t rows = shape.gates() * shape.hidden;
  const float *w = data.data(), *r = w + shape.directions * rows * shape.input;
  const auto matrix = [rows](const float* from, int64_t depth) {
    return [=](int64_t direction, const std::vector<int64_t>& columns) {
      return Matrix(from + direction * rows * depth, depth, columns);
    };
  };
  const auto weights =
      cpu::pack_weights<Matrix>(shape, matrix(w, shape.input), matrix(r, shape.hidden));
  const std::vector<int64_t> lengths(static_cast<size_t>(shape.batch), shape.steps);
  std::vector<cpu::Gate> gates(static_cast<size_t>(3 * shape.directions));
  std::vector<float> y(
      static_cast<size_t>(shape.steps * shape.directions * shape.batch * shape.hidden));
  cpu::LayerTensors<float> tensors;
  tensors.x = r + shape.directions * rows * shape.hidden;
  tensors.y = y.data();
  tensors.lengths = lengths;
  tensors.gates = gates;
  ThreadPool pool(threads);
  cpu::run_layer(shape, weights, tensors, pool);
  return y;
}

TEST(CpuRecurrent, ThreadsDoNotChangeTheResult) {
  for (const cpu::Cell cell : {cpu::Cell::Rnn, cpu::Cell::Gru, cpu::Cell::Lstm}) {
    for (const auto& [batch, input, hidden] : std::vector<std::array<int64_t, 3>>{
             {1, 20, 200}, {6, 70, 90}, {5, 33, 300}, {1, 9, 700}}) {
      cpu::RecurrentShape shape;
      shape.cell = cell;
      shape.steps = 7;
      shape.batch = batch;
      shape.input = input;
      shape.hidden = hidden;
      for (shape.directions = 1; shape.directions <= 2; ++shape.directions) {
        const int64_t rows = shape.directions * shape.gates() * hidden;
        auto data = normals<float>(rows * (input + hidden) + shape.steps * batch * input);
        for (float& x : data) x *= 0.1f;
        const std::vector<float> one = layer_values(shape, 1, data);
        for (const int threads : {2, 3, 7}) {
          ASSERT_EQ(layer_values(shape, threads, data), one)
              << shape.gates() << " gates, batch " << batch << ", " << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
