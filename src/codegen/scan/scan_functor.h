// The functor of src/device/scan.cuh.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/core/emitter.h"
#include "codegen/scan/scan_form.h"

namespace redfuser::codegen {

class ScanFunctor {
 public:
  // `width`: elements of a group.
  ScanFunctor(KernelText& kernel, const ScanForm& form, int width)
      : kernel_(kernel), pool_(kernel.pool()), form_(form), width_(width) {}

  // `struct Scan`, whose members are the kernel's parameters so far and, last, whether groups that
  // have all their elements are vectors of memory.
  std::string text();
  // That bool, of the parameters; complete once text() is made.
  std::string vector_condition();

 private:
  using Names = std::vector<std::pair<ir::Expr, std::string>>;
  std::string fetch();
  std::string finish();
  void open(Emitter& emitter);
  // Arrays of what lies adjacent among the reads of `root`, and the scope of element `v`.
  void open_elements(Emitter& emitter, ir::Expr root);
  ir::Expr first_of(ir::Expr offset) const;
  void require(const std::string& buffer, ir::Expr base);

  KernelText& kernel_;
  ir::ExprPool& pool_;
  const ScanForm& form_;
  const int width_;
  std::vector<std::string> aligned_;
  std::vector<ir::Expr> units_;
};

}  // namespace redfuser::codegen
