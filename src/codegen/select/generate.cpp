#include "codegen/select/generate.h"

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/dispatch.h"
#include "codegen/product/library_product.h"
#include "codegen/product/library_time.h"
#include "codegen/product/product_choice.h"
#include "codegen/select/cascade_select.h"
#include "codegen/select/reduce_select.h"
#include "codegen/select/rows_select.h"

namespace redfuser::codegen {
namespace {

struct Generator {
  StepBuilder& builder;
  void operator()(const fuse::MapStep& step) const { generate_map(builder, step); }
  void operator()(const fuse::ReduceStep& step) const {
    if (const auto rows = rows_of(builder, step)) {
      add_row_folds(builder, *rows);
    } else {
      generate_reduce(builder, step);
    }
  }
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
  } else if (const auto* reduce = std::get_if<fuse::ReduceStep>(&step.kind)) {
    const auto rows = rows_of(builder, *reduce);
    RF_CHECK(rows, "{} computes no such reduction", to_string(choice));
    add_row_folds(builder, *rows, choice);
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
  } else if (const auto* reduce = std::get_if<fuse::ReduceStep>(&step.kind)) {
    StepBuilder builder(graph, step, target);
    if (const auto rows = rows_of(builder, *reduce)) {
      choices = row_fold_configs(builder, *rows, sizes);
    }
  } else if (std::holds_alternative<fuse::ProductStep>(step.kind)) {
    choices = product_configs(graph, step, target, sizes);
  }
  if (choices.size() < 2) choices.clear();
  return choices;
}

}  // namespace redfuser::codegen
