#include "io/npy_header.h"

#include <cctype>
#include <charconv>

#include "base/error.h"

namespace redfuser::io {
namespace {

constexpr size_t kLargestRank = 64;

class Parser {
 public:
  Parser(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        parse_dtype(quoted(), header);
        has_dtype = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.dims = shape();
        has_shape = true;
      } else {
        fail("it has an unknown key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_dtype || !has_order || !has_shape) fail("it lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const char* reason) const {
    user_error("{}: the .npy header is invalid: {}", what_, reason);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("it is no dictionary of descr, fortran_order and shape");
  }

  std::string_view quoted() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      user_error("{}: arrays of records are not supported", what_);
    }
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted word is missing");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("fortran_order is neither True nor False");
  }

  Dims shape() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t dim = -1;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) fail("a dimension is no whole number");
      at_ += static_cast<size_t>(end - begin);
      accept('L');  // Python 2 wrote long integers so
      dims.push_back(dim);
      if (dims.size() > kLargestRank) fail("it has too many dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  // The names of NumPy types that RedFuser does not support.
  static std::string_view meaning(std::string_view kind) {
    if (kind == "c8") return " (complex64)";
    if (kind == "c16") return " (complex128)";
    switch (kind.empty() ? '\0' : kind[0]) {
      case 'O':
        return " (Python objects; NumPy has texts as str)";
      case 'M':
      case 'm':
        return " (dates or durations)";
      default:
        return "";
    }
  }

  // `U7` or `S7`: texts of at most 7 characters or bytes.
  void parse_text(std::string_view kind, NpyHeader& header) const {
    uint32_t length = 0;
    const char* end = kind.data() + kind.size();
    const auto [stop, error] = std::from_chars(kind.data() + 1, end, length);
    if (error != std::errc() || stop != end || length == 0) return;
    header.dtype = DType::String;
    header.wide = kind[0] == 'U';
    header.width = size_t{length} * (header.wide ? sizeof(char32_t) : 1);
  }

  void parse_dtype(std::string_view descr, NpyHeader& header) const {
    std::string_view kind = descr;
    if (!kind.empty() && std::string_view("<>|=").find(kind[0]) != std::string_view::npos) {
      header.swapped = kind[0] == '>';
      kind.remove_prefix(1);
    }
    static constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"f2", DType::Float16}, {"f4", DType::Float32}, {"f8", DType::Float64},
        {"i1", DType::Int8},    {"i2", DType::Int16},   {"i4", DType::Int32},
        {"i8", DType::Int64},   {"u1", DType::UInt8},   {"u2", DType::UInt16},
        {"u4", DType::UInt32},  {"u8", DType::UInt64},  {"b1", DType::Bool},
        {"V2", DType::BFloat16}};
    for (const auto& [name, dtype] : kTypes) {
      if (kind == name) header.dtype = dtype;
    }
    header.width = size_of(header.dtype);
    if (kind.starts_with('U') || kind.starts_with('S')) parse_text(kind, header);
    if (header.dtype == DType::Undefined) {
      user_error("{}: NumPy dtype \"{}\"{} is not supported", what_, descr, meaning(kind));
    }
  }

  std::string_view text_;
  const std::string& what_;
  size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& what) {
  return Parser(text, what).parse();
}

}  // namespace redfuser::io
