#include "codegen/joined/joiner.h"

#include "codegen/product/library_product.h"
#include "codegen/select/division.h"
#include "codegen/select/generate.h"
#include "codegen/select/offers.h"

namespace redfuser::codegen {
namespace {

fuse::Step together(const std::vector<const fuse::Step*>& steps) {
  fuse::Step all = *steps.back();
  for (size_t i = steps.size() - 1; i-- > 0;) {
    const fuse::Step& step = *steps[i];
    all.label = step.label + " " + all.label;
    all.nodes.insert(all.nodes.begin(), step.nodes.begin(), step.nodes.end());
    for (auto values : {&fuse::Step::reads, &fuse::Step::writes}) {
      (all.*values).insert((all.*values).begin(), (step.*values).begin(), (step.*values).end());
    }
  }
  return all;
}

}  // namespace

Joiner::Joiner(const ir::Graph& graph, std::vector<const fuse::Step*> steps, const Target& target,
               const KnownSizes& sizes, const LeftOut& left_out)
    : steps_(std::move(steps)),
      step_(together(steps_)),
      builder_(graph, step_, target),
      pool_(builder_.pool()) {
  builder_.sizes = sizes;
  builder_.result.left_out = left_out;
}

bool Joiner::sizes_known() const {
  return codegen::sizes_known(builder_.graph, step_, builder_.sizes);
}

GpuStep Joiner::form_apart(size_t step) const {
  return codegen::generate(builder_.graph, *steps_[step], builder_.target, builder_.sizes,
                           builder_.result.left_out);
}

void Joiner::add_apart(std::vector<GpuStep> forms, ir::Expr taken, double overlap) {
  apart_.time = -overlap;
  for (const GpuStep& form : forms) {
    apart_.time += form.time;
    apart_.calls.insert(apart_.calls.end(), form.calls.begin(), form.calls.end());
  }
  if (taken && taken->is_constant(1)) return;
  const size_t calls = builder_.result.calls.size(), buffers = builder_.result.scratch.size();
  fuse::Alternative division{kApart, {}};
  for (const fuse::Step* step : steps_) division.steps.push_back(*step);
  add_division(builder_, division, std::move(forms));
  if (taken) leave_out_where(builder_, taken, calls, buffers);
}

GpuStep Joiner::with_offers(const Offer& kernel, bool runs, const std::string& apart_choice) {
  if (builder_.leaves_out_offer(kApart)) builder_.fail_without_kernel();
  GpuStep& result = builder_.result;
  const Offer apart{kApart,      calls_text(apart_, builder_.sizes), apart_.time, "", true,
                    apart_choice};
  result.time = runs ? kernel.time : apart.time;
  result.offers = {apart, kernel};
  if (runs) std::swap(result.offers[0], result.offers[1]);
  if (!sizes_known()) {
    for (Offer& offer : result.offers) offer.time = 0;
  }
  return std::move(result);
}

}  // namespace redfuser::codegen
