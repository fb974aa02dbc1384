// The page of --report: places of nodes, folded layers, equations, and names as they stand in it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "redfuser/report.h"
#include "runtime/report/layout.h"
#include "runtime/report/repeats.h"

namespace redfuser {
namespace {

using nlohmann::json;
using runtime::Layout;
using runtime::LayoutEdge;
using runtime::LayoutNode;

// Edges go down, and no two boxes overlap.
void expect_readable(const Layout& layout) {
  for (const LayoutEdge& edge : layout.edges) {
    double y = layout.nodes[static_cast<size_t>(edge.from)].centre.y;
    for (const runtime::Point& bend : edge.bends) {
      EXPECT_GT(bend.y, y);
      y = bend.y;
    }
    EXPECT_GT(layout.nodes[static_cast<size_t>(edge.to)].centre.y, y);
  }
  for (size_t i = 0; i < layout.nodes.size(); ++i) {
    const LayoutNode& a = layout.nodes[i];
    EXPECT_GE(a.centre.x - a.width / 2, -1e-6);
    EXPECT_LE(a.centre.x + a.width / 2, layout.width + 1e-6);
    for (size_t j = 0; j < i; ++j) {
      const LayoutNode& b = layout.nodes[j];
      const bool apart = std::fabs(a.centre.x - b.centre.x) >= (a.width + b.width) / 2 ||
                         std::fabs(a.centre.y - b.centre.y) >= (a.height + b.height) / 2;
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
}

TEST(ReportLayout, NodesAreApartAndEdgesGoDown) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    Layout layout;
    const int count = 2 + static_cast<int>(random() % 120);
    for (int i = 0; i < count; ++i) {
      layout.nodes.push_back({20.0 + static_cast<double>(random() % 200), 40, {}});
      for (int k = static_cast<int>(random() % 3); i > 0 && k > 0; --k) {
        const int span = 1 + static_cast<int>(random() % (random() % 8 == 0 ? 80 : 5));
        if (span <= i) layout.edges.push_back({i - span, i, {}});
      }
    }
    SCOPED_TRACE(seed);
    lay_out(layout);
    expect_readable(layout);
  }
}

// A chain with a second path beside it, as residual connections make: it stays in one column.
TEST(ReportLayout, ADeepGraphDoesNotDrift) {
  Layout layout;
  for (int i = 0; i < 600; ++i) {
    layout.nodes.push_back({100, 40, {}});
    if (i > 0) layout.edges.push_back({i - 1, i, {}});
    if (i % 6 == 5) layout.edges.push_back({i - 5, i, {}});
  }
  lay_out(layout);
  expect_readable(layout);
  EXPECT_LT(layout.width, 400);
}

TEST(ReportLayout, NothingIsAGraphToo) {
  Layout layout;
  lay_out(layout);
  EXPECT_EQ(layout.width, 0);
}

std::vector<std::string> letters(const std::string& text) {
  std::vector<std::string> sequence;
  for (const char letter : text) sequence.emplace_back(1, letter);
  return sequence;
}

TEST(ReportRepeats, BlocksThatFollowOneAnother) {
  struct Case {
    const char* what;
    std::string sequence;
    std::vector<std::vector<size_t>> repeats;  // begin, period, count
  };
  const auto times = [](int count, const std::string& block) {
    std::string text;
    for (int i = 0; i < count; ++i) text += block;
    return text;
  };
  const Case cases[] = {
      {"nothing", "", {}},
      {"no repeats", "abcdefghijklmnopqrstuvwxyz", {}},
      {"too few", times(3, "abcd"), {}},
      {"layers", "xy" + times(5, "abcdef") + "z", {{2, 6, 5}}},
      {"two kinds", times(4, "abcdefgh") + "__" + times(6, "pqrs"), {{0, 8, 4}, {34, 4, 6}}},
      {"half a layer more", times(5, "abcdef") + "abc", {{0, 6, 5}}},
  };
  for (const Case& c : cases) {
    std::vector<std::vector<size_t>> found;
    for (const auto& repeat : runtime::find_repeats(letters(c.sequence))) {
      found.push_back({repeat.begin, repeat.period, repeat.count});
    }
    EXPECT_EQ(found, c.repeats) << c.what;
  }
}

json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

Model model_of(const std::string& graph) {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
}

TEST(ReportPage, HasRegionsEquationsAndKernels) {
  const Program program =
      compile(model_of("g (float[n, m] q, float[m, k] w) => (float[n, k] y) "
                       "{ s = MatMul(q, w) p = Softmax(s) y = Exp(p) }"));
  const json data = data_of(report_page(program, {"a model", "sm_80", {{"nodes", "3"}}, {}}));
  EXPECT_EQ(data["title"], "a model");
  ASSERT_EQ(data["regions"].size(), 1u);
  const json& equations = data["regions"][0]["equations"];
  ASSERT_EQ(equations["stages"].size(), 2u);
  EXPECT_EQ(equations["stages"][0]["reduce"], "max");
  EXPECT_EQ(equations["stages"][1]["reduce"], "sum");
  EXPECT_EQ(equations["accumulators"][1]["form"], "rescaled");
  EXPECT_EQ(equations["references"].size(), 1u);
  const json& step = data["steps"][data["regions"][0]["step"].get<size_t>()];
  ASSERT_FALSE(step["kernels"].empty()) << step;
  EXPECT_FALSE(step["kernels"][0]["family"].get<std::string>().empty());
  EXPECT_EQ(data["owners"].size(), 3u);
  EXPECT_EQ(data["steps"][data["owners"][1].get<size_t>()]["kind"], data["regions"][0]["class"]);
  EXPECT_EQ(data["before"]["nodes"].size(), 3u + 3u) << "with inputs and outputs";
  EXPECT_THROW(report_page(program, {"", "sm_1", {}, {}}), UserError);
}

// What several stages compute of the streamed elements has a name.
TEST(ReportPage, SharedPartsHaveNames) {
  const Program program = compile(
      model_of("g (float[n, m] x, float[m] b) => (float[n, m] y) { s = Add(x, b) t = Tanh(s) "
               "y = Softmax(t) }"));
  const json data = data_of(report_page(program, {}));
  const json& equations = data["regions"][0]["equations"];
  ASSERT_EQ(equations["where"].size(), 1u) << equations.dump(1);
  EXPECT_EQ(equations["where"][0]["name"], "s[j]");
  EXPECT_NE(equations["where"][0]["text"].get<std::string>().find("tanh"), std::string::npos);
  for (const json& stage : equations["stages"]) {
    EXPECT_EQ(stage["text"].get<std::string>().find("tanh"), std::string::npos) << stage;
  }
}

TEST(ReportPage, KeepsWhatIsKnownOfASteps) {
  const Program program = compile(model_of("g (float[n] x) => (float[n] y) { y = Exp(x) }"));
  ReportOptions options;
  options.steps.resize(program.steps().size());
  StepFacts& facts = options.steps[0];
  facts.family = "map";
  facts.estimated_us = 2.5;
  facts.share = 0.75;
  facts.candidates = {{"map", "vector=4", 2.5, 2.25, ""}, {"scalar", "", {}, {}, "too slow"}};
  const json step = data_of(report_page(program, options))["steps"][0];
  EXPECT_EQ(step["estimated_us"], 2.5);
  EXPECT_TRUE(step["measured_us"].is_null());
  EXPECT_EQ(step["share"], 0.75);
  EXPECT_EQ(step["candidates"][0]["measured_us"], 2.25);
  EXPECT_EQ(step["candidates"][1]["refusal"], "too slow");
  EXPECT_EQ(step["kernels"][0]["family"], "map");
  options.steps.resize(3);
  EXPECT_THROW(report_page(program, options), InternalError);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, NamesEndNoScript) {
  const Program program = compile(model_of("g (float[n] x) => (float[n] y) { y = Exp(x) }"));
  const std::string plain = report_page(program, {"a", "", {}, {}});
  for (const std::string name :
       {"</script><script>alert(1)</script>", "\"quoted\" 'names'", "größer\xE2\x80\xA8", "<!--",
        "{{style}}", "\\u003c", "\xff broken"}) {
    const std::string page = report_page(program, {name, "", {{name, name}}, {}});
    EXPECT_EQ(count_of(page, "<script"), count_of(plain, "<script")) << name;
    EXPECT_EQ(count_of(page, "</script"), count_of(plain, "</script")) << name;
    EXPECT_EQ(count_of(page, "<!--"), 0u) << name;
    const std::string title = data_of(page)["title"];
    if (name.find('\xff') == std::string::npos) EXPECT_EQ(title, name);
  }
}

TEST(ReportPage, AModelWithoutAPlanHasItsFilesGraph) {
  const Program program =
      compile(model_of("g (float[n] x, int64[k] s) => (float[a, b] y) { e = Neg(x) "
                       "y = Expand(e, s) }"));
  const json data = data_of(report_page(program, {}));
  EXPECT_EQ(data["before"]["nodes"].size(), 5u);
  EXPECT_TRUE(data["steps"].empty());
  EXPECT_EQ(data["refused"].size(), 1u);
}

}  // namespace
}  // namespace redfuser
