#include "cpu/convolution/integer_plan.h"

#include <algorithm>
#include <new>

#include "cpu/convolution/convolution_epilogue.h"
#include "cpu/convolution/convolution_plan.h"
#include "cpu/convolution/quantized_epilogue.h"
#include "cpu/estimate/program_time.h"
#include "cpu/opaque/image/integers/integer_products.h"
#include "cpu/simd/integers/byte_filter.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {
namespace {

constexpr const char* kIntegers = "integers";
constexpr int64_t kFilters = 48, kPositions = 1024;  // of a tile of the epilogue

const fuse::OpaqueStep::Epilogue& epilogue_of(const StepForm& form) {
  return *std::get<fuse::OpaqueStep>(form.kind).epilogue;
}

// Sums that are quantised in their place before the rest of the epilogue.
class HeadedSums final : public SumsTarget {
 public:
  HeadedSums(const ConvolutionEpilogue& epilogue, RunContext& context, const QuantizedRows& rows)
      : rest_(epilogue, context), rows_(rows) {}

  int64_t near_sums() const override { return rest_.near_sums(); }
  Place place(int worker, const Block& block) override { return rest_.place(worker, block); }
  Place wide_place(int worker, const Block& block, int64_t stride) override {
    return rest_.wide_place(worker, block, stride);
  }
  void done(int worker, const Block& block, const Place& place) override {
    IntegerQuantizeArgs q = rows_.of(block, place);
    q.out = place.data;
    q.out_stride = place.stride;
    kernels().quantize_words(q);
    rest_.done(worker, block, place);
  }

 private:
  EpilogueSums rest_;
  const QuantizedRows& rows_;
};

// Where the sums go.
class Epilogue {
 public:
  Epilogue(const StepForm& form, const ConvolutionForm& convolution)
      : value_(epilogue_of(form).value),
        shape_(convolution.shape),
        head_(quantized_head(form.graph, epilogue_of(form))) {
    if (head_ && head_->expr == epilogue_of(form).body) return;
    if (head_) rest_ = quantized_rest(form.graph, epilogue_of(form), head_->expr);
    if (rest_) return;
    if (head_) table_ = table_after(epilogue_of(form), head_->expr);
    if (table_) return;
    program_ = std::make_unique<ConvolutionEpilogue>(
        form, convolution.dtype, std::clamp<int64_t>(shape_.filters, 1, kFilters),
        std::clamp<int64_t>(positions(), 1, kPositions), head_ ? head_->expr : nullptr);
  }

  ir::ValueId value() const { return value_; }
  // Of a run whose output is allocated.
  std::unique_ptr<SumsTarget> sums(RunContext& context) const {
    if (head_ && program_) return std::make_unique<HeadedSums>(*program_, context, head_->rows);
    if (program_) return std::make_unique<EpilogueSums>(*program_, context);
    QuantizedRestArgs rest;
    if (table_) rest.table = table_->data();
    if (rest_) {
      rest.residual = rest_->second;
      const Tensor& beside = context.values[static_cast<size_t>(rest_->value)];
      rest.residual->bytes = static_cast<const uint8_t*>(beside.data());
    }
    return std::make_unique<QuantizedSums>(
        context.values[static_cast<size_t>(value_)].mutable_data(), shape_.filters, positions(),
        head_->rows, context.pool.size(), rest);
  }

 private:
  int64_t positions() const { return count_of(shape_.window.output); }

  ir::ValueId value_;
  ConvShape shape_;
  std::optional<QuantizedHead> head_;
  std::optional<QuantizedRest> rest_;
  std::optional<CodeTable> table_;
  std::unique_ptr<const ConvolutionEpilogue> program_;
};

class IntegerConvolutionPlan final : public StepPlan {
 public:
  explicit IntegerConvolutionPlan(const StepForm& form)
      : form_(convolution_of(form)), store_(form.panels), epilogue_(form, form_) {}

  void run(RunContext& context) const override {
    const ir::Node& node = context.graph.nodes[static_cast<size_t>(form_.node)];
    const OpaqueCall call(context, node, store_->prepared());
    allocate(context, epilogue_.value());
    const std::unique_ptr<SumsTarget> sums = epilogue_.sums(context);
    if (form_.empty()) return;
    try {
      convolve_bytes(call, form_.shape, 0, 2, 1, 3, *sums);
    } catch (const std::bad_alloc&) {
      call.fail("out of memory");
    }
  }

 private:
  const ConvolutionForm form_;
  const std::shared_ptr<PanelStore> store_;
  const Epilogue epilogue_;
};

// Of a group of one channel: a step multiplies the taps of a word.
double channel_time(const ConvolutionForm& c) {
  const Window& w = c.shape.window;
  const int64_t size = ByteSpread::most_taps(w.stride[2], w.dilation[2]);
  if (kernels().byte_filter == nullptr || size == 0) return c.channel_time();
  return c.channel_time(w.kernel[0] * w.kernel[1] * ceil_div(w.kernel[2], size));
}

select::FamilyAnswer offer_integers(StepForm& form) {
  const ConvolutionForm c = convolution_of(form);
  if (c.empty()) return {{{{kIntegers, {}}, 0}}, ""};
  const select::CpuMachine& machine = this_machine();
  const auto positions = static_cast<double>(count_of(c.shape.window.output));
  const auto taps = static_cast<double>(c.taps()), filters = static_cast<double>(c.filters());
  const bool by_channels = c.shape.groups == c.shape.channels;
  const double sums = by_channels
                          ? channel_time(c)
                          : positions * taps * (filters / machine.dot_rate + 1 / machine.pack_rate);
  // Rounding to bytes takes as long as two conversions.
  const auto head = quantized_head(form.graph, epilogue_of(form));
  const bool whole = head && head->expr == epilogue_of(form).body;
  const bool twice = head && !whole && quantized_rest(form.graph, epilogue_of(form), head->expr);
  const bool looked_up = head && !whole && !twice && table_after(epilogue_of(form), head->expr);
  const double once = 2 / machine.convert_rate;
  const double after = whole       ? once
                       : twice     ? 2 * once
                       : looked_up ? once + 1 / machine.lookup_rate
                                   : c.epilogue_time;
  const double each = sums + positions * filters * (after + 1 / machine.convert_rate);
  const auto images = static_cast<double>(c.shape.batch * c.shape.groups);
  return {{{{kIntegers, {}},
            step_time(TaskTime{each, 0}, images, form.threads, c.output_bytes()).time}},
          ""};
}

std::shared_ptr<const StepPlan> emit_integers(StepForm& form, const select::KernelConfig&) {
  return std::make_shared<IntegerConvolutionPlan>(form);
}

constexpr Family kFamilies[] = {{kIntegers, offer_integers, emit_integers}};

}  // namespace

std::span<const Family> integer_convolution_families(const ir::Graph& graph,
                                                     const fuse::OpaqueStep& step) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(step.node)];
  const bool ours = node.op == "ConvInteger" && (node.domain.empty() || node.domain == "ai.onnx");
  return ours && step.epilogue ? std::span<const Family>(kFamilies) : std::span<const Family>();
}

}  // namespace redfuser::cpu
