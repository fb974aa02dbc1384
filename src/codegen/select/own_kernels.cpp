#include "codegen/select/own_kernels.h"

#include "codegen/opaque/dispatch.h"
#include "codegen/recurrent/recurrent_form.h"
#include "codegen/select/convolution_select.h"

namespace redfuser::codegen {

bool has_own_kernels(std::string_view domain, std::string_view name) {
  return is_convolution(domain, name) || is_recurrent(domain, name) ||
         has_opaque_kernel(domain, name);
}

}  // namespace redfuser::codegen
