#include "cpu/tile/bytes/words.h"

#include <cstring>
#include <unordered_set>

#include "base/error.h"

namespace redfuser::cpu {
namespace {

class Moves {
 public:
  bool accepts(ir::Expr e) {
    if (!seen_.insert(e).second) return true;
    switch (e->op) {
      case ir::ExprOp::Read:
        return e->integer >= 0;
      case ir::ExprOp::Constant:
        return is_integer(e->dtype);
      case ir::ExprOp::Select:
        return accepts(e->args[1]) && accepts(e->args[2]);
      case ir::ExprOp::Max:
      case ir::ExprOp::Min:
        return is_integer(e->dtype) && bits_of(e->dtype) == 8 && accepts(e->args[0]) &&
               accepts(e->args[1]);
      case ir::ExprOp::Cast: {
        const DType from = e->args[0]->dtype;
        // Registers have truth values as 0 and 1.
        if (from == DType::Bool) return is_integer(e->dtype) && bits_of(e->dtype) == 8;
        return is_integer(from) && is_integer(e->dtype) && bits_of(from) == bits_of(e->dtype) &&
               accepts(e->args[0]);
      }
      default:
        return false;
    }
  }

 private:
  std::unordered_set<ir::Expr> seen_;
};

template <size_t kBytes>
void copy(int64_t count, void* out, const void* in) {
  std::memcpy(out, in, static_cast<size_t>(count) * kBytes);
}

}  // namespace

bool has_words(DType dtype) {
  return dtype == DType::UInt32 || (bits_of(dtype) == 8 && dtype != DType::Bool);
}

bool moves_words(ir::Expr expr) {
  const bool cast = expr->op == ir::ExprOp::Cast;
  const bool words = has_words(expr->dtype) || (cast && has_words(expr->args[0]->dtype));
  return words && expr->op != ir::ExprOp::Constant && Moves().accepts(expr);
}

Elem word_elem(DType dtype) { return bits_of(dtype) == 8 ? Elem::Bool : Elem::I32; }

ConvertFn copy_words(size_t bytes) {
  RF_CHECK(bytes == 1 || bytes == 4, "no words of {} bytes", bytes);
  return bytes == 1 ? copy<1> : copy<4>;
}

}  // namespace redfuser::cpu
