// Streaming forms on the CPU against the cascades that they come from, in double precision.
#include "cascade/certify/simulate.h"
#include "cascade/derive/derive.h"
#include "support/cpu_harness.h"

namespace redfuser {
namespace {

using Op = ir::ExprOp;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct CpuCascade : ::testing::Test {
  CpuHarness h;
  ir::ExprPool& p = h.pool();

  ir::Expr result(int64_t stage, DType dtype = DType::Float32) {
    return p.leaf(ir::LeafKind::Result, stage, dtype);
  }

  void check(const cascade::Cascade& cascade, double tolerance) {
    auto derived = derive(p, cascade);
    if (auto* refusal = std::get_if<cascade::StageRefusal>(&derived)) {
      FAIL() << "stage " << refusal->stage << ": " << refusal->refusal.reason;
    }
    fuse::CascadeStep step;
    step.streaming = std::get<cascade::Derivation>(derived).streaming;
    h.run(step);
    compare(cascade, tolerance);
  }

  // Compares with the cascade run stage by stage, for some rows and columns.
  void compare(const cascade::Cascade& cascade, double tolerance) {
    std::vector<ir::Expr> axes = cascade.rows;
    std::vector<ir::Expr> columns;
    for (const cascade::Stage& stage : cascade.stages) {
      if (!stage.columns.empty()) columns = stage.columns;
    }
    for (const cascade::CascadeOutput& output : cascade.outputs) {
      for (ir::Expr axis : output.axes) {
        auto in = [&](const std::vector<ir::Expr>& list) {
          return std::find(list.begin(), list.end(), axis) != list.end();
        };
        const bool known =
            axis->op != Op::Axis || axis == cascade.stream || in(axes) || in(columns);
        if (!known) axes.push_back(axis);  // a rank
      }
    }
    cascade::Row row;
    row.length = h.value_of(cascade.stream->extent());
    for (int64_t i = 0; i < 5 && !columns.empty(); ++i) {
      std::vector<int64_t> point;
      for (ir::Expr axis : columns) point.push_back(i * 7 % h.value_of(axis->extent()));
      row.columns.push_back(point);
    }
    int64_t points = 1;
    for (ir::Expr axis : axes) points *= h.value_of(axis->extent());
    const int64_t wanted = std::clamp<int64_t>(60000 / std::max<int64_t>(row.length, 1), 8, 200);
    const int64_t stride = points <= wanted ? 1 : points / wanted | 1;
    for (int64_t i = 0; i < points; i += stride) {
      std::vector<std::pair<ir::Expr, int64_t>> point;
      int64_t rest = i;
      for (size_t d = axes.size(); d-- > 0;) {
        point.push_back({axes[d], rest % h.value_of(axes[d]->extent())});
        rest /= h.value_of(axes[d]->extent());
      }
      row.values = [&](ir::Expr leaf) { return h.reference(leaf, point); };
      compare_row(cascade, columns, row, point, run_unfused(p, cascade, row), tolerance);
      if (HasFailure()) return;
    }
  }

  void compare_row(const cascade::Cascade& cascade, const std::vector<ir::Expr>& columns,
                   const cascade::Row& row, std::vector<std::pair<ir::Expr, int64_t>> point,
                   const cascade::RowResult& expected, double tolerance) {
    for (size_t o = 0; o < cascade.outputs.size(); ++o) {
      const cascade::CascadeOutput& output = cascade.outputs[o];
      for (size_t n = 0; n < expected.outputs[o].size(); ++n) {
        auto full = point;
        if (output.maps_back) full.push_back({cascade.stream, static_cast<int64_t>(n)});
        for (size_t c = 0; c < columns.size() && !output.maps_back; ++c) {
          full.push_back({columns[c], row.columns[n][c]});
        }
        int64_t at = 0;
        for (size_t d = 0; d < output.axes.size(); ++d) {
          int64_t index = 0;
          for (auto& [axis, value] : full) {
            if (axis == output.axes[d]) index = value;
          }
          at = at * h.tensor(output.value).dims()[d] + index;
        }
        CpuHarness::expect_near(h.at(output.value, at), expected.outputs[o][n], tolerance, at);
        if (HasFailure()) return;
      }
    }
  }

  // Softmax of `score` over the stream as map-back output.
  void check_softmax(cascade::Cascade cascade, ir::Expr score, ir::ValueId out,
                     std::vector<ir::Expr> axes) {
    ir::Expr shifted = p.make(Op::Exp, {p.sub(score, result(0))});
    cascade.stages = {{ir::Reduction::Max, score}, {ir::Reduction::Sum, shifted}};
    cascade.outputs = {{out, p.div(shifted, result(1)), std::move(axes), true}};
    check(cascade, 2e-5);
  }
};

TEST_F(CpuCascade, SoftmaxOfEveryLength) {
  for (int64_t length : {1, 2, 7, 64, 197, 1000, 16385, 40000}) {
    SCOPED_TRACE(length);
    ir::Expr a = p.integer(3), b = p.integer(5), n = h.size("n" + std::to_string(length), length);
    int64_t i = 0;
    const ir::ValueId x = h.value(DType::Float32, {a, b, n}, [&](int64_t at) {
      const int64_t row = at / length;
      if (row == 4) return -kInfinity;                              // fully masked
      if (row == 5 && at % length < length / 2) return -kInfinity;  // masked at first
      if (row == 6 && at % length == length / 3) return double{NAN};
      return std::sin(static_cast<double>(++i)) * 30;
    });
    cascade::Cascade cascade;
    ir::Expr r = p.axis("a", a), s = p.axis("b", b);
    cascade.rows = {r, s};
    cascade.stream = p.axis("l", n);
    const ir::ValueId out = h.value(DType::Float32, {a, b, n});
    check_softmax(cascade, h.read(x, {r, s, cascade.stream}), out, {r, s, cascade.stream});
  }
}

TEST_F(CpuCascade, SoftmaxAcrossRowsInHalf) {
  ir::Expr a = p.integer(40), n = p.integer(90);
  const ir::ValueId x = h.normal(DType::Float16, {n, a}, 3);
  cascade::Cascade cascade;
  ir::Expr r = p.axis("a", a);
  cascade.rows = {r};
  cascade.stream = p.axis("l", n);
  ir::Expr score = p.cast(DType::Float32, h.read(x, {cascade.stream, r}));
  ir::Expr shifted = p.make(Op::Exp, {p.sub(score, result(0))});
  cascade.stages = {{ir::Reduction::Max, score}, {ir::Reduction::Sum, shifted}};
  const ir::ValueId out = h.value(DType::Float16, {n, a});
  cascade.outputs = {
      {out, p.cast(DType::Float16, p.div(shifted, result(1))), {cascade.stream, r}, true}};
  check(cascade, 1e-3);
}

struct Attention {
  int64_t batch = 2, heads = 4, groups = 4, queries = 37, keys = 53, size = 16, value_size = 24;
  bool causal = false, padding = false, merged = false;
  int64_t window = 0;
  bool poisoned = false;  // a NaN in the last value row, which a causal mask hides from most
  DType dtype = DType::Float32;
};

struct CpuAttention : CpuCascade, ::testing::WithParamInterface<Attention> {};

TEST_P(CpuAttention, MatchesReference) {
  const Attention a = GetParam();
  ir::Expr B = p.integer(a.batch), H = p.integer(a.heads), G = p.integer(a.groups),
           S = h.size("s", a.queries), T = h.size("t", a.keys), D = p.integer(a.size),
           V = p.integer(a.value_size);
  const ir::ValueId q = h.normal(a.dtype, {B, H, S, D}), k = h.normal(a.dtype, {B, G, T, D}),
                    v = h.value(a.dtype, {B, G, T, V},
                                [&](int64_t i) {
                                  const bool last = (i / a.value_size + 1) % a.keys == 0;
                                  return a.poisoned && last ? double{NAN} : std::cos(double(i * i));
                                }),
                    keep = h.integers(DType::Bool, {B, T}, 0, 1);
  ir::Expr b = p.axis("b", B), e = p.axis("h", H), i = p.axis("i", S), j = p.axis("j", T),
           d = p.axis("d", D), c = p.axis("c", V);
  ir::Expr group = p.floordiv(e, p.integer(a.heads / a.groups));
  auto wide = [&](ir::Expr x) { return p.cast(DType::Float32, x); };
  ir::Expr dot = p.reduce(ir::Reduction::Sum, d,
                          p.mul(wide(h.read(q, {b, e, i, d})), wide(h.read(k, {b, group, j, d}))));
  ir::Expr score = p.mul(dot, h.number(1 / std::sqrt(static_cast<double>(a.size))));
  ir::Expr mask = p.boolean(true);
  if (a.causal) mask = p.make(Op::And, {mask, p.make(Op::LessEqual, {p.add(j, p.integer(2)), i})});
  if (a.window > 0) {
    mask = p.make(Op::And, {mask, p.make(Op::Less, {i, p.add(j, p.integer(a.window))})});
  }
  if (a.padding) mask = p.make(Op::And, {mask, h.read(keep, {b, j})});
  score = p.select(mask, score, h.number(-kInfinity));
  ir::Expr shifted = p.make(Op::Exp, {p.sub(score, result(0))});
  cascade::Cascade cascade;
  cascade.rows = {b, e, i};
  cascade.stream = j;
  cascade::Stage weighted{ir::Reduction::Sum, p.mul(shifted, wide(h.read(v, {b, group, j, c})))};
  weighted.columns = {c};
  cascade.stages = {{ir::Reduction::Max, score}, {ir::Reduction::Sum, shifted}, weighted};
  std::vector<ir::Expr> shape{B, H, S, V}, axes{b, e, i, c};
  if (a.merged) {
    shape = {B, S, H, V};
    axes = {b, i, e, c};
  }
  const ir::ValueId out = h.value(a.dtype, shape);
  cascade.outputs = {{out, p.cast(a.dtype, p.div(result(2), result(1))), axes, false}};
  check(cascade, a.dtype == DType::Float32 ? 1e-5 : 2e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CpuAttention,
    ::testing::Values(
        Attention{}, Attention{.causal = true}, Attention{.padding = true},
        Attention{.causal = true, .padding = true, .merged = true},
        Attention{.groups = 2, .merged = true}, Attention{.queries = 1},
        Attention{.groups = 1, .queries = 1, .keys = 1500},
        Attention{.batch = 1, .queries = 3, .keys = 1, .size = 1, .value_size = 1},
        Attention{.batch = 1,
                  .heads = 2,
                  .groups = 2,
                  .queries = 130,
                  .keys = 1290,
                  .size = 32,
                  .value_size = 40,
                  .causal = true},
        Attention{
            .batch = 1, .queries = 20, .keys = 1100, .padding = true, .dtype = DType::Float16},
        Attention{.batch = 1,
                  .heads = 2,
                  .groups = 2,
                  .queries = 1500,
                  .keys = 1500,
                  .causal = true,
                  .window = 100},
        Attention{.queries = 200, .keys = 200, .causal = true, .window = 10},
        Attention{.queries = 300, .keys = 300, .causal = true, .poisoned = true},
        Attention{.keys = 0}));

TEST_F(CpuCascade, LayerNorm) {
  for (int64_t length : {1, 3, 96, 768, 20000}) {
    SCOPED_TRACE(length);
    ir::Expr a = p.integer(7), n = h.size("n" + std::to_string(length), length);
    const ir::ValueId x = h.value(DType::Float32, {a, n}, [&](int64_t at) {
      return 1000 + std::sin(static_cast<double>(at * at % 1009));
    });
    const ir::ValueId gamma = h.normal(DType::Float32, {n}), beta = h.normal(DType::Float32, {n});
    cascade::Cascade cascade;
    ir::Expr r = p.axis("a", a), l = p.axis("l", n);
    cascade.rows = {r};
    cascade.stream = l;
    ir::Expr count = p.cast(DType::Float32, n);
    ir::Expr centred = p.sub(h.read(x, {r, l}), p.div(result(0), count));
    cascade.stages = {{ir::Reduction::Sum, h.read(x, {r, l})},
                      {ir::Reduction::Sum, p.mul(centred, centred)}};
    ir::Expr deviation = p.make(Op::Sqrt, {p.add(p.div(result(1), count), h.number(1e-5))});
    const ir::ValueId out = h.value(DType::Float32, {a, n});
    cascade.outputs = {
        {out,
         p.add(p.mul(p.div(centred, deviation), h.read(gamma, {l})), h.read(beta, {l})),
         {r, l},
         true}};
    check(cascade, 2e-3);
  }
}

TEST_F(CpuCascade, NormalizedProduct) {
  for (int64_t length : {48, 1500}) {
    ir::Expr b = p.integer(2), s = p.integer(45), n = p.integer(length), m = p.integer(70);
    const ir::ValueId x = h.normal(DType::Float32, {b, s, n}),
                      w = h.normal(DType::Float32, {n, m}, 0.05);
    cascade::Cascade cascade;
    ir::Expr r = p.axis("b", b), q = p.axis("s", s), l = p.axis("l", n), c = p.axis("c", m);
    cascade.rows = {r, q};
    cascade.stream = l;
    ir::Expr v = h.read(x, {r, q, l});
    ir::Expr norm = p.make(Op::Sqrt, {p.div(result(0), p.cast(DType::Float32, n))});
    cascade::Stage product{ir::Reduction::Sum, p.mul(p.div(v, norm), h.read(w, {l, c}))};
    product.columns = {c};
    cascade.stages = {{ir::Reduction::Sum, p.mul(v, v)}, product};
    const ir::ValueId out = h.value(DType::Float32, {b, s, m});
    cascade.outputs = {{out, result(1), {r, q, c}, false}};
    check(cascade, 1e-5);
  }
}

TEST_F(CpuCascade, LinearAttention) {
  // Σ_l φ(k_l)_e v_l,c has columns on both sides of the product.
  ir::Expr b = p.integer(3), n = p.integer(90), e = p.integer(8), m = p.integer(12);
  const ir::ValueId k = h.normal(DType::Float32, {b, n, e}),
                    v = h.normal(DType::Float32, {b, n, m});
  cascade::Cascade cascade;
  ir::Expr r = p.axis("b", b), l = p.axis("l", n), x = p.axis("e", e), y = p.axis("c", m);
  cascade.rows = {r};
  cascade.stream = l;
  cascade::Stage stage{ir::Reduction::Sum,
                       p.mul(p.make(Op::Exp, {h.read(k, {r, l, x})}), h.read(v, {r, l, y}))};
  stage.columns = {x, y};
  cascade.stages = {stage};
  const ir::ValueId out = h.value(DType::Float32, {b, e, m});
  cascade.outputs = {{out, result(0), {r, x, y}, false}};
  check(cascade, 1e-5);
}

TEST_F(CpuCascade, MaximumPerColumn) {
  ir::Expr a = p.integer(5), n = p.integer(2000), m = p.integer(9);
  const ir::ValueId x = h.normal(DType::Float32, {a, n}), y = h.normal(DType::Float32, {n, m});
  cascade::Cascade cascade;
  ir::Expr r = p.axis("a", a), l = p.axis("l", n), c = p.axis("c", m);
  cascade.rows = {r};
  cascade.stream = l;
  cascade::Stage stage{ir::Reduction::Max, p.add(h.read(x, {r, l}), h.read(y, {l, c}))};
  stage.columns = {c};
  cascade.stages = {stage};
  const ir::ValueId out = h.value(DType::Float32, {a, m});
  cascade.outputs = {{out, result(0), {r, c}, false}};
  check(cascade, 1e-6);
}

TEST_F(CpuCascade, SoftmaxThenTopK) {
  for (int64_t length : {3, 300, 30000}) {
    SCOPED_TRACE(length);
    ir::Expr a = p.integer(6), n = p.integer(length), k = p.integer(4);
    const ir::ValueId x = h.value(DType::Float32, {a, n}, [&](int64_t at) {
      return static_cast<double>((at * 7919) % 211) / 8;
    });
    cascade::Cascade cascade;
    ir::Expr r = p.axis("a", a), l = p.axis("l", n), rank = p.axis("k", k);
    cascade.rows = {r};
    cascade.stream = l;
    ir::Expr v = h.read(x, {r, l});
    cascade::Stage top{ir::Reduction::TopK, v};
    top.k = 4;
    cascade.stages = {
        {ir::Reduction::Max, v}, {ir::Reduction::Sum, p.make(Op::Exp, {p.sub(v, result(0))})}, top};
    const ir::ValueId values = h.value(DType::Float32, {a, k}),
                      indices = h.value(DType::Int64, {a, k}), best = h.value(DType::Float32, {a});
    ir::Expr chosen = p.read(-(2 * 2 + 2), DType::Float32, {rank});
    cascade.outputs = {
        {values, p.div(p.make(Op::Exp, {p.sub(chosen, result(0))}), result(1)), {r, rank}, false},
        {indices, p.read(-(2 * 2 + 3), DType::Int64, {rank}), {r, rank}, false},
        {best, p.read(-(2 * 2 + 2), DType::Float32, {p.integer(0)}), {r}, false}};
    if (length == 3) {  // a rank that does not exist is zero, not exp(0 - max)
      cascade.outputs.erase(cascade.outputs.begin());
      h.run(fuse::CascadeStep{std::get<cascade::Derivation>(derive(p, cascade)).streaming});
      EXPECT_EQ(h.at(indices, 3), 0);
      continue;
    }
    check(cascade, 1e-5);
  }
}

TEST_F(CpuCascade, ArgMax) {
  ir::Expr a = p.integer(6), n = p.integer(20000);
  const ir::ValueId x = h.integers(DType::Float32, {a, n}, -50, 50);
  cascade::Cascade cascade;
  ir::Expr r = p.axis("a", a), l = p.axis("l", n);
  cascade.rows = {r};
  cascade.stream = l;
  cascade.stages = {{ir::Reduction::ArgMax, h.read(x, {r, l})}};
  const ir::ValueId out = h.value(DType::Int64, {a});
  cascade.outputs = {{out, result(0, DType::Int64), {r}, false}};
  check(cascade, 0);
}

}  // namespace
}  // namespace redfuser
