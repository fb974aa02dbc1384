#include "codegen/joined/chain_joiner.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/chain/chain_kernel.h"
#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

// By how much two products take less time than estimates of each, which are low for few rows that
// leave nothing to hide, and high for more. Microseconds, fitted to chains on an H100 whose second
// product starts early.
double overlap_of(const ChainClass& rows) {
  constexpr int64_t kFewRows = 16;
  constexpr double kFew = -0.8, kMore = 4.2;
  return rows.most <= kFewRows ? kFew : kMore;
}

class ChainJoiner : public Joiner {
 public:
  ChainJoiner(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& first,
              const fuse::Step& second, const Target& target, const KnownSizes& sizes,
              const LeftOut& left_out)
      : Joiner(graph, {&first, &second}, target, sizes, left_out), steps_{&first, &second} {
    StepBuilder trial = builder_.trial();
    auto form = chain_form(trial, plan, std::get<fuse::ProductStep>(first.kind),
                           std::get<fuse::ProductStep>(second.kind));
    if (auto* refusal = std::get_if<std::string>(&form)) {
      refusal_ = std::move(*refusal);
      return;
    }
    form_ = std::get<ChainForm>(std::move(form));
    classes_ = chain_classes(pool_, form_);
    if (!chain_kernel(trial, form_, {})) refusal_ = "TMA does not load an operand";
    if (builder_.leaves_out(kChainFamily) || builder_.leaves_out_offer(kChainFamily)) {
      refusal_ = "its kernels fail";
    }
  }

  // Estimates err: a chain that they call a little slower is offered for tuning.
  bool may_be_faster() {
    constexpr double kDoubt = 1.25;
    return refusal_.empty() &&
           std::any_of(classes_.begin(), classes_.end(), [&](const ChainClass& each) {
             const std::vector<Candidate> found = choices(each);
             return !found.empty() && found.front().time < kDoubt * apart_time(each);
           });
  }

  GpuStep generate() override {
    Offer kernel{kChainFamily, "", 0, refusal_, false, ""};
    ir::Expr taken = nullptr;
    bool runs = false;
    double overlap = 0;
    for (const ChainClass& each : classes_) {
      if (!refusal_.empty()) break;
      if (builder_.sizes.of(each.when) > 0) overlap = overlap_of(each);
      const std::vector<Candidate> found = choices(each);
      if (found.empty()) continue;
      const bool faster = found.front().time < apart_time(each);
      if (faster) add(each, found.front(), taken);
      const bool here = sizes_known() ? builder_.sizes.of(each.when) > 0 : faster;
      runs |= faster && here;
      if (!here || !kernel.choice.empty()) continue;
      kernel.time = found.front().time;
      kernel.config = kernel.choice = to_string(found.front().choice);
    }
    if (kernel.choice.empty() && refusal_.empty()) {
      kernel.refusal = "no configuration fits, or there are too many rows";
    }
    add_apart(forms(), taken, overlap);
    return with_offers(kernel, runs, kApart);
  }

  GpuStep generate(const KernelConfig& choice) override {
    ir::Expr taken = nullptr;
    if (choice.family == kChainFamily) {
      RF_CHECK(refusal_.empty(), "{} takes no such steps: {}", to_string(choice), refusal_);
      for (const ChainClass& each : classes_) {
        const std::vector<Candidate> found = choices(each);
        const bool fits = std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
          return other.choice == choice;
        });
        if (fits) add(each, {choice, 0}, taken);
      }
    } else {
      RF_CHECK(choice.family == kApart, "{} computes no such steps", to_string(choice));
    }
    add_apart(forms(), taken);
    return std::move(builder_.result);
  }

  std::vector<Candidate> candidates(std::span<const int64_t>) override {
    if (!refusal_.empty()) return {};
    std::vector<Candidate> best, all;
    for (const ChainClass& each : classes_) {
      if (builder_.sizes.of(each.when) <= 0) continue;
      const std::vector<Candidate> found = choices(each);
      const Candidate apart{{kApart, {}}, apart_time(each)};
      if (found.empty()) continue;
      best.push_back(found.front().time < apart.time ? found.front() : apart);
      all.push_back({apart.choice, 0});  // always measured
      all.insert(all.end(), found.begin(), found.end());
    }
    return best_choices(std::move(best), std::move(all));
  }

 private:
  std::vector<Candidate> choices(const ChainClass& each) const {
    return chain_choices(form_, each.most, builder_.target);
  }

  double apart_time(const ChainClass& each) const {
    double time = -overlap_of(each);
    for (const fuse::Step* step : steps_) {
      time += codegen::generate(builder_.graph, *step, builder_.target, KnownSizes::all(each.most),
                                builder_.result.left_out)
                  .time;
    }
    return time;
  }

  void add(const ChainClass& each, const Candidate& choice, ir::Expr& taken) {
    const size_t buffers = builder_.result.scratch.size();
    auto launch = chain_kernel(builder_, form_, ChainConfig::of(choice.choice));
    RF_CHECK(launch, "a chain's operands were loaded before");
    launch->time = choice.time;
    const auto here = [&](ir::Expr size) {
      return pool_.select(each.when, size, pool_.integer(0));
    };
    launch->grid[0] = here(launch->grid[0]);
    for (size_t i = buffers; i < builder_.result.scratch.size(); ++i) {
      builder_.result.scratch[i].bytes = here(builder_.result.scratch[i].bytes);
    }
    builder_.result.calls.push_back(std::move(*launch));
    taken = taken ? pool_.make(ir::ExprOp::Or, {taken, each.when}) : each.when;
  }

  std::vector<GpuStep> forms() const {
    std::vector<GpuStep> forms;
    for (size_t i = 0; i < 2; ++i) forms.push_back(form_apart(i));
    return forms;
  }

  const fuse::Step* const steps_[2];
  ChainForm form_;
  std::string refusal_;
  std::vector<ChainClass> classes_;
};

}  // namespace

bool has_chain(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& first,
               const fuse::Step& second, const Target& target) {
  return ChainJoiner(graph, plan, first, second, target, {}, {}).may_be_faster();
}

std::unique_ptr<Joiner> chain_joiner(const ir::Graph& graph, const fuse::Plan& plan,
                                     const fuse::Step& first, const fuse::Step& second,
                                     const Target& target, const KnownSizes& sizes,
                                     const LeftOut& left_out) {
  return std::make_unique<ChainJoiner>(graph, plan, first, second, target, sizes, left_out);
}

}  // namespace redfuser::codegen
