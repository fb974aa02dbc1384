// Regular expressions in time linear in the text: alternation, groups, classes and bounded or open
// repetition, ends of the text and of words, as RE2 writes them; no back references.
#pragma once

#include <bitset>
#include <stdexcept>
#include <string>
#include <vector>

namespace redfuser {

struct RegexError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Regex {
 public:
  // Throws RegexError for what is no such expression, and for more than 20000 states or 200 levels.
  explicit Regex(const std::string& pattern);
  // True if the whole text matches.
  bool matches(const std::string& text) const;

 private:
  friend class RegexParser;
  // A state of the automaton (Thompson): a byte of a set leads to `next`; or it leads to `next` and
  // `other` without one, where its condition holds.
  enum class Kind { Bytes, Split, Begin, End, WordEdge, NoWordEdge };
  struct State {
    std::bitset<256> bytes;
    Kind kind = Kind::Bytes;
    int next = -1, other = -1;
  };
  static bool holds(Kind kind, const std::string& text, size_t at);
  std::vector<State> states_;
  int start_ = -1, accept_ = -1;
};

}  // namespace redfuser
