// The extents of a tile program for growing sizes, in a run.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "cpu/growing/length_axis.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

class GrowingExtents {
 public:
  GrowingExtents(ir::ExprPool& pool, const GrowingSizes& sizes)
      : axis_(pool, sizes), symbol_(sizes.length), least_(sizes.least) {}

  // LengthAxis::place on all lists.
  void place(std::initializer_list<std::vector<ir::Expr>*> lists);
  ir::Expr placed(ir::Expr expr) { return axis_.placed(expr); }
  ir::Expr axis() const { return axis_.axis(); }
  // How many positions of placed axes, outermost first, a run visits. Only an outermost axis has
  // fewer than the program: along others all elements of the memory are visited.
  class Count {
   public:
    int64_t at(int64_t length) const;

   private:
    friend class GrowingExtents;
    ir::Expr outermost_ = nullptr;  // its extent, if it grows
    int64_t inner_ = 1;             // of the other axes, or all of them
  };
  Count count(const std::vector<ir::Expr>& axes) const;
  // Whether a run visits only its own positions, if it visits those of `counted` that their counts
  // tell and all of every other axis: each axis that grows is whole and the outermost of its list.
  bool is_exact(std::initializer_list<const std::vector<ir::Expr>*> counted) const;
  // Whether an axis grows besides the outermost.
  bool grows_inside(const std::vector<ir::Expr>& axes) const;
  // Makes the length an outer axis of the program. `rows` and `columns` are placed axes, outermost
  // first.
  void set_axes(TileBuilder& builder, const std::vector<ir::Expr>& rows,
                const std::vector<ir::Expr>& columns);

  // Of a run.
  int64_t length(std::span<const int64_t> symbols) const { return symbols[symbol_]; }
  // On the axis of the lengths.
  int64_t position(int64_t length) const { return length - least_; }
  // Rows and columns to compute.
  int64_t rows(int64_t length) const { return rows_.at(length); }
  int64_t columns(int64_t length) const { return columns_.at(length); }
  void set(TileContext& machine, int64_t length) const {
    machine.axes[static_cast<size_t>(slot_)] = position(length);
  }

 private:
  LengthAxis axis_;
  size_t symbol_;
  int64_t least_;
  int slot_ = -1;
  Count rows_, columns_;
};

}  // namespace redfuser::cpu
