#include "onnx/convex_regions.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"

namespace redfuser {
namespace {

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

// Everything that `edges` lead to from `seeds`, the seeds left out unless an edge leads to them.
std::vector<bool> reached(const std::vector<std::vector<int>>& edges,
                          const std::vector<int>& seeds) {
  std::vector<bool> seen(edges.size());
  std::vector<int> stack = seeds;
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (const int next : edges[static_cast<size_t>(node)]) {
      if (seen[static_cast<size_t>(next)]) continue;
      seen[static_cast<size_t>(next)] = true;
      stack.push_back(next);
    }
  }
  return seen;
}

// Nodes outside `region` on a path that leaves it and comes back.
std::vector<int> detours(const Contracted& graph, const std::vector<int>& region) {
  const auto below = reached(graph.readers, region);
  const auto above = reached(graph.sources, region);
  std::vector<bool> inside(below.size());
  for (const int node : region) inside[static_cast<size_t>(node)] = true;
  std::vector<int> between;
  for (size_t n = 0; n < below.size(); ++n) {
    if (below[n] && above[n] && !inside[n]) between.push_back(static_cast<int>(n));
  }
  return between;
}

// Takes the cheap nodes of detours into the region; returns what then still stands between.
std::vector<int> join_cheap(const NodeGraph& graph, const Contracted& contracted,
                            const std::vector<int>& group, std::vector<int>& region) {
  std::vector<int> between = detours(contracted, region);
  bool joined = false;
  for (const int node : between) {
    const auto n = static_cast<size_t>(node);
    if (graph.cheap.empty() || !graph.cheap[n] || group[n] >= 0) continue;
    region.push_back(node);
    joined = true;
  }
  return joined ? detours(contracted, region) : between;
}

}  // namespace

Grouping group_regions(const NodeGraph& graph, const std::vector<std::vector<int>>& regions) {
  Grouping result;
  result.group.assign(graph.readers.size(), -1);
  for (int r = 0; r < static_cast<int>(regions.size()); ++r) {
    std::vector<int> region;
    for (const int node : regions[static_cast<size_t>(r)]) {
      if (result.group[static_cast<size_t>(node)] < 0) {
        region.push_back(node);
      } else {
        result.dropped.push_back({node, r, true});
      }
    }
    const Contracted contracted(graph, result.group);
    const std::vector<int> between = join_cheap(graph, contracted, result.group, region);
    if (!between.empty()) {
      const auto before = reached(contracted.sources, between);
      const auto after = reached(contracted.readers, between);
      const auto count = [&](const std::vector<bool>& set) {
        return std::count_if(region.begin(), region.end(),
                             [&](int n) { return set[static_cast<size_t>(n)]; });
      };
      const auto& dropped = count(before) <= count(after) ? before : after;
      for (const int node : region) {
        if (dropped[static_cast<size_t>(node)]) result.dropped.push_back({node, r, false});
      }
      std::erase_if(region, [&](int n) { return dropped[static_cast<size_t>(n)]; });
    }
    for (const int node : region) result.group[static_cast<size_t>(node)] = r;
  }
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

}  // namespace redfuser
