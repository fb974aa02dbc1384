#include "codegen/joined/maps_joiner.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/maps_kernel.h"
#include "codegen/select/generate.h"

namespace redfuser::codegen {
namespace {

std::vector<const fuse::MapStep*> maps_of(const std::vector<const fuse::Step*>& steps) {
  std::vector<const fuse::MapStep*> maps;
  for (const fuse::Step* step : steps) maps.push_back(&std::get<fuse::MapStep>(step->kind));
  return maps;
}

class MapsJoiner : public Joiner {
 public:
  MapsJoiner(const ir::Graph& graph, const std::vector<const fuse::Step*>& steps,
             const Target& target, const KnownSizes& sizes, const LeftOut& left_out)
      : Joiner(graph, steps, target, sizes, left_out),
        count_(steps.size()),
        kernel_(maps_kernel(builder_, maps_of(steps))),
        choice_{kMapsFamily, kernel_.launch.config} {
    if (builder_.leaves_out(kMapsFamily) || builder_.leaves_out_offer(kMapsFamily)) {
      refusal_ = "its kernel fails";
    }
  }

  GpuStep generate() override {
    Offer kernel{kMapsFamily, "", 0, refusal_, false, ""};
    ir::Expr taken = nullptr;
    if (refusal_.empty()) {
      kernel.time = kernel_.time(builder_, builder_.sizes);
      kernel.config = kernel.choice = to_string(choice_);
      taken = where_faster();
    }
    if (taken) add_kernel(taken);
    add_apart(forms(), taken);
    const bool runs = taken && (!sizes_known() || builder_.sizes.of(taken) > 0);
    return with_offers(kernel, runs, kApart);
  }

  GpuStep generate(const KernelConfig& choice) override {
    if (choice.family == kMapsFamily) {
      RF_CHECK(refusal_.empty() && choice == choice_, "{} takes no such steps", to_string(choice));
      add_kernel(pool_.boolean(true));
    } else {
      RF_CHECK(choice.family == kApart, "{} computes no such steps", to_string(choice));
      add_apart(forms(), nullptr);
    }
    return std::move(builder_.result);
  }

  std::vector<Candidate> candidates(std::span<const int64_t>) override {
    if (!refusal_.empty()) return {};
    std::vector<Candidate> both = {{choice_, kernel_.time(builder_, builder_.sizes)},
                                   {{kApart, {}}, kernel_.time_apart(builder_, builder_.sizes)}};
    const ir::Expr taken = where_faster();
    if (!taken || builder_.sizes.of(taken) == 0) std::swap(both[0], both[1]);
    return both;
  }

 private:
  std::vector<GpuStep> forms() const {
    std::vector<GpuStep> forms;
    for (size_t i = 0; i < count_; ++i) forms.push_back(form_apart(i));
    return forms;
  }

  void add_kernel(ir::Expr when) {
    KernelLaunch launch = kernel_.launch;
    launch.time = kernel_.time(builder_, builder_.sizes);
    launch.grid[0] = pool_.select(when, launch.grid[0], pool_.integer(0));
    builder_.result.calls.push_back(std::move(launch));
  }

  bool is_faster(const KnownSizes& sizes) const {
    return kernel_.time(builder_, sizes) < kernel_.time_apart(builder_, sizes);
  }

  // The sizes where the kernel takes less time, by the number of its blocks; null: none. A part
  // that another one's registers leave fewer threads may be slower than with a launch of its own.
  // All symbols grow together.
  ir::Expr where_faster() {
    constexpr int64_t kManyBlocks = int64_t{1} << 24, kLargest = int64_t{1} << 28;
    const ir::Expr blocks = kernel_.launch.grid[0];
    std::vector<int64_t> limits;
    std::vector<bool> faster;
    for (int64_t size = 1; size <= kLargest; size *= 2) {
      const KnownSizes sizes = KnownSizes::all(size);
      const int64_t count = sizes.of(blocks);
      if (!limits.empty() && count <= limits.back()) continue;
      limits.push_back(count);
      faster.push_back(is_faster(sizes));
      if (count > kManyBlocks || blocks->is_constant()) break;
    }
    const auto best = [&](double count) {
      const auto found = std::lower_bound(limits.begin(), limits.end(), count);
      const auto i =
          std::min<size_t>(static_cast<size_t>(found - limits.begin()), faster.size() - 1);
      return faster[i] ? choice_ : KernelConfig{kApart, {}};
    };
    ir::Expr result = nullptr;
    each_size_class(pool_, blocks, limits, HUGE_VAL, best,
                    [&](const KernelConfig& config, ir::Expr when) {
                      if (config.family != kMapsFamily) return;
                      result = result ? pool_.make(ir::ExprOp::Or, {result, when}) : when;
                    });
    return result;
  }

  const size_t count_;  // of the steps
  const MapsKernel kernel_;
  const KernelConfig choice_;
  std::string refusal_;
};

}  // namespace

std::optional<int64_t> map_arguments(const ir::Graph& graph, const fuse::Step& step,
                                     const Target& target) {
  if (!std::holds_alternative<fuse::MapStep>(step.kind)) return std::nullopt;
  try {
    const GpuStep form = codegen::generate(graph, step, target);
    if (form.calls.size() != 1) return std::nullopt;
    const auto& launch = std::get<KernelLaunch>(form.calls.front());
    return static_cast<int64_t>((launch.buffers.size() + launch.sizes.size()) * sizeof(int64_t));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::unique_ptr<Joiner> maps_joiner(const ir::Graph& graph, std::vector<const fuse::Step*> steps,
                                    const Target& target, const KnownSizes& sizes,
                                    const LeftOut& left_out) {
  return std::make_unique<MapsJoiner>(graph, steps, target, sizes, left_out);
}

}  // namespace redfuser::codegen
