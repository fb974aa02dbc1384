#include "cascade/certify/elements.h"

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "ir/expr_map.h"
#include "ir/polynomial.h"

namespace redfuser::cascade {
namespace {

using Change = std::function<ir::Expr(ir::Expr)>;

void change_cascade(Cascade& cascade, const Change& change) {
  for (Stage& stage : cascade.stages) stage.body = change(stage.body);
  for (CascadeOutput& output : cascade.outputs) output.body = change(output.body);
}

void change_streaming(Streaming& streaming, const Change& change) {
  for (Accumulator& a : streaming.accumulators) {
    a.lift = change(a.lift);
    if (a.transport != nullptr) a.transport = change(a.transport);
  }
  for (Reference& reference : streaming.references) reference.value = change(reference.value);
  for (ir::Expr& finish : streaming.finish) finish = change(finish);
  for (CascadeOutput& output : streaming.cascade.outputs) output.body = change(output.body);
}

// A ranked result, which is read by a negative number.
bool is_result(ir::Expr expr) { return expr->op == ir::ExprOp::Read && expr->integer < 0; }

using ir::ById;

// The parts of both sides that become elements.
class Parts {
 public:
  explicit Parts(const Sides& sides) {
    Sides copy = sides;
    change_cascade(copy.cascade, [&](ir::Expr root) {
      roots_.push_back(root);
      add_elements(root, of_cascade_);
      return root;
    });
    change_streaming(copy.streaming, [&](ir::Expr root) {
      roots_.push_back(root);
      add_elements(root, of_streaming_);
      return root;
    });
  }

  // The largest parts of which none holds another one.
  std::set<ir::Expr, ById> largest() {
    while (true) {
      std::set<ir::Expr, ById> parts;
      ir::ExprMap seen;
      for (ir::Expr root : roots_) find(root, parts, seen);
      const size_t before = divided_.size();
      for (ir::Expr part : parts) {
        visit(part, [&](ir::Expr e) {
          if (e != part && parts.count(e) > 0) divided_.insert(part);
        });
      }
      if (divided_.size() == before) return parts;
    }
  }

 private:
  // The parts of one expression that hold reads, but no leaf and no ranked result.
  static void add_elements(ir::Expr root, std::set<ir::Expr, ById>& elements) {
    ir::ExprMap ranked;
    visit(root, [&](ir::Expr e) {
      if (!e->has_read || e->has_leaf || e->op == ir::ExprOp::Axis) return;
      const bool holds_ranked =
          is_result(e) || std::any_of(e->args.begin(), e->args.end(),
                                      [&](ir::Expr arg) { return ranked.find(arg) != nullptr; });
      if (holds_ranked) {
        ranked.add(e);
      } else {
        elements.insert(e);
      }
    });
  }

  void find(ir::Expr e, std::set<ir::Expr, ById>& parts, ir::ExprMap& seen) const {
    if (!e->has_read || !seen.add(e)) return;
    if (of_cascade_.count(e) > 0 && of_streaming_.count(e) > 0 && divided_.count(e) == 0) {
      parts.insert(e);
      return;
    }
    for (ir::Expr arg : e->args) find(arg, parts, seen);
  }

  std::vector<ir::Expr> roots_;
  std::set<ir::Expr, ById> of_cascade_, of_streaming_;
  std::set<ir::Expr, ById> divided_;  // they hold another part
};

}  // namespace

ir::Expr ElementReads::of(ir::Expr expr) {
  auto [entry, inserted] = reads_.try_emplace(expr, nullptr);
  if (!inserted) return entry->second;
  std::vector<ir::Expr> indices;
  visit(expr, [&](ir::Expr node) {
    if (node->op == ir::ExprOp::Axis && expr->depends_on(node)) indices.push_back(node);
  });
  const int64_t number = kFirst + static_cast<int64_t>(reads_.size());
  entry->second = pool_.read(number, expr->dtype, indices);
  return entry->second;
}

Sides with_contractions_read(ir::ExprPool& pool, const Sides& sides, ElementReads& reads) {
  Sides result = sides;
  const Change change = [&](ir::Expr root) {
    return pool.rewrite(
        root, [&](ir::Expr e) { return e->op == ir::ExprOp::Reduce ? reads.of(e) : nullptr; });
  };
  change_cascade(result.cascade, change);
  change_streaming(result.streaming, change);
  return result;
}

bool read_elements(Sides& sides, ir::ExprPool& pool, ElementReads& reads) {
  const std::set<ir::Expr, ById> parts = Parts(sides).largest();
  bool complete = true;
  const Change change = [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (parts.count(e) > 0) return reads.of(e);
      if (e->op == ir::ExprOp::Read && !is_result(e)) complete = false;
      return e->has_read ? nullptr : e;
    });
  };
  change_cascade(sides.cascade, change);
  change_streaming(sides.streaming, change);
  return complete;
}

}  // namespace redfuser::cascade
