// Rows that lie beside each other in memory, their elements far apart: the form of the column
// kernels.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

struct ColumnForm {
  FlatStreaming rows;           // neighbouring row axes are one where memory has them so
  std::vector<ir::Expr> outer;  // row axes but the one below, outermost first
  ir::Expr across = nullptr;    // the row axis whose neighbours are adjacent
  // So many neighbours across, a power of two, are one row: the last digit of its streamed axis is
  // the last of the axis across (channels of a group where channels are adjacent). Else 1.
  int beside = 1;
  // Neighbours across read the same elements of one operand, which are adjacent along a row, and
  // adjacent elements of another, as a matrix product does: row kernels take it as well.
  bool mixed = false;

  ir::Expr columns() const { return across->extent(); }
};

// The reason if rows lie otherwise.
std::variant<ColumnForm, std::string> column_form(StepBuilder& builder, const FlatStreaming& form);

// An offset = base + stride · (streamed element), whose neighbours across are adjacent or equal.
struct ColumnOffset {
  ir::Expr offset;        // over rows and the streamed axis
  ir::Expr base, stride;  // null where the streamed axis is addressed otherwise
  bool shared = false;    // neighbours are equal: weights of the streamed axis
};
// nullopt where neighbours across are neither.
std::optional<ColumnOffset> column_offset(ir::ExprPool& pool, const ColumnForm& form,
                                          ir::Expr offset);

}  // namespace redfuser::codegen
