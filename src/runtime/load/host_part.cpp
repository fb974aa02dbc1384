#include "runtime/load/host_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/opaque/dispatch.h"

namespace redfuser::runtime {
namespace {

size_t index(int64_t id) { return static_cast<size_t>(id); }

}  // namespace

HostPart::HostPart(const CompiledProgram& program)
    : program_(program),
      known_(program.symbol_names.size()),
      values_(program.graph().values.size()),
      steps_(program.plan.steps.size()),
      finds_(program.plan.steps.size()),
      reasons_(program.plan.steps.size()) {
  const ir::Graph& graph = program.graph();
  for (const ir::ValueId id : graph.inputs) {
    for (const int64_t symbol : program.shape_symbols[index(id)]) known_[index(symbol)] = true;
  }
  for (size_t i = 0; i < program.outer_symbols.size(); ++i) {
    if (program.outer_symbols[i]) known_[i] = true;
  }
  for (const fuse::Append& append : program.appends) {
    known_[index(append.begin->integer)] = known_[index(append.room->integer)] = true;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const DType dtype = graph.values[i].dtype;
    values_[i] = dtype == DType::String || is_list(dtype) || !is_known(program.shape_symbols[i]);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    finds_[i] = may_find(i);
    if (!finds_[i]) continue;
    for (const ir::ValueId id : program.plan.steps[i].writes) values_[index(id)] = false;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const fuse::Step& step = program.plan.steps[i];
    if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
      if (keeps(alias->source)) values_[index(alias->value)] = true;
      steps_[i] = keeps(alias->value);
      continue;
    }
    for (const std::vector<ir::ValueId>* ids : {&step.reads, &step.writes}) {
      for (const ir::ValueId id : *ids) {
        if (keeps(id) && !has(i)) take(i, reason_of(id));
      }
    }
    if (program.bodies.count(i) > 0) take(i, "a run decides what it computes");
    if (finds_size(i) && !finds_[i] && !has(i)) {
      take(i, fmt::format("the size of \"{}\" is known before",
                          graph.values[index(step.writes.front())].name));
    }
  }
}

bool HostPart::is_known(const std::vector<int64_t>& symbols) const {
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](int64_t symbol) { return known_[index(symbol)]; });
}

bool HostPart::finds_size(size_t step) const {
  const auto* opaque = std::get_if<fuse::OpaqueStep>(&program_.plan.steps[step].kind);
  if (opaque == nullptr) return false;
  const ir::Node& node = program_.graph().nodes[index(opaque->node)];
  return codegen::has_size_kernel(node.domain, node.op);
}

// Results of one size that is not known, which no other value of the program has.
bool HostPart::may_find(size_t number) const {
  const fuse::Step& step = program_.plan.steps[number];
  if (!finds_size(number)) return false;
  std::set<int64_t> unknown;
  for (const ir::ValueId id : step.writes) {
    if (program_.graph().values[index(id)].dtype == DType::String) return false;
    for (const int64_t symbol : program_.shape_symbols[index(id)]) {
      if (!known_[index(symbol)]) unknown.insert(symbol);
    }
  }
  if (unknown.size() != 1) return false;
  const auto has_size = [&](ir::ValueId id) {
    const auto& symbols = program_.shape_symbols[index(id)];
    return std::count(symbols.begin(), symbols.end(), *unknown.begin()) > 0;
  };
  for (size_t i = 0; i < program_.plan.steps.size(); ++i) {
    const fuse::Step& other = program_.plan.steps[i];
    if (std::any_of(other.reads.begin(), other.reads.end(), has_size)) return false;
    if (i == number) continue;
    if (std::any_of(other.writes.begin(), other.writes.end(), has_size)) return false;
  }
  return true;
}

std::string HostPart::reason_of(ir::ValueId value) const {
  const ir::Value& info = program_.graph().values[index(value)];
  if (is_list(info.dtype)) return fmt::format("\"{}\" is a list", info.name);
  return info.dtype == DType::String ? fmt::format("\"{}\" is a tensor of strings", info.name)
                                     : fmt::format("the size of \"{}\" depends on data", info.name);
}

bool HostPart::empty() const {
  return std::none_of(steps_.begin(), steps_.end(), [](bool host) { return host; });
}

void HostPart::take(size_t step, const std::string& reason) {
  steps_[step] = true;
  reasons_[step] = reason;
  if (!finds_[step]) return;
  finds_[step] = false;
  for (const ir::ValueId id : program_.plan.steps[step].writes) values_[index(id)] = true;
}

bool HostPart::binds_sizes_of(const codegen::GpuStep& form) const {
  bool found = false;
  const auto look = [&](ir::Expr size) {
    if (size == nullptr) return;
    visit(size, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Symbol) return;
      found |= index(e->integer) >= known_.size() || !known_[index(e->integer)];
    });
  };
  for (const codegen::GpuCall& call : form.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch == nullptr) continue;
    for (const ir::Expr size : launch->sizes) look(size);
    for (const ir::Expr size : launch->grid) look(size);
  }
  return found;
}

std::vector<std::string> host_notes(const std::vector<std::string>& reasons) {
  constexpr size_t kMost = 8;
  std::map<std::string, int> counts;
  for (const std::string& reason : reasons) {
    if (!reason.empty()) ++counts[reason];
  }
  std::vector<std::string> lines;
  for (const auto& [reason, count] : counts) {
    if (lines.size() == kMost) {
      lines.push_back(
          fmt::format("the CPU computes steps for {} other reasons", counts.size() - kMost));
      break;
    }
    lines.push_back(
        fmt::format("the CPU computes {} step{}: {}", count, count == 1 ? "" : "s", reason));
  }
  return lines;
}

}  // namespace redfuser::runtime
