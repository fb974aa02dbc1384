#include "codegen/select/convolution_select.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "codegen/convolution/columns_product.h"
#include "codegen/convolution/convolution_kernel.h"
#include "codegen/convolution/depthwise_kernel.h"
#include "codegen/integer_product/integer_config.h"
#include "codegen/product/library_time.h"
#include "codegen/select/offers.h"

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

  void add_tensor_cores() {
    const auto form = convolution_form(ConvolutionStep(builder_, view_));
    if (const auto* refusal = std::get_if<std::string>(&form)) {
      ways_.push_back({kConvolutionFamily, nullptr, {kConvolutionFamily, "", 0, *refusal}});
      return;
    }
    add(kConvolutionFamily, [form = std::get<ConvolutionForm>(form)](const ConvolutionStep& c) {
      add_convolution(c, form);
    });
  }

  void add_depthwise() {
    const auto form = depthwise_form(ConvolutionStep(builder_, view_));
    if (const auto* refusal = std::get_if<std::string>(&form)) {
      ways_.push_back({kDepthwiseFamily, nullptr, {kDepthwiseFamily, "", 0, *refusal}});
      return;
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
    if (builder_.leaves_out(family) || builder_.leaves_out_offer(family) ||
        builder_.leaves_out(kernel)) {
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
  return family == kConvolutionFamily || family == kDepthwiseFamily;
}

void choose_convolution(StepBuilder& builder, const ops::NodeView& view) {
  Choice(builder, view).make();
}

void generate_convolution(StepBuilder& builder, const ops::NodeView& view,
                          const KernelConfig& choice) {
  const ConvolutionStep convolution(builder, view);
  const bool depthwise = choice.family == kDepthwiseFamily;
  const auto found = depthwise ? depthwise_form(convolution) : convolution_form(convolution);
  const auto* form = std::get_if<ConvolutionForm>(&found);
  RF_CHECK(form != nullptr, "{} computes no such convolution", to_string(choice));
  if (depthwise) {
    add_depthwise(convolution, *form, DepthwiseConfig::of(choice));
  } else {
    add_convolution(convolution, *form, ConvolutionConfig::of(choice));
  }
}

std::vector<Candidate> convolution_configs(StepBuilder& builder, const ops::NodeView& view) {
  StepBuilder chosen = builder.trial();
  chosen.sizes = KnownSizes();
  choose_convolution(chosen, view);
  const auto first = running(chosen.result, builder.sizes);
  if (!first) return {};
  const ConvolutionStep convolution(builder, view);
  std::vector<Candidate> choices;
  if (first->family == kDepthwiseFamily) {
    const auto form = std::get<ConvolutionForm>(depthwise_form(convolution));
    choices = depthwise_choices(form, builder.sizes, builder.target);
  } else {
    const auto form = std::get<ConvolutionForm>(convolution_form(convolution));
    choices = convolution_choices(convolution_counts(builder.pool(), form, builder.sizes),
                                  builder.target);
  }
  const auto own = std::find_if(choices.begin(), choices.end(),
                                [&](const Candidate& c) { return c.choice == *first; });
  RF_CHECK(own != choices.end(), "{} is no choice", to_string(*first));
  return best_choices({*own}, std::move(choices));
}

}  // namespace redfuser::codegen
