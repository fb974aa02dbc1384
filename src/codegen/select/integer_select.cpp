#include "codegen/select/integer_select.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/integer_product/integer_kernel.h"
#include "codegen/select/offers.h"
#include "fuse/product.h"

namespace redfuser::codegen {
namespace {

// A builder of the product as a sum for each result.
class Reduction {
 public:
  Reduction(const StepBuilder& builder, const fuse::ProductStep& product, const KnownSizes& sizes)
      : step_(builder.step),
        reduce_(fuse::as_reduction(builder.pool(), product)),
        builder_(builder.graph, step_, builder.target) {
    step_.kind = reduce_;
    builder_.sizes = sizes;
    builder_.result.left_out = builder.result.left_out;
  }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  GpuStep make() {
    choose_reduce(builder_, reduce_);
    return std::move(builder_.result);
  }
  std::vector<Candidate> configs() { return reduce_configs(builder_, reduce_); }

 private:
  fuse::Step step_;
  fuse::ReduceStep reduce_;
  StepBuilder builder_;
};

// The form, unless the family is left out or does not take the product.
std::variant<IntegerForm, std::string> offered_form(StepBuilder& builder,
                                                    const fuse::ProductStep& step) {
  if (builder.leaves_out(kIntegerProductFamily) || builder.leaves_out_offer(kIntegerProductFamily))
    return "it fails";
  return integer_form(builder, step);
}

double time_at(const StepBuilder& builder, const IntegerForm& form, const KnownSizes& sizes) {
  return integer_choices(form, integer_sizes(form, sizes), builder.target).front().time;
}

// The estimate of a sum for each result may be so many times too low for products of integers.
constexpr double kDoubt = 2;

// Whether the tensor cores take less time: at the sizes of the builder, or of unknown ones by the
// ratio at nominal ones.
bool is_faster(const StepBuilder& builder, const fuse::ProductStep& step, const IntegerForm& form,
               const GpuStep& reduction) {
  if (sizes_known(builder.graph, builder.step, builder.sizes)) {
    return time_at(builder, form, builder.sizes) <= kDoubt * reduction.time;
  }
  double ratio = 1;
  for (const int64_t size : {32, 512}) {
    const KnownSizes sizes = KnownSizes::all(size);
    ratio *= time_at(builder, form, sizes) / Reduction(builder, step, sizes).make().time;
  }
  return ratio <= kDoubt * kDoubt;
}

// The configuration of the launch that runs at these sizes; the first where they are not known.
KernelConfig running(const GpuStep& step, const KnownSizes& sizes) {
  for (const GpuCall& call : step.calls) {
    const auto& launch = std::get<KernelLaunch>(call);
    if (sizes.of(launch.grid[0]) != 0) return {launch.family, launch.config};
  }
  const auto& last = std::get<KernelLaunch>(step.calls.back());
  return {last.family, last.config};
}

Offer offer_of(const StepBuilder& builder, const IntegerForm& form, const GpuStep& made) {
  const KernelConfig choice = running(made, builder.sizes);
  const double time = integer_time(form, IntegerConfig::of(choice),
                                   integer_sizes(form, builder.sizes), builder.target);
  return {kIntegerProductFamily, calls_text(made, builder.sizes), time, "", false,
          to_string(choice)};
}

}  // namespace

void choose_integer_product(StepBuilder& builder, const fuse::ProductStep& step) {
  GpuStep reduction = Reduction(builder, step, builder.sizes).make();
  const auto found = offered_form(builder, step);
  const auto* form = std::get_if<IntegerForm>(&found);
  if (form == nullptr) {
    reduction.offers.push_back({kIntegerProductFamily, "", 0, std::get<std::string>(found)});
    builder.result = std::move(reduction);
    return;
  }
  StepBuilder trial = builder.trial();
  add_integer_product(trial, *form);
  Offer own = offer_of(builder, *form, trial.result);
  std::vector<Offer>& others = reduction.offers;
  if (is_faster(builder, step, *form, reduction)) {
    trial.result.time = own.time;
    trial.result.offers = {std::move(own)};
    trial.result.offers.insert(trial.result.offers.end(), others.begin(), others.end());
    builder.result = std::move(trial.result);
  } else {
    others.insert(others.begin() + 1, std::move(own));
    builder.result = std::move(reduction);
  }
}

void generate_integer_product(StepBuilder& builder, const fuse::ProductStep& step,
                              const KernelConfig& choice) {
  const auto form = integer_form(builder, step);
  RF_CHECK(std::holds_alternative<IntegerForm>(form), "{} computes no such product",
           to_string(choice));
  builder.result.calls.push_back(
      integer_kernel(builder, std::get<IntegerForm>(form), IntegerConfig::of(choice)));
}

std::vector<Candidate> integer_configs(StepBuilder& builder, const fuse::ProductStep& step) {
  std::vector<Candidate> others = Reduction(builder, step, builder.sizes).configs();
  const auto found = offered_form(builder, step);
  const auto* form = std::get_if<IntegerForm>(&found);
  if (form == nullptr) return others;
  StepBuilder trial = builder.trial();
  trial.sizes = KnownSizes();
  choose_integer_product(trial, step);
  const IntegerSizes sizes = integer_sizes(*form, builder.sizes);
  std::vector<Candidate> own = integer_choices(*form, sizes, builder.target);
  std::vector<Candidate> first;
  if (trial.result.offers.front().family == kIntegerProductFamily) {
    const KernelConfig choice = running(trial.result, builder.sizes);
    first = {{choice, integer_time(*form, IntegerConfig::of(choice), sizes, builder.target)}};
    own.insert(own.end(), others.begin(), others.end());
  } else {
    if (others.empty()) return {};
    first = std::move(others);
  }
  return best_choices(std::move(first), std::move(own));
}

}  // namespace redfuser::codegen
