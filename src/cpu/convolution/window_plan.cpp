#include "cpu/convolution/window_plan.h"

#include <algorithm>

#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {
namespace {

// Output positions whose sums are held together: they stay in the first-level cache. A plane of so
// many or fewer is one row for what follows.
constexpr int64_t kPositions = 196, kPositionsOfThree = 128;  // of panels of three vectors
// Those by vectors of positions, which the kernel stores where they belong.
constexpr int64_t kRowPositions = 256;

}  // namespace

WindowPlan::WindowPlan(ConvolutionForm form, const Blocks& blocks)
    : ConvolutionPlan(std::move(form)),
      window_(with_long_lines(this->form().shape.window)),
      strips_(window_, blocks.lines, blocks.columns),
      inputs_(window_, this->form().channels(), strips_, blocks.copied),
      panels_(this->form()),
      parts_(std::clamp<int64_t>(blocks.parts, 1, panels_.count())),
      rows_(blocks.rows) {}

bool WindowPlan::has_rows(const ConvolutionForm& form, const Blocks& blocks) {
  const Window window = with_long_lines(form.shape.window);
  const Strips strips(window, blocks.lines, blocks.columns);
  return window.stride[2] == 1 && window.output[2] / strips.across() >= FilterPanels(form).lanes();
}

int64_t WindowPlan::most_positions() const {
  return std::min(rows_ ? kRowPositions : kPositions, strips_.lines() * strips_.columns());
}

int64_t WindowPlan::tile_bytes() const {
  return (kPositions + kWindowVectorBytes) * 3 * panels_.lanes() *
         static_cast<int64_t>(size_of(form().dtype));
}

void WindowPlan::compute(const ConvolutionRun& run) const {
  form().dtype == DType::Float64 ? compute_as<double>(run) : compute_as<float>(run);
}

template <typename T>
void WindowPlan::compute_as(const ConvolutionRun& run) const {
  const ConvShape& s = form().shape;
  const Tensor bias = panels_.pack_bias(run.bias);
  Tensor own;
  if (packed_ == nullptr) own = panels_.pack_weights(run.weights, alone_ ? nullptr : &run.pool);
  const T* weights = (packed_ == nullptr ? own : *packed_).as<T>();
  const int64_t images = s.batch * s.groups, size = inputs_.size();
  const auto image_at = [&](int64_t image) {
    return static_cast<const T*>(run.x) + image * form().channels() * count_of(window_.input);
  };
  // Parts of a strip share its copy.
  const bool shared = size > 0 && parts_ > 1;
  ScratchArray<T> copies;
  if (shared) {
    copies = scratch<T>(element_count({images * strips_.count(), size}));
    const int64_t channels = form().channels(), chunks = std::min<int64_t>(channels, 16);
    run_tasks(run.pool, alone_, images * strips_.count() * chunks, [&](int64_t task, int) {
      const int64_t strip = task / chunks, chunk = task % chunks;
      inputs_.copy(strips_.at(strip % strips_.count()), image_at(strip / strips_.count()),
                   channels * chunk / chunks, channels * (chunk + 1) / chunks,
                   copies.get() + strip * size);
    });
  }
  run_tasks(run.pool, alone_, images * strips_.count() * parts_, [&](int64_t number, int worker) {
    const int64_t strip = number / parts_;
    Task<T> task{strip / strips_.count(),
                 number % parts_,
                 worker,
                 strips_.at(strip % strips_.count()),
                 nullptr,
                 weights,
                 bias.as<T>(),
                 nullptr,
                 run.sums};
    const int64_t own_copy = shared ? 0 : size * static_cast<int64_t>(sizeof(T));
    char* space = thread_scratch(tile_bytes() + own_copy);
    task.tile = reinterpret_cast<T*>(space);
    if (size == 0) {
      task.in = image_at(task.image) + inputs_.base(task.strip);
    } else if (shared) {
      task.in = copies.get() + strip * size;
    } else {
      T* to = reinterpret_cast<T*>(space + tile_bytes());
      inputs_.copy(task.strip, image_at(task.image), 0, form().channels(), to);
      task.in = to;
    }
    run_task(task);
  });
}

// Products read several panels at a time, windows one after the other: of weights in memory that is
// half as fast.
template <typename T>
int64_t WindowPlan::multiply_row(const Task<T>& task, int64_t first, int64_t last) const {
  const std::vector<int64_t>& offsets = inputs_.offsets();
  const auto taps = static_cast<int64_t>(offsets.size());
  for (int64_t k = 0; k < taps; ++k) {
    if (offsets[static_cast<size_t>(k)] != k) return first;
  }
  if (last > first && panels_.width(last - 1) > 2 * panels_.lanes()) --last;
  if (last == first) return first;
  const int64_t groups = form().shape.groups, group = task.image % groups;
  const int64_t filters =
      panels_.first(last - 1) + panels_.filters(last - 1) - panels_.first(first);
  const int64_t filter = group * form().filters() + panels_.first(first);
  const int64_t position =
      (task.strip.slice * window_.output[1] + task.strip.line) * window_.output[2] +
      task.strip.column;
  const SumsTarget::Block block{task.image / groups, filter, position, filters, 1};
  const SumsTarget::Place place = task.sums.place(task.worker, block);
  T* out = static_cast<T*>(place.data);
  if (place.stride != 1) return first;
  std::copy_n(task.bias + panels_.bias_at(group, first), filters, out);
  GemmArgs g;
  g.m = 1;
  g.n = filters;
  g.k = taps;
  g.a = {task.in, static_cast<uint8_t>(form().dtype), taps, 1};
  g.panels = task.weights + panels_.weights_at(group, first);
  g.c = out;
  g.c_stride = filters;
  g.accumulate = true;
  (sizeof(T) == sizeof(float) ? kernels().gemm_f32 : kernels().gemm_f64)(g);
  task.sums.done(task.worker, block, place);
  return last;
}

template <typename T>
void WindowPlan::run_task(const Task<T>& task) const {
  const Strip& strip = task.strip;
  const int64_t groups = form().shape.groups, group = task.image % groups;
  const KernelTable& table = kernels();
  const bool single = sizeof(T) == sizeof(float);
  const auto fn = rows_ ? (single ? table.window_rows_f32 : table.window_rows_f64)
                        : (single ? table.window_f32 : table.window_f64);
  WindowArgs g;
  g.taps = form().taps();
  g.line_step = inputs_.line_step();
  g.step = inputs_.step();
  g.offsets = inputs_.offsets().data();
  g.tile = task.tile;
  g.activation = task.sums.activation();
  int64_t panel = panels_.count() * task.part / parts_;
  const int64_t last = panels_.count() * (task.part + 1) / parts_;
  if (!rows_ && strip.lines * strip.columns == 1) panel = multiply_row(task, panel, last);
  for (; panel < last; ++panel) {
    g.filters = panels_.filters(panel);
    const int64_t positions = rows_                             ? kRowPositions
                              : g.filters > 2 * panels_.lanes() ? kPositionsOfThree
                                                                : kPositions;
    const int64_t blocks = ceil_div(strip.columns, positions);
    const int64_t lines = positions / ceil_div(strip.columns, blocks);
    g.weights = task.weights + panels_.weights_at(group, panel);
    g.bias = task.bias + panels_.bias_at(group, panel);
    SumsTarget::Block block{task.image / groups, group * form().filters() + panels_.first(panel), 0,
                            g.filters, 0};
    const int64_t step = blocks > 1 ? 1 : lines;
    // Pairs of vectors of positions are whole but for the last of a line.
    const int64_t whole = rows_ ? 2 * panels_.lanes() : 1;
    const auto begin_of = [&](int64_t b) {
      return b == blocks ? strip.columns : strip.columns * b / blocks / whole * whole;
    };
    for (int64_t line = 0; line < strip.lines; line += step) {
      g.lines = std::min(step, strip.lines - line);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t column = begin_of(b);
        g.columns = begin_of(b + 1) - column;
        g.in = task.in + line * g.line_step + column * g.step;
        block.position = (strip.slice * window_.output[1] + strip.line + line) * window_.output[2] +
                         strip.column + column;
        block.positions = g.lines * g.columns;
        SumsTarget::Place place = task.sums.place(task.worker, block);
        place.activated = g.activation.any;
        g.out = place.data;
        g.out_stride = place.stride;
        g.residual = place.residual;
        fn(g);
        task.sums.done(task.worker, block, place);
      }
    }
  }
}

// A step of fewer multiply-adds waits for loads and latencies.
constexpr double kLeastStep = 8;

double WindowPlan::filters_time(int64_t panel) const {
  const select::CpuMachine& machine = this_machine();
  const double wide = form().dtype == DType::Float64 ? 2 : 1;
  const auto lanes = static_cast<double>(panels_.lanes()) * wide;
  const auto columns = static_cast<double>(strips_.columns());
  const auto lines = static_cast<double>(strips_.lines());
  const auto vectors = static_cast<double>(panels_.width(panel) / panels_.lanes());
  // Registers of positions by vectors of filters.
  const double blocks = std::ceil(columns / (machine.block_rows * 2 / vectors));
  const double rows = columns / blocks;
  const double each = std::max({rows * vectors, rows + vectors, kLeastStep});
  const auto taps = static_cast<double>(form().taps());
  return lines * blocks * (taps * each * lanes / machine.window_rate + machine.window_block) +
         lines * columns * vectors * lanes / machine.square_rate;
}

double WindowPlan::rows_time(int64_t panel) const {
  const select::CpuMachine& machine = this_machine();
  const int64_t width = form().dtype == DType::Float64 ? 2 : 1;
  const auto taps = static_cast<double>(form().taps());
  const auto lanes = static_cast<double>(panels_.lanes() * width);
  const auto filters = static_cast<double>(panels_.filters(panel));
  const double blocks = std::ceil(filters / machine.block_rows), rows = filters / blocks;
  const int64_t vectors = ceil_div(strips_.columns(), panels_.lanes());
  // Inputs and weights of a block that the first level has no room for are read again.
  const double bytes = 4 * lanes * taps;
  const bool fits = 4 * bytes <= static_cast<double>(machine.l1_bytes);
  const auto time_of = [&](double count) {
    const double each = std::max({rows * count, rows + count, kLeastStep});
    return taps * each * lanes / machine.window_rate + machine.window_block +
           (fits ? 0 : count * bytes / machine.l2_rate) +
           rows * count * lanes / (4 * machine.square_rate);
  };
  const auto lines = static_cast<double>(strips_.lines());
  return lines * blocks *
         (static_cast<double>(vectors / 2) * time_of(2) + (vectors % 2 == 0 ? 0 : time_of(1)));
}

// Of the largest task.
double WindowPlan::task_time() const {
  const select::CpuMachine& machine = this_machine();
  const double bytes = form().dtype == DType::Float64 ? 8 : 4;
  const auto taps = static_cast<double>(form().taps());
  const auto columns = static_cast<double>(strips_.columns());
  const auto lines = static_cast<double>(strips_.lines());
  const int64_t most = ceil_div(panels_.count(), parts_);
  double time = 0, width = 0;
  for (int64_t panel = 0; panel < most; ++panel) {
    width += static_cast<double>(panels_.width(panel));
    time += rows_ ? rows_time(panel) : filters_time(panel);
  }
  time += lines * columns * width * form().activation_time;
  const double weights = taps * width * bytes;
  time += read_time(weights, weights * static_cast<double>(parts_) <= near_bytes());
  const double read = static_cast<double>(inputs_.read()) * bytes;
  time += read_time(static_cast<double>(most) * read, read <= near_bytes());
  if (inputs_.copied()) {
    return time + read / 4 / machine.copy_rate / static_cast<double>(parts_);
  }
  if (rows_) return time;
  return time + static_cast<double>(most * inputs_.lines_apart()) * lines *
                    std::ceil(columns / machine.block_rows) / machine.far_rate;
}

StepTime WindowPlan::time(int threads) const {
  if (form().empty()) return {};
  const ConvShape& s = form().shape;
  const double tasks = static_cast<double>(s.batch * s.groups * strips_.count() * parts_);
  TaskTime task{task_time(), 0};
  StepTime result = step_time(task, tasks, threads, form().output_bytes());
  // Threads do not end together.
  constexpr double kLost = 0.15;
  const bool alone = runs_alone(result.saved);
  if (!alone) result.time += kLost * task.time;
  if (parts_ > 1 && inputs_.copied() && !alone) result.time += this_machine().step;
  if (!form().constant_weights) {
    const double weights = static_cast<double>(s.filters * form().taps());
    result.time += weights / this_machine().pack_rate;
  }
  return result;
}

}  // namespace redfuser::cpu
