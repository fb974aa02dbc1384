#include "codegen/text/loop.h"

#include <fmt/format.h>

namespace redfuser::codegen {

std::string unrolled(const std::string& variable, int count, const std::string& body) {
  return fmt::format("#pragma unroll\nfor (int {0} = 0; {0} < {1}; ++{0}) {{\n{2}}}", variable,
                     count, body);
}

}  // namespace redfuser::codegen
