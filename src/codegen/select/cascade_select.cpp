#include "codegen/select/cascade_select.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "codegen/select/cascade_families.h"
#include "codegen/select/division.h"
#include "codegen/select/offers.h"

namespace redfuser::codegen {
namespace {

// Sizes that stand for those known at run time only: a choice serves all of them.
constexpr int64_t kNominalSizes[] = {16, 128, 1024, 4096};

// A way to compute the cascade: a family, or a division of the region.
struct Way {
  const CascadeFamily* family = nullptr;
  size_t division = 0;  // of no family
  Offer offer;
  KernelConfig choice;
  bool reduced = false;  // some configurations of the family are left out
};

class Selector {
 public:
  // `nominal`: the builder's sizes stand for those of run time.
  Selector(StepBuilder& builder, const fuse::CascadeStep& step, bool nominal = false)
      : builder_(builder), step_(step), nominal_(nominal) {}

  void generate() {
    std::vector<Way> ways = ordered();
    std::vector<Offer>& offers = builder_.result.offers;
    bool done = false;
    for (const Way& way : ways) {
      offers.push_back(way.offer);
      if (done || !way.offer.refusal.empty()) continue;
      done = emit(way);
      if (done) builder_.result.time = way.offer.time;
      if (done) std::rotate(offers.begin(), offers.end() - 1, offers.end());
      if (!done) offers.back().refusal = "it has no kernel for these operands";
    }
    if (!done) builder_.fail_without_kernel();
    if (divisions_ == nullptr && known()) {
      offers.push_back({"unfused", "", 0,
                        fmt::format("the steps that the region has at least take {:.1f} us or more",
                                    least_division_time()),
                        true});
    }
  }

  // That of `generate` first, then the best of every family and every division that is not
  // hopeless, then other configurations, each by time.
  std::vector<Candidate> candidates() {
    std::vector<Candidate> best, all;
    for (const Way& way : ordered()) {
      if (!way.offer.refusal.empty()) continue;
      best.push_back({way.choice, way.offer.time});
      if (way.family == nullptr) continue;
      CascadeForms forms(builder_, step_);
      for (Candidate& candidate : way.family->offer(forms).candidates) {
        if (!builder_.leaves_out(candidate.choice.family)) all.push_back(std::move(candidate));
      }
    }
    if (best.empty()) return best;
    constexpr double kHopeless = 20, kSlow = 3;
    const double least = best.front().time;
    std::erase_if(best, [&](const Candidate& c) { return c.time > kHopeless * least; });
    std::erase_if(all, [&](const Candidate& c) { return c.time > kSlow * least; });
    return best_choices(std::move(best), std::move(all));
  }

  void generate(const KernelConfig& choice) {
    CascadeForms forms(builder_, step_);
    if (choice.family == kDivisionFamily) {
      return add_division(builder_, divisions().at(static_cast<size_t>(choice.at("division"))));
    }
    for (const CascadeFamily& family : cascade_families()) {
      if (family.has(choice)) return family.emit_choice(forms, choice);
    }
    RF_CHECK(false, "{} computes no cascade", to_string(choice));
  }

 private:
  bool known() const {
    return all_known(step_.streaming.cascade.rows) && builder_.sizes.of(length()) >= 0;
  }
  bool all_known(const std::vector<ir::Expr>& axes) const {
    return std::all_of(axes.begin(), axes.end(), [&](ir::Expr axis) {
      return axis->op != ir::ExprOp::Axis || builder_.sizes.of(axis->extent()) >= 0;
    });
  }
  ir::Expr length() const { return step_.streaming.cascade.stream->extent(); }

  // By time, refusals last. Of sizes known at run time only, by the sum over nominal sizes of the
  // ratios to the best.
  std::vector<Way> ordered() {
    if (known()) {
      std::vector<Way> families = of_families();
      const bool divide = select::least_time(families) > least_division_time();
      return sorted(divide ? with_divisions() : std::move(families));
    }
    constexpr double kRefused = 1e9;
    std::vector<StepBuilder> builders;
    double families = 0, divided = 0;  // the least sums that either may have
    for (const int64_t size : kNominalSizes) {
      builders.push_back(builder_.trial());
      builders.back().sizes = KnownSizes::all(size);
      Selector at(builders.back(), step_, true);
      const double family = select::least_time(at.of_families()),
                   division = at.least_division_time();
      families += family / std::min(family, division);
      divided += division / std::min(family, division);
    }
    const bool divide = families > divided;
    if (divide) divisions();
    std::vector<Way> result;
    std::vector<double> ratios;
    for (StepBuilder& builder : builders) {
      Selector at(builder, step_, true);
      at.divisions_ = divisions_;
      result = divide ? at.with_divisions() : at.of_families();
      ratios.resize(result.size());
      const double best = select::least_time(result);
      for (size_t i = 0; i < result.size(); ++i) {
        ratios[i] += result[i].offer.refusal.empty() ? result[i].offer.time / best : kRefused;
      }
    }
    for (size_t i = 0; i < result.size(); ++i) result[i].offer.time = ratios[i];
    result = sorted(std::move(result));
    for (Way& way : result) way.offer.time = 0;
    return result;
  }

  static std::vector<Way> sorted(std::vector<Way> ways) {
    select::sort_by_time(ways);
    return ways;
  }

  // Of any division: kernels for the contractions and one for the rest, each byte once, and what a
  // contraction computes for every element written and read.
  double least_division_time() {
    const cascade::Streaming& form = step_.streaming;
    std::set<ir::Expr> streamed;
    double contractions = 0;
    for (const cascade::Accumulator& a : form.accumulators) {
      contractions += a.columns.empty() ? 0 : 1;
      visit(a.lift, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Reduce && e->depends_on(form.cascade.stream)) streamed.insert(e);
      });
    }
    contractions += static_cast<double>(streamed.size());
    double bytes = 0;
    for (const auto* values : {&builder_.step.reads, &builder_.step.writes}) {
      for (const ir::ValueId value : *values) {
        bytes += elements(builder_.shape(value)) *
                 static_cast<double>(size_of(builder_.dtype_of(value)));
      }
    }
    if (!streamed.empty()) {
      constexpr double kBytes = 2 * 2;
      std::vector<ir::Expr> axes = form.cascade.rows;
      axes.push_back(form.cascade.stream);
      bytes += kBytes * elements(extents_of(builder_.pool(), axes));
    }
    const double kernels = contractions > 0 ? 1 + contractions : 2;
    return kernels * select::kLaunchTime + bytes / builder_.target.dram_rate;
  }

  double elements(const std::vector<ir::Expr>& dims) const {
    double count = 1;
    for (ir::Expr dim : dims) {
      count *= static_cast<double>(std::max<int64_t>(builder_.sizes.of(dim), 1));
    }
    return count;
  }

  // Divisions of the region, made once.
  const std::vector<fuse::Alternative>& divisions() {
    if (divisions_ == nullptr) {
      divisions_ = std::make_shared<const std::vector<fuse::Alternative>>(
          fuse::alternatives(builder_.graph, builder_.step));
    }
    return *divisions_;
  }

  std::vector<Way> with_divisions() {
    std::vector<Way> result = of_families();
    const auto& divisions = this->divisions();
    for (size_t i = 0; i < divisions.size(); ++i) {
      StepBuilder trial = builder_.trial();
      Way way{nullptr,
              i,
              {divisions[i].name, "", 0, "", true},
              {kDivisionFamily, {{"division", static_cast<int>(i)}}}};
      if (leave_out(way)) {
        result.push_back(std::move(way));
        continue;
      }
      try {
        add_division(trial, divisions[i]);
        // Estimates of several kernels are less certain than that of one.
        constexpr double kDoubt = 1.2;
        const auto later =
            static_cast<double>(std::max<size_t>(count_calls(trial.result, trial.sizes), 1) - 1);
        way.offer.time = kDoubt * (trial.result.time - select::kLaunchOverlap * later);
        way.offer.refusal = too_large(trial.result);
        way.offer.config = calls_text(trial.result, trial.sizes);
        way.offer.choice = to_string(way.choice);
      } catch (const UserError& error) {
        way.offer.refusal = error.what();
      }
      result.push_back(std::move(way));
    }
    return result;
  }

  // Why the intermediate values do not fit; empty if they do, or if their sizes are not known.
  std::string too_large(const GpuStep& step) const {
    constexpr int64_t kMost = int64_t{4} << 30;
    int64_t bytes = 0;
    for (const Scratch& scratch : step.scratch) {
      bytes += std::max<int64_t>(builder_.sizes.of(scratch.bytes), 0);
    }
    if (bytes <= kMost || nominal_) return "";
    return fmt::format("its intermediate values take {} MB", bytes >> 20);
  }

  std::vector<Way> of_families() {
    std::vector<Way> result;
    CascadeForms forms(builder_, step_);
    for (const CascadeFamily& family : cascade_families()) {
      FamilyAnswer answer = family.offer(forms);
      const size_t offered = answer.candidates.size();
      std::erase_if(answer.candidates, [&](const Candidate& candidate) {
        return builder_.leaves_out(candidate.choice.family);
      });
      Way way{&family, 0, {std::string(family.name), "", 0, std::move(answer.refusal)}, {}};
      way.reduced = answer.candidates.size() < offered;
      if (way.reduced && answer.candidates.empty()) way.offer.refusal = "its kernels fail";
      leave_out(way);
      if (way.offer.refusal.empty() && answer.candidates.empty()) {
        way.offer.refusal = "there are no such sizes";
      }
      if (way.offer.refusal.empty()) {
        way.choice = answer.candidates.front().choice;
        way.offer.config = way.offer.choice = to_string(way.choice);
        way.offer.time = answer.candidates.front().time;
      }
      result.push_back(std::move(way));
    }
    return result;
  }

  // Refuses a way that failed as a whole.
  bool leave_out(Way& way) const {
    const auto& offers = builder_.result.left_out.offers;
    const auto found = offers.find(way.offer.family);
    if (found != offers.end()) way.offer.refusal = "it fails: " + found->second;
    return found != offers.end();
  }

  bool emit(const Way& way) {
    CascadeForms forms(builder_, step_);
    if (way.family != nullptr && way.reduced) {
      way.family->emit_choice(forms, way.choice);
      return true;
    }
    if (way.family != nullptr) return way.family->emit(forms);
    add_division(builder_, divisions().at(way.division));
    return true;
  }

  StepBuilder& builder_;
  const fuse::CascadeStep& step_;
  const bool nominal_;
  std::shared_ptr<const std::vector<fuse::Alternative>> divisions_;
};

}  // namespace

void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step,
                      const KernelConfig& choice) {
  Selector(builder, step).generate(choice);
}

std::vector<Candidate> cascade_configs(StepBuilder& builder, const fuse::CascadeStep& step) {
  return Selector(builder, step).candidates();
}

void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step) {
  Selector(builder, step).generate();
}

}  // namespace redfuser::codegen
