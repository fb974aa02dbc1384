#include "codegen/matrix/epilogue_work.h"

#include <algorithm>
#include <set>

#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

bool differs_by(ir::Expr offset, const std::vector<ir::Expr>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](ir::Expr axis) { return offset->depends_on(axis); });
}

class EpilogueCounter {
 public:
  explicit EpilogueCounter(const fuse::ProductStep& step) : step_(step) {}

  EpilogueWork of(ir::Expr body) {
    go(body);
    return work_;
  }

 private:
  void go(ir::Expr e) {
    if (!seen_.insert(e).second || e->args.empty()) return;
    if (e->op == ir::ExprOp::Read) {
      const bool element = differs_by(e->args[0], step_.m) && differs_by(e->args[0], step_.n);
      (element ? work_.elements : work_.lines) += 1;
      return;
    }
    work_.specials += ir::scalar_op(e->op).costly ? 1 : 0;
    for (ir::Expr arg : e->args) go(arg);
  }

  const fuse::ProductStep& step_;
  std::set<ir::Expr> seen_;
  EpilogueWork work_;
};

}  // namespace

EpilogueWork epilogue_work(const ProductEpilogue& epilogue, const fuse::ProductStep& step) {
  return EpilogueCounter(step).of(epilogue.body);
}

}  // namespace redfuser::codegen
