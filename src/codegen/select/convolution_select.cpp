#include "codegen/select/convolution_select.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "codegen/convolution/columns_product.h"
#include "codegen/convolution/convolution_kernel.h"
#include "codegen/convolution/depthwise_kernel.h"
#include "codegen/convolution/window_product.h"
#include "codegen/core/size_classes.h"
#include "codegen/integer_product/integer_config.h"
#include "codegen/product/library_time.h"
#include "codegen/select/offers.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

// Every unknown size, where families are compared at nominal ones.
constexpr int64_t kNominal = 64;

// The configuration of the kernel of a convolution that runs at these sizes, if one does.
std::optional<KernelConfig> running(const GpuStep& step, const KnownSizes& sizes) {
  for (const GpuCall& call : step.calls) {
    const auto* launch = std::get_if<KernelLaunch>(&call);
    if (launch != nullptr && is_convolution_family(launch->family) &&
        sizes.of(launch->grid[0]) != 0) {
      return KernelConfig{launch->family, launch->config};
    }
  }
  return std::nullopt;
}

// A way to compute a convolution, and what it makes at the sizes where ways are compared.
struct Way {
  const char* family;
  std::function<void(const ConvolutionStep&)> add;
  Offer offer;
};

class Choice {
 public:
  Choice(StepBuilder& builder, const ops::NodeView& view) : builder_(builder), view_(view) {}

  void make() {
    const bool integers = ConvolutionStep(builder_, view_).of_integers(),
               grouped = view_.integer("group", 1) > 1;
    add_tensor_cores();
    if (!grouped) {
      add(kColumnsFamily, add_columns_product, integers ? kIntegerProductFamily : "");
    }
    if (grouped) add_depthwise();
    if (grouped || integers) add(kGroupedFamily, add_plain_sums);
    select::sort_by_time(ways_);
    if (!ways_.front().offer.refusal.empty()) builder_.fail_without_kernel();
    ways_.front().add(ConvolutionStep(builder_, view_));
    for (Way& way : ways_) {
      if (!known()) way.offer.time = 0;
      builder_.result.offers.push_back(std::move(way.offer));
    }
    if (known()) builder_.result.time = builder_.result.offers.front().time;
  }

 private:
  bool known() const { return sizes_known(builder_.graph, builder_.step, builder_.sizes); }

  bool fails(const char* family) const {
    return builder_.leaves_out(family) || builder_.leaves_out_offer(family);
  }

  // The kernels of single warps and of warpgroups; of open sizes both, each where it is faster.
  void add_tensor_cores() {
    const ConvolutionStep convolution(builder_, view_);
    const auto warps = convolution_form(convolution), tiles = window_product_form(convolution);
    const auto* own = std::get_if<ConvolutionForm>(&warps);
    const auto* windows = std::get_if<ConvolutionForm>(&tiles);
    if (!known() && own != nullptr && windows != nullptr && !fails(kWindowProductFamily) &&
        !fails(kConvolutionFamily)) {
      add(kConvolutionFamily, [own = *own, windows = *windows](const ConvolutionStep& c) {
        add_both(c, own, windows);
      });
      return;
    }
    if (own != nullptr) {
      add(kConvolutionFamily, [own = *own](const ConvolutionStep& c) { add_convolution(c, own); });
    } else {
      refuse(kConvolutionFamily, std::get<std::string>(warps));
    }
    if (windows != nullptr) {
      add(kWindowProductFamily,
          [windows = *windows](const ConvolutionStep& c) { add_window_product(c, windows); });
    } else {
      refuse(kWindowProductFamily, std::get<std::string>(tiles));
    }
  }

  void refuse(const char* family, const std::string& reason) {
    ways_.push_back({family, nullptr, {family, "", 0, reason}});
  }

  static void add_both(const ConvolutionStep& c, const ConvolutionForm& own,
                       const ConvolutionForm& windows) {
    ir::ExprPool& pool = c.pool();
    const Target& target = c.builder.target;
    ir::Expr where = sizes_where(pool, own.positions(pool), [&](const KnownSizes& sizes) {
      const ConvolutionCounts counts = convolution_counts(pool, own, sizes);
      return window_product_time(c, windows, sizes) <
             convolution_choices(counts, target).front().time;
    });
    if (where == nullptr) return add_convolution(c, own);
    std::vector<GpuCall>& calls = c.builder.result.calls;
    size_t begin = calls.size();
    const auto run_where = [&](ir::Expr when) {
      for (; begin < calls.size(); ++begin) {
        auto& launch = std::get<KernelLaunch>(calls[begin]);
        launch.grid[0] = pool.select(when, launch.grid[0], pool.integer(0));
      }
    };
    add_convolution(c, own);
    run_where(negated(pool, where));
    add_window_product(c, windows);
    run_where(where);
  }

  void add_depthwise() {
    const auto form = depthwise_form(ConvolutionStep(builder_, view_));
    if (const auto* refusal = std::get_if<std::string>(&form)) {
      return refuse(kDepthwiseFamily, *refusal);
    }
    add(kDepthwiseFamily, [form = std::get<ConvolutionForm>(form)](const ConvolutionStep& c) {
      const auto choices = depthwise_choices(form, c.builder.sizes, c.builder.target);
      codegen::add_depthwise(c, form, DepthwiseConfig::of(choices.front().choice));
    });
  }

  // `kernel`: the family of the kernel of its products.
  void add(const char* family, std::function<void(const ConvolutionStep&)> add,
           const char* kernel = "") {
    Offer offer{family, "", 0, ""};
    if (fails(family) || builder_.leaves_out(kernel)) {
      offer.refusal = "it fails";
    } else {
      StepBuilder trial = builder_.trial();
      if (!known()) trial.sizes = KnownSizes::all(kNominal);
      add(ConvolutionStep(trial, view_));
      offer.time = time_of(trial.result, trial.sizes, trial.target);
      offer.config = calls_text(trial.result, trial.sizes);
      if (const auto choice = running(trial.result, trial.sizes)) {
        offer.choice = to_string(*choice);
      }
    }
    ways_.push_back({family, std::move(add), std::move(offer)});
  }

  StepBuilder& builder_;
  const ops::NodeView& view_;
  std::vector<Way> ways_;
};

}  // namespace

bool is_convolution(std::string_view domain, std::string_view name) {
  return (name == "Conv" || name == "ConvInteger") && (domain.empty() || domain == "ai.onnx");
}

bool is_convolution_family(const std::string& family) {
  return family == kConvolutionFamily || family == kDepthwiseFamily ||
         family == kWindowProductFamily;
}

void choose_convolution(StepBuilder& builder, const ops::NodeView& view) {
  Choice(builder, view).make();
}

void generate_convolution(StepBuilder& builder, const ops::NodeView& view,
                          const KernelConfig& choice) {
  const ConvolutionStep convolution(builder, view);
  const bool depthwise = choice.family == kDepthwiseFamily,
             windows = choice.family == kWindowProductFamily;
  const auto found = depthwise ? depthwise_form(convolution)
                     : windows ? window_product_form(convolution)
                               : convolution_form(convolution);
  const auto* form = std::get_if<ConvolutionForm>(&found);
  RF_CHECK(form != nullptr, "{} computes no such convolution", to_string(choice));
  if (depthwise) {
    add_depthwise(convolution, *form, DepthwiseConfig::of(choice));
  } else if (windows) {
    add_window_product(convolution, *form);
  } else {
    add_convolution(convolution, *form, ConvolutionConfig::of(choice));
  }
}

namespace {

// The tensor cores' kernels: of single warps, and of warpgroups where they take it.
std::vector<Candidate> tensor_core_choices(StepBuilder& builder, const ops::NodeView& view) {
  const ConvolutionStep convolution(builder, view);
  const auto form = std::get<ConvolutionForm>(convolution_form(convolution));
  std::vector<Candidate> choices =
      convolution_choices(convolution_counts(builder.pool(), form, builder.sizes), builder.target);
  const auto windows = window_product_form(convolution);
  if (const auto* own = std::get_if<ConvolutionForm>(&windows)) {
    StepBuilder trial = builder.trial();
    add_window_product(ConvolutionStep(trial, view), *own);
    // Both take copies of the same operands.
    choices.push_back(
        {{kWindowProductFamily, {}}, std::get<KernelLaunch>(trial.result.calls.back()).time});
  }
  return select::by_time(std::move(choices));
}

}  // namespace

std::vector<Candidate> convolution_configs(StepBuilder& builder, const ops::NodeView& view) {
  StepBuilder chosen = builder.trial();
  chosen.sizes = KnownSizes();
  choose_convolution(chosen, view);
  const auto first = running(chosen.result, builder.sizes);
  if (!first) return {};
  std::vector<Candidate> choices;
  if (first->family == kDepthwiseFamily) {
    const auto form = std::get<ConvolutionForm>(depthwise_form(ConvolutionStep(builder, view)));
    choices = depthwise_choices(form, builder.sizes, builder.target);
  } else {
    choices = tensor_core_choices(builder, view);
  }
  const auto own = std::find_if(choices.begin(), choices.end(),
                                [&](const Candidate& c) { return c.choice == *first; });
  RF_CHECK(own != choices.end(), "{} is no choice", to_string(*first));
  return best_choices({*own}, std::move(choices));
}

}  // namespace redfuser::codegen
