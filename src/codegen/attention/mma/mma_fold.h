// Folds a tile of scores into the state of a warp's 16 rows, in registers, for the portable
// attention kernels. Fragments have mma.sync's layout (device/attention.cuh).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/attention/mma/mma_products.h"
#include "codegen/functor/leaf_names.h"

namespace redfuser::codegen {

// The texts use variables of the surrounding kernel: `own_row` (the thread's first row), `pair`,
// `first` (the tile's first key), `valid` (its keys), `folded` (keys in the state before).
class MmaFold {
 public:
  static constexpr int kRows = 16;

  // `keys` of a tile: a multiple of 16. `halves`: 1 or 2 of the thread's two rows exist.
  MmaFold(StepBuilder& builder, const AttentionSpec& form, int keys, int halves);

  KernelText& kernel() { return kernel_; }
  Emitter& emitter() { return emitter_; }
  const MmaProducts& products() const { return products_; }
  int depth() const { return depth_; }
  int columns() const { return columns_; }
  bool is_value(size_t k) const { return k == form_.value_accumulator; }
  const std::string& row_count() const { return row_count_; }
  const std::string& key_count() const { return keys_; }
  ir::Expr rows() const { return row_extent_; }

  // Declares <name>_data, <name>_at(line, element) and <name>_vector (whether vector copies are
  // aligned), the arguments of load_tile.
  void declare_query() { declare_query(16 / products_.query.element); }
  void declare_query(int whole);
  void declare_key_and_value();
  // Declares a<k>[2], r<r>[2] and o[][4], the empty state.
  void declare_state();
  // Folds the tile into the state. The texts compute s (float[][4]) and add p (as s) · v to o.
  void fold(const std::string& score_product, const std::string& value_product);
  // Opens the scope of one of the thread's rows, `h`; close_row() adds it to the enclosing scope.
  void open_row();
  void close_row();
  // The row's remaining results and outputs for element `o` of the value state at `column`. Its
  // other states must be bound.
  void write_outputs(const std::string& exists);
  // Binds the states of accumulators before `count` to <prefix><k><suffix>.
  void bind_state(const std::string& prefix, const std::string& suffix, size_t count);

 private:
  void find_shared();
  void declare_operand(const std::string& name, const MmaOperand& operand, ir::Expr read,
                       ir::Expr line, const std::string& line_name, ir::Expr element, int whole);
  void bind_old_state();
  void bind_new_references();
  void run_phase(const Phase& phase, bool first);
  void bind_score(const std::string& score);
  void update(size_t k);
  void update_values(const cascade::Accumulator& a);
  void make_references(size_t done);
  void bind_result(size_t i);
  std::string for_halves(const std::string& body) const;

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  const FlatStreaming& rows_;
  KernelText kernel_;
  Emitter emitter_;
  LeafNames leaves_;
  std::vector<Phase> phases_;
  std::vector<ir::Expr> shared_;  // scores that several phases need are computed once
  std::set<size_t> ready_;
  const MmaProducts products_;
  std::string keys_, row_count_;
  ir::Expr row_extent_ = nullptr;
  int depth_ = 0, columns_ = 0, tile_keys_ = 0, halves_ = 2;
};

}  // namespace redfuser::codegen
