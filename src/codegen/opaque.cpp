#include "base/error.h"
#include "codegen/step_builder.h"

namespace redfuser {

void generate_opaque(StepBuilder& builder, const OpaqueStep&) {
  builder.fail("this operator has no kernel on a GPU");
}

}  // namespace redfuser
