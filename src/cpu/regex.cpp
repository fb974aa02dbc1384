#include "cpu/regex.h"

#include <algorithm>

namespace redfuser {
namespace {

constexpr size_t kMaxStates = 20000;
constexpr int kMaxDepth = 200;
constexpr int kMaxRepeat = 1000;

using Bytes = std::bitset<256>;

Bytes range(int low, int high) {
  Bytes bytes;
  for (int b = low; b <= high; ++b) bytes.set(static_cast<size_t>(b));
  return bytes;
}

}  // namespace

// Recursive descent; each rule returns the part of the automaton for what it read.
class RegexParser {
 public:
  RegexParser(Regex& regex, const std::string& pattern) : regex_(regex), pattern_(pattern) {}

  void run() {
    const Part whole = alternation(0);
    if (at_ != pattern_.size()) throw RegexError("an unmatched )");
    regex_.start_ = whole.first;
    regex_.accept_ = whole.last;
  }

 private:
  // States first..last; `last` is a split with free ends.
  struct Part {
    int first, last;
  };

  using Kind = Regex::Kind;

  int state(Bytes bytes, Kind kind) {
    if (regex_.states_.size() >= kMaxStates) throw RegexError("it is too large");
    regex_.states_.push_back({bytes, kind, -1, -1});
    return static_cast<int>(regex_.states_.size() - 1);
  }
  Regex::State& at(int s) { return regex_.states_[static_cast<size_t>(s)]; }

  Part empty(Kind condition = Kind::Split) {
    const int s = state({}, condition);
    return {s, s};
  }

  Part bytes(const Bytes& set) {
    const int s = state(set, Kind::Bytes), end = state({}, Kind::Split);
    at(s).next = end;
    return {s, end};
  }

  Part joined(Part a, Part b) {
    at(a.last).next = b.first;
    return {a.first, b.last};
  }

  Part either(Part a, Part b) {
    const int fork = state({}, Kind::Split), end = state({}, Kind::Split);
    at(fork).next = a.first;
    at(fork).other = b.first;
    at(a.last).next = at(b.last).next = end;
    return {fork, end};
  }

  Part repeated(Part a, bool at_least_once) {
    const int fork = state({}, Kind::Split), end = state({}, Kind::Split);
    at(fork).next = a.first;
    at(fork).other = end;
    at(a.last).next = fork;
    return {at_least_once ? a.first : fork, end};
  }

  bool more() const { return at_ < pattern_.size(); }
  char peek() const { return pattern_[at_]; }

  Part alternation(int depth) {
    if (depth > kMaxDepth) throw RegexError("it nests too deep");
    Part result = sequence(depth);
    while (more() && peek() == '|') {
      ++at_;
      result = either(result, sequence(depth));
    }
    return result;
  }

  Part sequence(int depth) {
    Part result = empty();
    while (more() && peek() != '|' && peek() != ')') result = joined(result, repetition(depth));
    return result;
  }

  // A count needs its operand several times: the text is read again for every copy.
  Part repetition(int depth) {
    const size_t begin = at_;
    Part part = atom(depth);
    if (!more()) return part;
    int low = 1, high = 1;
    const size_t operand_end = at_;
    if (!quantifier(low, high)) return part;
    const size_t end = at_;
    const auto copy = [&] {
      at_ = begin;
      const Part again = atom(depth);
      if (at_ != operand_end) throw RegexError("a repetition");
      return again;
    };
    Part result = empty();
    for (int i = 0; i < low; ++i) result = joined(result, i == 0 ? part : copy());
    if (high < 0) {
      result = joined(result, repeated(low == 0 ? part : copy(), false));
    } else {
      for (int i = low; i < high; ++i) {
        result = joined(result, either(i == 0 ? part : copy(), empty()));
      }
    }
    at_ = end;
    return result;
  }

  // Reads *, +, ?, {m}, {m,}, {m,n} with an optional lazy mark; high -1 is open.
  bool quantifier(int& low, int& high) {
    switch (peek()) {
      case '*':
        low = 0, high = -1, ++at_;
        break;
      case '+':
        low = 1, high = -1, ++at_;
        break;
      case '?':
        low = 0, high = 1, ++at_;
        break;
      case '{':
        ++at_;
        low = high = number();
        if (more() && peek() == ',') {
          ++at_;
          high = more() && peek() == '}' ? -1 : number();
        }
        if (!more() || peek() != '}') throw RegexError("a { without }");
        ++at_;
        break;
      default:
        return false;
    }
    if (high >= 0 && high < low) throw RegexError("a repetition with its bounds exchanged");
    if (more() && peek() == '?') ++at_;
    return true;
  }

  int number() {
    int value = 0, digits = 0;
    for (; more() && peek() >= '0' && peek() <= '9'; ++at_, ++digits) {
      value = value * 10 + (peek() - '0');
      if (value > kMaxRepeat) throw RegexError("a repetition above 1000");
    }
    if (digits == 0) throw RegexError("a repetition without a number");
    return value;
  }

  Part atom(int depth) {
    const char c = pattern_[at_++];
    switch (c) {
      case '(': {
        if (pattern_.compare(at_, 2, "?:") == 0) at_ += 2;
        if (more() && peek() == '?') throw RegexError("groups with ? are not supported");
        const Part inner = alternation(depth + 1);
        if (!more()) throw RegexError("a ( without )");
        ++at_;
        return inner;
      }
      case '[':
        return bytes(char_class());
      case '.':
        return bytes(~Bytes().set('\n'));
      case '^':
        return empty(Kind::Begin);
      case '$':
        return empty(Kind::End);
      case '\\':
        if (more() && (peek() == 'b' || peek() == 'B')) {
          return empty(pattern_[at_++] == 'b' ? Kind::WordEdge : Kind::NoWordEdge);
        }
        return bytes(escape());
      case '*':
      case '+':
      case '?':
        throw RegexError("a repetition of nothing");
      default:
        return bytes(Bytes().set(static_cast<unsigned char>(c)));
    }
  }

  Bytes escape() {
    if (!more()) throw RegexError("it ends in a backslash");
    const char c = pattern_[at_++];
    const Bytes digits = range('0', '9');
    const Bytes word = digits | range('a', 'z') | range('A', 'Z') | Bytes().set('_');
    const Bytes space = Bytes().set(' ') | range('\t', '\r');
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return ~digits;
      case 'w':
        return word;
      case 'W':
        return ~word;
      case 's':
        return space;
      case 'S':
        return ~space;
      case 'n':
        return Bytes().set('\n');
      case 't':
        return Bytes().set('\t');
      case 'r':
        return Bytes().set('\r');
      default:
        if (word.test(static_cast<unsigned char>(c))) throw RegexError("an unknown escape");
        return Bytes().set(static_cast<unsigned char>(c));
    }
  }

  Bytes char_class() {
    const bool negated = more() && peek() == '^';
    if (negated) ++at_;
    Bytes set;
    for (bool first = true; more() && (first || peek() != ']'); first = false) {
      const char low = pattern_[at_++];
      if (low == '\\') {
        set |= escape();
        continue;
      }
      if (at_ + 1 < pattern_.size() && peek() == '-' && pattern_[at_ + 1] != ']') {
        const auto high = static_cast<unsigned char>(pattern_[at_ + 1]);
        if (high == '\\' || high < static_cast<unsigned char>(low)) throw RegexError("a range");
        set |= range(static_cast<unsigned char>(low), high);
        at_ += 2;
      } else {
        set.set(static_cast<unsigned char>(low));
      }
    }
    if (!more()) throw RegexError("a [ without ]");
    ++at_;
    return negated ? ~set : set;
  }

  Regex& regex_;
  const std::string& pattern_;
  size_t at_ = 0;
};

Regex::Regex(const std::string& pattern) { RegexParser(*this, pattern).run(); }

bool Regex::holds(Kind kind, const std::string& text, size_t at) {
  const auto is_word = [&](size_t i) {
    if (i >= text.size()) return false;
    const char c = text[i];
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool edge = is_word(at) != (at > 0 && is_word(at - 1));
  switch (kind) {
    case Kind::Begin:
      return at == 0;
    case Kind::End:
      return at == text.size();
    case Kind::WordEdge:
      return edge;
    case Kind::NoWordEdge:
      return !edge;
    default:
      return true;
  }
}

bool Regex::matches(const std::string& text) const {
  std::vector<int> current, next, stack;
  std::vector<size_t> seen(states_.size(), 0);  // the position, plus one, of the last visit
  size_t stamp = 0;
  const auto enter = [&](int first, size_t position, std::vector<int>& set) {
    stack.push_back(first);
    while (!stack.empty()) {
      const int s = stack.back();
      stack.pop_back();
      if (s < 0 || seen[static_cast<size_t>(s)] == stamp) continue;
      seen[static_cast<size_t>(s)] = stamp;
      set.push_back(s);
      const State& state = states_[static_cast<size_t>(s)];
      if (state.kind == Kind::Bytes || !holds(state.kind, text, position)) continue;
      stack.push_back(state.next);
      stack.push_back(state.other);
    }
  };
  ++stamp;
  enter(start_, 0, current);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    ++stamp;
    next.clear();
    for (const int s : current) {
      const State& state = states_[static_cast<size_t>(s)];
      if (state.kind == Kind::Bytes && state.bytes.test(byte)) enter(state.next, at + 1, next);
    }
    current.swap(next);
  }
  return std::find(current.begin(), current.end(), accept_) != current.end();
}

}  // namespace redfuser
