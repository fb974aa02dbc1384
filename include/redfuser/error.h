// The two kinds of error that RedFuser throws.
#pragma once

#include <stdexcept>

namespace redfuser {

// The caller's fault: a bad file, input or option. The message names it.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// RedFuser's fault: please report it.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace redfuser
