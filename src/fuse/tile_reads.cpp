#include "fuse/tile_reads.h"

#include <algorithm>
#include <optional>

namespace redfuser::fuse {
namespace {

// The part ⌊j/low⌋ mod (high/low) of the streamed axis; without the modulo if high is null.
struct Digits {
  ir::Expr low = nullptr, high = nullptr;
};

class TileRead {
 public:
  TileRead(ir::ExprPool& pool, ir::Expr stream) : pool_(pool), stream_(stream) {}

  bool once(ir::Expr read) {
    std::vector<Digits> seen;
    for (ir::Expr index : read->args) {
      if (!index->depends_on(stream_)) continue;
      if (!collect(index, seen)) return false;
    }
    return seen.empty() || cover(seen);
  }

 private:
  // Adds the digits of the axis in the index; false unless it is a shifted or clamped digit of this
  // axis alone.
  bool collect(ir::Expr e, std::vector<Digits>& seen) {
    if (!e->depends_on(stream_)) return !e->has_read;
    if (auto digits = digits_of(e)) {
      seen.push_back(*digits);
      return true;
    }
    switch (e->op) {
      case ir::ExprOp::Add:
        if (last_of_merged(e)) {
          seen.push_back({pool_.integer(1), nullptr});
          return true;
        }
        [[fallthrough]];
      case ir::ExprOp::Mul:
        if (e->free_axes.size() != 1) return false;
        [[fallthrough]];
      case ir::ExprOp::Max:
      case ir::ExprOp::Min:
        return std::all_of(e->args.begin(), e->args.end(),
                           [&](ir::Expr arg) { return collect(arg, seen); });
      case ir::ExprOp::Select:
        return !e->args[0]->has_read && collect(e->args[1], seen) && collect(e->args[2], seen);
      default:
        return false;
    }
  }

  // rest * extent + j: the axis is the last of several that make one dimension.
  bool last_of_merged(ir::Expr e) {
    ir::Expr rest = pool_.sub(e, stream_);
    return !rest->depends_on(stream_) && !rest->has_read &&
           pool_.floormod(rest, stream_->extent())->is_constant(0);
  }

  std::optional<Digits> digits_of(ir::Expr e) {
    if (e == stream_) return Digits{pool_.integer(1), nullptr};
    if (e->op != ir::ExprOp::FloorDiv && e->op != ir::ExprOp::FloorMod) return std::nullopt;
    const auto inner = digits_of(e->args[0]);
    if (!inner || e->args[1]->depends_on(stream_)) return std::nullopt;
    ir::Expr bound = pool_.mul(inner->low, e->args[1]);
    return e->op == ir::ExprOp::FloorDiv ? Digits{bound, inner->high} : Digits{inner->low, bound};
  }

  bool cover(const std::vector<Digits>& seen) {
    ir::Expr reached = pool_.integer(1);
    for (size_t step = 0; step <= seen.size(); ++step) {
      if (!reached || reached == stream_->extent()) return true;
      const auto next =
          std::find_if(seen.begin(), seen.end(), [&](const Digits& d) { return d.low == reached; });
      if (next == seen.end()) return false;
      reached = next->high;
    }
    return false;
  }

  ir::ExprPool& pool_;
  ir::Expr stream_;
};

}  // namespace

bool reads_as_tile(ir::ExprPool& pool, const cascade::Cascade& cascade, int64_t value) {
  TileRead tile(pool, cascade.stream);
  bool once = true;
  for (const cascade::Stage& stage : cascade.stages) {
    visit(stage.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer == value) once = once && tile.once(e);
    });
  }
  return once;
}

}  // namespace redfuser::fuse
