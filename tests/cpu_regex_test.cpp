#include "cpu/regex.h"

#include <gtest/gtest.h>

namespace redfuser::testing {
namespace {

struct Match {
  const char *pattern, *text;
  bool matches;
};

constexpr Match kMatches[] = {
    {"", "", true},
    {"", "a", false},
    {"abc", "abc", true},
    {"abc", "abcd", false},
    {"a|bc", "bc", true},
    {"a*", "", true},
    {"a*", "aaaa", true},
    {"a+", "", false},
    {"(ab)+c?", "ababc", true},
    {"(ab)+c?", "abac", false},
    {"a{2,3}", "a", false},
    {"a{2,3}", "aaa", true},
    {"a{2,3}", "aaaa", false},
    {"a{2,}", "aaaaa", true},
    {"a{0}", "", true},
    {"[a-c]+", "abcab", true},
    {"[^a-c]", "b", false},
    {"[]-]+", "]-", true},
    {"\\d+\\.\\d*", "12.", true},
    {"\\w+\\s\\W", "word !", true},
    {".", "\n", false},
    {"^a$", "a", true},
    {"(\\W|^)x(\\W|$)", "x", true},
    {"(\\W|^)x(\\W|$)", " x", true},
    {"(\\W|^)x(\\W|$)", "yx", false},
    {"a\\b.*", "a b", true},
    {"a\\b.*", "ab", false},
    {"(a*)*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
    {"(a|aa)+", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", false},
};

TEST(Regex, MatchesWholeTexts) {
  for (const Match& match : kMatches) {
    EXPECT_EQ(Regex(match.pattern).matches(match.text), match.matches)
        << match.pattern << " on " << match.text;
  }
}

TEST(Regex, RefusesWhatIsNoPattern) {
  for (const char* pattern : {"(", ")", "a)", "[", "[a", "*", "a{", "a{2", "a{3,2}", "a{9999}",
                              "\\", "[z-a]", "(?=a)", "((a{1000}){1000}){1000}"}) {
    EXPECT_THROW(Regex{pattern}, RegexError) << pattern;
  }
  EXPECT_THROW(Regex{std::string(5000, '(')}, RegexError);
}

}  // namespace
}  // namespace redfuser::testing
