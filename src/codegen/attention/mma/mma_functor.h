// The arithmetic of attention rows and the places of their operands as a struct, the Form of
// src/device/attention/mma_fold.cuh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/fold_functions.h"
#include "codegen/attention/mma/mma_products.h"
#include "codegen/attention/mma/split_kv_select.h"
#include "codegen/attention/visible_keys.h"

namespace redfuser::codegen {

class MmaFunctor {
 public:
  // `keys`: of a tile. `boxes`: keys and values that TMA copies. All must outlive this.
  MmaFunctor(StepBuilder& builder, const AttentionSpec& form, int keys,
             const std::optional<TmaTiles>& boxes = {});

  KernelText& kernel() { return kernel_; }
  const MmaProducts& products() const { return products_; }
  // struct State and struct Form, at namespace scope. `merges`: with the functions of merge.cuh.
  std::string text(bool merges);
  // The text of a Form of the kernel that text() is for.
  const std::string& construction() const { return functor_.construction(); }
  // The queries, keys and values as arguments of the main loop. `query_unit`: elements of queries
  // that are loaded together.
  std::string operands(int query_unit);
  // The members of a Config that the products need.
  std::string config(int halves) const;
  // The numbers of rows and keys.
  std::string lines();
  std::string length();

 private:
  std::vector<ir::Expr> inner() const;
  void find_shared();
  size_t value_phase() const;

  std::string operand(const MmaOperand& operand, ir::Expr read, ir::Expr element, int unit);
  std::string offset_function(const char* name, const char* parameters, ir::Expr read,
                              ir::Expr element);
  std::string lift_function(size_t phase);
  std::vector<ir::Expr> nested(size_t phase) const;
  void bind_score(Emitter& emitter, size_t phase) const;

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  const FlatStreaming& rows_;
  const int keys_;
  const std::optional<TmaTiles> boxes_;
  const std::vector<Phase> phases_;
  std::vector<ir::Expr> shared_;  // scores that several phases need are computed once
  const MmaProducts products_;
  const VisibleKeys visible_;
  KernelText kernel_;
  AttentionFunctor functor_;
  const FoldFunctions fold_;
};

}  // namespace redfuser::codegen
