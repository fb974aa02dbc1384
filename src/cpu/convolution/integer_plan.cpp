#include "cpu/convolution/integer_plan.h"

#include <algorithm>
#include <new>

#include "cpu/convolution/convolution_epilogue.h"
#include "cpu/convolution/convolution_plan.h"
#include "cpu/convolution/lanes_plan.h"
#include "cpu/convolution/quantized_epilogue.h"
#include "cpu/convolution/scaled_epilogue.h"
#include "cpu/estimate/program_time.h"
#include "cpu/opaque/image/depthwise.h"
#include "cpu/opaque/image/integers/channel_vectors.h"
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
        head_(quantized_head(form.graph, epilogue_of(form), convolution.taps())) {
    if (head_ && head_->expr == epilogue_of(form).body) return;
    if (head_) rest_ = quantized_rest(form.graph, epilogue_of(form), head_->expr);
    if (rest_) return;
    if (head_) table_ = table_after(epilogue_of(form), head_->expr);
    if (table_) return;
    if (!head_) scaled_ = ScaledEpilogue::of(form);
    if (scaled_) return;
    program_ = std::make_unique<ConvolutionEpilogue>(
        form, convolution.dtype, std::clamp<int64_t>(shape_.filters, 1, kFilters),
        std::clamp<int64_t>(positions(), 1, kPositions), head_ ? head_->expr : nullptr);
  }

  ir::ValueId value() const { return value_; }
  // Of a run whose output is allocated.
  std::unique_ptr<SumsTarget> sums(RunContext& context) const {
    if (head_ && program_) return std::make_unique<HeadedSums>(*program_, context, head_->rows);
    if (program_) return std::make_unique<EpilogueSums>(*program_, context);
    if (scaled_) return scaled_->sums(context);
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
  std::optional<ScaledEpilogue> scaled_;
  std::unique_ptr<const ConvolutionEpilogue> program_;
};

bool has_vectors(const Window& window) {
  const ByteFilterKernel* kernel = kernels().byte_filter;
  return kernel != nullptr && kernel->run_vectors != nullptr && ChannelVectors::takes(window);
}

class IntegerConvolutionPlan final : public StepPlan {
 public:
  // `lanes`: with packed weights, or null.
  IntegerConvolutionPlan(const StepForm& form, std::unique_ptr<const LanesPlan> lanes)
      : form_(convolution_of(form)),
        store_(form.panels),
        epilogue_(form, form_),
        lanes_(std::move(lanes)) {}

  void run(RunContext& context) const override {
    const ir::Node& node = context.graph.nodes[static_cast<size_t>(form_.node)];
    const OpaqueCall call(context, node, store_->prepared());
    allocate(context, epilogue_.value());
    const std::unique_ptr<SumsTarget> sums = epilogue_.sums(context);
    if (form_.empty()) return;
    try {
      if (lanes_ == nullptr) return convolve_bytes(call, form_.shape, 0, 2, 1, 3, *sums);
      const int64_t zero = call.has_input(2) ? call.integer_of(2) : 0;
      lanes_->filter_bytes(call.tensor(0), zero, *sums, context.pool);
    } catch (const std::bad_alloc&) {
      call.fail("out of memory");
    }
  }

 private:
  const ConvolutionForm form_;
  const std::shared_ptr<PanelStore> store_;
  const Epilogue epilogue_;
  const std::unique_ptr<const LanesPlan> lanes_;
};

// Of a group of one channel: a step multiplies the taps of a word.
double channel_time(const ConvolutionForm& c) {
  const Window& w = c.shape.window;
  if (has_vectors(w)) {
    constexpr double kShare = 0.7;  // of the rate of matrices, whose factors are not permuted
    const int64_t words = w.kernel[0] * w.kernel[1] * ceil_div(w.kernel[2], ChannelVectors::kTaps);
    const auto products =
        static_cast<double>(ChannelVectors::kTaps * words * c.filters() * count_of(w.output));
    constexpr double kPlane = 0.0125;  // besides its elements
    return products / (kShare * this_machine().dot_rate) + kPlane;
  }
  constexpr double kPlane = 0.05;
  const int64_t size = ByteSpread::most_taps(w.stride[2], w.dilation[2]);
  if (kernels().byte_filter == nullptr || size == 0) return c.channel_time() + kPlane;
  return c.channel_time(w.kernel[0] * w.kernel[1] * ceil_div(w.kernel[2], size)) + kPlane;
}

// Microseconds of what follows a sum. Rounding to bytes takes as long as two conversions.
double time_after(const StepForm& form, const ConvolutionForm& c) {
  const select::CpuMachine& machine = this_machine();
  const double once = 2 / machine.convert_rate;
  const auto head = quantized_head(form.graph, epilogue_of(form), c.taps());
  if (!head) return ScaledEpilogue::of(form) ? 1 / machine.convert_rate : c.epilogue_time;
  if (head->expr == epilogue_of(form).body) return once;
  if (quantized_rest(form.graph, epilogue_of(form), head->expr)) return 2 * once;
  const bool looked_up = table_after(epilogue_of(form), head->expr).has_value();
  return looked_up ? once + 1 / machine.lookup_rate : c.epilogue_time;
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
  const double moved = by_channels ? 0 : 1 / machine.convert_rate;
  const double each = sums + positions * filters * (time_after(form, c) + moved);
  // A task has several channels.
  const int64_t images = c.shape.batch * c.shape.groups;
  const int64_t tasks = by_channels ? depthwise_tasks(images, form.threads) : images;
  const TaskTime task{each * static_cast<double>(ceil_div(images, tasks)), 0};
  const auto count = static_cast<double>(tasks);
  return {{{{kIntegers, {}}, step_time(task, count, form.threads, c.output_bytes()).time}}, ""};
}

std::shared_ptr<const StepPlan> emit_integers(StepForm& form, const select::KernelConfig&) {
  return std::make_shared<IntegerConvolutionPlan>(form, nullptr);
}

const ir::Node& node_of(const StepForm& form) {
  return form.graph.nodes[static_cast<size_t>(std::get<fuse::OpaqueStep>(form.kind).node)];
}

bool has_input(const ir::Node& node, size_t input) {
  return input < node.inputs.size() && node.inputs[input] != ir::kAbsent;
}

// An input of the node, undefined where it is absent or not constant.
Tensor constant_of(const StepForm& form, size_t input) {
  const ir::Node& node = node_of(form);
  if (!has_input(node, input)) return {};
  return form.graph.values[static_cast<size_t>(node.inputs[input])].constant;
}

// Bytes with no zero point, or with one or one for each filter.
bool has_constant_filters(const StepForm& form) {
  const Tensor w = constant_of(form, 1), zeros = constant_of(form, 3);
  if (!w.defined() || size_of(w.dtype()) != 1) return false;
  if (!has_input(node_of(form), 3)) return true;
  return zeros.defined() && (zeros.size() == 1 || zeros.size() == w.dims()[0]);
}

int byte_of(const Tensor& bytes, int64_t i) {
  return bytes.dtype() == DType::Int8 ? bytes.as<int8_t>()[i] : bytes.as<uint8_t>()[i];
}

// The filters less their zero points, as floats.
Tensor filters_of(const StepForm& form) {
  const Tensor w = constant_of(form, 1), zeros = constant_of(form, 3);
  const int64_t taps = w.size() / w.dims()[0];
  Tensor result(DType::Float32, w.dims());
  for (int64_t i = 0; i < w.size(); ++i) {
    const int zero = zeros.defined() ? byte_of(zeros, zeros.size() == 1 ? 0 : i / taps) : 0;
    result.as<float>()[i] = static_cast<float>(byte_of(w, i) - zero);
  }
  return result;
}

// A convolution of floats that hold its sums.
ConvolutionForm in_floats(const StepForm& form) {
  ConvolutionForm c = convolution_of(form);
  c.activation_time = time_after(form, c);
  c.dtype = DType::Float32;
  return c;
}

select::FamilyAnswer offer_lanes(StepForm& form) {
  constexpr int64_t kMostTaps = 256;  // differences of bytes, whose sums are below 2^24
  const ir::Node& node = node_of(form);
  const ConvolutionForm c = in_floats(form);
  if (const char* reason = LanesPlan::refuses(c)) return {{}, reason};
  if (c.taps() > kMostTaps) return {{}, "floats do not hold the sums"};
  if (!has_constant_filters(form)) return {{}, "the filters are not constant"};
  if (has_input(node, 2) && element_count(dims_of(form.graph, node.inputs[2], form.symbols)) != 1) {
    return {{}, "the input has several zero points"};
  }
  // Bytes are widened, and stored position by position.
  constexpr double kWidened = 1.25;
  std::vector<select::Candidate> candidates = lanes_candidates(c, form.threads);
  for (select::Candidate& each : candidates) each.time *= kWidened;
  return {std::move(candidates), ""};
}

std::shared_ptr<const StepPlan> emit_lanes(StepForm& form, const select::KernelConfig& choice) {
  auto plan =
      std::make_unique<LanesPlan>(in_floats(form), choice.at("lines"), choice.at("columns"));
  plan->set_alone(runs_alone(plan->time(form.threads).saved));
  plan->set_weights(form.panels->filters(
      kLanesFamily, [&] { return plan->pack_weights(filters_of(form).data()); }));
  return std::make_shared<IntegerConvolutionPlan>(form, std::move(plan));
}

constexpr Family kFamilies[] = {{kIntegers, offer_integers, emit_integers},
                                {kLanesFamily, offer_lanes, emit_lanes}};

}  // namespace

std::span<const Family> integer_convolution_families(const ir::Graph& graph,
                                                     const fuse::OpaqueStep& step) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(step.node)];
  const bool ours = node.op == "ConvInteger" && (node.domain.empty() || node.domain == "ai.onnx");
  return ours && step.epilogue ? std::span<const Family>(kFamilies) : std::span<const Family>();
}

}  // namespace redfuser::cpu
