#include "passes/pass_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace redfuser::passes {
namespace {

int count(const NodeList& nodes) {
  size_t total = 0;
  for (const auto& [op, names] : nodes) total += names.size();
  return static_cast<int>(total);
}

// The nodes in `nodes` that are not in `others`.
NodeList difference(const NodeList& nodes, const NodeList& others) {
  NodeList result;
  for (const auto& [op, names] : nodes) {
    const auto found = others.find(op);
    const std::vector<std::string> none;
    const std::vector<std::string>& other = found == others.end() ? none : found->second;
    std::vector<std::string> left;
    std::set_difference(names.begin(), names.end(), other.begin(), other.end(),
                        std::back_inserter(left));
    if (!left.empty()) result[op] = std::move(left);
  }
  return result;
}

std::string lines_of(char sign, const NodeList& nodes) {
  std::string text;
  for (const auto& [op, names] : nodes) {
    text += fmt::format("  {}{} {}: \"{}\"\n", sign, names.size(), op, fmt::join(names, "\", \""));
  }
  return text;
}

}  // namespace

NodeList nodes_of(const ir::Graph& graph) {
  NodeList nodes;
  for (const ir::Node& node : graph.nodes) nodes[node.op].push_back(node.name);
  for (auto& [op, names] : nodes) std::sort(names.begin(), names.end());
  return nodes;
}

PassRecord record_of(const std::string& name, const NodeList& before, const NodeList& after) {
  return {name, count(before), count(after), difference(before, after), difference(after, before)};
}

std::string to_string(const std::vector<PassRecord>& log) {
  std::string text;
  for (const PassRecord& record : log) {
    text += fmt::format("{}: {} nodes, then {}\n", record.name, record.nodes_before,
                        record.nodes_after);
    text += lines_of('-', record.removed) + lines_of('+', record.added);
    if (record.removed.empty() && record.added.empty()) text += "  values only\n";
  }
  return text;
}

}  // namespace redfuser::passes
