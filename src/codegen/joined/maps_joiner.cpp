#include "codegen/joined/maps_joiner.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/maps/map_select.h"
#include "codegen/maps/maps_kernel.h"
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

  // The sizes where the kernel takes less time, by the number of its blocks; null: none. A part
  // that another one's registers leave fewer threads may be slower than with a launch of its own.
  ir::Expr where_faster() {
    return sizes_where(pool_, kernel_.launch.grid[0], [&](const KnownSizes& sizes) {
      return kernel_.time(builder_, sizes) < kernel_.time_apart(builder_, sizes);
    });
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
    const GpuStep form = codegen::generate(graph, step, target, KernelConfig{kMapFamily, {}});
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
