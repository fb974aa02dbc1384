// Cascades in a few words, for tests of the algebra.
#pragma once

#include "cascade/derive/derive.h"

namespace redfuser {

inline constexpr DType F = DType::Float32;

// Writes cascades briefly: x(k) is input k at the streamed element, v is a value row with a column.
struct Writer {
  ir::ExprPool& pool;
  cascade::Cascade cascade;
  ir::Expr row, stream, column;

  explicit Writer(ir::ExprPool& p, bool fixed = false, int64_t size = 48) : pool(p) {
    row = pool.axis("i", pool.symbol("rows"));
    stream = pool.axis("j", fixed ? pool.integer(size) : pool.symbol("n"));
    column = pool.axis("c", pool.integer(4));
    cascade.rows = {row};
    cascade.stream = stream;
  }
  ir::Expr x(int k) { return pool.read(k, F, {row, stream}); }
  ir::Expr integer(int k) { return pool.read(k, DType::Int64, {row, stream}); }
  ir::Expr weight(int k) { return pool.read(k, F, {stream}); }
  ir::Expr v(int k) { return pool.read(k, F, {stream, column}); }
  ir::Expr d(int k) { return pool.leaf(ir::LeafKind::Result, k, cascade.stages[k].body->dtype); }
  ir::Expr num(double value) { return pool.number(value, F); }
  ir::Expr n() { return pool.cast(F, stream->extent()); }
  ir::Expr exp(ir::Expr e) { return pool.make(ir::ExprOp::Exp, {e}); }
  ir::Expr f(ir::ExprOp op, ir::Expr e) { return pool.make(op, {e}); }
  ir::Expr sub(ir::Expr a, ir::Expr b) { return pool.sub(a, b); }
  ir::Expr mul(ir::Expr a, ir::Expr b) { return pool.mul(a, b); }
  ir::Expr div(ir::Expr a, ir::Expr b) { return pool.div(a, b); }
  ir::Expr square(ir::Expr a) { return pool.mul(a, a); }

  ir::Expr stage(ir::Reduction reduction, ir::Expr body, bool columns = false, int64_t k = 1) {
    cascade::Stage stage{reduction, body, {}, k, body->dtype, -1};
    if (columns) stage.columns = {column};
    cascade.stages.push_back(stage);
    return d(static_cast<int>(cascade.stages.size()) - 1);
  }
  ir::Expr sum(ir::Expr body, bool columns = false) {
    return stage(ir::Reduction::Sum, body, columns);
  }
  ir::Expr max(ir::Expr body) { return stage(ir::Reduction::Max, body); }
  void out(ir::Expr body, bool maps_back = false) {
    cascade.outputs.push_back(
        {static_cast<ir::ValueId>(cascade.outputs.size()), body, {}, maps_back});
  }
};

// p = softmax(s).
inline void softmax(Writer& w, ir::Expr s, ir::Expr& p) {
  ir::Expr m = w.max(s);
  ir::Expr e = w.exp(w.sub(s, m));
  ir::Expr l = w.sum(e);
  p = w.div(e, l);
}

}  // namespace redfuser
