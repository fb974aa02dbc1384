#include "codegen/select/division.h"

#include <functional>

#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

void for_buffers(GpuCall& call, const std::function<void(BufferRef&)>& each) {
  if (auto* launch = std::get_if<KernelLaunch>(&call)) {
    for (TmaView& view : launch->views) each(view.buffer);
    for (BufferRef& buffer : launch->buffers) each(buffer);
    return;
  }
  auto& product = std::get<ProductCall>(call);
  for (BufferRef* buffer : {&product.a, &product.b, &product.c, &product.bias, &product.addend,
                            &product.a_scale, &product.b_scale}) {
    each(*buffer);
  }
}

class DivisionBuilder {
 public:
  DivisionBuilder(StepBuilder& builder, const fuse::Alternative& division) : builder_(builder) {
    for (const fuse::Step& step : division.steps) {
      const auto* alias = std::get_if<fuse::AliasStep>(&step.kind);
      if (alias != nullptr) roots_[alias->value] = root(alias->source);
    }
    for (const ir::ValueId output : builder.step.writes) {
      places_[root(output)] = builder.buffer(output);
    }
  }

  void add(const fuse::Step& step, GpuStep part) {
    if (std::holds_alternative<fuse::AliasStep>(step.kind)) return;
    for (const ir::ValueId value : step.writes) make_room(value);
    const auto first = static_cast<int>(builder_.result.scratch.size());
    for (GpuCall& call : part.calls) {
      for_buffers(call, [&](BufferRef& buffer) {
        if (buffer.scratch >= 0) buffer.scratch += first;
        if (buffer.value >= 0) buffer = place(buffer.value);
      });
      builder_.result.calls.push_back(std::move(call));
    }
    for (const Scratch& scratch : part.scratch) {
      builder_.result.scratch.push_back(scratch);
      builder_.scratch_dtypes.push_back(DType::UInt8);
    }
    // A kernel that starts before the end of the last one takes a launch nevertheless.
    constexpr double kLeast = select::kLaunchTime + select::kLaunchOverlap;
    const bool hidden = part.time > 0 && part.time < kLeast;
    builder_.result.time += hidden ? kLeast : part.time;
  }

 private:
  ir::ValueId root(ir::ValueId value) const {
    const auto found = roots_.find(value);
    return found == roots_.end() ? value : found->second;
  }

  void make_room(ir::ValueId value) {
    if (places_.count(value)) return;
    const int64_t scratch = builder_.add_scratch(
        builder_.dtype_of(value), product_of(builder_.pool(), builder_.shape(value)));
    places_[value] = builder_.buffer(scratch);
  }

  BufferRef place(ir::ValueId value) const {
    const auto found = places_.find(root(value));
    return found == places_.end() ? builder_.buffer(root(value)) : found->second;
  }

  StepBuilder& builder_;
  std::map<ir::ValueId, ir::ValueId> roots_;  // of aliases
  std::map<ir::ValueId, BufferRef> places_;   // of what the steps write
};

}  // namespace

void add_division(StepBuilder& builder, const fuse::Alternative& division) {
  std::vector<GpuStep> forms;
  for (const fuse::Step& step : division.steps) {
    forms.push_back(
        generate(builder.graph, step, builder.target, builder.sizes, builder.result.left_out));
  }
  add_division(builder, division, std::move(forms));
}

void add_division(StepBuilder& builder, const fuse::Alternative& division,
                  std::vector<GpuStep> forms) {
  DivisionBuilder steps(builder, division);
  for (size_t i = 0; i < forms.size(); ++i) steps.add(division.steps[i], std::move(forms[i]));
}

}  // namespace redfuser::codegen
