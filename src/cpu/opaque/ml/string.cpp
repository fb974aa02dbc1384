// Strings: joining, splitting, matching, and conversion to and from numbers.
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/string_pool.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

Dims broadcast_dims(const OpaqueCall& call, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) call.fail(fmt::format("sizes {} and {} do not match", x, y));
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

// The element of a tensor of `dims` that numpy broadcasting pairs with `position` of `whole`.
int64_t broadcast_position(const Dims& dims, const Dims& whole, int64_t position) {
  int64_t result = 0, stride = 1;
  for (size_t i = 0; i < whole.size(); ++i) {
    const int64_t at = position % whole[whole.size() - 1 - i];
    position /= whole[whole.size() - 1 - i];
    if (i >= dims.size()) continue;
    const int64_t size = dims[dims.size() - 1 - i];
    result += size == 1 ? 0 : at * stride;
    stride *= size;
  }
  return result;
}

// Calls `piece` with every piece of a text, as Python's str.split makes them, and returns their
// number; an empty delimiter means white space.
template <typename Piece>
int64_t split(const std::string& text, const std::string& delimiter, int64_t most,
              const Piece& piece) {
  int64_t count = 0;
  const auto full = [&] { return most >= 0 && count >= most; };
  const auto take = [&](size_t begin, size_t end) {
    piece(count++, std::string_view(text).substr(begin, end - begin));
  };
  size_t begin = 0;
  if (!delimiter.empty()) {
    for (size_t at; !full() && (at = text.find(delimiter, begin)) != std::string::npos;) {
      take(begin, at);
      begin = at + delimiter.size();
    }
    take(begin, text.size());
    return count;
  }
  static constexpr const char* kSpace = " \t\n\r\f\v";
  begin = text.find_first_not_of(kSpace);
  while (begin != std::string::npos) {
    if (full()) {
      take(begin, text.find_last_not_of(kSpace) + 1);
      break;
    }
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    take(begin, end);
    begin = text.find_first_not_of(kSpace, end);
  }
  return count;
}

std::string ascii_lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return text;
}

double number_of(const OpaqueCall& call, const std::string& text) {
  const std::string lower = ascii_lower(text);
  if (lower == "nan") return std::nan("");
  if (lower == "inf" || lower == "+inf" || lower == "infinity") return INFINITY;
  if (lower == "-inf" || lower == "-infinity") return -INFINITY;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    call.fail(fmt::format("\"{}\" is no number", text));
  }
  return value;
}

template <typename T>
std::string text_of(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else {
    const Arithmetic<T> number = value;
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "INF" : "-INF";
    return fmt::format("{}", number);
  }
}

}  // namespace

void run_string_concat(OpaqueCall& call) {
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  const Dims dims = broadcast_dims(call, a.dims(), b.dims());
  Tensor& y = call.allocate(0, dims);
  for (int64_t i = 0; i < y.size(); ++i) {
    const std::string& left = a.text(broadcast_position(a.dims(), dims, i));
    const std::string& right = b.text(broadcast_position(b.dims(), dims, i));
    require_memory(static_cast<int64_t>(left.size() + right.size()), 1);
    y.as<uint64_t>()[i] = number_of_text(left + right);
  }
}

void run_string_split(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const std::string delimiter = call.text("delimiter", "");
  const int64_t most = call.integer("maxsplit", -1);
  Tensor counts(DType::Int64, x.dims());
  int64_t width = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t pieces = split(x.text(i), delimiter, most, [](int64_t, std::string_view) {});
    counts.as<int64_t>()[i] = pieces;
    width = std::max(width, pieces);
  }
  Dims dims = x.dims();
  dims.push_back(width);
  if (call.has_output(0)) {
    Tensor& y = call.allocate(0, dims);
    std::fill_n(y.as<uint64_t>(), y.size(), 0);  // the empty text
    for (int64_t i = 0; i < x.size(); ++i) {
      split(x.text(i), delimiter, most, [&](int64_t at, std::string_view piece) {
        y.as<uint64_t>()[i * width + at] = number_of_text(std::string(piece));
      });
    }
  }
  if (call.has_output(1)) call.set(1, counts);
}

void run_regex_full_match(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const std::string pattern = call.text("pattern", "");
  const re2::RE2 expression(pattern, re2::RE2::Quiet);
  if (!expression.ok())
    call.fail(fmt::format("the pattern \"{}\": {}", pattern, expression.error()));
  Tensor& y = call.allocate(0, x.dims());
  for (int64_t i = 0; i < x.size(); ++i) {
    y.as<bool>()[i] = re2::RE2::FullMatch(x.text(i), expression);
  }
}

void run_string_cast(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const DType to = call.graph().values[static_cast<size_t>(call.node().outputs[0])].dtype;
  if (to == DType::String) {
    Tensor& y = call.allocate(0, x.dims());
    dispatch(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x.size(); ++i) {
        y.as<uint64_t>()[i] = number_of_text(text_of(x.as<T>()[i]));
      }
    });
    return;
  }
  Tensor& y = call.allocate(0, x.dims());
  dispatch(to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.size(); ++i) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        int64_t whole = 0;
        const std::string& text = x.text(i);
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
        const bool exact = error == std::errc() && end == text.data() + text.size();
        y.as<T>()[i] = static_cast<T>(exact ? whole : saturated<int64_t>(number_of(call, text)));
      } else {
        y.as<T>()[i] = static_cast<T>(number_of(call, x.text(i)));
      }
    }
  });
}

}  // namespace redfuser::cpu
