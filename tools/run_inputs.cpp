#include "run_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "redfuser/convert.h"
#include "redfuser/io.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

void add(NamedTensors& inputs, const std::string& name, Tensor tensor, const std::string& source) {
  if (!inputs.emplace(name, std::move(tensor)).second) {
    fail("--inputs {}: input \"{}\" was given before", source, name);
  }
}

// A file that exists is a file, even with '=' in its name.
void add_source(const Model& model, const std::string& source, NamedTensors& inputs) {
  const size_t equals = source.find('=');
  std::error_code absent;
  if (equals != std::string::npos && !std::filesystem::exists(source, absent)) {
    const std::string name = source.substr(0, equals);
    const NamedTensors loaded = load_tensors(source.substr(equals + 1));
    const auto same_name = loaded.find(name);
    if (loaded.size() != 1 && same_name == loaded.end()) {
      fail("--inputs {}: the file has {} tensors, none of them \"{}\"", source, loaded.size(),
           name);
    }
    add(inputs, name, loaded.size() == 1 ? loaded.begin()->second : same_name->second, source);
    return;
  }
  for (auto& [name, tensor] : load_tensors(source, model, Role::Inputs)) {
    add(inputs, name, tensor, source);
  }
}

}  // namespace

NamedTensors gather_inputs(const Model& model, const RunOptions& options) {
  if (options.inputs.empty()) return random_inputs(model, options.random);
  if (!options.random.shapes.empty() || !options.random.symbols.empty() ||
      !options.random.ranges.empty()) {
    fail("--shape, --dim and --range describe random inputs; they do not go with --inputs");
  }
  NamedTensors inputs;
  for (const std::string& source : options.inputs) add_source(model, source, inputs);
  for (const ValueInfo& info : model.inputs()) {
    if (inputs.count(info.name) > 0) continue;
    fail("--inputs has no tensor for input \"{}\"", info.name);
  }
  for (const auto* infos : {&model.inputs(), &model.overridable()}) {
    for (const ValueInfo& info : *infos) {
      const auto found = inputs.find(info.name);
      // NumPy has no bfloat16, and one file serves a model in several precisions.
      if (found == inputs.end() || !is_float(info.dtype)) continue;
      if (is_float(found->second.dtype())) found->second = cast_floats(found->second, info.dtype);
    }
  }
  return inputs;
}

Model model_for(const Model& model, const NamedTensors& inputs) {
  std::vector<std::string> names;
  for (const ValueInfo& info : model.overridable()) {
    if (inputs.count(info.name) > 0) names.push_back(info.name);
  }
  return model.with_inputs(names);
}

Model model_of_values(const Model& model, const NamedTensors& inputs) {
  NamedTensors values;
  for (const std::string& name : model.deciding_inputs(inputs)) values[name] = inputs.at(name);
  return model.with_values(values);
}

std::string assumed_sizes(const Model& model, const RunOptions& options) {
  if (!options.inputs.empty()) return "";
  std::set<std::string> given, assumed;
  for (const auto& [name, size] : options.random.symbols) given.insert(name);
  for (const ValueInfo& info : model.inputs()) {
    for (const auto& dim : info.dims) {
      const bool shaped = options.random.shapes.count(info.name) > 0;
      if (dim.size < 0) (shaped ? given : assumed).insert(dim.symbol);
    }
  }
  for (const std::string& name : given) assumed.erase(name);
  if (assumed.empty()) return "";
  return fmt::format(
      " (random inputs: nothing gives the size of {}, taken as 1; --dim NAME=SIZE gives one, "
      "--shape NAME:SIZES all of an input)",
      fmt::join(assumed, ", "));
}

void write_outputs(const Model& model, const std::string& path, const NamedTensors& outputs) {
  const std::filesystem::path target(path);
  std::error_code absent;
  if (!target.has_extension() || std::filesystem::is_directory(target, absent)) {
    save_data_set(path, model, Role::Outputs, outputs);
  } else {
    save_tensors(path, outputs);
  }
}

}  // namespace redfuser::tools
