#include "codegen/joined/block_maps_joiner.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/attention/mma/split_kv.h"
#include "codegen/attention/mma/split_kv_cost.h"
#include "codegen/attention/recognize.h"
#include "codegen/joined/maps_joiner.h"
#include "codegen/select/attention_select.h"
#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

class BlockMapsJoiner : public Joiner {
 public:
  BlockMapsJoiner(const ir::Graph& graph, const std::vector<const fuse::Step*>& steps,
                  const Target& target, const KnownSizes& sizes, const LeftOut& left_out)
      : Joiner(graph, steps, target, sizes, left_out), steps_(steps) {
    refusal_ = find_form();
    if (builder_.leaves_out(kBlockMapsFamily) || builder_.leaves_out_offer(kBlockMapsFamily)) {
      refusal_ = "its kernels fail";
    }
  }

  bool fits() const { return refusal_.empty(); }

  GpuStep generate() override {
    std::vector<GpuStep> apart = forms();
    const std::string& family = apart.back().offers.front().family;
    if (refusal_.empty() && family != "attention") refusal_ = "attention is computed by " + family;
    Offer kernel{kBlockMapsFamily, "", 0, refusal_, false, ""};
    ir::Expr taken = nullptr;
    bool runs = false;
    if (refusal_.empty()) {
      kernel.time = time(share_->config);
      kernel.config = kernel.choice = to_string(choice(share_->config));
      taken = where();
      runs = sizes_known() ? builder_.sizes.of(taken) > 0 : !taken->is_constant(0);
      if (sizes_known() && kernel.time >= time_of(apart)) runs = false;
      if (!runs) taken = nullptr;
    }
    if (taken) add_kernel(share_->config, taken);
    add_apart(std::move(apart), taken);
    return with_offers(kernel, runs);
  }

  GpuStep generate(const KernelConfig& choice) override {
    if (choice.family == kBlockMapsFamily) {
      RF_CHECK(refusal_.empty(), "{} takes no such steps: {}", to_string(choice), refusal_);
      add_kernel(SplitKvConfig::of(choice), pool_.boolean(true));
    } else {
      std::vector<GpuStep> apart = forms();
      if (choice.family != kApart) {
        apart.back() = codegen::generate(builder_.graph, *steps_.back(), builder_.target, choice);
      }
      add_apart(std::move(apart), nullptr);
    }
    return std::move(builder_.result);
  }

  std::vector<Candidate> candidates(std::span<const int64_t> symbols) override {
    std::vector<GpuStep> apart = forms();
    const double maps = time_of(apart) - apart.back().time;
    std::vector<Candidate> best,
        all = codegen::kernel_configs(builder_.graph, *steps_.back(), builder_.target, symbols,
                                      builder_.result.left_out);
    for (Candidate& each : all) each.time += maps;
    if (refusal_.empty() && builder_.sizes.of(where()) > 0) {
      const Candidate own{choice(share_->config), time(share_->config)};
      (all.empty() || own.time < all.front().time ? best : all).push_back(own);
      const std::vector<Candidate> splits = attention_configs(builder_, form_);
      for (const Candidate& each : splits) {
        if (each.choice.family != kSplitKvFamily) continue;
        const SplitKvConfig config = SplitKvConfig::of(each.choice);
        if (choice(config) != own.choice) all.push_back({choice(config), time(config)});
      }
    }
    if (best.empty() && !all.empty()) best.push_back(all.front());
    return best_choices(std::move(best), std::move(all));
  }

 private:
  // The reason why these steps have no kernel; empty if they have one.
  std::string find_form() {
    const auto& attention = std::get<fuse::CascadeStep>(steps_.back()->kind);
    const auto form = recognize_attention(builder_, attention);
    if (!form) return "the cascade is no attention";
    if (builder_.target.exact_masks) return "a kernel before the attention checks its masks";
    StepBuilder trial = builder_.trial();
    share_ = split_share(trial, *form);
    if (!share_) return "the attention's keys are not split";
    std::vector<const fuse::MapStep*> maps;
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      maps.push_back(&std::get<fuse::MapStep>(steps_[i]->kind));
    }
    form_ = *form;
    maps_ = block_maps(trial, form_, attention, maps);
    return maps_ ? "" : "a map reduces, or has a result that the attention does not read";
  }

  KernelConfig choice(const SplitKvConfig& config) const {
    Parameters parameters = config.parameters();
    parameters.emplace_back("maps", static_cast<int>(maps_->shapes.size()));
    return {kBlockMapsFamily, std::move(parameters)};
  }

  // Turns of the maps, for each turn of blocks.
  ir::Expr turns() {
    const SplitKvConfig& config = share_->config;
    const AttentionSpec& form = maps_->form;
    ir::Expr rows = form.row ? form.row->extent() : pool_.integer(1);
    ir::Expr blocks = pool_.mul(ceil_div(pool_, rows, split_rows(form)),
                                product_of(pool_, extents_of(pool_, form.others)));
    return pool_.mul(
        turns_of(pool_, *maps_, config.threads()),
        ceil_div(pool_, blocks, int64_t{1} * config.blocks * builder_.target.multiprocessors));
  }

  // The sizes where the maps take less time in the attention's blocks than a launch does.
  ir::Expr where() {
    int64_t most = 1;
    while (block_maps_time(most + 1) < select::kLaunchTime) ++most;
    return pool_.make(ir::ExprOp::And, {share_->when, pool_.make(ir::ExprOp::LessEqual,
                                                                 {turns(), pool_.integer(most)})});
  }

  double time(const SplitKvConfig& config) {
    if (!sizes_known()) return 0;
    return split_kv_time(builder_, maps_->form, config, builder_.sizes) +
           block_maps_time(builder_.sizes.of(turns()));
  }

  static double time_of(const std::vector<GpuStep>& forms) {
    double time = 0;
    for (const GpuStep& form : forms) time += form.time;
    return time;
  }

  void add_kernel(const SplitKvConfig& config, ir::Expr when) {
    KernelLaunch launch = split_kv_kernel(builder_, maps_->form, config, &*maps_);
    launch.time = time(config);
    launch.grid[0] = pool_.select(when, launch.grid[0], pool_.integer(0));
    builder_.result.calls.push_back(std::move(launch));
  }

  // The last map's form is that of all maps.
  std::vector<GpuStep> forms() const {
    const size_t maps = steps_.size() - 1;
    std::vector<GpuStep> forms(maps - 1);
    for (GpuStep& form : forms) form.pool = builder_.graph.pool;
    if (maps == 1) {
      forms.push_back(form_apart(0));
    } else {
      const auto joiner = maps_joiner(builder_.graph, {steps_.begin(), steps_.end() - 1},
                                      builder_.target, builder_.sizes, builder_.result.left_out);
      forms.push_back(joiner->generate());
    }
    forms.push_back(form_apart(maps));
    return forms;
  }

  const std::vector<const fuse::Step*> steps_;
  AttentionSpec form_;
  std::optional<SplitShare> share_;
  std::optional<BlockMaps> maps_;
  std::string refusal_;
};

}  // namespace

bool has_block_maps(const ir::Graph& graph, const std::vector<const fuse::Step*>& steps,
                    const Target& target) {
  return BlockMapsJoiner(graph, steps, target, {}, {}).fits();
}

std::unique_ptr<Joiner> block_maps_joiner(const ir::Graph& graph,
                                          std::vector<const fuse::Step*> steps,
                                          const Target& target, const KnownSizes& sizes,
                                          const LeftOut& left_out) {
  return std::make_unique<BlockMapsJoiner>(graph, steps, target, sizes, left_out);
}

}  // namespace redfuser::codegen
