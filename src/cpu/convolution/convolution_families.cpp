#include "cpu/convolution/convolution_families.h"

#include <algorithm>

#include "base/dispatch.h"
#include "cpu/convolution/lanes_plan.h"
#include "cpu/convolution/window_plan.h"
#include "cpu/opaque/image/depthwise.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr const char *kWindow = "window", *kColumns = "columns", *kChannels = "channels";

template <typename Body>
void for_each_block(const ConvolutionForm& form, int threads, const Body& body) {
  const Window window = with_long_lines(form.shape.window);
  const int64_t panels = FilterPanels(form).count();
  const int64_t lines = window.output[1], columns = window.output[2];
  const int64_t images = form.shape.batch * form.shape.groups * window.output[0];
  for (int64_t parts = 1;; parts *= 2) {
    parts = std::min(parts, panels);
    for (int64_t strips = 1;; strips *= 2) {
      const int64_t down = std::min(strips, lines), across = ceil_div(strips, lines);
      if (across > 1 && across * 12 > columns) break;
      if (strips > 1 && images * strips * parts > kMostTasks * threads) break;
      for (const bool rows : {false, true}) {
        WindowPlan::Blocks blocks{ceil_div(lines, down), ceil_div(columns, across), parts, true,
                                  rows};
        if (rows && !WindowPlan::has_rows(form, blocks)) continue;
        body(blocks);
        blocks.copied = false;
        if (reads_within(window)) body(blocks);
      }
    }
    if (parts == panels || images * parts > kMostTasks * threads) return;
  }
}

select::KernelConfig config_of(const WindowPlan::Blocks& blocks) {
  return {kWindow,
          {{"lines", static_cast<int>(blocks.lines)},
           {"columns", static_cast<int>(blocks.columns)},
           {"parts", static_cast<int>(blocks.parts)},
           {"copied", blocks.copied ? 1 : 0},
           {"rows", blocks.rows ? 1 : 0}}};
}

// Where the step has an epilogue, gives it to the plan: by tiles of the sizes of its blocks.
void add_epilogue(const StepForm& form, ConvolutionPlan& plan, int64_t filters, int64_t positions) {
  if (!std::get<fuse::OpaqueStep>(form.kind).epilogue) return;
  const DType sums = convolution_of(form).dtype;
  plan.set_epilogue(std::make_shared<ConvolutionEpilogue>(form, sums, filters, positions));
}

select::FamilyAnswer sorted(std::vector<select::Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

select::FamilyAnswer offer_window(StepForm& form) {
  const ConvolutionForm convolution = convolution_of(form);
  if (convolution.empty()) return {{}, "the result is empty"};
  std::vector<select::Candidate> candidates;
  for_each_block(convolution, form.threads, [&](const WindowPlan::Blocks& blocks) {
    candidates.push_back(
        {config_of(blocks), WindowPlan(convolution, blocks).time(form.threads).time});
  });
  return sorted(std::move(candidates));
}

// The constant filters of a step in the layout of its family; null for others.
std::shared_ptr<const Tensor> packed_filters(
    const StepForm& form, const char* family,
    const std::function<Tensor(const void* weights)>& pack) {
  const auto& step = std::get<fuse::OpaqueStep>(form.kind);
  const ir::ValueId value = form.graph.nodes[static_cast<size_t>(step.node)].inputs[1];
  const Tensor& weights = form.graph.values[static_cast<size_t>(value)].constant;
  if (!weights.defined()) return nullptr;
  return form.panels->filters(family, [&] {
    ThreadPool alone(1);
    const bool half = weights.dtype() == DType::Float16 || weights.dtype() == DType::BFloat16;
    const Tensor wide = half ? convert_float(weights, DType::Float32, alone) : weights;
    return pack(wide.data());
  });
}

std::shared_ptr<const StepPlan> emit_window(StepForm& form, const select::KernelConfig& choice) {
  const WindowPlan::Blocks blocks{choice.at("lines"), choice.at("columns"), choice.at("parts"),
                                  choice.at("copied") != 0, choice.at("rows") != 0};
  auto plan = std::make_shared<WindowPlan>(convolution_of(form), blocks);
  plan->set_alone(runs_alone(plan->time(form.threads).saved));
  add_epilogue(form, *plan, plan->most_filters(), plan->most_positions());
  plan->set_weights(packed_filters(form, kWindow, [&](const void* weights) {
    return plan->panels().pack_weights(weights, nullptr);
  }));
  return plan;
}

// Runs a function of opaque/image.
template <typename Function>
class FunctionPlan final : public ConvolutionPlan {
 public:
  FunctionPlan(ConvolutionForm form, Function function)
      : ConvolutionPlan(std::move(form)), function_(function) {}

 protected:
  void compute(const ConvolutionRun& run) const override {
    const auto as = [&]<typename T>(TypeTag<T>) {
      function_(form().shape, static_cast<const T*>(run.x), static_cast<const T*>(run.weights),
                static_cast<const T*>(run.bias), run.sums, run.pool);
    };
    form().dtype == DType::Float64 ? as(TypeTag<double>{}) : as(TypeTag<float>{});
  }

 private:
  Function function_;
};

template <typename Function>
std::shared_ptr<const StepPlan> plan_of(const StepForm& form, Function function, int64_t filters,
                                        int64_t positions) {
  const ConvolutionForm convolution = convolution_of(form);
  auto plan = std::make_shared<FunctionPlan<Function>>(convolution, function);
  const int64_t all = count_of(convolution.shape.window.output);
  if (!convolution.empty()) {
    add_epilogue(form, *plan, std::min(filters, convolution.shape.filters),
                 std::min(positions, all));
  }
  return plan;
}

double wide(const ConvolutionForm& form) { return form.dtype == DType::Float64 ? 2 : 1; }

select::FamilyAnswer offer_columns(StepForm& form) {
  const ConvolutionForm c = convolution_of(form);
  if (c.empty()) return {{{{kColumns, {}}, 0}}, ""};
  const select::CpuMachine& machine = this_machine();
  constexpr double kBlock = 256;
  const auto taps = static_cast<double>(c.taps()), filters = static_cast<double>(c.filters());
  const auto pixels = static_cast<double>(count_of(c.shape.window.output));
  const double blocks = std::ceil(pixels / kBlock), block = pixels / blocks;
  const double panel = 2 * machine.lanes, padded = std::ceil(block / panel) * panel;
  double each = product_time({filters, padded, taps, false, true}) +
                filters * padded * taps / machine.far_rows_rate +
                filters * block / machine.sums_rate;
  each += filters * block * c.epilogue_time / wide(c);
  const double weights = filters * taps * sizeof(float);
  each += read_time(weights, weights * wide(c) <= near_bytes());
  if (!is_pointwise(c.shape.window)) each += taps * block / machine.columns_rate;
  const double images = static_cast<double>(c.shape.batch * c.shape.groups);
  const TaskTime task{wide(c) * each, 0};
  return {{{{kColumns, {}}, step_time(task, images * blocks, form.threads, c.output_bytes()).time}},
          ""};
}

std::shared_ptr<const StepPlan> emit_columns(StepForm& form, const select::KernelConfig&) {
  constexpr int64_t kFilters = 16, kPositions = 256;
  return plan_of(
      form, [](auto&&... args) { convolve_columns(args...); }, kFilters, kPositions);
}

select::FamilyAnswer offer_channels(StepForm& form) {
  const ConvolutionForm c = convolution_of(form);
  if (c.shape.groups != c.shape.channels) return {{}, "a group has several channels"};
  if (c.empty()) return {{}, "the result is empty"};
  const auto sums = static_cast<double>(c.filters() * count_of(c.shape.window.output));
  const int64_t planes = c.shape.batch * c.shape.channels;
  const auto tasks = static_cast<double>(depthwise_tasks(planes, form.threads));
  const double each = wide(c) * c.channel_time() + sums * c.channel_activation_time;
  const TaskTime task{each * std::ceil(static_cast<double>(planes) / tasks), 0};
  return {{{{kChannels, {}}, step_time(task, tasks, form.threads, c.output_bytes()).time}}, ""};
}

std::shared_ptr<const StepPlan> emit_channels(StepForm& form, const select::KernelConfig&) {
  return plan_of(
      form, [](auto&&... args) { convolve_depthwise(args...); }, kDepthwiseSums, kDepthwiseSums);
}

select::FamilyAnswer offer_lanes(StepForm& form) {
  const ConvolutionForm c = convolution_of(form);
  if (const char* reason = LanesPlan::refuses(c)) return {{}, reason};
  return {lanes_candidates(c, form.threads), ""};
}

std::shared_ptr<const StepPlan> emit_lanes(StepForm& form, const select::KernelConfig& choice) {
  auto plan =
      std::make_shared<LanesPlan>(convolution_of(form), choice.at("lines"), choice.at("columns"));
  plan->set_alone(runs_alone(plan->time(form.threads).saved));
  add_epilogue(form, *plan, plan->most_filters(), plan->most_positions());
  plan->set_weights(packed_filters(
      form, kLanesFamily, [&](const void* weights) { return plan->pack_weights(weights); }));
  return plan;
}

constexpr Family kFamilies[] = {
    {kWindow, offer_window, emit_window},
    {kColumns, offer_columns, emit_columns},
    {kChannels, offer_channels, emit_channels},
    {kLanesFamily, offer_lanes, emit_lanes},
};

}  // namespace

std::span<const Family> convolution_families(const ir::Node& node) {
  const bool ours = node.op == "Conv" && (node.domain.empty() || node.domain == "ai.onnx");
  return ours ? std::span<const Family>(kFamilies) : std::span<const Family>();
}

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::OpaqueStep& step) {
  std::vector<ir::ValueId> values;
  for (const ir::ValueId input : graph.nodes[static_cast<size_t>(step.node)].inputs) {
    if (input != ir::kAbsent) values.push_back(input);
  }
  std::vector<ir::Expr> expressions;
  if (step.epilogue) {
    expressions = step.epilogue->axes;
    expressions.push_back(step.epilogue->body);
  }
  return symbols_of(graph, expressions, values);
}

}  // namespace redfuser::cpu
