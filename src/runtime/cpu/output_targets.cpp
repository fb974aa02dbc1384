#include "runtime/cpu/output_targets.h"

#include <algorithm>

#include "cpu/step.h"
#include "runtime/program/executor.h"
#include "runtime/program/in_place.h"

namespace redfuser::runtime {
namespace {

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

bool overlap(const Tensor& a, const Tensor& b) {
  const auto* first = static_cast<const char*>(a.data());
  const auto* second = static_cast<const char*>(b.data());
  return first < second + b.bytes() && second < first + a.bytes();
}

class Targets {
 public:
  Targets(const CompiledProgram& program, std::span<const Tensor> values,
          std::span<const int64_t> symbols, bool in_place)
      : program_(program),
        values_(values),
        symbols_(symbols),
        in_place_(in_place && std::none_of(symbols.begin(), symbols.end(),
                                           [](int64_t size) { return size < 0; })),
        targets_(values.size()) {}

  void add(ir::ValueId id, const Tensor& memory) {
    const ir::Graph& graph = program_.graph();
    const ir::Value& value = graph.values[index(id)];
    if (known(id)) {
      check_memory(value.name, value.dtype, cpu::dims_of(graph, id, symbols_), memory);
    }
    const ir::ValueId root = program_.plan.root(id);
    const ir::Value& computed = graph.values[index(root)];
    const auto& inputs = graph.inputs;
    if (computed.is_constant() || computed.dtype != memory.dtype() ||
        targets_[index(root)].defined() ||
        std::find(inputs.begin(), inputs.end(), root) != inputs.end()) {
      return;
    }
    if (std::all_of(inputs.begin(), inputs.end(),
                    [&](ir::ValueId input) { return may_overwrite(input, id, memory); })) {
      targets_[index(root)] = memory;
    }
  }

  std::vector<Tensor> take() { return std::move(targets_); }

 private:
  bool known(ir::ValueId id) const {
    const auto& needed = program_.shape_symbols[index(id)];
    return std::all_of(needed.begin(), needed.end(),
                       [&](int64_t symbol) { return symbols_[static_cast<size_t>(symbol)] >= 0; });
  }

  // A run whose sizes only its steps find may begin anew, and so keeps its inputs. A step with
  // several outputs may read an element after it has written one of them.
  bool may_overwrite(ir::ValueId input, ir::ValueId output, const Tensor& memory) const {
    const Tensor& given = values_[index(input)];
    if (!overlap(given, memory)) return true;
    return in_place_ && given.data() == memory.data() && writes_alone(program_.plan.root(output)) &&
           may_write_in_place(program_, output, input);
  }

  bool writes_alone(ir::ValueId value) const {
    const auto& steps = program_.plan.steps;
    return std::none_of(steps.begin(), steps.end(), [&](const fuse::Step& step) {
      return step.writes.size() > 1 &&
             std::find(step.writes.begin(), step.writes.end(), value) != step.writes.end();
    });
  }

  const CompiledProgram& program_;
  const std::span<const Tensor> values_;
  const std::span<const int64_t> symbols_;
  const bool in_place_;
  std::vector<Tensor> targets_;
};

}  // namespace

std::vector<Tensor> output_targets(const CompiledProgram& program, const NamedTensors& memory,
                                   std::span<const Tensor> values, std::span<const int64_t> symbols,
                                   bool in_place) {
  const ir::Graph& graph = program.graph();
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.outputs) names.push_back(graph.values[index(id)].name);
  check_names(memory, names);
  Targets targets(program, values, symbols, in_place);
  for (const ir::ValueId id : graph.outputs) {
    const auto given = memory.find(graph.values[index(id)].name);
    if (given != memory.end()) targets.add(id, given->second);
  }
  return targets.take();
}

}  // namespace redfuser::runtime
