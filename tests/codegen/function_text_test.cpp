#include "codegen/text/function_text.h"

#include <gtest/gtest.h>

namespace redfuser::codegen {
namespace {

TEST(FunctionText, OneStatementStandsInOneLine) {
  EXPECT_EQ(braced(""), "{}");
  EXPECT_EQ(braced("a();\n"), "{ a(); }");
  EXPECT_EQ(braced("a();\nb();\n"), "{\na();\nb();\n}");
  EXPECT_EQ(struct_text("Row : Base", "int a;\n"), "struct Row : Base { int a; };\n");
  EXPECT_EQ(struct_text("Tail", ""), "struct Tail {};\n");
  EXPECT_EQ(struct_text("Row", "int a;\nfloat b;\n"), "struct Row {\nint a;\nfloat b;\n};\n");
}

TEST(FunctionText, ATemplateHasItsParametersInFront) {
  EXPECT_EQ(function_text("int f() const", "return 1;\n"),
            "__device__ __forceinline__ int f() const { return 1; }\n");
  EXPECT_EQ(function_text("void f(T (&x)[N])", "g();\nh();\n", "typename T, int N"),
            "template <typename T, int N> __device__ __forceinline__ void f(T (&x)[N]) {\n"
            "g();\nh();\n}\n");
}

}  // namespace
}  // namespace redfuser::codegen
