#include "codegen/core/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace redfuser::codegen {
namespace {

// The most reductions in a name.
constexpr size_t kNamed = 8;

struct StageNames {
  std::vector<std::string> names;

  void operator()(const fuse::CascadeStep& step) {
    for (const cascade::Stage& stage : step.streaming.cascade.stages) {
      const bool dot = stage.reduction == ir::Reduction::Sum && !stage.columns.empty();
      names.emplace_back(dot ? "dot" : name_of(stage.reduction));
    }
  }
  void operator()(const fuse::ReduceStep& step) {
    visit(step.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) names.emplace_back(name_of(e->reduction));
    });
  }
  void operator()(const fuse::ProductStep& step) { names.assign(step.b.size(), "dot"); }
  void operator()(const fuse::MapStep&) {}
  void operator()(const fuse::OpaqueStep&) {}
  void operator()(const fuse::AliasStep&) {}
};

std::string stages_text(const fuse::Step& step) {
  StageNames stages;
  std::visit(stages, step.kind);
  const std::vector<std::string>& names = stages.names;
  std::string text;
  size_t named = 0;
  for (size_t i = 0; i < names.size() && named < kNamed; ++named) {
    size_t end = i + 1;
    while (end < names.size() && names[end] == names[i]) ++end;
    text += "_" + names[i];
    if (end - i > 1) text += std::to_string(end - i);
    i = end;
  }
  return text;
}

}  // namespace

std::string short_name(DType dtype) {
  std::string name(name_of(dtype));
  for (const auto& [prefix, letters] : {std::pair<std::string_view, const char*>{"float", "f"},
                                        {"bfloat", "bf"},
                                        {"uint", "u"},
                                        {"int", "i"}}) {
    if (name.starts_with(prefix)) return letters + name.substr(prefix.size());
  }
  return name;
}

std::string kernel_name(const std::string& family, const ir::Graph& graph, const fuse::Step& step,
                        const std::string& text) {
  std::string type;
  if (!step.writes.empty()) {
    type = "_" + short_name(graph.values.at(static_cast<size_t>(step.writes.front())).dtype);
  }
  const auto digest = static_cast<uint32_t>(hash_text(text, 1));
  return fmt::format("{}{}{}_{:08x}", family, stages_text(step), type, digest);
}

}  // namespace redfuser::codegen
