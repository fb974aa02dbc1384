#include "runtime/program/overriding_programs.h"

#include "onnx/import/import.h"

namespace redfuser::runtime {

OverridingPrograms::OverridingPrograms(std::shared_ptr<const onnx::LoadedModel> model,
                                       const CompileOptions& options)
    : model_(std::move(model)), options_(options) {
  for (const ValueInfo& info : model_->overridable) overridable_.insert(info.name);
  for (const ValueInfo& info : model_->inputs) overridable_.erase(info.name);
}

Program OverridingPrograms::of(const std::vector<std::string>& names) const {
  const std::lock_guard lock(mutex_);
  const auto known = programs_.find(names);
  if (known != programs_.end()) return known->second;
  return programs_.emplace(names, compile(Model(model_).with_inputs(names), options_))
      .first->second;
}

}  // namespace redfuser::runtime
