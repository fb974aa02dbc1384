#include "runtime/report/layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace redfuser::runtime {
namespace {

constexpr double kNodeGap = 26, kBendGap = 14, kLayerGap = 38;
constexpr int kOrderSweeps = 10, kPlaceSweeps = 12;
constexpr size_t kDriftLayers = 24;

// A node, or the place where an edge passes through a layer.
struct Item {
  double width = 0, height = 0, x = 0;
  int layer = 0;
  bool bend = false;
  std::vector<int> above, below;  // items of the next layers
};

// Places as near to `wanted` as their distances of at least `gap` allow: the weighted squares of
// the differences are least (pool adjacent violators; Barlow et al., 1972).
std::vector<double> spread_out(const std::vector<double>& wanted, const std::vector<double>& weight,
                               const std::vector<double>& gap) {
  struct Block {
    double sum, weight;
    size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Block> blocks;
  double offset = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    offset += gap[i];
    blocks.push_back({(wanted[i] - offset) * weight[i], weight[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() >= blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().weight += last.weight;
      blocks.back().count += last.count;
    }
  }
  std::vector<double> places;
  offset = 0;
  for (const Block& block : blocks) {
    for (size_t i = 0; i < block.count; ++i) {
      offset += gap[places.size()];
      places.push_back(block.mean() + offset);
    }
  }
  return places;
}

class Layering {
 public:
  explicit Layering(Layout& layout) : layout_(layout) {}

  void run() {
    if (layout_.nodes.empty()) return;
    choose_layers();
    route_edges();
    order();
    place();
    write();
  }

 private:
  Item& item(int i) { return items_[static_cast<size_t>(i)]; }

  // Below every predecessor; nodes without one move down to just above their first reader.
  void choose_layers() {
    for (const LayoutNode& node : layout_.nodes) items_.push_back({node.width, node.height});
    std::vector<bool> has_input(items_.size(), false);
    std::vector<int> first_reader(items_.size(), std::numeric_limits<int>::max());
    std::vector<LayoutEdge*> by_source;
    for (LayoutEdge& edge : layout_.edges) by_source.push_back(&edge);
    std::stable_sort(by_source.begin(), by_source.end(),
                     [](const LayoutEdge* a, const LayoutEdge* b) { return a->from < b->from; });
    for (const LayoutEdge* edge : by_source) {
      item(edge->to).layer = std::max(item(edge->to).layer, item(edge->from).layer + 1);
      has_input[static_cast<size_t>(edge->to)] = true;
    }
    for (const LayoutEdge* edge : by_source) {
      int& first = first_reader[static_cast<size_t>(edge->from)];
      first = std::min(first, item(edge->to).layer);
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      const bool reads_nothing = !has_input[i] && first_reader[i] < std::numeric_limits<int>::max();
      if (reads_nothing) items_[i].layer = first_reader[i] - 1;
    }
  }

  void link(int upper, int lower) {
    item(upper).below.push_back(lower);
    item(lower).above.push_back(upper);
  }

  void route_edges() {
    routes_.resize(layout_.edges.size());
    for (size_t e = 0; e < layout_.edges.size(); ++e) {
      const LayoutEdge& edge = layout_.edges[e];
      const int first = item(edge.from).layer, last = item(edge.to).layer;
      if (last - first > kRoutedLayers) continue;
      int upper = edge.from;
      for (int layer = first + 1; layer < last; ++layer) {
        const int bend = static_cast<int>(items_.size());
        items_.push_back({0, 0, 0, layer, true});
        routes_[e].push_back(bend);
        link(upper, bend);
        upper = bend;
      }
      link(upper, edge.to);
    }
    int layers = 0;
    for (const Item& each : items_) layers = std::max(layers, each.layer + 1);
    layers_.resize(static_cast<size_t>(layers));
    for (size_t i = 0; i < items_.size(); ++i) {
      layers_[static_cast<size_t>(items_[i].layer)].push_back(static_cast<int>(i));
    }
  }

  void number(const std::vector<int>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) item(layer[i]).x = static_cast<double>(i);
  }

  static double mean(const std::vector<Item>& items, const std::vector<int>& of, double otherwise) {
    if (of.empty()) return otherwise;
    double sum = 0;
    for (const int i : of) sum += items[static_cast<size_t>(i)].x;
    return sum / static_cast<double>(of.size());
  }

  // Crossings of edges between this layer and the one above, by a binary indexed tree.
  int64_t crossings(const std::vector<int>& layer, size_t above) {
    std::vector<int64_t> tree(above + 1, 0);
    int64_t count = 0, seen = 0;
    for (const int lower : layer) {
      for (const int upper : item(lower).above) {
        int64_t before = 0;
        for (size_t i = static_cast<size_t>(item(upper).x) + 1; i > 0; i &= i - 1) {
          before += tree[i];
        }
        count += seen - before;
      }
      for (const int upper : item(lower).above) {
        for (size_t i = static_cast<size_t>(item(upper).x) + 1; i <= above; i += i & (~i + 1)) {
          ++tree[i];
        }
        ++seen;
      }
    }
    return count;
  }

  int64_t all_crossings() {
    int64_t count = 0;
    for (size_t l = 1; l < layers_.size(); ++l) {
      count += crossings(layers_[l], layers_[l - 1].size());
    }
    return count;
  }

  void order() {
    for (const auto& layer : layers_) number(layer);
    auto best = layers_;
    int64_t least = all_crossings();
    for (int sweep = 0; sweep < kOrderSweeps && least > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < layers_.size(); ++i) {
        auto& layer = layers_[down ? i : layers_.size() - 1 - i];
        std::vector<std::pair<double, int>> keyed;
        for (const int each : layer) {
          keyed.emplace_back(mean(items_, down ? item(each).above : item(each).below, item(each).x),
                             each);
        }
        std::stable_sort(keyed.begin(), keyed.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t k = 0; k < keyed.size(); ++k) layer[k] = keyed[k].second;
        number(layer);
      }
      const int64_t count = all_crossings();
      if (count < least) least = count, best = layers_;
    }
    layers_ = best;
  }

  // Edges between two bends pull most, so that long edges are straight.
  double pull(const Item& a, const Item& b) const {
    return a.bend && b.bend ? 8 : a.bend || b.bend ? 2 : 1;
  }

  void place_layer(const std::vector<int>& layer, bool by_above, bool by_below) {
    std::vector<double> wanted, weight, gap;
    for (size_t i = 0; i < layer.size(); ++i) {
      const Item& self = item(layer[i]);
      double sum = 0, total = 0;
      const auto add = [&](const std::vector<int>& neighbours) {
        for (const int other : neighbours) {
          const double w = pull(self, item(other));
          sum += w * item(other).x;
          total += w;
        }
      };
      if (by_above) add(self.above);
      if (by_below) add(self.below);
      wanted.push_back(total > 0 ? sum / total : self.x);
      weight.push_back(total > 0 ? total : 0.05);
      if (i == 0) {
        gap.push_back(0);
        continue;
      }
      const Item& left = item(layer[i - 1]);
      gap.push_back((left.width + self.width) / 2 + (left.bend && self.bend ? kBendGap : kNodeGap));
    }
    const std::vector<double> places = spread_out(wanted, weight, gap);
    for (size_t i = 0; i < layer.size(); ++i) item(layer[i]).x = places[i];
  }

  void place() {
    for (const auto& layer : layers_) {
      for (const int each : layer) item(each).x = 0;
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0, last = sweep + 2 >= kPlaceSweeps;
      for (size_t i = 0; i < layers_.size(); ++i) {
        place_layer(layers_[down ? i : layers_.size() - 1 - i], down || last, !down || last);
      }
    }
    straighten();
  }

  // A deep graph drifts to a side, a little in every layer: the drift, which is the mean middle of
  // the layers around, is taken away.
  void straighten() {
    std::vector<double> sums = {0};
    for (const auto& layer : layers_) {
      double left = std::numeric_limits<double>::max(), right = -left;
      for (const int each : layer) {
        left = std::min(left, item(each).x - item(each).width / 2);
        right = std::max(right, item(each).x + item(each).width / 2);
      }
      sums.push_back(sums.back() + (left + right) / 2);
    }
    for (size_t l = 0; l < layers_.size(); ++l) {
      const size_t from = l < kDriftLayers ? 0 : l - kDriftLayers;
      const size_t to = std::min(l + kDriftLayers + 1, layers_.size());
      const double drift = (sums[to] - sums[from]) / static_cast<double>(to - from);
      for (const int each : layers_[l]) item(each).x -= drift;
    }
  }

  void write() {
    double left = std::numeric_limits<double>::max(), right = -left, y = 0;
    std::vector<double> middles;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const int each : layer) {
        height = std::max(height, item(each).height);
        left = std::min(left, item(each).x - item(each).width / 2);
        right = std::max(right, item(each).x + item(each).width / 2);
      }
      middles.push_back(y + height / 2);
      y += height + kLayerGap;
    }
    layout_.width = right - left;
    layout_.height = y - kLayerGap;
    const auto point = [&](int i) {
      return Point{item(i).x - left, middles[static_cast<size_t>(item(i).layer)]};
    };
    for (size_t i = 0; i < layout_.nodes.size(); ++i) {
      layout_.nodes[i].centre = point(static_cast<int>(i));
    }
    for (size_t e = 0; e < layout_.edges.size(); ++e) {
      for (const int bend : routes_[e]) layout_.edges[e].bends.push_back(point(bend));
    }
  }

  Layout& layout_;
  std::vector<Item> items_;               // nodes first
  std::vector<std::vector<int>> routes_;  // bends by edge
  std::vector<std::vector<int>> layers_;  // items from left to right
};

}  // namespace

void lay_out(Layout& layout) { Layering(layout).run(); }

}  // namespace redfuser::runtime
