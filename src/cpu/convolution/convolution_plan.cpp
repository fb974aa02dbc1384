#include "cpu/convolution/convolution_plan.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/error.h"
#include "cpu/machine/this_machine.h"

namespace redfuser::cpu {

double ConvolutionForm::output_bytes() const {
  return static_cast<double>(shape.batch * shape.filters * count_of(shape.window.output)) *
         static_cast<double>(size_of(dtype));
}

double near_bytes() { return 0.375 * static_cast<double>(this_machine().l2_bytes); }

double read_time(double bytes, bool near) {
  return bytes / (near ? this_machine().l2_rate : this_machine().memory_rate);
}

namespace {

// Loads of vectors for each multiply-add of a channel's filter by blocks of lines: a run of taps,
// one line of a plane after the other, loads each line once.
double loads_of_lines(const Window& w) {
  constexpr double kLines = 8;
  const int64_t taps = w.kernel[1], stride = w.stride[1], dilation = w.dilation[1];
  const int64_t gap = stride % dilation == 0 ? std::min(stride / dilation, taps) : taps;
  double loads = 0;
  for (int64_t first = 0; first < gap; ++first) {
    const int64_t run = ceil_div(taps - first, gap), parts = ceil_div(run, kMostRun);
    loads += static_cast<double>(run + parts * (static_cast<int64_t>(kLines) - 1));
  }
  return loads / (kLines * static_cast<double>(taps));
}

// Microseconds of a channel's filters: so many multiply-adds for each position and filter, `rate`
// of them per microsecond.
double time_of_channels(const ConvolutionForm& form, int64_t steps, double rate) {
  const Window& w = form.shape.window;
  const auto lines = static_cast<double>(w.output[0] * w.output[1]);
  const double columns = std::ceil(static_cast<double>(w.output[2]) / 16) * 16;
  return static_cast<double>(form.filters()) * static_cast<double>(steps) * lines * columns / rate +
         static_cast<double>(count_of(w.input)) / this_machine().copy_rate;
}

}  // namespace

double ConvolutionForm::channel_time(int64_t steps) const {
  return time_of_channels(*this, steps, this_machine().filter_rate);
}

// Lines of a vector and more are filtered in blocks. Each of their loads takes two of the multiply-
// adds' cycles, because it crosses a cache line.
double ConvolutionForm::channel_time() const {
  const select::CpuMachine& machine = this_machine();
  const Window& w = shape.window;
  const bool by_lines = static_cast<double>(w.output[2]) >= machine.lanes && w.output[1] >= 4;
  constexpr double kShare = 0.6;  // of the rate of windows, whose sums are more
  const double rate = by_lines ? kShare * machine.window_rate / std::max(1.0, 2 * loads_of_lines(w))
                               : machine.filter_rate;
  return time_of_channels(*this, count_of(w.kernel), rate);
}

ConvolutionForm convolution_of(const StepForm& form) {
  const auto& step = std::get<fuse::OpaqueStep>(form.kind);
  const ir::Node& node = form.graph.nodes[static_cast<size_t>(step.node)];
  const ops::NodeView view(form.graph, node);
  const auto sizes = [&](int input) {
    return dims_of(form.graph, node.inputs[input], form.symbols);
  };
  ConvolutionForm result{form.graph, step.node, make_conv_shape(view, sizes(0), sizes(1))};
  if (view.dtype(0) == DType::Float64) result.dtype = DType::Float64;
  if (is_integer(view.dtype(0))) result.dtype = DType::Int32;
  result.constant_weights = view.input(1).is_constant();
  if (step.epilogue && !result.empty()) {
    constexpr int64_t kFilters = 32, kPositions = 192;
    const ConvolutionEpilogue epilogue(form, result.dtype, std::min(kFilters, result.filters()),
                                       std::min(kPositions, count_of(result.shape.window.output)));
    constexpr double kActivation = 7e-5, kLogistic = 2e-4;
    const Activation& activation = epilogue.activation();
    result.epilogue_time = epilogue.time();
    result.activation_time = !activation.any       ? result.epilogue_time
                             : activation.logistic ? kLogistic
                                                   : kActivation;
    result.channel_activation_time =
        activation.adds ? result.epilogue_time : result.activation_time;
  }
  return result;
}

void ConvolutionPlan::run(RunContext& context) const {
  Prepared none;
  OpaqueCall call(context, context.graph.nodes[static_cast<size_t>(form_.node)], none);
  try {
    compute(context, call);
  } catch (const std::bad_alloc&) {
    call.fail("out of memory");
  }
}

void ConvolutionPlan::compute(RunContext& context, OpaqueCall& call) const {
  const ConvShape& s = form_.shape;
  const Tensor x = call.widened(0), weights = call.widened(1);
  const Tensor bias = call.has_input(2) ? call.widened(2) : Tensor();
  if (bias.defined() && bias.size() != s.filters) {
    call.fail(fmt::format("bias {} for {} filters", describe(bias), s.filters));
  }
  const auto compute_to = [&](SumsTarget& sums) {
    compute(
        {x.data(), weights.data(), bias.defined() ? bias.data() : nullptr, sums, call.threads()});
  };
  if (epilogue_ != nullptr) {
    allocate(context, epilogue_->value());
    EpilogueSums sums(*epilogue_, context);
    if (!form_.empty()) compute_to(sums);
    return;
  }
  Tensor y(form_.dtype, s.window.dims(s.batch, s.filters, s.window.output));
  PlainSums sums(y.mutable_data(), static_cast<int64_t>(size_of(form_.dtype)), s.filters,
                 count_of(s.window.output));
  if (!form_.empty()) compute_to(sums);
  call.set(0, std::move(y));
}

void ConvolutionPlan::run_tasks(ThreadPool& pool, bool alone, int64_t tasks,
                                const std::function<void(int64_t, int)>& body) {
  if (!alone) return pool.parallel_for(tasks, body);
  for (int64_t task = 0; task < tasks; ++task) body(task, 0);
}

}  // namespace redfuser::cpu
