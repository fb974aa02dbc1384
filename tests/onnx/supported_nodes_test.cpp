// Which nodes RedFuser can run, and the sets that another runtime may replace.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include "redfuser/support.h"

namespace redfuser {
namespace {

NodeSupport support_of(const std::string& graph) {
  ::onnx::ModelProto model;
  const auto status = ::onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 20, \"custom\" : 1]> " + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return supported_nodes(model.SerializeAsString());
}

using Sets = std::vector<std::vector<int>>;

TEST(SupportedNodes, AWholeGraphIsOneSet) {
  const NodeSupport support = support_of(
      "g (float[n, 4] x, float[k] z) => (float[n, 4] y, float[k] e) {"
      " s = Softmax(x) y = Exp(s) e = Neg(z) unread = Neg(x) }");
  EXPECT_EQ(support.sets, (Sets{{0, 1, 2, 3}}));
}

// 0 → 1 (refused) → 2, and 0 → 2: a set with 0 and 2 would need its own result.
TEST(SupportedNodes, NoPathLeavesASetAndComesBack) {
  const NodeSupport support = support_of(
      "g (float[n] x) => (float[n] y, float[n] z) <float[n] a, float[n] b> {"
      " a = Exp(x) b = custom.Op(a) y = Add(a, b) z = Neg(a) }");
  EXPECT_EQ(support.sets, (Sets{{0, 3}, {2}}));
  EXPECT_EQ(support.reasons[1], "custom.Op of opset 1 is not supported");
}

TEST(SupportedNodes, BehindARefusedNodeTheDeclaredTypesCount) {
  const NodeSupport support = support_of(
      "g (float[n] x) => (float[n] y, float[n] z) <float[n] b> {"
      " b = custom.Op(x) y = Exp(b) c = custom.Op(x) z = Neg(c) }");
  EXPECT_EQ(support.sets, (Sets{{1}}));
  EXPECT_NE(support.reasons[3].find("input \"c\" is produced by no node"), std::string::npos)
      << support.reasons[3];
}

TEST(SupportedNodes, StringsStayWithinASet) {
  const NodeSupport inside = support_of(
      "g (float[n] x) => (float[n] y) {"
      " s = Cast<to = 8>(x) y = Cast<to = 1>(s) }");
  EXPECT_EQ(inside.sets, (Sets{{0, 1}}));
  const NodeSupport across =
      support_of("g (float[n] x) => (string[n] s, float[n] y) { s = Cast<to = 8>(x) y = Exp(x) }");
  EXPECT_EQ(across.sets, (Sets{{1}}));
  EXPECT_EQ(across.reasons[0], "\"s\" is string, so it cannot leave a set of nodes");
}

TEST(SupportedNodes, ValuesThatEnterHaveARank) {
  const NodeSupport support = support_of(
      "g (float[n] x, int64[k] axes, int64[m] shape) => (float[n] y, float[j] z) <float u> {"
      " u = Unsqueeze(x, axes) y = Exp(x) z = Reshape(u, shape) }");
  EXPECT_FALSE(support.reasons[0].empty());
  EXPECT_TRUE(support.reasons[1].empty());
  EXPECT_FALSE(support.reasons[2].empty());
}

TEST(SupportedNodes, ABranchNeedsBothItsBodies) {
  const char* const graph =
      "g (bool c, float[n] x) => (float[n] y) {"
      " y = If(c) <then_branch = t () => (float[n] a) { a = %(x) },"
      " else_branch = e () => (float[n] b) { b = Neg(x) }> }";
  const auto with = [&](const std::string& op) {
    std::string text = graph;
    return support_of(text.replace(text.find('%'), 1, op));
  };
  EXPECT_EQ(with("Exp").sets, (Sets{{0}}));
  EXPECT_EQ(with("custom.Op").reasons[0], "custom.Op of opset 1 is not supported");
}

TEST(SupportedNodes, AWrongNodeIsOnlyRefusedItself) {
  const NodeSupport support = support_of(
      "g (float[2] x, float[3] z) => (float[3] y, float[2] e) {"
      " y = Add(x, z) e = Exp(x) }");
  EXPECT_FALSE(support.reasons[0].empty());
  EXPECT_EQ(support.sets, (Sets{{1}}));
}

}  // namespace
}  // namespace redfuser
