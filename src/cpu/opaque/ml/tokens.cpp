// Tokenizer of com.microsoft: texts as rows of pieces. Source of the rules: ONNX Runtime's
// ContribOperators.md, and its results where that is silent.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/string_pool.h"
#include "base/utf8.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

constexpr const char* kTextBegin = "\x02";
constexpr const char* kTextEnd = "\x03";

using Pieces = std::vector<std::string_view>;

// Characters of a text that is known to be UTF-8.
int64_t length_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

// The place of the character behind the one at `at`.
size_t next_character(std::string_view text, size_t at) {
  for (++at; at < text.size() && (text[at] & 0xc0) == 0x80;) ++at;
  return at;
}

class Splitter {
 public:
  explicit Splitter(const OpaqueCall& call) : shortest_(call.integer("mincharnum", 0)) {
    if (shortest_ < 1) call.fail(fmt::format("mincharnum {}", shortest_));
    const std::vector<std::string> separators = words_attribute(call, "separators");
    const std::string token = call.text("tokenexp", "");
    if (separators.empty() && token.empty()) {
      call.fail("it needs one of separators and tokenexp");
    }
    // Beside separators, tokenexp is ignored.
    if (separators.empty()) token_ = expression(call, "tokenexp", token);
    if (separators.size() == 1 && separators[0].empty()) {
      if (shortest_ > 1) call.fail(fmt::format("mincharnum {} for single characters", shortest_));
      return;
    }
    for (const std::string& text : separators) {
      separators_.push_back(expression(call, "separators", text));
    }
  }

  Pieces split(std::string_view text) const {
    if (token_) return tokens(text);
    if (separators_.empty()) return characters(text);
    Pieces pieces{text};
    for (const auto& separator : separators_) {
      Pieces parts;
      for (const std::string_view piece : pieces) add_parts(piece, *separator, parts);
      pieces.swap(parts);
    }
    return pieces;
  }

 private:
  using Expression = std::unique_ptr<const re2::RE2>;

  static Expression expression(const OpaqueCall& call, const char* attribute,
                               const std::string& text) {
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_longest_match(true);
    auto result = std::make_unique<const re2::RE2>(text, options);
    if (!result->ok()) call.fail(fmt::format("{} \"{}\": {}", attribute, text, result->error()));
    return result;
  }

  // The first match from `begin` on; false if there is none. It reads the text before `begin`, as
  // \b and ^ need it.
  static bool find(std::string_view text, size_t begin, const re2::RE2& expression, size_t& at,
                   size_t& end) {
    re2::StringPiece match;
    const re2::StringPiece whole(text.data(), text.size());
    if (begin > text.size()) return false;
    if (!expression.Match(whole, begin, text.size(), re2::RE2::UNANCHORED, &match, 1)) return false;
    at = static_cast<size_t>(match.data() - text.data());
    end = at + match.size();
    return true;
  }

  static Pieces characters(std::string_view text) {
    Pieces pieces;
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      end = next_character(text, at);
      pieces.push_back(text.substr(at, end - at));
    }
    return pieces;
  }

  Pieces tokens(std::string_view text) const {
    Pieces pieces;
    for (size_t begin = 0, at = 0, end = 0; find(text, begin, *token_, at, end);) {
      const std::string_view token = text.substr(at, end - at);
      const bool long_enough = length_of(token) >= shortest_;
      if (long_enough) pieces.push_back(token);
      begin = long_enough ? end : next_character(text, at);
    }
    return pieces;
  }

  // What lies between the matches of a separator.
  void add_parts(std::string_view text, const re2::RE2& separator, Pieces& parts) const {
    size_t begin = 0;
    const auto add = [&](size_t end) {
      const std::string_view part = text.substr(begin, end - begin);
      if (length_of(part) >= shortest_) parts.push_back(part);
    };
    for (size_t at = 0, end = 0; find(text, begin, separator, at, end);) {
      add(at);
      begin = end > at ? end : next_character(text, at);
    }
    if (begin <= text.size()) add(text.size());
  }

  int64_t shortest_;
  Expression token_;
  std::vector<Expression> separators_;  // none: a piece per character
};

}  // namespace

void run_tokenizer(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const Splitter& splitter = call.prepared<Splitter>([&] { return Splitter(call); });
  int64_t width = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (!from_utf8(x.text(i))) {
      call.fail(fmt::format("element {} of \"{}\" is not UTF-8", i, call.input(0).name));
    }
    width = std::max(width, static_cast<int64_t>(splitter.split(x.text(i)).size()));
  }
  const bool marked = call.integer("mark", 0) != 0 && width > 0;
  if (marked) width += 2;
  Dims dims = x.dims();
  dims.push_back(width);
  Tensor& y = call.allocate(0, dims);
  std::fill_n(y.as<uint64_t>(), y.size(), number_of_text(call.text("pad_value", "")));
  for (int64_t i = 0; i < x.size(); ++i) {
    uint64_t* row = y.as<uint64_t>() + i * width;
    if (marked) *row++ = number_of_text(kTextBegin);
    for (const std::string_view piece : splitter.split(x.text(i))) {
      *row++ = number_of_text(std::string(piece));
    }
    if (marked) *row = number_of_text(kTextEnd);
  }
}

}  // namespace redfuser::cpu
