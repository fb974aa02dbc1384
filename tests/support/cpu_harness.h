// Runs CPU kernels of hand-built steps and compares them with a double-precision reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/dispatch.h"
#include "cpu/select/make_kernel.h"
#include "cpu/step.h"
#include "ir/evaluate.h"
#include "ir/polynomial.h"

namespace redfuser {

class CpuHarness {
 public:
  explicit CpuHarness(int threads = 2, uint64_t seed = 1) : pool_(threads), random_(seed) {
    graph.pool = std::make_shared<ir::ExprPool>();
  }

  ir::ExprPool& pool() { return *graph.pool; }

  // A symbol bound to a size.
  ir::Expr size(const std::string& name, int64_t value) {
    ir::Expr symbol = pool().symbol(name);
    symbols_.resize(std::max(symbols_.size(), static_cast<size_t>(symbol->integer) + 1), -1);
    symbols_[static_cast<size_t>(symbol->integer)] = value;
    return symbol;
  }
  int64_t value_of(ir::Expr extent) const { return evaluate_size(extent, symbols_); }

  // A value of the given shape; `fill(i)` gives its elements, if it is an input.
  ir::ValueId value(DType dtype, std::vector<ir::Expr> shape,
                    const std::function<double(int64_t)>& fill = nullptr) {
    const ir::ValueId id = graph.add_value("v" + std::to_string(graph.values.size()), dtype);
    graph.values.back().shape = shape;
    values_.resize(graph.values.size());
    if (fill) {
      Dims dims;
      for (ir::Expr extent : shape) dims.push_back(value_of(extent));
      Tensor tensor(dtype, dims);
      for (int64_t i = 0; i < tensor.size(); ++i) put(tensor, i, fill(i));
      values_.back() = tensor;
    }
    return id;
  }
  ir::ValueId normal(DType dtype, std::vector<ir::Expr> shape, double scale = 1) {
    std::normal_distribution<double> distribution(0, scale);
    return value(dtype, std::move(shape), [&](int64_t) { return distribution(random_); });
  }
  ir::ValueId integers(DType dtype, std::vector<ir::Expr> shape, int64_t low, int64_t high) {
    std::uniform_int_distribution<int64_t> distribution(low, high);
    return value(dtype, std::move(shape),
                 [&](int64_t) { return static_cast<double>(distribution(random_)); });
  }

  ir::Expr read(ir::ValueId id, std::vector<ir::Expr> indices) {
    return pool().read(id, graph.values[static_cast<size_t>(id)].dtype, std::move(indices));
  }
  ir::Expr number(double x, DType dtype = DType::Float32) { return pool().number(x, dtype); }

  template <typename Step>
  void run(const Step& step) {
    run_kernel(*cpu::make_kernel(graph, step));
  }

  void run_kernel(const cpu::Kernel& kernel) {
    cpu::RunContext context{graph, values_, symbols_, pool_};
    kernel.run(context);
  }

  const Tensor& tensor(ir::ValueId id) const { return values_[static_cast<size_t>(id)]; }
  double at(ir::ValueId id, int64_t i) const { return get(tensor(id), i); }

  // The reference value of an expression with these axes at these indices.
  double reference(ir::Expr expr, const std::vector<std::pair<ir::Expr, int64_t>>& point) const {
    const auto environment = [&](ir::Expr leaf) -> double {
      if (leaf->op == ir::ExprOp::Symbol) {
        return static_cast<double>(symbols_[static_cast<size_t>(leaf->integer)]);
      }
      if (leaf->op == ir::ExprOp::Axis) {
        for (auto& [axis, index] : point) {
          if (axis == leaf) return static_cast<double>(index);
        }
        ADD_FAILURE() << "an axis has no index";
        return 0;
      }
      const Tensor& source = tensor(static_cast<ir::ValueId>(leaf->integer));
      int64_t offset = 0;
      for (size_t i = 0; i < leaf->args.size(); ++i) {
        offset = offset * source.dims()[i] + leaf->args[i]->integer;
      }
      return offset >= 0 && offset < source.size() ? get(source, offset) : 0;
    };
    const bool leaf = expr->op == ir::ExprOp::Axis || expr->op == ir::ExprOp::Symbol ||
                      (expr->op == ir::ExprOp::Read &&
                       std::all_of(expr->args.begin(), expr->args.end(),
                                   [](ir::Expr index) { return index->is_constant(); }));
    return leaf ? environment(expr) : evaluate(expr, environment);
  }

  // Compares a value with its meaning over `axes`, at every point or at about `points` of more.
  void expect(ir::ValueId id, const std::vector<ir::Expr>& axes, ir::Expr body, double tolerance,
              int64_t points = 3000) {
    const Tensor& actual = tensor(id);
    ASSERT_TRUE(actual.defined());
    // An odd step visits every row and column in turn.
    const int64_t step = actual.size() <= points ? 1 : actual.size() / points | 1;
    for (int64_t i = 0; i < actual.size(); i += step) {
      std::vector<std::pair<ir::Expr, int64_t>> point;
      int64_t rest = i;
      for (size_t d = axes.size(); d-- > 0;) {
        point.push_back({axes[d], rest % actual.dims()[d]});
        rest /= actual.dims()[d];
      }
      expect_near(get(actual, i), reference(body, point), tolerance, i);
      if (::testing::Test::HasFailure()) return;
    }
  }

  static void expect_near(double actual, double expected, double tolerance, int64_t i) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << "element " << i << " is " << actual << ", not NaN";
    } else if (std::isinf(expected)) {
      EXPECT_EQ(actual, expected) << "element " << i;
    } else {
      EXPECT_NEAR(actual, expected, tolerance * std::max(1.0, std::fabs(expected)))
          << "element " << i;
    }
  }

  ir::Graph graph;

 private:
  static double get(const Tensor& tensor, int64_t i) {
    return dispatch(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return static_cast<double>(tensor.as<T>()[i]);
    });
  }
  static void put(Tensor& tensor, int64_t i, double x) {
    dispatch(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      tensor.as<T>()[i] = static_cast<T>(x);
    });
  }

  std::vector<Tensor> values_;
  std::vector<int64_t> symbols_;
  ThreadPool pool_;
  std::mt19937_64 random_;
};

}  // namespace redfuser
