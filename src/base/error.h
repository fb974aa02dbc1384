// Errors. A UserError is the caller's fault (a bad file, a wrong input); an InternalError is a
// defect of RedFuser. Messages use the user's names of files, nodes and tensors.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "redfuser/error.h"

namespace redfuser {

template <typename... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

// A valid model whose plan would depend on run-time values (the rank of an input, the axes of a
// reduction, the trip count of a loop). It is evaluated node by node instead.
struct NeedsValues : UserError {
  using UserError::UserError;
};

template <typename... Args>
[[noreturn]] void needs_values(fmt::format_string<Args...> format, Args&&... args) {
  throw NeedsValues(fmt::format(format, std::forward<Args>(args)...));
}

// A valid model with operators that RedFuser does not have.
struct UnsupportedOperator : UserError {
  using UserError::UserError;
};

template <typename... Args>
[[noreturn]] void internal_error(fmt::format_string<Args...> format, Args&&... args) {
  throw InternalError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace redfuser

// Checks an invariant of RedFuser itself; throws InternalError with the formatted message.
#define RF_CHECK(condition, ...)                               \
  do {                                                         \
    if (!(condition)) ::redfuser::internal_error(__VA_ARGS__); \
  } while (false)
