#include "runtime/program/bind_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "io/did_you_mean.h"
#include "ir/evaluate.h"
#include "runtime/program/sizes/size_checks.h"

namespace redfuser::runtime {
namespace {

std::string declared_type(const ir::Graph& graph, const ir::Value& value) {
  std::vector<std::string> dims;
  for (const ir::Expr dim : value.shape) dims.push_back(to_string(*graph.pool, dim));
  return fmt::format("{}[{}]", name_of(value.dtype), fmt::join(dims, ","));
}

class Binder {
 public:
  Binder(const CompiledProgram& program, std::vector<int64_t>& symbols)
      : graph_(program.graph()), symbols_(symbols), bound_by_(symbols.size(), nullptr) {}

  // Checks dtype and rank, and binds dimensions that are a symbol alone.
  void bind(const ir::Value& value, const Tensor& tensor) {
    if (tensor.dtype() != value.dtype) {
      user_error("input \"{}\" is {}, but the model takes {}", value.name, describe(tensor),
                 declared_type(graph_, value));
    }
    if (tensor.dims().size() != value.shape.size()) {
      user_error("input \"{}\" is {}, which has {} dimensions; the model takes {}", value.name,
                 describe(tensor), tensor.dims().size(), declared_type(graph_, value));
    }
    for (size_t i = 0; i < value.shape.size(); ++i) {
      const ir::Expr dim = value.shape[i];
      if (dim->op == ir::ExprOp::Symbol) bind_symbol(value, i, dim, tensor.dims()[i]);
    }
  }

  // Checks sizes that are constants or expressions of symbols.
  void check(const ir::Value& value, const Tensor& tensor) const {
    for (size_t i = 0; i < value.shape.size(); ++i) {
      const ir::Expr dim = value.shape[i];
      if (dim->op == ir::ExprOp::Symbol) continue;
      const int64_t wanted = evaluate_size(dim, symbols_);
      if (wanted == tensor.dims()[i]) continue;
      const std::string formula =
          dim->is_constant() ? "" : fmt::format(" ({})", to_string(*graph_.pool, dim));
      user_error("input \"{}\" dimension {} is {}, but the model takes {}{}: it is {}, not {}",
                 value.name, i, tensor.dims()[i], wanted, formula, describe(tensor),
                 declared_type(graph_, value));
    }
  }

 private:
  void bind_symbol(const ir::Value& value, size_t dimension, ir::Expr symbol, int64_t size) {
    const size_t number = static_cast<size_t>(symbol->integer);
    if (symbols_[number] < 0) {
      symbols_[number] = size;
      bound_by_[number] = &value;
    } else if (symbols_[number] != size) {
      RF_CHECK(bound_by_[number] != nullptr, "\"{}\" has dimension {} = {}, not {}", value.name,
               dimension, size, symbols_[number]);
      user_error("input \"{}\" dimension {} is {}, but \"{}\" is {}, bound by input \"{}\"",
                 value.name, dimension, size, to_string(*graph_.pool, symbol), symbols_[number],
                 bound_by_[number]->name);
    }
  }

  const ir::Graph& graph_;
  std::vector<int64_t>& symbols_;
  std::vector<const ir::Value*> bound_by_;
};

void check_names(const ir::Graph& graph, const NamedTensors& inputs) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.inputs) {
    names.push_back(graph.values[static_cast<size_t>(id)].name);
  }
  for (const auto& [name, tensor] : inputs) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      user_error("the model has no input \"{}\"{}{}", name, io::did_you_mean(name, names),
                 fmt::format(" (its inputs are {})", fmt::join(names, ", ")));
    }
  }
}

}  // namespace

void bind_inputs(const CompiledProgram& program, const NamedTensors& inputs,
                 std::span<Tensor> values, std::vector<int64_t>& symbols,
                 std::span<const int64_t> outer) {
  const ir::Graph& graph = program.graph();
  if (inputs.size() != graph.inputs.size()) check_names(graph, inputs);
  for (const ir::ValueId id : graph.inputs) {
    const ir::Value& value = graph.values[static_cast<size_t>(id)];
    const auto found = inputs.find(value.name);
    if (found == inputs.end()) check_names(graph, inputs);
    if (found == inputs.end() || !found->second.defined()) {
      user_error("input \"{}\" is missing: the model takes {}", value.name,
                 declared_type(graph, value));
    }
    values[static_cast<size_t>(id)] = found->second;
  }
  bind_sizes(program, values, symbols, outer);
}

void bind_sizes(const CompiledProgram& program, std::span<const Tensor> values,
                std::vector<int64_t>& symbols, std::span<const int64_t> outer) {
  const ir::Graph& graph = program.graph();
  symbols.assign(program.symbol_names.size(), -1);
  for (size_t i = 0; i < program.outer_symbols.size(); ++i) {
    if (program.outer_symbols[i]) symbols[i] = outer[i];
  }
  Binder binder(program, symbols);
  for (const ir::ValueId id : graph.inputs) {
    binder.bind(graph.values[static_cast<size_t>(id)], values[static_cast<size_t>(id)]);
  }
  for (const ir::ValueId id : graph.inputs) {
    binder.check(graph.values[static_cast<size_t>(id)], values[static_cast<size_t>(id)]);
  }
  for (const fuse::Append& append : program.appends) fuse::bind_dense(append, graph, symbols);
}

NamedDims output_dims(const CompiledProgram& program, const NamedDims& inputs) {
  const ir::Graph& graph = program.graph();
  NamedTensors shapes;
  for (const auto& [name, dims] : inputs) {
    shapes[name] = Tensor::wrap(DType::Float32, dims, nullptr, nullptr);
  }
  for (const ir::ValueId id : graph.inputs) {
    const ir::Value& value = graph.values[static_cast<size_t>(id)];
    const auto found = shapes.find(value.name);
    if (found == shapes.end()) continue;
    found->second = Tensor::wrap(value.dtype, found->second.dims(), nullptr, nullptr);
  }
  std::vector<Tensor> values(graph.values.size());
  std::vector<int64_t> symbols;
  bind_inputs(program, shapes, values, symbols);
  SizeChecks(graph).run(symbols);
  NamedDims result;
  for (const ir::ValueId id : graph.outputs) {
    const ir::Value& value = graph.values[static_cast<size_t>(id)];
    for (const int64_t symbol : program.shape_symbols[static_cast<size_t>(id)]) {
      if (symbols[static_cast<size_t>(symbol)] >= 0) continue;
      user_error("the size of output \"{}\" depends on data", value.name);
    }
    result[value.name] = cpu::dims_of(graph, id, symbols);
  }
  return result;
}

}  // namespace redfuser::runtime
