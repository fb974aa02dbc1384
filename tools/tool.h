// What the command-line tools share: exit codes, errors, and the values of options.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "redfuser/redfuser.h"
#include "streams.h"

namespace redfuser::tools {

inline constexpr int kSuccess = 0;
inline constexpr int kFailedCheck = 1;  // a comparison or an assertion failed
inline constexpr int kCallersError = 2;
inline constexpr int kOurError = 3;

// A whole tool: runs `body` and returns its exit code. Every exception, and output that stdout did
// not take, becomes one line `error: ...` on stderr and the exit code of its kind. A signal that
// ends the process leaves no unfinished file.
int guarded(const std::function<int()>& body);

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

// "name=value" or "name:value", split at the last separator. `option` names the flag in errors.
std::pair<std::string, std::string> split_assignment(const std::string& text, char separator,
                                                     const std::string& option);
int64_t parse_integer(const std::string& text, const std::string& option);
double parse_real(const std::string& text, const std::string& option);
// "1,3,224,224"
std::vector<int64_t> parse_integers(const std::string& text, const std::string& option);
// "4096", "512K", "64M", "2G" (powers of 1024)
int64_t parse_bytes(const std::string& text, const std::string& option);

// "12.3 MB"
std::string readable_bytes(int64_t bytes);

}  // namespace redfuser::tools
