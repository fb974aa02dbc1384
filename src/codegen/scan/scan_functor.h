// The functor of src/device/scan.cuh.
#pragma once

#include <functional>
#include <string>

#include "codegen/elementwise/group_text.h"
#include "codegen/scan/scan_form.h"

namespace redfuser::codegen {

class ScanFunctor {
 public:
  // `width`: elements of a group.
  ScanFunctor(KernelText& kernel, const ScanForm& form, int width)
      : kernel_(kernel), form_(form), width_(width), accesses_(kernel) {}

  // `struct Scan`, whose members are the kernel's parameters so far and, last, whether groups that
  // have all their elements are vectors of memory.
  std::string text();
  // That bool, of the parameters; complete once text() is made.
  std::string vector_condition() const { return accesses_.condition(nullptr, width_); }

 private:
  // A function of a group of adjacent elements and of the array `values`.
  std::string function(const char* name, const char* values,
                       const std::function<void(Emitter&, GroupText&)>& write);
  void fetch(Emitter& emitter, GroupText& group);
  void finish(GroupText& group);

  KernelText& kernel_;
  const ScanForm& form_;
  const int width_;
  AlignedAccesses accesses_;
};

}  // namespace redfuser::codegen
