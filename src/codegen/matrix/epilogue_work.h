// What estimates count of a product's epilogue.
#pragma once

#include "codegen/matrix/product_epilogue.h"
#include "fuse/plan.h"

namespace redfuser::codegen {

// For one element of the result.
struct EpilogueWork {
  double lines = 0;     // reads of elements that a row or a column shares, such as a bias
  double elements = 0;  // other reads, such as a residual
  double specials = 0;  // exponentials and the like
};
EpilogueWork epilogue_work(const ProductEpilogue& epilogue, const fuse::ProductStep& step);

// What each takes, of the time in which a plain product's element is finished.
struct EpilogueCost {
  double line, element, special;

  double of(const EpilogueWork& work) const {
    return 1 + line * work.lines + element * work.elements + special * work.specials;
  }
};

}  // namespace redfuser::codegen
