#include "onnx/check/node_order.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace redfuser::onnx {
namespace {

constexpr int kEntry = -1;  // produced outside the body

class Orderer {
 public:
  explicit Orderer(const Body& body) : body_(body), sources_(body.nodes.size()) {}

  std::vector<int> run() {
    define_names();
    connect();
    mark_live();
    return sort();
  }

 private:
  std::string text(int node) const {
    return node_text(*body_.nodes[static_cast<size_t>(node)], node);
  }

  void define(const std::string& name, int node) {
    const auto [known, fresh] = producers_.emplace(name, node);
    if (fresh) return;
    const auto kind = [&](int by) { return by == kEntry ? "an input or initializer" : text(by); };
    user_error("{}: the name \"{}\" is defined twice: by {} and by {}", body_.where, name,
               kind(known->second), kind(node));
  }

  void define_names() {
    for (const auto& name : body_.entries) define(name, kEntry);
    for (size_t n = 0; n < body_.nodes.size(); ++n) {
      for (const auto& output : body_.nodes[n]->output()) {
        if (!output.empty()) define(output, static_cast<int>(n));
      }
    }
  }

  void connect() {
    for (size_t n = 0; n < body_.nodes.size(); ++n) {
      for_each_input(*body_.nodes[n], [&](const std::string& name, bool captured) {
        const auto producer = producers_.find(name);
        // Names from outside this body.
        if (producer == producers_.end() && captured) return;
        if (producer == producers_.end()) {
          user_error("{}: {}: input \"{}\" is produced by no node, input or initializer",
                     body_.where, text(static_cast<int>(n)), name);
        }
        if (producer->second != kEntry) sources_[n].push_back(producer->second);
      });
    }
  }

  void mark_live() {
    live_.assign(body_.nodes.size(), false);
    std::vector<int> stack;
    const auto push = [&](int node) {
      if (node == kEntry || live_[static_cast<size_t>(node)]) return;
      live_[static_cast<size_t>(node)] = true;
      stack.push_back(node);
    };
    for (const auto& name : body_.results) {
      const auto producer = producers_.find(name);
      if (producer == producers_.end()) {
        user_error("{}: the output \"{}\" is never produced", body_.where, name);
      }
      push(producer->second);
    }
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      for (const int source : sources_[static_cast<size_t>(node)]) push(source);
    }
  }

  // Kahn's algorithm, the lowest index first.
  std::vector<int> sort() {
    const int count = static_cast<int>(body_.nodes.size());
    std::vector<int> waiting(body_.nodes.size());
    std::vector<std::vector<int>> readers(body_.nodes.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    size_t live = 0;
    for (int n = 0; n < count; ++n) {
      if (!live_[static_cast<size_t>(n)]) continue;
      ++live;
      for (const int source : sources_[static_cast<size_t>(n)]) {
        readers[static_cast<size_t>(source)].push_back(n);
      }
      waiting[static_cast<size_t>(n)] = static_cast<int>(sources_[static_cast<size_t>(n)].size());
      if (waiting[static_cast<size_t>(n)] == 0) ready.push(n);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[static_cast<size_t>(order.back())]) {
        if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
    if (order.size() != live) report_cycle(waiting);
    return order;
  }

  // Every waiting node has a waiting source, so walking back from any of them runs into the cycle.
  [[noreturn]] void report_cycle(const std::vector<int>& waiting) const {
    const auto stuck = [&](int n) {
      return live_[static_cast<size_t>(n)] && waiting[static_cast<size_t>(n)] > 0;
    };
    int node = 0;
    while (!stuck(node)) ++node;
    std::vector<int> path;
    std::vector<bool> visited(body_.nodes.size());
    while (!visited[static_cast<size_t>(node)]) {
      visited[static_cast<size_t>(node)] = true;
      path.push_back(node);
      const auto& sources = sources_[static_cast<size_t>(node)];
      node = *std::find_if(sources.begin(), sources.end(), stuck);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));
    std::reverse(path.begin(), path.end());
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    std::string names;
    constexpr size_t kShown = 8;
    for (size_t i = 0; i < std::min(path.size(), kShown); ++i) {
      names += (i == 0 ? "" : ", ") + text(path[i]);
    }
    if (path.size() > kShown) names += fmt::format(" and {} more", path.size() - kShown);
    user_error("{}: the graph has a cycle: {}", body_.where, names);
  }

  const Body& body_;
  std::unordered_map<std::string, int> producers_;
  std::vector<std::vector<int>> sources_;  // nodes that each node reads
  std::vector<bool> live_;
};

}  // namespace

void for_each_input(const ::onnx::NodeProto& node,
                    const std::function<void(const std::string&, bool captured)>& visit) {
  for (const auto& input : node.input()) {
    if (!input.empty()) visit(input, false);
  }
  const auto capture = [&](const ::onnx::GraphProto& graph) {
    for (const auto& name : captured_names(graph)) visit(name, true);
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) capture(attribute.g());
    for (const auto& graph : attribute.graphs()) capture(graph);
  }
}

std::vector<std::string> captured_names(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
  std::vector<std::string> captured;
  const auto use = [&](const std::string& name) {
    if (!name.empty() && own.insert(name).second) captured.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for_each_input(node, [&](const std::string& name, bool) { use(name); });
  }
  for (const auto& output : graph.output()) use(output.name());
  return captured;
}

std::string node_name(const ::onnx::NodeProto& node, int index) {
  return node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name();
}

std::string node_text(const ::onnx::NodeProto& node, int index) {
  return fmt::format("[{}] node \"{}\"", node.op_type(), node_name(node, index));
}

std::vector<int> live_order(const Body& body) { return Orderer(body).run(); }

std::vector<int> order_of_all(const ::onnx::GraphProto& graph, const std::string& where) {
  Body body{{}, {}, {}, where};
  std::unordered_set<std::string> entries;
  for (const auto& tensor : graph.initializer()) entries.insert(tensor.name());
  for (const auto& input : graph.input()) entries.insert(input.name());
  body.entries.assign(entries.begin(), entries.end());
  for (const auto& node : graph.node()) {
    body.nodes.push_back(&node);
    for (const std::string& output : node.output()) {
      if (!output.empty()) body.results.push_back(output);
    }
  }
  return live_order(body);
}

}  // namespace redfuser::onnx
