// Expressions as CUDA statements in single assignment, each as far out as its operands allow.
//
// Scopes are nested blocks of text: a kernel's body, a loop over elements, a reduction's loop. An
// expression is computed once, in the outermost scope that binds everything it depends on: loop
// invariants are hoisted out of the loop.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/core/kernel_text.h"

namespace redfuser::codegen {

class Emitter {
 public:
  explicit Emitter(KernelText& kernel);

  KernelText& kernel() const { return kernel_; }
  ir::ExprPool& pool() const { return kernel_.pool(); }

  // Opens a scope inside the current one; close() returns its text, which the caller wraps and
  // adds to the scope that is then current.
  void open();
  std::string close();
  // Adds text to the current scope.
  void line(const std::string& text);
  // Makes `name` the value of `expr` (an axis, a leaf, a read, any expression) in the current
  // scope.
  void bind(ir::Expr expr, const std::string& name);
  // Makes `name` the Divisor (src/device/math.cuh) of `expr`, which the current scope binds.
  void bind_divisor(ir::Expr expr, const std::string& name);
  // The name or literal of the value of `expr`, of value_type(expr->dtype).
  std::string emit(ir::Expr expr);
  // The same converted to value_type(dtype).
  std::string emit_as(ir::Expr expr, DType dtype);
  // The same as a whole side of a statement or an argument, without parentheses around it.
  std::string emit_whole(ir::Expr expr, DType dtype);
  std::string fresh(const std::string& hint);
  // From here on, values of these expressions that are used once and whose text is short are
  // written where they are used, if nothing moves them to an outer scope.
  void nest(const std::vector<ir::Expr>& roots);
  // Distributes outermost reductions over the lanes of a warp.
  void set_warp_reductions(bool on) { warp_reductions_ = on; }
  // Computes exponentials by the special-function unit (for values rounded to 16 bits afterwards).
  void set_fast_exp(bool on) { fast_exp_ = on; }
  // Computes exponentials as above, error functions and hyperbolic tangents without branches, and
  // quotients by a reciprocal if the dividend is constant or the divisor is of an outer scope (for
  // values rounded to 16 bits afterwards).
  void set_fast_math(bool on) { fast_math_ = on; }
  // The text of a ranked result (a Read of a negative value number) at a rank.
  using RankedRead = std::function<std::string(ir::Expr read, const std::string& rank)>;
  void set_ranked_reads(RankedRead text) { ranked_reads_ = std::move(text); }

 private:
  struct Named {
    std::string text;
    size_t depth;
  };
  struct Scope {
    std::string text;
    std::map<ir::Expr, std::string> names;
    std::map<ir::Expr, std::string> divisors;
  };
  Named named(ir::Expr expr);
  Named known(ir::Expr expr) const;
  Named operation(ir::Expr expr);
  // A sine or cosine of `of` times so many half turns.
  Named function_of_turn(ir::Expr expr, ir::Expr of, double half_turns);
  Named fast_quotient(ir::Expr expr, const Named& dividend, const Named& divisor);
  bool is_loose(ir::Expr expr) const;
  void declare(ir::Expr expr, Named& value);
  Named read(ir::Expr expr);
  Named reduce(ir::Expr expr);
  std::string term_of(ir::Expr reduce);
  size_t depth_of_free(ir::Expr expr) const;

  KernelText& kernel_;
  std::vector<Scope> scopes_;
  std::map<std::string, int> counters_;
  std::set<ir::Expr> nested_;
  bool warp_reductions_ = false, fast_exp_ = false, fast_math_ = false;
  int reduce_depth_ = 0;
  RankedRead ranked_reads_;
};

}  // namespace redfuser::codegen
