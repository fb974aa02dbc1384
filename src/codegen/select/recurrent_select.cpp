#include "codegen/select/recurrent_select.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/product/library_time.h"
#include "codegen/recurrent/recurrent_config.h"
#include "codegen/recurrent/recurrent_kernel.h"
#include "codegen/select/offers.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kFamilies[] = {kGridRecurrentFamily, kWideRecurrentFamily,
                                     kClusterRecurrentFamily, kBlockRecurrentFamily};
// Steps where only a run knows them; sequences of the largest class of batches.
constexpr int64_t kNominalSteps = 64, kManySequences = 128;
constexpr int64_t kBatchLimits[] = {8, 16, 32, 64};

RecurrentForm form_of(const StepBuilder& builder, const ops::NodeView& view) {
  auto form = recurrent_form(view);
  if (const auto* refusal = std::get_if<std::string>(&form)) builder.fail(*refusal);
  return std::get<RecurrentForm>(std::move(form));
}

class Choice {
 public:
  Choice(StepBuilder& builder, const ops::NodeView& view)
      : builder_(builder), pool_(builder.pool()), view_(view), form_(form_of(builder, view)) {}

  void make() {
    if (choices(kManySequences).empty()) fail_without_room();
    const int64_t inputs = add_input_product(builder_, view_, form_);
    const auto best = [&](double batch) {
      return choices(static_cast<int64_t>(batch)).front().choice;
    };
    const auto add = [&](const KernelConfig& choice, ir::Expr when) {
      add_kernel(choice, inputs, when);
    };
    if (form_.batch->is_constant()) {
      add(best(static_cast<double>(std::max<int64_t>(form_.batch->integer, 1))), nullptr);
    } else {
      each_size_class(pool_, form_.batch, kBatchLimits, static_cast<double>(kManySequences), best,
                      add);
    }
    add_offers();
  }

  void make(const KernelConfig& choice) {
    add_kernel(choice, add_input_product(builder_, view_, form_), nullptr);
  }

  // Those of a run's sizes, that of make() first.
  std::vector<Candidate> configs() const {
    const int64_t batch = builder_.sizes.of(form_.batch);
    if (batch <= 0 || choices(batch).empty()) return {};
    return best_choices({timed(running(batch), batch)}, choices(batch, known_steps()));
  }

 private:
  [[noreturn]] void fail_without_room() {
    const bool tried = std::any_of(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const char* family) { return left_out(family); });
    if (tried) builder_.fail_without_kernel();
    builder_.fail(
        fmt::format("the states of {} units have no room in the memory of a block", form_.hidden));
  }

  bool left_out(const std::string& family) const {
    return builder_.leaves_out(family) || builder_.leaves_out_offer(family);
  }

  // The nominal batch of the kernel that a run with this one has.
  int64_t class_of(int64_t batch) const {
    if (form_.batch->is_constant()) return batch;
    const auto* limit = std::lower_bound(std::begin(kBatchLimits), std::end(kBatchLimits), batch);
    return limit == std::end(kBatchLimits) ? kManySequences : *limit;
  }

  // By these steps, or by those of the model: a kernel is the same whatever its estimated time.
  std::vector<Candidate> choices(int64_t batch, std::optional<double> steps = {}) const {
    const ir::Expr own = form_.steps;
    const int64_t nominal = own->is_constant() ? own->integer : kNominalSteps;
    std::vector<Candidate> all = recurrent_choices(
        form_, builder_.target, steps.value_or(static_cast<double>(nominal)), batch);
    std::erase_if(all, [&](const Candidate& c) { return left_out(c.choice.family); });
    return all;
  }
  // The choice that a run with this batch has.
  KernelConfig running(int64_t batch) const { return choices(class_of(batch)).front().choice; }

  double known_steps() const {
    const int64_t known = builder_.sizes.of(form_.steps);
    return static_cast<double>(known < 0 ? kNominalSteps : known);
  }
  Candidate timed(const KernelConfig& choice, int64_t batch) const {
    return {choice, recurrent_time(form_, RecurrentConfig::of(choice), builder_.target,
                                   known_steps(), batch)};
  }

  void add_kernel(const KernelConfig& choice, int64_t inputs, ir::Expr when) {
    KernelLaunch launch =
        recurrent_kernel(builder_, view_, form_, RecurrentConfig::of(choice), inputs);
    const int64_t batch = builder_.sizes.of(form_.batch);
    if (batch > 0) launch.time = timed(choice, batch).time;
    if (when != nullptr && !when->is_constant(1)) {
      launch.grid[0] = pool_.select(when, launch.grid[0], pool_.integer(0));
    }
    builder_.result.calls.push_back(std::move(launch));
  }

  // Of the product of the inputs, which is the same in all.
  double product_time() const {
    double time = 0;
    for (const GpuCall& call : builder_.result.calls) {
      const auto* launch = std::get_if<KernelLaunch>(&call);
      if (launch != nullptr && is_recurrent_family(launch->family)) continue;
      time += time_of(call, builder_.sizes, builder_.target);
    }
    return time;
  }

  // That which runs, then the best of the other families.
  void add_offers() {
    const int64_t known = builder_.sizes.of(form_.batch),
                  batch = known > 0 ? known : kManySequences;
    const double product = product_time();
    std::vector<Candidate> all = choices(batch, known_steps());
    all.insert(all.begin(), timed(running(batch), batch));
    std::vector<Offer>& offers = builder_.result.offers;
    const auto has = [&](const std::string& family) {
      return std::any_of(offers.begin(), offers.end(),
                         [&](const Offer& offer) { return offer.family == family; });
    };
    for (const Candidate& c : all) {
      const std::string text = to_string(c.choice);
      if (!has(c.choice.family)) {
        offers.push_back({c.choice.family, text, product + c.time, "", false, text});
      }
    }
    for (const char* family : kFamilies) {
      const char* refusal = left_out(family) ? "it fails" : "its blocks have no room or no units";
      if (!has(family)) offers.push_back({family, "", 0, refusal, false, ""});
    }
    builder_.result.time = offers.front().time;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ops::NodeView& view_;
  const RecurrentForm form_;
};

}  // namespace

bool is_recurrent_family(const std::string& family) {
  return std::find(std::begin(kFamilies), std::end(kFamilies), family) != std::end(kFamilies);
}

void choose_recurrent(StepBuilder& builder, const ops::NodeView& view) {
  Choice(builder, view).make();
}

void generate_recurrent(StepBuilder& builder, const ops::NodeView& view,
                        const KernelConfig& choice) {
  Choice(builder, view).make(choice);
}

std::vector<Candidate> recurrent_configs(StepBuilder& builder, const ops::NodeView& view) {
  return Choice(builder, view).configs();
}

}  // namespace redfuser::codegen
