#include "onnx/export/convex_regions.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"

namespace redfuser::onnx {
namespace {

struct Interval {
  int low, high;
};

// The graph with the groups so far contracted, each to its lowest node. A path that leaves an
// interval of nodes returns only through a group with nodes on both sides of its border. Searches
// are limited to intervals without such groups, which are short in layered graphs.
class Contraction {
 public:
  explicit Contraction(const NodeGraph& graph) : graph_(graph), sources_(graph.readers.size()) {
    group.assign(graph.readers.size(), -1);
    for (int n = 0; n < static_cast<int>(group.size()); ++n) {
      around_.push_back({n, n});
      for (const int reader : graph.readers[static_cast<size_t>(n)]) {
        sources_[static_cast<size_t>(reader)].push_back(n);
      }
    }
  }

  // Groups are numbered in order, from 0.
  void add(std::vector<int> members) {
    std::sort(members.begin(), members.end());
    for (const int node : members)
      group[static_cast<size_t>(node)] = static_cast<int>(groups_.size());
    for (int n = members.empty() ? 0 : members.front(); !members.empty() && n <= members.back();
         ++n) {
      Interval& around = around_[static_cast<size_t>(n)];
      around = {std::min(around.low, members.front()), std::max(around.high, members.back())};
    }
    groups_.push_back(std::move(members));
  }

  // The shortest interval around the nodes without a group across its border.
  Interval interval(const std::vector<int>& nodes) const {
    const auto [low, high] = std::minmax_element(nodes.begin(), nodes.end());
    Interval wanted{*low, *high};
    const auto include = [&](int node) {
      const Interval& around = around_[static_cast<size_t>(node)];
      wanted = {std::min(wanted.low, around.low), std::max(wanted.high, around.high)};
    };
    for (int first = *low, end = *low; first > wanted.low || end <= wanted.high;) {
      include(end <= wanted.high ? end++ : --first);
    }
    return wanted;
  }

  // The nodes of an interval that are reachable from `seeds` over readers, or over sources, by
  // position in the interval; groups by their lowest node. Seeds are included only if an edge leads
  // to them.
  std::vector<bool> below(const std::vector<int>& seeds, Interval within) const {
    return reached(graph_.readers, seeds, within);
  }
  std::vector<bool> above(const std::vector<int>& seeds, Interval within) const {
    return reached(sources_, seeds, within);
  }

  std::vector<int> group;  // of each node; -1: none

 private:
  std::vector<bool> reached(const std::vector<std::vector<int>>& edges,
                            const std::vector<int>& seeds, Interval within) const {
    std::vector<bool> seen(static_cast<size_t>(within.high - within.low + 1));
    std::vector<int> stack = seeds;
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      const int number = group[static_cast<size_t>(node)];
      const auto follow = [&](int member) {
        for (const int edge : edges[static_cast<size_t>(member)]) {
          const int next = representative(edge);
          if (next == node || next < within.low || next > within.high) continue;
          const auto at = static_cast<size_t>(next - within.low);
          if (seen[at]) continue;
          seen[at] = true;
          stack.push_back(next);
        }
      };
      if (number < 0) {
        follow(node);
      } else {
        for (const int member : groups_[static_cast<size_t>(number)]) follow(member);
      }
    }
    return seen;
  }

  int representative(int node) const {
    const int number = group[static_cast<size_t>(node)];
    return number < 0 ? node : groups_[static_cast<size_t>(number)].front();
  }

  const NodeGraph& graph_;
  std::vector<std::vector<int>> sources_;
  std::vector<std::vector<int>> groups_;  // their nodes, sorted
  std::vector<Interval> around_;          // of each node: the reach of the groups across it
};

// Nodes outside `region` on a path that leaves it and comes back.
std::vector<int> detours(const Contraction& graph, const std::vector<int>& region,
                         Interval within) {
  const auto below = graph.below(region, within), above = graph.above(region, within);
  std::vector<bool> inside(below.size());
  for (const int node : region) inside[static_cast<size_t>(node - within.low)] = true;
  std::vector<int> between;
  for (size_t n = 0; n < below.size(); ++n) {
    if (below[n] && above[n] && !inside[n]) between.push_back(within.low + static_cast<int>(n));
  }
  return between;
}

// Takes the cheap nodes of detours into the region; returns the remaining nodes of detours.
std::vector<int> join_cheap(const NodeGraph& graph, const Contraction& contraction,
                            std::vector<int>& region, Interval within) {
  std::vector<int> between = detours(contraction, region, within);
  bool joined = false;
  for (const int node : between) {
    const auto n = static_cast<size_t>(node);
    if (graph.cheap.empty() || !graph.cheap[n] || contraction.group[n] >= 0) continue;
    region.push_back(node);
    joined = true;
  }
  return joined ? detours(contraction, region, within) : between;
}

// Drops the region's nodes before the detours, or those after them.
void make_convex(const Contraction& contraction, int number, const std::vector<int>& between,
                 Interval within, std::vector<int>& region, Grouping& result) {
  const auto before = contraction.above(between, within),
             after = contraction.below(between, within);
  const auto at = [&](int node) { return static_cast<size_t>(node - within.low); };
  const auto count = [&](const std::vector<bool>& set) {
    return std::count_if(region.begin(), region.end(), [&](int n) { return set[at(n)]; });
  };
  const auto& dropped = count(before) <= count(after) ? before : after;
  for (const int node : region) {
    if (dropped[at(node)]) result.dropped.push_back({node, number, false});
  }
  std::erase_if(region, [&](int n) { return dropped[at(n)]; });
}

// The graph with every group contracted to its lowest node.
struct Contracted {
  std::vector<int> representative;
  std::vector<std::vector<int>> readers, sources;

  Contracted(const NodeGraph& graph, const std::vector<int>& group)
      : representative(group.size()), readers(group.size()), sources(group.size()) {
    std::map<int, int> lowest;
    for (int n = 0; n < static_cast<int>(group.size()); ++n) {
      const int g = group[static_cast<size_t>(n)];
      representative[static_cast<size_t>(n)] = g < 0 ? n : lowest.emplace(g, n).first->second;
    }
    for (size_t n = 0; n < group.size(); ++n) {
      for (const int reader : graph.readers[n]) {
        const int from = representative[n], to = representative[static_cast<size_t>(reader)];
        if (from == to) continue;
        readers[static_cast<size_t>(from)].push_back(to);
        sources[static_cast<size_t>(to)].push_back(from);
      }
    }
  }
};

}  // namespace

Grouping group_regions(const NodeGraph& graph, const std::vector<std::vector<int>>& regions) {
  Grouping result;
  Contraction contraction(graph);
  for (int r = 0; r < static_cast<int>(regions.size()); ++r) {
    std::vector<int> region;
    for (const int node : regions[static_cast<size_t>(r)]) {
      if (contraction.group[static_cast<size_t>(node)] < 0) {
        region.push_back(node);
      } else {
        result.dropped.push_back({node, r, true});
      }
    }
    if (!region.empty()) {
      const Interval within = contraction.interval(region);
      const std::vector<int> between = join_cheap(graph, contraction, region, within);
      if (!between.empty()) make_convex(contraction, r, between, within, region, result);
    }
    contraction.add(std::move(region));
  }
  result.group = contraction.group;
  return result;
}

std::vector<int> grouped_order(const NodeGraph& graph, const std::vector<int>& group) {
  const Contracted contracted(graph, group);
  const size_t count = group.size();
  std::vector<std::vector<int>> members(count);
  std::vector<int> waiting(count);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t n = 0; n < count; ++n) {
    members[static_cast<size_t>(contracted.representative[n])].push_back(static_cast<int>(n));
    waiting[n] = static_cast<int>(contracted.sources[n].size());
    if (waiting[n] == 0 && contracted.representative[n] == static_cast<int>(n)) {
      ready.push(static_cast<int>(n));
    }
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const auto node = static_cast<size_t>(ready.top());
    ready.pop();
    order.insert(order.end(), members[node].begin(), members[node].end());
    for (const int reader : contracted.readers[node]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  RF_CHECK(order.size() == count, "grouping nodes has made a cycle");
  return order;
}

}  // namespace redfuser::onnx
