#include "codegen/select/generate.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/maps/map_select.h"
#include "codegen/opaque/dispatch.h"
#include "codegen/product/product_choice.h"
#include "codegen/scan/scan_select.h"
#include "codegen/select/cascade_select.h"
#include "codegen/select/convolution_select.h"
#include "codegen/select/integer_select.h"
#include "codegen/select/offers.h"
#include "codegen/select/recurrent_select.h"
#include "codegen/select/reduce_select.h"
#include "codegen/select/rows_select.h"
#include "fuse/product.h"

namespace redfuser::codegen {
namespace {

const ir::Node& node_of(const ir::Graph& graph, const fuse::OpaqueStep& step) {
  return graph.nodes[static_cast<size_t>(step.node)];
}

struct Generator {
  StepBuilder& builder;
  void operator()(const fuse::MapStep& step) const { choose_map(builder, step); }
  void operator()(const fuse::ReduceStep& step) const { choose_reduce(builder, step); }
  void operator()(const fuse::ProductStep& step) const {
    step.of_integers() ? choose_integer_product(builder, step) : choose_product(builder, step);
  }
  void operator()(const fuse::CascadeStep& step) const { generate_cascade(builder, step); }
  void operator()(const fuse::OpaqueStep& step) const {
    const ir::Node& node = node_of(builder.graph, step);
    const ops::NodeView view(builder.graph, node);
    if (is_convolution(node.domain, node.op)) return choose_convolution(builder, view);
    if (is_recurrent(node.domain, node.op)) return choose_recurrent(builder, view);
    generate_opaque(builder, step);
  }
  void operator()(const fuse::AliasStep&) const {}
};

const fuse::ProductStep* integer_product(const fuse::Step& step) {
  const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
  return product != nullptr && product->of_integers() ? product : nullptr;
}

// A step as the families of reductions take it, which compute products of integers too.
class Taken {
 public:
  Taken(const ir::Graph& graph, const fuse::Step& step) : step_(&step) {
    const fuse::ProductStep* product = integer_product(step);
    if (product == nullptr) return;
    own_ = step;
    own_.kind = fuse::as_reduction(*graph.pool, *product);
    step_ = &own_;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  const fuse::Step& step() const { return *step_; }

 private:
  const fuse::Step* step_;
  fuse::Step own_;
};

}  // namespace

GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                 const KnownSizes& sizes, const LeftOut& left_out) {
  StepBuilder builder(graph, step, target);
  builder.sizes = sizes;
  builder.result.left_out = left_out;
  std::visit(Generator{builder}, step.kind);
  RF_CHECK(!builder.result.calls.empty() || std::holds_alternative<fuse::AliasStep>(step.kind),
           "no kernel computes {}", step.label);
  finish_offers(builder);
  return std::move(builder.result);
}

GpuStep generate(const ir::Graph& graph, const fuse::Step& step, const Target& target) {
  return generate(graph, step, target, KnownSizes());
}

GpuStep generate(const ir::Graph& graph, const fuse::Step& given, const Target& target,
                 const KernelConfig& choice) {
  if (choice.family == kIntegerProductFamily) {
    StepBuilder builder(graph, given, target);
    const fuse::ProductStep* product = integer_product(given);
    RF_CHECK(product != nullptr, "{} computes no such step", to_string(choice));
    generate_integer_product(builder, *product, choice);
    return std::move(builder.result);
  }
  const bool convolution = is_convolution_family(choice.family);
  if (convolution || is_recurrent_family(choice.family)) {
    StepBuilder builder(graph, given, target);
    const auto* opaque = std::get_if<fuse::OpaqueStep>(&given.kind);
    RF_CHECK(opaque != nullptr, "{} computes no such step", to_string(choice));
    const ops::NodeView view(graph, node_of(graph, *opaque));
    (convolution ? generate_convolution : generate_recurrent)(builder, view, choice);
    return std::move(builder.result);
  }
  const Taken taken(graph, given);
  const fuse::Step& step = taken.step();
  StepBuilder builder(graph, step, target);
  if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
    generate_cascade(builder, *cascade, choice);
  } else if (const auto* map = std::get_if<fuse::MapStep>(&step.kind)) {
    generate_map(builder, *map, choice);
  } else if (const auto* reduce = std::get_if<fuse::ReduceStep>(&step.kind)) {
    if (const auto scan = scan_form(builder, *reduce)) {
      add_scan(builder, *scan, choice);
    } else {
      const auto rows = rows_of(builder, *reduce);
      const auto* form = std::get_if<FlatStreaming>(&rows);
      RF_CHECK(form, "{} computes no such reduction", to_string(choice));
      add_row_folds(builder, *form, choice);
    }
  } else {
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    RF_CHECK(product != nullptr, "{} computes no such step", to_string(choice));
    generate_product(builder, *product, choice);
  }
  return std::move(builder.result);
}

std::vector<Offer> offers_at(const ir::Graph& graph, const fuse::Step& step, const Target& target,
                             const KnownSizes& sizes, const GpuStep& form) {
  if (form.offers.empty() || !sizes_known(graph, step, sizes)) return form.offers;
  std::vector<Offer> offers = generate(graph, step, target, sizes, form.left_out).offers;
  // Which family computes a cascade, or a product of integers, is chosen once for all sizes.
  if (!std::holds_alternative<fuse::CascadeStep>(step.kind) && integer_product(step) == nullptr) {
    return offers;
  }
  const std::string& family = form.offers.front().family;
  const auto found = std::find_if(offers.begin(), offers.end(),
                                  [&](const Offer& offer) { return offer.family == family; });
  if (found == offers.end()) {
    offers.insert(offers.begin(), form.offers.front());
  } else {
    std::rotate(offers.begin(), found, found + 1);
  }
  return offers;
}

std::vector<Candidate> kernel_configs(const ir::Graph& graph, const fuse::Step& step,
                                      const Target& target, std::span<const int64_t> symbols,
                                      const LeftOut& left_out) {
  StepBuilder builder(graph, step, target);
  builder.sizes = KnownSizes(symbols);
  builder.result.left_out = left_out;
  std::vector<Candidate> choices;
  if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
    choices = cascade_configs(builder, *cascade);
  } else if (const auto* map = std::get_if<fuse::MapStep>(&step.kind)) {
    choices = map_configs(builder, *map);
  } else if (const auto* reduce = std::get_if<fuse::ReduceStep>(&step.kind)) {
    choices = reduce_configs(builder, *reduce);
  } else if (const auto* product = std::get_if<fuse::ProductStep>(&step.kind)) {
    choices = product->of_integers() ? integer_configs(builder, *product)
                                     : product_configs(builder, *product);
  } else if (const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind)) {
    const ir::Node& node = node_of(graph, *opaque);
    const ops::NodeView view(graph, node);
    if (is_convolution(node.domain, node.op)) choices = convolution_configs(builder, view);
    if (is_recurrent(node.domain, node.op)) choices = recurrent_configs(builder, view);
  }
  if (choices.size() < 2) choices.clear();
  return choices;
}

bool has_own_kernels(std::string_view domain, std::string_view name) {
  return is_convolution(domain, name) || is_recurrent(domain, name) ||
         has_opaque_kernel(domain, name);
}

}  // namespace redfuser::codegen
