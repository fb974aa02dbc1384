#include "codegen/text/indent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace redfuser::codegen {
namespace {

class Indenter {
 public:
  std::string run(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      add(text.substr(0, end));
      if (end < text.size()) result_ += '\n';
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(result_);
  }

 private:
  void add(std::string_view line) {
    if (!until_.empty()) {  // inside of a block comment or a raw literal
      result_ += line;
      scan(line);
      return;
    }
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return;
    line.remove_prefix(start);
    const bool directive = line[0] == '#' || continues_directive_;
    continues_directive_ = directive && line.back() == '\\';
    if (!directive) result_.append(indentation(line), ' ');
    result_ += line;
    if (!directive) scan(line);
  }

  // A line that begins with closing brackets has the indentation of the opening ones.
  size_t indentation(std::string_view line) const {
    size_t open = open_.size();
    for (const char c : line) {
      if ((c != '}' && c != ')') || open == 0) break;
      --open;
    }
    const auto end = open_.begin() + static_cast<std::ptrdiff_t>(open);
    const auto braces = static_cast<size_t>(std::count(open_.begin(), end, '{'));
    const bool continues = open > 0 && open == open_.size() && open_[open - 1] == '(';
    return 2 * braces + (continues ? 4 : 0);
  }

  void scan(std::string_view line) {
    for (size_t i = 0; i < line.size();) {
      if (!until_.empty()) {
        const size_t end = line.find(until_, i);
        if (end == std::string_view::npos) return;
        i = end + until_.size();
        until_.clear();
      } else if (line.substr(i, 2) == "//") {
        return;
      } else if (line.substr(i, 2) == "/*") {
        until_ = "*/";
        i += 2;
      } else if (starts_raw(line, i)) {
        const size_t bracket = line.find('(', i);
        until_ = ")" + std::string(line.substr(i + 2, bracket - i - 2)) + "\"";
        i = bracket + 1;
      } else if (line[i] == '"' || (line[i] == '\'' && !follows_word(line, i))) {
        i = end_of_literal(line, i);
      } else {
        bracket(line[i++]);
      }
    }
  }

  static bool follows_word(std::string_view line, size_t i) {
    return i > 0 && (std::isalnum(static_cast<unsigned char>(line[i - 1])) != 0);
  }

  static bool starts_raw(std::string_view line, size_t i) {
    return line.substr(i, 2) == "R\"" && !follows_word(line, i) &&
           line.find('(', i) != std::string_view::npos;
  }

  static size_t end_of_literal(std::string_view line, size_t i) {
    const char quote = line[i++];
    while (i < line.size() && line[i] != quote) i += line[i] == '\\' ? 2 : 1;
    return i + 1;
  }

  void bracket(char c) {
    if (c == '{' || c == '(') open_.push_back(c);
    if ((c == '}' || c == ')') && !open_.empty()) open_.pop_back();
  }

  std::string result_, until_;  // until_: the end of the comment or literal
  std::vector<char> open_;
  bool continues_directive_ = false;
};

}  // namespace

std::string indented(std::string_view text) { return Indenter().run(text); }

}  // namespace redfuser::codegen
