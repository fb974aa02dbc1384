#include "cpu/select/make_kernel.h"

#include "cpu/convolution/convolution_families.h"
#include "cpu/convolution/integer_plan.h"
#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_table.h"
#include "cpu/select/chosen_kernel.h"
#include "cpu/steps/cascade/cascade_families.h"
#include "cpu/steps/map/map_families.h"
#include "cpu/steps/product_families.h"
#include "cpu/steps/reduce_families.h"
#include "fuse/alternatives.h"

namespace redfuser::cpu {
namespace {

std::span<const Family> families_of(const fuse::MapStep&) { return map_families(); }
std::span<const Family> families_of(const fuse::ReduceStep&) { return reduce_families(); }
std::span<const Family> families_of(const fuse::ProductStep&) { return product_families(); }
std::span<const Family> families_of(const fuse::CascadeStep&) { return cascade_families(); }

struct KernelMaker {
  const ir::Graph& graph;
  const fuse::StepKind& kind;
  const fuse::Step* region;  // that may be divided; null: it may not

  std::unique_ptr<Kernel> operator()(const fuse::AliasStep&) const { return nullptr; }
  std::unique_ptr<Kernel> operator()(const fuse::OpaqueStep& step) const {
    auto families = convolution_families(graph.nodes[static_cast<size_t>(step.node)]);
    if (families.empty()) families = integer_convolution_families(graph, step);
    if (families.empty()) return make_opaque_kernel(graph, step);
    return std::make_unique<ChosenKernel>(graph, kind, families, symbols_of(graph, step), nullptr);
  }
  template <typename Step>
  std::unique_ptr<Kernel> operator()(const Step& step) const {
    std::shared_ptr<const Divisions> divisions;
    if (region != nullptr && fuse::may_divide(graph, *region)) {
      divisions = std::make_shared<const Divisions>(graph, *region);
    }
    return std::make_unique<ChosenKernel>(graph, kind, families_of(step), symbols_of(graph, step),
                                          std::move(divisions));
  }
};

}  // namespace

bool has_opaque_kernel(const ir::Node& node) {
  return !convolution_families(node).empty() || find_opaque(node.domain, node.op) != nullptr;
}

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::StepKind& kind) {
  return std::visit(KernelMaker{graph, kind, nullptr}, kind);
}

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::Step& step) {
  return std::visit(KernelMaker{graph, step.kind, &step}, step.kind);
}

}  // namespace redfuser::cpu
