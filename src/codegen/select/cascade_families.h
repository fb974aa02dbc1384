// The families that compute cascades: what each takes, and the time that it needs by estimate.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// A cascade as its families see it; each view of it is made once.
class CascadeForms {
 public:
  CascadeForms(StepBuilder& builder, const fuse::CascadeStep& step)
      : builder(builder), step(step) {}

  // nullptr where the cascade is not of the attention class.
  const AttentionSpec* attention();
  const FlatStreaming& rows();

  StepBuilder& builder;
  const fuse::CascadeStep& step;

 private:
  std::optional<std::optional<AttentionSpec>> attention_;
  std::optional<FlatStreaming> rows_;
};

using select::FamilyAnswer;

struct CascadeFamily {
  std::string_view name;
  // At the builder's sizes.
  FamilyAnswer (*offer)(CascadeForms& forms);
  // Adds the kernels of its default, for all sizes; false if it turns out to take none.
  bool (*emit)(CascadeForms& forms);
  // The configuration names one of its kernels.
  bool (*has)(const KernelConfig& choice);
  // Adds the kernels of one configuration.
  void (*emit_choice)(CascadeForms& forms, const KernelConfig& choice);
};
std::span<const CascadeFamily> cascade_families();

}  // namespace redfuser::codegen
