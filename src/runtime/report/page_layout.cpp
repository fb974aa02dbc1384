#include "runtime/report/page_layout.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/report/layout.h"
#include "runtime/report/repeats.h"

namespace redfuser::runtime {
namespace {

constexpr double kHeight = 40, kSmallHeight = 26, kFoldWidth = 190, kFoldHeight = 54;
constexpr double kLeastWidth = 84, kMostWidth = 210, kTimeWidth = 62;

// By the viewer's fonts, roughly: it shortens what does not fit.
double width_of(const PageNode& node) {
  const double text = std::max(7.8 * static_cast<double>(node.title.size()),
                               5.6 * static_cast<double>(std::min<size_t>(node.name.size(), 30)));
  const double least = node.timed ? 7.8 * static_cast<double>(node.title.size()) + kTimeWidth : 0;
  return std::clamp(std::max(text, least) + 26, kLeastWidth, kMostWidth);
}

class PageLayout {
 public:
  explicit PageLayout(const PageGraph& graph) : graph_(graph) {
    std::vector<std::string> shapes;
    for (const PageNode& node : graph.nodes) shapes.push_back(node.shape_of);
    repeats_ = find_repeats(shapes);
  }

  Json write() const {
    Json nodes = Json::array(), folds = Json::array(), layouts = Json::array();
    for (const PageNode& node : graph_.nodes) {
      static constexpr const char* kRoles[] = {"node", "input", "output"};
      nodes.push_back({{"role", kRoles[static_cast<size_t>(node.role)]},
                       {"title", node.title},
                       {"name", node.name},
                       {"detail", node.detail},
                       {"number", node.number}});
    }
    for (const Repeat& repeat : repeats_) {
      folds.push_back({{"first", repeat.begin + repeat.period},
                       {"period", repeat.period},
                       {"count", repeat.count - 1}});
    }
    layouts.push_back(layout({}));
    if (!repeats_.empty()) layouts.push_back(layout(repeats_));
    return {
        {"nodes", std::move(nodes)}, {"folds", std::move(folds)}, {"layouts", std::move(layouts)}};
  }

 private:
  // Blocks of a topological order, each made one node, leave the graph without cycles.
  Json layout(const std::vector<Repeat>& folded) const {
    Layout layout;
    std::vector<int> item_of, content;  // item by node; node or -1 - fold by item
    size_t fold = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      while (fold < folded.size() && i >= end_of(folded[fold])) ++fold;
      const bool inside = fold < folded.size() && i >= folded[fold].begin + folded[fold].period;
      const int number = inside ? -1 - static_cast<int>(fold) : static_cast<int>(i);
      if (!inside || content.empty() || content.back() != number) {
        content.push_back(number);
        layout.nodes.push_back(inside ? LayoutNode{kFoldWidth, kFoldHeight} : sized(i));
      }
      item_of.push_back(static_cast<int>(content.size()) - 1);
    }
    std::set<std::pair<int, int>> edges;
    for (const auto& [from, to] : graph_.edges) {
      const int a = item_of[static_cast<size_t>(from)], b = item_of[static_cast<size_t>(to)];
      if (a != b && edges.emplace(a, b).second) layout.edges.push_back({a, b, {}});
    }
    lay_out(layout);
    return to_json(layout, content);
  }

  static size_t end_of(const Repeat& repeat) { return repeat.begin + repeat.period * repeat.count; }

  LayoutNode sized(size_t i) const {
    const PageNode& node = graph_.nodes[i];
    return {width_of(node), node.role == PageRole::Node ? kHeight : kSmallHeight};
  }

  static Json to_json(const Layout& layout, const std::vector<int>& content) {
    Json items = Json::array(), edges = Json::array();
    const auto whole = [](double value) { return static_cast<int64_t>(std::lround(value)); };
    for (size_t i = 0; i < content.size(); ++i) {
      const LayoutNode& node = layout.nodes[i];
      items.push_back({content[i], whole(node.centre.x), whole(node.centre.y), whole(node.width),
                       whole(node.height)});
    }
    for (const LayoutEdge& edge : layout.edges) {
      Json line = {edge.from, edge.to};
      for (const Point& bend : edge.bends) {
        line.push_back(whole(bend.x));
        line.push_back(whole(bend.y));
      }
      edges.push_back(std::move(line));
    }
    return {{"width", whole(layout.width)},
            {"height", whole(layout.height)},
            {"items", std::move(items)},
            {"edges", std::move(edges)}};
  }

  const PageGraph& graph_;
  std::vector<Repeat> repeats_;
};

}  // namespace

Json graph_json(const PageGraph& graph) { return PageLayout(graph).write(); }

}  // namespace redfuser::runtime
