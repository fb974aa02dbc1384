#include "codegen/convolution/depthwise_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "select/by_time.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

constexpr DepthwiseConfig kConfigs[] = {
    {8, 1, 4}, {8, 2, 4}, {8, 1, 2}, {8, 2, 2}, {8, 1, 1}, {4, 2, 4},
    {4, 1, 4}, {2, 4, 7}, {2, 2, 7}, {2, 2, 4}, {1, 2, 4}, {1, 1, 4},
    {1, 1, 1}, {8, 8, 1}, {8, 4, 1}, {4, 8, 1}, {2, 8, 1}, {1, 8, 1},
};
constexpr double kOtherRegisters = 48;
constexpr int kY = 1, kX = 2;

// Along an axis of the form.
int64_t window(int64_t places, const ConvolutionForm& form, int axis) {
  return (places - 1) * form.stride[axis] + (form.kernel[axis] - 1) * form.dilation[axis] + 1;
}

// A sequence lies along y: a thread walks over the rows of its window, and keeps few of them.
void turn_sequence(ConvolutionForm& form) {
  std::swap(form.height, form.width);
  std::swap(form.out_height, form.out_width);
  for (auto* numbers : {form.kernel, form.stride, form.dilation}) {
    std::swap(numbers[kY], numbers[kX]);
  }
  std::swap(form.pad[kY], form.pad[kX]);
}

// Registers of a thread: its sums, a row of the window as floats, and the next one.
double registers_of(const DepthwiseConfig& config, const ConvolutionForm& form) {
  const auto row = static_cast<double>(window(config.columns, form, kX) * config.width);
  return config.rows * config.columns * config.width + 1.5 * row + kOtherRegisters;
}

}  // namespace

DepthwiseConfig DepthwiseConfig::of(const KernelConfig& choice) {
  return {choice.at("width"), choice.at("rows"), choice.at("columns")};
}

std::variant<ConvolutionForm, std::string> depthwise_form(const ConvolutionStep& c) {
  if (!c.channels()->is_constant(1) || c.weights_shape()[0] != c.view.shape(0)[1]) {
    return "a channel has other than one filter";
  }
  if (!c.weights_shape()[0]->is_constant()) return "the number of channels is not known";
  auto form = window_form(c);
  if (auto* found = std::get_if<ConvolutionForm>(&form)) {
    if (found->spatial > 2) return "it takes one or two spatial dimensions";
    if (c.windows.kernel.size() == 1) turn_sequence(*found);
    found->pitch = c.view.shape(0)[1];
    found->copies_input = !channels_last(c.builder.target, c.input());
    const MemoryOrder* order = c.builder.target.order_of(c.weights());
    found->copies_filters = order == nullptr || order->back() != 1 || order->front() != 2;
    if (depthwise_choices(*found, c.builder.sizes, c.builder.target).empty()) {
      return "its windows do not fit in registers";
    }
  }
  return form;
}

std::vector<Candidate> depthwise_choices(const ConvolutionForm& form, const KnownSizes& sizes,
                                         const Target& target) {
  // Instructions for each product; cycles from the load of a row to its use, and rows that are
  // loaded ahead (DepthwiseTile::Ahead); the share of the bandwidth that threads reach.
  constexpr double kInstructions = 2.8, kLatency = 900, kAhead = 4, kMemoryShare = 0.7,
                   kMostRegisters = 208;
  constexpr int kSchedulers = 4;
  const auto known = [&](ir::Expr size, double nominal) {
    const int64_t value = sizes.of(size);
    return value < 0 ? nominal : static_cast<double>(value);
  };
  const double channels = static_cast<double>(form.pitch->integer), batch = known(form.batch, 8);
  const double out_y = known(form.out_height, 28), out_x = known(form.out_width, 28);
  const double elements =
      batch * channels * (out_y * out_x + known(form.height, 28) * known(form.width, 28));
  constexpr int64_t kWidest = 16;  // bytes that a thread loads at once
  const auto size = static_cast<int64_t>(size_of(form.dtype));
  const double bytes = elements * static_cast<double>(size);
  std::vector<Candidate> choices;
  for (const DepthwiseConfig& config : kConfigs) {
    const double registers = registers_of(config, form);
    if (config.width * size > kWidest) continue;
    if (form.pitch->integer % config.width != 0 || registers > kMostRegisters) continue;
    const double warps = channels / config.width * std::ceil(out_y / config.rows) *
                         std::ceil(out_x / config.columns) * batch / 32;
    const double resident = std::max(1.0, select::kRegistersOfMultiprocessor / registers / 32);
    const double each = std::max(1.0, warps / target.multiprocessors);
    const int64_t step =
        config.rows == 1 ? form.dilation[kY] : std::gcd(form.stride[kY], form.dilation[kY]);
    const auto steps =
        std::ceil(static_cast<double>(window(config.rows, form, kY)) / static_cast<double>(step));
    const double products = static_cast<double>(form.kernel[kY] * form.kernel[kX]) * config.rows *
                            config.columns * config.width;
    const bool ahead = window(config.columns, form, kX) == 1 && form.kernel[kY] > 3;
    const double row =
        std::max(ahead ? kLatency / kAhead : kLatency,
                 std::min(each, resident) / kSchedulers * kInstructions * products / steps);
    const double work = target.microseconds(std::max(1.0, each / resident) * steps * row);
    const double time =
        select::kLaunchTime + select::overlapped(work, bytes / (kMemoryShare * target.dram_rate));
    choices.push_back({{kDepthwiseFamily, config.parameters()}, time});
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
