// Pointwise steps, reductions and products on the CPU against double-precision references.
#include "ir/scalars/operations.h"
#include "ops/sizes.h"
#include "support/cpu_harness.h"

namespace redfuser {
namespace {

using Op = ir::ExprOp;

struct CpuMap : ::testing::Test {
  CpuHarness h;
  ir::ExprPool& p = h.pool();

  std::vector<ir::Expr> axes_of(std::vector<ir::Expr> shape) {
    std::vector<ir::Expr> axes;
    for (ir::Expr extent : shape) axes.push_back(p.axis("i", extent));
    return axes;
  }
  void check(DType dtype, std::vector<ir::Expr> shape, std::vector<ir::Expr> axes, ir::Expr body,
             double tolerance) {
    const ir::ValueId out = h.value(dtype, std::move(shape));
    h.run(fuse::MapStep{axes, {{out, body}}});
    h.expect(out, axes, body, tolerance);
  }
};

TEST_F(CpuMap, BroadcastBiasGelu) {
  ir::Expr b = h.size("b", 3), s = p.integer(37), n = h.size("n", 131);
  const ir::ValueId x = h.normal(DType::Float32, {b, s, n}), bias = h.normal(DType::Float32, {n});
  auto axes = axes_of({b, s, n});
  ir::Expr v = p.add(h.read(x, axes), h.read(bias, {axes[2]}));
  ir::Expr erf = p.make(Op::Erf, {p.mul(v, h.number(0.70710678))});
  check(DType::Float32, {b, s, n}, axes, p.mul(p.mul(v, h.number(0.5)), p.add(erf, h.number(1))),
        1e-6);
}

TEST_F(CpuMap, ContiguousRowsAreOneRow) {
  ir::Expr b = p.integer(300), n = p.integer(5);
  const ir::ValueId x = h.normal(DType::Float32, {b, n}), y = h.normal(DType::Float32, {b, n});
  auto axes = axes_of({b, n});
  check(DType::Float32, {b, n}, axes, p.mul(h.read(x, axes), h.read(y, axes)), 1e-6);
}

TEST_F(CpuMap, SmallRowsWithBias) {
  ir::Expr b = p.integer(300), n = p.integer(3);
  const ir::ValueId x = h.normal(DType::Float32, {b, n}), y = h.normal(DType::Float32, {n});
  auto axes = axes_of({b, n});
  check(DType::Float32, {b, n}, axes, p.add(h.read(x, axes), h.read(y, {axes[1]})), 1e-6);
}

TEST_F(CpuMap, TransposesAndMergedHeads) {
  ir::Expr b = p.integer(2), s = h.size("s", 70), e = p.integer(4), d = p.integer(24);
  for (DType dtype : {DType::Float32, DType::Float16, DType::Int32, DType::Bool}) {
    const ir::ValueId x = h.integers(dtype, {b, e, s, d}, 0, 1);
    auto axes = axes_of({b, s, p.integer(96)});
    ir::Expr head = p.floordiv(axes[2], d), inner = p.floormod(axes[2], d);
    check(dtype, {b, s, p.integer(96)}, axes, h.read(x, {axes[0], head, axes[1], inner}), 0);
    auto swapped = axes_of({b, e, d, s});
    check(dtype, {b, e, d, s}, swapped, h.read(x, {swapped[0], swapped[1], swapped[3], swapped[2]}),
          0);
  }
}

TEST_F(CpuMap, Gather) {
  ir::Expr v = p.integer(50), n = p.integer(33), b = p.integer(4), s = p.integer(9);
  for (DType dtype : {DType::Float32, DType::Float16, DType::Float64}) {
    const ir::ValueId table = h.normal(dtype, {v, n});
    const ir::ValueId ids = h.integers(DType::Int32, {b, s}, -50, 49);
    auto axes = axes_of({b, s, n});
    ir::Expr id = p.cast(DType::Int64, h.read(ids, {axes[0], axes[1]}));
    ir::Expr row = p.select(p.make(Op::Less, {id, p.integer(0)}), p.add(id, v), id);
    check(dtype, {b, s, n}, axes, h.read(table, {row, axes[2]}), 1e-6);
    // The same along the columns.
    auto back = axes_of({n, b, s});
    ir::Expr other = p.cast(DType::Int64, h.read(ids, {back[1], back[2]}));
    ir::Expr wrapped = p.select(p.make(Op::Less, {other, p.integer(0)}), p.add(other, v), other);
    check(dtype, {n, b, s}, back, h.read(table, {wrapped, back[0]}), 1e-6);
  }
}

// Positions that vary over rows and columns, from either end.
TEST_F(CpuMap, GatherElements) {
  for (DType dtype : {DType::Float32, DType::Float16, DType::BFloat16, DType::Float64, DType::Int8,
                      DType::UInt8, DType::Int32, DType::Int64, DType::Bool}) {
    for (size_t along = 0; along < 3; ++along) {
      for (DType index : {DType::Int32, DType::Int64}) {
        const std::vector<int64_t> sizes{7, 23, 37};
        std::vector<ir::Expr> shape, picked;
        for (size_t d = 0; d < sizes.size(); ++d) {
          shape.push_back(p.integer(sizes[d]));
          picked.push_back(p.integer(d == along ? 19 : sizes[d] - 1));
        }
        const ir::ValueId x = h.integers(dtype, shape, 0, dtype == DType::Bool ? 1 : 100);
        const ir::ValueId at = h.integers(index, picked, -sizes[along], sizes[along] - 1);
        auto axes = axes_of(picked), from = axes;
        from[along] = ops::data_index(p, h.read(at, axes), shape[along]);
        SCOPED_TRACE(fmt::format("{} along {}", name_of(dtype), along));
        check(dtype, picked, axes, h.read(x, from), 0);
        // Without clamping, within positions that are known to be counted from the beginning.
        const ir::ValueId low = h.integers(index, picked, 0, sizes[along] - 1);
        from[along] = p.cast(DType::Int64, h.read(low, axes));
        check(dtype, picked, axes, h.read(x, from), 0);
      }
    }
  }
}

TEST_F(CpuMap, CausalMaskAndCasts) {
  ir::Expr s = h.size("s", 45), t = p.integer(61);
  const ir::ValueId x = h.normal(DType::Float32, {s, t}), keep = h.integers(DType::Bool, {t}, 0, 1);
  auto axes = axes_of({s, t});
  ir::Expr causal = p.make(Op::LessEqual, {axes[1], p.add(axes[0], p.integer(7))});
  ir::Expr mask = p.make(Op::And, {causal, h.read(keep, {axes[1]})});
  check(DType::Float32, {s, t}, axes,
        p.select(mask, h.read(x, axes), h.number(-std::numeric_limits<double>::infinity())), 0);
  check(DType::Int32, {s, t}, axes, p.cast(DType::Int32, p.mul(h.read(x, axes), h.number(100))), 0);
  check(DType::UInt8, {s, t}, axes,
        p.cast(DType::UInt8, p.add(p.mul(axes[0], p.integer(31)), axes[1])), 0);
  check(DType::Float16, {s, t}, axes, p.cast(DType::Float16, h.read(x, axes)), 1e-3);
  check(DType::Float64, {s, t}, axes, p.make(Op::Exp, {p.cast(DType::Float64, h.read(x, axes))}),
        1e-14);
}

TEST_F(CpuMap, ConcatenationReadsOnlyWhatExists) {
  ir::Expr b = p.integer(3);
  for (int64_t left : {0, 5, 40}) {
    ir::Expr m = h.size("m" + std::to_string(left), left), n = p.integer(30), both = p.add(m, n);
    const ir::ValueId x = h.normal(DType::Float32, {b, m}), y = h.normal(DType::Float32, {b, n});
    auto axes = axes_of({b, both});
    ir::Expr first = p.make(Op::Less, {axes[1], m});
    check(DType::Float32, {b, both}, axes,
          p.select(first, h.read(x, axes), h.read(y, {axes[0], p.sub(axes[1], m)})), 0);
  }
}

TEST_F(CpuMap, EmptyAndScalar) {
  ir::Expr zero = p.integer(0);
  const ir::ValueId x = h.normal(DType::Float32, {zero});
  auto axes = axes_of({zero});
  check(DType::Float32, {zero}, axes, h.read(x, axes), 0);
  const ir::ValueId y = h.normal(DType::Float32, {});
  check(DType::Float32, {}, {}, p.make(Op::Exp, {h.read(y, {})}), 1e-6);
}

TEST_F(CpuMap, EveryUnary) {
  ir::Expr n = p.integer(1000);
  auto axes = axes_of({n});
  const ir::ValueId x = h.normal(DType::Float32, {n}, 2), y = h.normal(DType::Float64, {n}, 2);
  for (Op op : {
#define RF_UNARY(NAME, REFERENCE, ...) Op::NAME,
#include "ir/scalars/operations.def"
       }) {
    SCOPED_TRACE(static_cast<int>(op));
    if (ir::scalar_op(op).boolean) {
      check(DType::Bool, {n}, axes, p.make(op, {p.make(Op::Log, {h.read(x, axes)})}), 0);
      continue;
    }
    check(DType::Float32, {n}, axes, p.make(op, {h.read(x, axes)}), 2e-6);
    check(DType::Float64, {n}, axes, p.make(op, {h.read(y, axes)}), 1e-14);
  }
}

TEST_F(CpuMap, IntegerArithmetic) {
  ir::Expr n = p.integer(200), m = p.integer(7);
  auto axes = axes_of({m, n});
  const ir::ValueId x = h.integers(DType::Int32, {m, n}, -100, 100);
  const ir::ValueId y = h.integers(DType::Int32, {n}, 1, 9);
  ir::Expr a = h.read(x, axes), b = h.read(y, {axes[1]});
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv, Op::FloorMod, Op::TruncMod,
                Op::Min, Op::Max, Op::BitAnd, Op::BitOr, Op::BitXor}) {
    SCOPED_TRACE(static_cast<int>(op));
    check(DType::Int32, {m, n}, axes, p.make(op, {a, b}), 0);
  }
  for (Op op : {Op::Less, Op::LessEqual, Op::Equal}) {
    check(DType::Bool, {m, n}, axes, p.make(op, {a, b}), 0);
  }
}

TEST_F(CpuMap, TwoOutputsShareWork) {
  ir::Expr n = p.integer(500), m = p.integer(3);
  auto axes = axes_of({m, n});
  const ir::ValueId x = h.normal(DType::Float32, {m, n});
  ir::Expr e = p.make(Op::Exp, {h.read(x, axes)});
  const ir::ValueId a = h.value(DType::Float32, {m, n}), b = h.value(DType::Float32, {m, n}),
                    c = h.value(DType::Float32, {m, n});
  h.run(fuse::MapStep{axes, {{a, e}, {b, p.add(e, h.number(1))}, {c, e}}});
  h.expect(a, axes, e, 1e-6);
  h.expect(b, axes, p.add(e, h.number(1)), 1e-6);
  h.expect(c, axes, e, 1e-6);
}

struct CpuReduce : CpuMap {
  void check_reduce(DType dtype, std::vector<ir::Expr> shape, std::vector<ir::Expr> axes,
                    ir::Expr body, double tolerance) {
    const ir::ValueId out = h.value(dtype, std::move(shape));
    h.run(fuse::ReduceStep{out, axes, body});
    h.expect(out, axes, body, tolerance);
  }
};

TEST_F(CpuReduce, EveryAxis) {
  ir::Expr a = h.size("a", 5), b = p.integer(70), c = h.size("c", 33);
  const ir::ValueId x = h.normal(DType::Float32, {a, b, c});
  ir::Expr k = p.axis("k", b), l = p.axis("l", c), m = p.axis("m", a);
  for (ir::Reduction r :
       {ir::Reduction::Sum, ir::Reduction::Max, ir::Reduction::Min, ir::Reduction::Prod}) {
    auto ac = axes_of({a, c}), ab = axes_of({a, b}), one = axes_of({a});
    check_reduce(DType::Float32, {a, c}, ac, p.reduce(r, k, h.read(x, {ac[0], k, ac[1]})), 1e-5);
    check_reduce(DType::Float32, {a, b}, ab, p.reduce(r, l, h.read(x, {ab[0], ab[1], l})), 1e-5);
    ir::Expr inner = p.reduce(r, l, h.read(x, {one[0], k, l}));
    check_reduce(DType::Float32, {a}, one, p.reduce(r, k, inner), 1e-4);
    ir::Expr all = p.reduce(r, m, p.reduce(r, k, p.reduce(r, l, h.read(x, {m, k, l}))));
    check_reduce(DType::Float32, {}, {}, all, 1e-4);
  }
}

// Short axes of the output, side by side in memory or not.
TEST_F(CpuReduce, ShortAxesOfTheOutput) {
  ir::Expr a = h.size("a", 9), b = p.integer(70), c = p.integer(3), d = p.integer(5);
  const ir::ValueId x = h.normal(DType::Float32, {a, b, c, d});
  ir::Expr k = p.axis("k", b), l = p.axis("l", c);
  for (ir::Reduction r : {ir::Reduction::Sum, ir::Reduction::Max}) {
    auto acd = axes_of({a, c, d}), abd = axes_of({a, b, d});
    check_reduce(DType::Float32, {a, c, d}, acd,
                 p.reduce(r, k, h.read(x, {acd[0], k, acd[1], acd[2]})), 1e-5);
    check_reduce(DType::Float32, {a, b, d}, abd,
                 p.reduce(r, l, h.read(x, {abd[0], abd[1], l, abd[2]})), 1e-5);
  }
}

TEST_F(CpuReduce, LongRowsAndPointwiseAround) {
  ir::Expr a = p.integer(6), n = h.size("n", 5000);
  const ir::ValueId x = h.normal(DType::Float32, {a, n});
  ir::Expr l = p.axis("l", n);
  auto axes = axes_of({a});
  ir::Expr v = h.read(x, {axes[0], l});
  ir::Expr norm = p.make(Op::Sqrt, {p.reduce(ir::Reduction::Sum, l, p.mul(v, v))});
  check_reduce(DType::Float32, {a}, axes, norm, 1e-5);
  auto wide = axes_of({a, n});
  check_reduce(
      DType::Float32, {a, n}, wide,
      p.div(h.read(x, wide),
            p.make(Op::Sqrt, {p.reduce(ir::Reduction::Sum, l,
                                       p.mul(h.read(x, {wide[0], l}), h.read(x, {wide[0], l})))})),
      1e-5);
}

TEST_F(CpuReduce, RankedReductions) {
  ir::Expr a = p.integer(9), n = h.size("n", 1300), k = p.integer(5);
  const ir::ValueId x = h.integers(DType::Float32, {a, n}, -300, 300);
  ir::Expr l = p.axis("l", n);
  auto axes = axes_of({a});
  ir::Expr v = h.read(x, {axes[0], l});
  check_reduce(DType::Int64, {a}, axes, p.reduce(ir::Reduction::ArgMax, l, v), 0);
  check_reduce(DType::Int64, {a}, axes, p.reduce(ir::Reduction::ArgMin, l, v), 0);
  auto ranked = axes_of({a, k});
  ir::Expr w = h.read(x, {ranked[0], l});
  for (ir::Reduction r : {ir::Reduction::TopK, ir::Reduction::BottomK}) {
    check_reduce(DType::Float32, {a, k}, ranked, p.reduce(r, l, w, ranked[1]), 0);
    check_reduce(DType::Int64, {a, k}, ranked, p.reduce(r, l, w, ranked[1], true), 0);
  }
  // Of few values, by columns of the result.
  ir::Expr c = p.integer(70), m = p.axis("m", k);
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Int8, DType::UInt64}) {
    const ir::ValueId z = h.integers(dtype, {a, k, c}, 0, 3);
    auto ac = axes_of({a, c});
    ir::Expr e = h.read(z, {ac[0], m, ac[1]});
    check_reduce(DType::Int64, {a, c}, ac, p.reduce(ir::Reduction::ArgMax, m, e), 0);
    check_reduce(DType::Int64, {a, c}, ac, p.reduce(ir::Reduction::ArgMin, m, e), 0);
  }
  const ir::ValueId y = h.integers(DType::Int32, {n, a}, -300, 300);
  check_reduce(DType::Int64, {a}, axes, p.reduce(ir::Reduction::ArgMax, l, h.read(y, {l, axes[0]})),
               0);
}

TEST_F(CpuReduce, IntegerProductWithZeroPoints) {
  ir::Expr m = p.integer(21), n = p.integer(35), k = p.integer(67);
  const ir::ValueId a = h.integers(DType::UInt8, {m, k}, 0, 255);
  const ir::ValueId b = h.integers(DType::Int8, {k, n}, -128, 127);
  ir::Expr l = p.axis("l", k);
  auto axes = axes_of({m, n});
  auto wide = [&](ir::Expr e) { return p.cast(DType::Int32, e); };
  ir::Expr left = p.sub(wide(h.read(a, {axes[0], l})), p.number_int(17, DType::Int32));
  check_reduce(DType::Int32, {m, n}, axes,
               p.reduce(ir::Reduction::Sum, l, p.mul(left, wide(h.read(b, {l, axes[1]})))), 0);
}

struct CpuProduct : CpuMap {
  ir::Expr leaf(DType dtype = DType::Float32, int64_t number = 0) {
    return p.leaf(ir::LeafKind::Product, number, dtype);
  }
  // Also with constants on the right, which are packed once.
  void check_product(const fuse::ProductStep& step, double tolerance) {
    check_run(step, tolerance);
    for (const ir::Expr read : step.b) {
      const auto value = static_cast<ir::ValueId>(read->integer);
      if (read->op != ir::ExprOp::Read) return;
      h.graph.values[static_cast<size_t>(value)].constant = h.tensor(value);
    }
    check_run(step, tolerance);
  }
  void check_run(const fuse::ProductStep& step, double tolerance) {
    h.run(step);
    ir::Expr expected = p.rewrite(step.epilogue, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Leaf) return nullptr;
      ir::Expr body = p.mul(step.a, step.b.at(static_cast<size_t>(e->integer)));
      if (step.k->op == ir::ExprOp::Axis) body = p.reduce(ir::Reduction::Sum, step.k, body);
      return p.cast(e->dtype, body);
    });
    h.expect(step.value, step.axes, expected, tolerance);
  }
};

TEST_F(CpuProduct, EveryTransposition) {
  for (auto [M, N, K] : std::vector<std::tuple<int, int, int>>{{64, 96, 80},
                                                               {1, 300, 500},
                                                               {3, 129, 257},
                                                               {300, 1, 40},
                                                               {5, 7, 1},
                                                               {13, 17, 0},
                                                               {16, 70, 700},
                                                               {500, 129, 300},
                                                               {263, 271, 300}}) {
    SCOPED_TRACE(testing::Message() << M << "x" << N << "x" << K);
    ir::Expr em = p.integer(M), en = p.integer(N), ek = p.integer(K);
    ir::Expr m = p.axis("m", em), n = p.axis("n", en), k = p.axis("k", ek);
    for (int t = 0; t < 4; ++t) {
      const bool ta = t & 1, tb = t & 2;
      const ir::ValueId a =
          ta ? h.normal(DType::Float32, {ek, em}) : h.normal(DType::Float32, {em, ek});
      const ir::ValueId b =
          tb ? h.normal(DType::Float32, {en, ek}) : h.normal(DType::Float32, {ek, en});
      fuse::ProductStep step;
      step.value = h.value(DType::Float32, {em, en});
      step.m = {m};
      step.n = {n};
      step.k = k;
      step.a = ta ? h.read(a, {k, m}) : h.read(a, {m, k});
      step.b = {tb ? h.read(b, {n, k}) : h.read(b, {k, n})};
      step.epilogue = leaf();
      step.axes = {m, n};
      check_product(step, 1e-4);
    }
  }
}

TEST_F(CpuProduct, BiasGeluEpilogueInHeads) {
  // [b, s, h·d] -> heads [b, h, s, d] with a bias and a residual of the result's layout.
  ir::Expr B = p.integer(2), S = h.size("s", 150), H = p.integer(3), D = p.integer(32),
           K = p.integer(96);
  for (DType dtype : {DType::Float32, DType::Float16, DType::Float64}) {
    const ir::ValueId x = h.normal(dtype, {B, S, K}), w = h.normal(dtype, {K, p.integer(96)}, 0.1),
                      bias = h.normal(dtype, {p.integer(96)}), skip = h.normal(dtype, {B, H, S, D});
    ir::Expr b = p.axis("b", B), s = p.axis("s", S), e = p.axis("h", H), d = p.axis("d", D),
             k = p.axis("k", K);
    ir::Expr column = p.add(p.mul(e, D), d);
    fuse::ProductStep step;
    step.value = h.value(dtype, {B, H, S, D});
    step.m = {b, s};
    step.n = {e, d};
    step.k = k;
    step.a = h.read(x, {b, s, k});
    step.b = {h.read(w, {k, column})};
    step.epilogue = p.add(p.make(Op::Tanh, {p.add(leaf(dtype), h.read(bias, {column}))}),
                          h.read(skip, {b, e, s, d}));
    step.axes = {b, e, s, d};
    check_product(step, dtype == DType::Float16 ? 3e-3 : dtype == DType::Float32 ? 1e-5 : 1e-12);
  }
}

TEST_F(CpuProduct, BatchesOverSharedHeads) {
  ir::Expr B = p.integer(2), H = p.integer(6), G = p.integer(3), S = p.integer(40),
           T = p.integer(53), D = p.integer(16);
  const ir::ValueId q = h.normal(DType::Float32, {B, S, H, D}),
                    x = h.normal(DType::Float32, {B, G, T, D});
  ir::Expr b = p.axis("b", B), e = p.axis("h", H), s = p.axis("s", S), t = p.axis("t", T),
           d = p.axis("d", D);
  fuse::ProductStep step;
  step.value = h.value(DType::Float32, {B, H, S, T});
  step.batch = {b, e};
  step.m = {s};
  step.n = {t};
  step.k = d;
  step.a = h.read(q, {b, s, e, d});
  step.b = {h.read(x, {b, p.floordiv(e, p.integer(2)), t, d})};
  step.epilogue = p.mul(leaf(), h.number(0.25));
  step.axes = {b, e, s, t};
  check_product(step, 1e-5);
}

// Columns of one matrix and another matrix, in blocks and beyond them.
TEST_F(CpuProduct, SeveralOfOneMatrix) {
  for (auto [M, N, K] :
       std::vector<std::tuple<int, int, int>>{{700, 300, 64}, {1, 5, 33}, {37, 1, 8}, {6, 70, 0}}) {
    SCOPED_TRACE(testing::Message() << M << "x" << N << "x" << K);
    ir::Expr em = p.integer(M), en = p.integer(N), ek = p.integer(K);
    ir::Expr m = p.axis("m", em), n = p.axis("n", en), k = p.axis("k", ek);
    const ir::ValueId a = h.normal(DType::Float32, {em, ek}),
                      b = h.normal(DType::Float32, {ek, p.integer(2 * N)}),
                      c = h.normal(DType::Float32, {en, ek}), bias = h.normal(DType::Float32, {en});
    fuse::ProductStep step;
    step.value = h.value(DType::Float32, {em, en});
    step.m = {m};
    step.n = {n};
    step.k = k;
    step.a = h.read(a, {m, k});
    step.b = {h.read(b, {k, n}), h.read(b, {k, p.add(n, en)}), h.read(c, {n, k})};
    step.epilogue = p.add(p.mul(leaf(), p.make(Op::Tanh, {leaf(DType::Float32, 1)})),
                          p.mul(leaf(DType::Float32, 2), h.read(bias, {n})));
    step.axes = {m, n};
    check_product(step, 1e-4);
  }
}

TEST_F(CpuProduct, Integers) {
  ir::Expr M = p.integer(20), N = p.integer(30), K = p.integer(40);
  const ir::ValueId a = h.integers(DType::Int32, {M, K}, -50, 50),
                    b = h.integers(DType::Int32, {K, N}, -50, 50);
  ir::Expr m = p.axis("m", M), n = p.axis("n", N), k = p.axis("k", K);
  fuse::ProductStep step;
  step.value = h.value(DType::Int32, {M, N});
  step.m = {m};
  step.n = {n};
  step.k = k;
  step.a = h.read(a, {m, k});
  step.b = {h.read(b, {k, n})};
  step.epilogue = leaf(DType::Int32);
  step.axes = {m, n};
  check_product(step, 0);
}

}  // namespace
}  // namespace redfuser
