#include "cpu/convolution/lanes_plan.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "cpu/opaque/image/im2col.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {

const char* LanesPlan::refuses(const ConvolutionForm& form) {
  if (form.shape.groups != form.shape.channels) return "a group has several channels";
  if (form.empty()) return "the result is empty";
  const Window w = with_long_lines(form.shape.window);
  if (w.input[0] != 1 || w.output[0] != 1) return "the image has three dimensions";
  const double image = static_cast<double>(w.input[1] + w.kernel[1] * w.dilation[1] +
                                           w.pad_begin[1] + w.output[1] * w.stride[1]) *
                       static_cast<double>(w.input[2] + w.kernel[2] * w.dilation[2] +
                                           w.pad_begin[2] + w.output[2] * w.stride[2]);
  return image > 1e8 ? "the image is too large" : nullptr;
}

LanesPlan::LanesPlan(ConvolutionForm form, int64_t lines, int64_t columns)
    : ConvolutionPlan(std::move(form)),
      window_(with_long_lines(this->form().shape.window)),
      strips_(window_, lines, columns),
      lanes_(kernels().window_lanes_f32 / (this->form().dtype == DType::Float64 ? 2 : 1)),
      filters_(this->form().filters()) {
  const Window& w = window_;
  const bool whole = strips_.columns() == w.output[2];
  rows_ = span_of(w, 1, strips_.lines());
  pitch_ = span_of(w, 2, strips_.columns());
  if (whole) pitch_ = std::max(pitch_, w.pad_begin[2] + w.input[2]);
  // Inputs of whole lines lie between the padding of the image's rows, others side by side.
  row_ = whole ? w.input[2] : pitch_;
  for (int64_t i = 0; i < rows_ * row_; ++i) {
    const int64_t column = whole ? w.pad_begin[2] + i % row_ : i % row_;
    places_.push_back(static_cast<int32_t>(i / row_ * pitch_ + column));
  }
  for (int64_t line = 0; line < strips_.lines(); ++line) {
    for (int64_t column = 0; column < strips_.columns(); ++column) {
      positions_.push_back((line * w.stride[1] * pitch_ + column * w.stride[2]) * lanes_);
    }
  }
  for_each_tap(w, [&](int64_t, const Size3& tap) {
    offsets_.push_back(((tap[1] + w.pad_begin[1]) * pitch_ + tap[2] + w.pad_begin[2]) * lanes_);
  });
}

Tensor LanesPlan::pack_weights(const void* weights) const {
  const int64_t channels = form().shape.channels, taps = form().taps();
  Tensor packed(form().dtype, {blocks(), filters_, taps, lanes_});
  const auto pack = [&]<typename T>(TypeTag<T>) {
    T* to = packed.as<T>();
    for (int64_t block = 0; block < blocks(); ++block) {
      for (int64_t row = 0; row < filters_ * taps; ++row) {
        for (int64_t lane = 0; lane < lanes_; ++lane) {
          const int64_t channel = std::min(block * lanes_ + lane, channels - 1);
          *to++ = static_cast<const T*>(weights)[channel * filters_ * taps + row];
        }
      }
    }
  };
  form().dtype == DType::Float64 ? pack(TypeTag<double>{}) : pack(TypeTag<float>{});
  return packed;
}

LanesPlan::Inputs LanesPlan::inputs_of(const Strip& strip) const {
  const Window& w = window_;
  Inputs i{};
  const int64_t rows = span_of(w, 1, strip.lines);
  i.first_row = strip.line * w.stride[1] - w.pad_begin[1];
  i.row_begin = std::clamp<int64_t>(-i.first_row, 0, rows);
  i.row_end = std::clamp<int64_t>(w.input[1] - i.first_row, i.row_begin, rows);
  i.first_column = strip.column * w.stride[2] - w.pad_begin[2];
  i.column_begin = std::clamp<int64_t>(-i.first_column, 0, pitch_);
  i.column_end = std::clamp<int64_t>(w.input[2] - i.first_column, i.column_begin, pitch_);
  return i;
}

template <typename T>
void LanesPlan::clear_padding(const Inputs& i, T* image) const {
  const auto clear = [&](int64_t begin, int64_t end) {
    std::fill(image + begin * lanes_, image + end * lanes_, T(0));
  };
  if (i.row_begin == i.row_end) return clear(0, rows_ * pitch_);
  clear(0, i.row_begin * pitch_ + i.column_begin);
  for (int64_t row = i.row_begin; row + 1 < i.row_end; ++row) {
    clear(row * pitch_ + i.column_end, (row + 1) * pitch_ + i.column_begin);
  }
  clear((i.row_end - 1) * pitch_ + i.column_end, rows_ * pitch_);
}

void LanesPlan::compute(const ConvolutionRun& run) const {
  form().dtype == DType::Float64 ? filter_as<double>(run) : filter_as<float>(run);
}

template <typename T>
void LanesPlan::filter_as(const ConvolutionRun& run) const {
  const Tensor own = packed_ == nullptr ? pack_weights(run.weights) : Tensor();
  const bool single = sizeof(T) == sizeof(float);
  const Source source{static_cast<const char*>(run.x), sizeof(T),
                      single ? kernels().lanes_f32 : kernels().lanes_f64, 0, run.bias};
  const T* weights = (packed_ == nullptr ? own : *packed_).template as<T>();
  filter(source, weights, run.sums, run.pool);
}

void LanesPlan::filter_bytes(const Tensor& x, int64_t zero, SumsTarget& sums,
                             ThreadPool& pool) const {
  const bool is_signed = x.dtype() == DType::Int8;
  const Source source{static_cast<const char*>(x.data()), 1,
                      is_signed ? kernels().lanes_i8 : kernels().lanes_u8,
                      static_cast<float>(zero)};
  filter(source, packed_->as<float>(), sums, pool);
}

template <typename T>
void LanesPlan::filter(const Source& source, const T* weights, SumsTarget& target,
                       ThreadPool& pool) const {
  const ConvShape& s = form().shape;
  const int64_t plane = count_of(window_.input), tile = kLanesTile * lanes_;
  const int64_t image = rows_ * pitch_ * lanes_, biases = filters_ * lanes_;
  run_tasks(pool, alone_, s.batch * blocks() * strips_.count(), [&](int64_t task, int worker) {
    const Strip strip = strips_.at(task % strips_.count());
    const int64_t block = task / strips_.count() % blocks();
    const int64_t batch = task / strips_.count() / blocks(), channel = block * lanes_;
    T* space = reinterpret_cast<T*>(
        thread_scratch((tile + biases + image) * static_cast<int64_t>(sizeof(T))));
    T *bias = space + tile, *to = bias + biases;
    LanesArgs g;
    g.channels = std::min(lanes_, s.channels - channel);
    for (int64_t i = 0; i < biases; ++i) {
      const int64_t of = std::min(channel + i % lanes_, s.channels - 1);
      bias[i] = source.bias == nullptr
                    ? T(0)
                    : static_cast<const T*>(source.bias)[of * filters_ + i / lanes_];
    }
    const Inputs inputs = inputs_of(strip);
    clear_padding(inputs, to);
    g.inputs = (inputs.row_end - inputs.row_begin) * (inputs.column_end - inputs.column_begin);
    const int64_t first = (inputs.first_row + inputs.row_begin) * window_.input[2] +
                          inputs.first_column + inputs.column_begin;
    const int64_t from = (batch * s.channels + channel) * plane + first;
    g.in_stride = plane;
    g.readable = s.batch * s.channels * plane - from;
    g.in = source.x + from * source.width;
    const bool whole = row_ == window_.input[2];
    g.places = places_.data() + inputs.row_begin * row_ + (whole ? 0 : inputs.column_begin);
    g.image = to;
    g.filters = filters_;
    g.taps = form().taps();
    g.outputs = strip.lines * strip.columns;
    if (slides()) g.line_outputs = strip.columns, g.line_taps = window_.kernel[2];
    g.positions = positions_.data();
    g.offsets = offsets_.data();
    g.weights = weights + block * filters_ * g.taps * lanes_;
    g.bias = bias;
    g.tile = space;
    g.zero = source.zero;
    g.activation = target.activation();
    const SumsTarget::Block sums{batch, channel * filters_,
                                 strip.line * window_.output[2] + strip.column,
                                 g.channels * filters_, g.outputs};
    SumsTarget::Place place = target.place(worker, sums);
    place.activated = g.activation.any;
    g.out = place.data;
    g.out_stride = place.stride;
    g.residual = place.residual;
    source.filter(g);
    target.done(worker, sums, place);
  });
}

double LanesPlan::task_time() const {
  const select::CpuMachine& machine = this_machine();
  const double wide = form().dtype == DType::Float64 ? 2 : 1;
  const auto lanes = static_cast<double>(lanes_), filters = static_cast<double>(filters_);
  const auto squares = [&](int64_t positions) {
    return static_cast<double>(ceil_div(positions, lanes_)) * lanes * lanes;
  };
  const int64_t outputs = most_positions();
  const double products = static_cast<double>(outputs * form().taps()) * lanes * filters;
  // Each multiply-add loads its input, or each line of them. Sums of eight positions begin and end
  // together.
  const double loads = slides() ? 0.6 : 0.5, steps = static_cast<double>(ceil_div(outputs, 8));
  double time =
      wide * products / (loads * machine.window_rate) + 2 * filters * steps * machine.window_block;
  const int64_t read = std::min(rows_, window_.input[1]) * std::min(row_, window_.input[2]);
  time += wide * (squares(read) + filters * squares(outputs)) / machine.square_rate;
  const double image = static_cast<double>(rows_ * pitch_ * lanes_) * 4 * wide;
  if (image > near_bytes()) time += 2 * read_time(image, false);
  return time + lanes * filters * static_cast<double>(outputs) * form().activation_time;
}

std::vector<select::Candidate> lanes_candidates(const ConvolutionForm& form, int threads) {
  const Window window = with_long_lines(form.shape.window);
  const bool is_line = window.input[1] == 1 && window.output[1] == 1;
  const int64_t all = window.output[is_line ? 2 : 1];
  std::vector<select::Candidate> candidates;
  for (int64_t strips = 1; strips <= all && strips <= kMostTasks * threads; strips *= 2) {
    const int64_t lines = is_line ? 1 : ceil_div(all, strips);
    const int64_t columns = is_line ? ceil_div(all, strips) : window.output[2];
    candidates.push_back(
        {{kLanesFamily,
          {{"lines", static_cast<int>(lines)}, {"columns", static_cast<int>(columns)}}},
         LanesPlan(form, lines, columns).time(threads).time});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return candidates;
}

StepTime LanesPlan::time(int threads) const {
  const auto tasks = static_cast<double>(form().shape.batch * blocks() * strips_.count());
  StepTime result = step_time({task_time(), 0}, tasks, threads, form().output_bytes());
  if (!form().constant_weights) {
    result.time +=
        static_cast<double>(form().shape.filters * form().taps()) / this_machine().pack_rate;
  }
  return result;
}

}  // namespace redfuser::cpu
