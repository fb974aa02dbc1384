#include "tool.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <new>

#include "redfuser/signals.h"

namespace redfuser::tools {
namespace {

void print_error(std::string message) {
  for (size_t at = 0; (at = message.find('\n', at)) != std::string::npos;) message[at] = ' ';
  tell(fmt::format("error: {}\n", message));
}

// The exit code of the body or of its exception.
int code_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const UserError& error) {
    print_error(error.what());
    return kCallersError;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return kCallersError;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kCallersError;
  } catch (const std::exception& error) {
    print_error(fmt::format("RedFuser is at fault, please report this: {}", error.what()));
    return kOurError;
  }
}

}  // namespace

int guarded(const std::function<int()>& body) {
  open_standard_streams();
  remove_unfinished_files_on_signals();
  const int code = code_of(body);
  const std::string failure = stdout_failure();
  if (failure.empty()) return code;
  print_error(fmt::format("stdout: cannot be written: {}", failure));
  return std::max(code, kCallersError);
}

std::pair<std::string, std::string> split_assignment(const std::string& text, char separator,
                                                     const std::string& option) {
  const size_t at = text.rfind(separator);
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    fail("{} wants NAME{}VALUE, not \"{}\"", option, separator, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t parse_integer(const std::string& text, const std::string& option) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("{}: \"{}\" is no integer", option, text);
  }
  return value;
}

double parse_real(const std::string& text, const std::string& option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    fail("{}: \"{}\" is no number", option, text);
  }
  return value;
}

std::vector<int64_t> parse_integers(const std::string& text, const std::string& option) {
  std::vector<int64_t> values;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(',', begin);
    values.push_back(parse_integer(text.substr(begin, end - begin), option));
    if (end == std::string::npos) return values;
    begin = end + 1;
  }
}

int64_t parse_bytes(const std::string& text, const std::string& option) {
  static constexpr std::string_view kUnits = "KMGT";
  const size_t unit = text.empty() ? std::string::npos : kUnits.find(text.back());
  const bool scaled = unit != std::string_view::npos;
  const int64_t number = parse_integer(scaled ? text.substr(0, text.size() - 1) : text, option);
  const int64_t scale = scaled ? int64_t{1} << (10 * (unit + 1)) : 1;
  int64_t bytes = 0;
  if (number < 0 || __builtin_mul_overflow(number, scale, &bytes)) {
    fail("{}: \"{}\" is no number of bytes", option, text);
  }
  return bytes;
}

std::string readable_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace redfuser::tools
