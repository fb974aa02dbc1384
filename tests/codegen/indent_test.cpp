// The layout of generated text.
#include "codegen/text/indent.h"

#include <gtest/gtest.h>

namespace redfuser::codegen {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* expected;
};
const Case kCases[] = {
    {"blocks", "f() {\nif (a) {\nb;\n} else {\nc;\n}\n}\n",
     "f() {\n  if (a) {\n    b;\n  } else {\n    c;\n  }\n}\n"},
    {"balanced_lines", "{\na = {1};\nif (x) { y; }\nz;\n}\n",
     "{\n  a = {1};\n  if (x) { y; }\n  z;\n}\n"},
    {"what_it_has_is_replaced", "{\n      a;\n\tb;\n  }\n", "{\n  a;\n  b;\n}\n"},
    {"comments", "{\n// {\na; // {\n/* { */ b;\n}\nc;\n",
     "{\n  // {\n  a; // {\n  /* { */ b;\n}\nc;\n"},
    {"a_block_comment_stays", "{\n/* {\n      x\n {*/ a;\nb;\n}\n",
     "{\n  /* {\n      x\n {*/ a;\n  b;\n}\n"},
    {"literals", "{\na = \"}\\\"}\";\nb = '{';\nc = '\\'';\nd;\n}\n",
     "{\n  a = \"}\\\"}\";\n  b = '{';\n  c = '\\'';\n  d;\n}\n"},
    {"digits_apart", "{\na = 1'000;\nif (b) {\nc;\n}\n}\n",
     "{\n  a = 1'000;\n  if (b) {\n    c;\n  }\n}\n"},
    {"raw_literals", "{\na = R\"x({\n  {)\" )x\";\nb;\n}\n",
     "{\n  a = R\"x({\n  {)\" )x\";\n  b;\n}\n"},
    {"directives", "{\n#if A\na;\n  #define M { \\\n{ {\n#endif\nb;\n}\n",
     "{\n#if A\n  a;\n#define M { \\\n{ {\n#endif\n  b;\n}\n"},
    {"arguments", "{\nf(a,\nb);\ng([&](int i) {\nc;\n},\nd);\n}\n",
     "{\n  f(a,\n      b);\n  g([&](int i) {\n    c;\n  },\n      d);\n}\n"},
    {"empty_lines_and_no_last_line", "{\n\n   \na;\n}", "{\n\n\n  a;\n}"},
    {"brackets_too_many", "}\n)\na;\n", "}\n)\na;\n"},
};

class Indent : public ::testing::TestWithParam<Case> {};

TEST_P(Indent, FollowsBrackets) {
  EXPECT_EQ(indented(GetParam().text), GetParam().expected);
  EXPECT_EQ(indented(GetParam().expected), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Texts, Indent, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen
