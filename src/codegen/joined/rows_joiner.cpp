#include "codegen/joined/rows_joiner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "codegen/select/generate.h"
#include "codegen/select/offers.h"
#include "codegen/thin_rows/thin_rows_kernel.h"

namespace redfuser::codegen {
namespace {

class RowsJoiner : public Joiner {
 public:
  RowsJoiner(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
             const fuse::Step& product, const Target& target, const KnownSizes& sizes,
             const LeftOut& left_out)
      : Joiner(graph, {&rows, &product}, target, sizes, left_out), rows_(rows), product_(product) {
    auto form = thin_rows_form(builder_, plan, std::get<fuse::CascadeStep>(rows.kind),
                               std::get<fuse::ProductStep>(product.kind));
    if (auto* refusal = std::get_if<std::string>(&form)) {
      refusal_ = std::move(*refusal);
      builder_.result.calls.clear();
      builder_.result.scratch.clear();
      builder_.scratch_dtypes.clear();
    } else {
      form_ = std::get<ThinRowsForm>(std::move(form));
      classes_ = thin_rows_classes(pool_, form_);
    }
    if (builder_.leaves_out(kThinRowsFamily) || builder_.leaves_out_offer(kThinRowsFamily)) {
      refusal_ = "its kernels fail";
    }
  }

  bool fits() {
    return refusal_.empty() &&
           std::any_of(classes_.begin(), classes_.end(),
                       [&](const ThinRowsClass& each) { return !choices(each).empty(); });
  }

  GpuStep generate() override {
    Offer kernel{kThinRowsFamily, "", 0, refusal_, false, ""};
    bool runs = false;
    for (const ThinRowsClass& each : classes_) {
      if (!refusal_.empty()) break;
      const std::vector<Candidate> found = choices(each);
      if (found.empty()) continue;
      const bool taken = found.front().time < apart_time(each);
      if (taken) add(each, found.front());
      const bool here = sizes_known() ? builder_.sizes.of(each.when) > 0 : taken;
      runs |= taken && here;
      if (!here || !kernel.choice.empty()) continue;
      kernel.time = found.front().time;
      kernel.config = kernel.choice = to_string(found.front().choice);
    }
    if (kernel.choice.empty() && refusal_.empty())
      kernel.refusal = "no number of rows is few enough";
    finish({});
    return with_offers(kernel, runs);
  }

  GpuStep generate(const KernelConfig& choice) override {
    if (choice.family == kThinRowsFamily) {
      RF_CHECK(refusal_.empty(), "{} takes no such steps: {}", to_string(choice), refusal_);
      for (const ThinRowsClass& each : classes_) {
        const std::vector<Candidate> found = choices(each);
        const bool fits = std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
          return other.choice == choice;
        });
        if (fits) add(each, {choice, 0});
      }
      finish({});
    } else {
      finish(choice);
    }
    return std::move(builder_.result);
  }

  std::vector<Candidate> candidates(std::span<const int64_t> symbols) override {
    std::vector<Candidate> best,
        all = codegen::kernel_configs(builder_.graph, product_, builder_.target, symbols,
                                      builder_.result.left_out);
    if (refusal_.empty()) {
      for (const ThinRowsClass& each : classes_) {
        if (builder_.sizes.of(each.when) <= 0) continue;
        std::vector<Candidate> found = choices(each);
        if (found.empty()) continue;
        if (found.front().time < apart_time(each)) best.push_back(found.front());
        constexpr size_t kTried = 3;
        found.resize(std::min(found.size(), kTried));
        // A product's choices have ranks for times.
        for (size_t i = 0; i < found.size(); ++i) found[i].time = 0.1 + static_cast<double>(i);
        all.insert(all.end(), found.begin(), found.end());
      }
    }
    if (best.empty() && !all.empty()) best.push_back(all.front());
    return best_choices(std::move(best), std::move(all));
  }

 private:
  std::vector<Candidate> choices(const ThinRowsClass& each) const {
    return thin_rows_choices(form_, each, builder_.sizes, builder_.target);
  }

  // Of the two steps, for the rows of a class. The second one starts while the first one ends.
  double apart_time(const ThinRowsClass& each) {
    const auto thin =
        thin_choices(form_.thin, each.padded, each.most, builder_.sizes, builder_.target);
    double product = thin.empty() ? HUGE_VAL : thin.front().time;
    if (form_.thin.lines->is_constant()) product = std::min(product, time_of(product_, each.most));
    // That of few rows hardly depends on their number: of the fewest.
    if (rows_time_ == 0) rows_time_ = time_of(rows_, classes_.front().most);
    return rows_time_ + product - select::kLaunchOverlap;
  }

  // With this value for all symbols.
  double time_of(const fuse::Step& step, int size) const {
    return codegen::generate(builder_.graph, step, builder_.target, KnownSizes::all(size),
                             builder_.result.left_out)
        .time;
  }

  void add(const ThinRowsClass& each, const Candidate& choice) {
    KernelLaunch launch = thin_rows_kernel(builder_, form_, each, thin_config(choice.choice));
    launch.time = choice.time;
    launch.grid[0] = pool_.select(each.when, launch.grid[0], pool_.integer(0));
    builder_.result.calls.push_back(std::move(launch));
    taken_.insert(each.most);
  }

  // Where a kernel takes the rows: neighbouring classes are one range. Null: nowhere.
  ir::Expr taken() {
    ir::Expr result = nullptr;
    for (size_t i = 0; i < classes_.size(); ++i) {
      if (taken_.count(classes_[i].most) == 0) continue;
      ir::Expr when = classes_[i].when;
      const int below = i > 0 ? classes_[i - 1].most : 0;
      while (i + 1 < classes_.size() && taken_.count(classes_[i + 1].most)) {
        ++i;
        when = pool_.make(ir::ExprOp::And, {at_most(classes_[i].most),
                                            pool_.make(ir::ExprOp::Not, {at_most(below)})});
      }
      result = result ? pool_.make(ir::ExprOp::Or, {result, when}) : when;
    }
    return result;
  }

  ir::Expr at_most(int lines) {
    return pool_.make(ir::ExprOp::LessEqual, {form_.thin.lines, pool_.integer(lines)});
  }

  // Adds the steps apart, for the sizes that no kernel takes.
  void finish(const std::optional<KernelConfig>& product) {
    std::vector<GpuStep> forms;
    forms.push_back(form_apart(0));
    forms.push_back(product ? codegen::generate(builder_.graph, product_, builder_.target, *product)
                            : form_apart(1));
    add_apart(std::move(forms), taken(), select::kLaunchOverlap);
  }

  const fuse::Step& rows_;
  const fuse::Step& product_;
  ThinRowsForm form_;
  std::string refusal_;
  double rows_time_ = 0;  // of the rows apart; 0: not known yet
  std::vector<ThinRowsClass> classes_;
  std::set<int> taken_;  // of them, by their most lines
};

}  // namespace

bool has_thin_rows(const ir::Graph& graph, const fuse::Plan& plan, const fuse::Step& rows,
                   const fuse::Step& product, const Target& target) {
  return RowsJoiner(graph, plan, rows, product, target, {}, {}).fits();
}

std::unique_ptr<Joiner> rows_joiner(const ir::Graph& graph, const fuse::Plan& plan,
                                    const fuse::Step& rows, const fuse::Step& product,
                                    const Target& target, const KnownSizes& sizes,
                                    const LeftOut& left_out) {
  return std::make_unique<RowsJoiner>(graph, plan, rows, product, target, sizes, left_out);
}

}  // namespace redfuser::codegen
