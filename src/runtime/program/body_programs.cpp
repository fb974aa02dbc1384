#include "runtime/program/body_programs.h"

#include <algorithm>

#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kMostPrograms = 16;
// A subgraph of a few sizes has a program for each, which fuses best.
constexpr size_t kExactPrograms = 2;

bool has_plan(const Program& program) { return program.handle()->model->needs_values.empty(); }

bool same_ranks(const std::vector<onnx::BodyInput>& a, const std::vector<onnx::BodyInput>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.dtype == y.dtype && x.dims.size() == y.dims.size();
  });
}

}  // namespace

bool BodyProgram::takes(std::span<const Tensor* const> given) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const onnx::BodyInput& input = inputs[i];
    if (input.constant.defined()) continue;
    const Dims& dims = given[i]->dims();
    if (input.list != nullptr &&
        !(is_list(given[i]->dtype()) && covers(input.list, form_of(*given[i])))) {
      return false;
    }
    if (given[i]->dtype() != input.dtype || dims.size() != input.dims.size()) return false;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (input.dims[k] >= 0 && input.dims[k] != dims[k]) return false;
    }
  }
  return true;
}

bool BodyProgram::is_exact() const {
  return std::all_of(inputs.begin(), inputs.end(), [](const onnx::BodyInput& input) {
    return input.list != nullptr || std::count(input.dims.begin(), input.dims.end(), -1) == 0;
  });
}

std::shared_ptr<const BodyProgram> BodyPrograms::find(std::span<const Tensor* const> inputs,
                                                      bool exact, bool& full) const {
  const std::lock_guard lock(mutex_);
  full = programs_.size() >= kMostPrograms;
  for (const auto& known : programs_) {
    if (known->takes(inputs) && (!exact || known->is_exact())) return known;
  }
  return nullptr;
}

std::vector<onnx::BodyInput> BodyPrograms::types_of(std::span<const Tensor* const> inputs) const {
  std::vector<onnx::BodyInput> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back({inputs[i]->dtype(), inputs[i]->dims(), constants_[i], nullptr});
    if (!is_list(inputs[i]->dtype()) || constants_[i].defined()) continue;
    types.back().dims = {-1};
    types.back().list = form_of(*inputs[i]);
  }
  return types;
}

bool BodyPrograms::widen(std::vector<onnx::BodyInput>& inputs) const {
  const std::lock_guard lock(mutex_);
  size_t alike = 0;
  for (const auto& known : programs_) {
    if (!same_ranks(known->inputs, inputs)) continue;
    ++alike;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].list != nullptr) inputs[i].list = joined(known->inputs[i].list, inputs[i].list);
      for (size_t k = 0; k < inputs[i].dims.size(); ++k) {
        if (known->inputs[i].dims[k] != inputs[i].dims[k]) inputs[i].dims[k] = -1;
      }
    }
  }
  return alike >= kExactPrograms;
}

std::shared_ptr<const BodyProgram> BodyPrograms::compiled(
    std::vector<onnx::BodyInput> inputs) const {
  auto made = std::make_shared<BodyProgram>();
  made->program = compile(Model(import_body(*model_, body_, inputs)), options_);
  made->inputs = std::move(inputs);
  return made;
}

std::shared_ptr<const BodyProgram> BodyPrograms::of(std::span<const Tensor* const> inputs,
                                                    bool exact) const {
  bool full = false;
  auto known = find(inputs, exact, full);
  if (known != nullptr || full) return known;
  std::shared_ptr<const BodyProgram> made;
  std::vector<onnx::BodyInput> wide = types_of(inputs);
  if (!exact && widen(wide)) made = compiled(std::move(wide));
  // Sizes may decide the structure, so that only a program for them alone has a plan.
  if (made == nullptr || !has_plan(made->program)) made = compiled(types_of(inputs));
  const std::lock_guard lock(mutex_);
  programs_.insert(made->is_exact() ? programs_.begin() : programs_.end(), made);
  return made;
}

}  // namespace redfuser::runtime
