#include "base/error.h"
#include "codegen/core/step_builder.h"
#include "codegen/product/library_time.h"

namespace redfuser::codegen {

DType StepBuilder::dtype_of(int64_t value) const {
  if (value >= kScratchValues)
    return scratch_dtypes.at(static_cast<size_t>(value - kScratchValues));
  return graph.values.at(static_cast<size_t>(value)).dtype;
}

int64_t StepBuilder::add_scratch(DType dtype, ir::Expr elements) {
  scratch_dtypes.push_back(dtype);
  ir::Expr bytes = pool().mul(elements, pool().integer(static_cast<int64_t>(size_of(dtype))));
  result.scratch.push_back({bytes});
  return kScratchValues + static_cast<int64_t>(scratch_dtypes.size()) - 1;
}

BufferRef StepBuilder::buffer(int64_t value) const {
  BufferRef ref;
  if (value >= kScratchValues) {
    ref.scratch = static_cast<int>(value - kScratchValues);
  } else {
    ref.value = static_cast<ir::ValueId>(value);
  }
  return ref;
}

void StepBuilder::fail(const std::string& message) const {
  const ir::Node& node = graph.nodes.at(static_cast<size_t>(step.nodes.back()));
  user_error("[{}] node \"{}\": {}", node.op, node.name, message);
}

namespace {

struct Generator {
  StepBuilder& builder;
  void operator()(const fuse::MapStep& step) const { generate_map(builder, step); }
  void operator()(const fuse::ReduceStep& step) const { generate_reduce(builder, step); }
  void operator()(const fuse::ProductStep& step) const { generate_product(builder, step); }
  void operator()(const fuse::CascadeStep& step) const { generate_cascade(builder, step); }
  void operator()(const fuse::OpaqueStep& step) const { generate_opaque(builder, step); }
  void operator()(const fuse::AliasStep&) const {}
};

}  // namespace

GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                 const KnownSizes& sizes) {
  StepBuilder builder(graph, step, target);
  builder.sizes = sizes;
  std::visit(Generator{builder}, step.kind);
  GpuStep& result = builder.result;
  if (result.time == 0) {
    for (const GpuCall& call : result.calls) result.time += time_of(call, sizes, target);
  }
  return std::move(result);
}

GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target) {
  return generate(graph, step, target, KnownSizes());
}

GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                 const KernelConfig& choice) {
  StepBuilder builder(graph, step, target);
  if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
    generate_cascade(builder, *cascade, choice);
  } else {
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    RF_CHECK(product != nullptr, "{} computes no such step", to_string(choice));
    generate_product(builder, *product, choice);
  }
  return std::move(builder.result);
}

std::vector<Candidate> kernel_configs(const ir::Graph& graph, const fuse::Step& step,
                                      const Target& target, std::span<const int64_t> symbols) {
  const KnownSizes sizes(symbols);
  std::vector<Candidate> choices;
  if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
    StepBuilder builder(graph, step, target);
    builder.sizes = sizes;
    choices = cascade_configs(builder, *cascade);
  } else if (std::holds_alternative<fuse::ProductStep>(step.kind)) {
    choices = product_configs(graph, step, target, sizes);
  }
  if (choices.size() < 2) choices.clear();
  return choices;
}

}  // namespace redfuser::codegen
