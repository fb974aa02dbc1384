// Operators on images become few launches, for any size.
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int kDivisionSpill = 64;  // bytes: 64-bit divisions by sizes are calls

void expect_launches(const std::string& graph, int launches, int products) {
  const TextModel model(graph);
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel generated = generate_model(model.path(), target);
    EXPECT_EQ(generated.launches, launches) << graph;
    EXPECT_EQ(generated.products, products) << graph;
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture, kDivisionSpill);
  }
}

TEST(CodegenImages, ResizingIsPartOfAMap) {
  for (const std::string type : {"float", "float16"}) {
    for (const std::string mode : {"nearest", "linear", "cubic"}) {
      expect_launches("g (" + type + "[b,8,h,w] x) => (" + type + R"([b,8,p,q] y)
                      <float[4] scales = {1,1,2,1.5}> {
                        r = Relu (x)
                        z = Resize <mode = ")" +
                          mode + R"("> (r, , scales)
                        y = Mul (z, z)
                      })",
                      1, 0);
    }
  }
}

TEST(CodegenImages, SamplingIsPartOfAMap) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    expect_launches(
        "g (float[b,8,h,w] x, float[b,p,q,2] at) => (float[b,8,p,q] y) {"
        " z = GridSample <mode = \"" +
            mode + "\", padding_mode = \"reflection\"> (x, at) y = Relu (z) }",
        1, 0);
  }
}

// A product and the sum of its contributions to an element; with groups, whose operands are copied,
// a product of each. The sums alone where a group has few channels.
TEST(CodegenImages, TransposedConvolutions) {
  for (const std::string type : {"float", "float16"}) {
    const std::string head =
        "g (" + type + "[b,8,h,w] x, " + type + "[8,4,4,3] k) => (" + type + "[b,c,p,q] y) {";
    expect_launches(head + "y = ConvTranspose <strides = [2,2], pads = [1,1,1,1]> (x, k) }", 1, 1);
    expect_launches("g (" + type + "[b,128,h,w] x, " + type + "[128,4,4,3] k) => (" + type +
                        "[b,c,p,q] y) { y = ConvTranspose <dilations = [2,1], group = 2> (x, k) }",
                    2, 1);
    expect_launches("g (" + type + "[b,8,h,w] x, " + type + "[8,1,4,4] k) => (" + type +
                        "[b,c,p,q] y) { y = ConvTranspose <strides = [2,2], group = 8> (x, k) }",
                    1, 0);
  }
}

// Sizes behind a convolution without padding are not proved to be positive; their strides are
// still those of a matrix, and nothing is copied.
TEST(CodegenImages, ProductsOfStridedSignals) {
  expect_launches(R"(g (float[b,1,t] x, float[8,1,10] k, float[16,8,1] w) => (float[b,16,n] y) {
                       c = Conv <strides = [5]> (x, k)
                       y = Conv (c, w)
                     })",
                  1, 2);
}

}  // namespace
}  // namespace redfuser::codegen_tests
