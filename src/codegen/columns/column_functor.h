// The arithmetic of rows beside each other as a struct, the Form of src/device/columns.cuh.
#pragma once

#include <string>
#include <vector>

#include "codegen/columns/column_form.h"
#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/functor/invariant_parts.h"
#include "codegen/functor/state_functor.h"

namespace redfuser::codegen {

class ColumnFunctor {
 public:
  // `width`: adjacent rows of a thread; `fast`: results are rounded to 16 bits afterwards.
  ColumnFunctor(KernelText& kernel, const ColumnForm& form, int width, bool fast);

  // struct State and template <bool Vector> struct Form, at namespace scope.
  std::string text();
  // The text of a bool: groups of `width` rows are aligned. Complete once text() is made.
  std::string vector_condition();
  // Words of an element of a thread's rows that a fold keeps; of all tensors that it reads.
  int words() const;

 private:
  struct Item {  // reads, or an output whose neighbours across are adjacent
    int64_t value;
    ir::Expr read;  // null for an output
    ColumnOffset place;
    bool folded = false, written = false;
    bool vector = true;  // groups may be aligned
  };
  void collect(ir::Expr root, bool output);
  void add(ir::Expr read, bool output);
  void add_output(const FlatStreaming::Output& output);
  bool alignable(int64_t value, const ColumnOffset& place, bool written);
  void bind_rows(Emitter& emitter, const std::string& column) const;
  void bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots,
                    const std::string& column = "row.column") const;
  std::vector<ir::Expr> computed(std::vector<ir::Expr> roots) const;
  void bind_own(Emitter& emitter) const;
  std::string pointer(Emitter& emitter, const Item& item, const std::string& name) const;
  std::string flag(const Item& item) const { return item.vector ? "Vector" : "false"; }
  void bind_words(Emitter& emitter) const;
  std::string_view storage(const Item& item) const {
    return storage_type(kernel_.dtype_of(item.value));
  }
  int words_of(const Item& item) const;
  Emitter emitter() const;

  std::string row_members() const;
  std::string row_function();
  std::string parts_function();
  std::string words_members() const;
  std::string load_function();
  std::string lift_function(size_t number);
  std::string tail_members() const;
  std::string value_members() const;
  std::string finish_function();
  std::string map_function();
  std::string put_function();
  std::string row_functions();

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const ColumnForm& columns_;
  const FlatStreaming& form_;
  const int width_;
  const bool fast_;
  StateFunctor state_;
  std::vector<Item> reads_, outputs_;  // outputs_: one for each output, place of null where it is
                                       // no neighbour
  std::vector<InvariantPart> row_parts_, tail_parts_;
  AlignedAccesses accesses_;
};

}  // namespace redfuser::codegen
