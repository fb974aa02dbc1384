#include "cpu/opaque/image/integers/integer_conv.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "cpu/machine/this_machine.h"
#include "cpu/opaque/image/im2col.h"
#include "cpu/opaque/image/integers/integer_lines.h"
#include "cpu/opaque/image/integers/position_conv.h"

// The filters are the left and signed factor, the input the right one: in place, its channels
// interleaved line by line, or as columns.
namespace redfuser::cpu {
namespace {

constexpr int64_t kBytes = 1 << 18;     // of the input's part that a task multiplies
constexpr int64_t kSumBytes = 1 << 17;  // of sums at once
constexpr int64_t kRows = 48;           // of those, at least

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class IntegerConvolution {
 public:
  IntegerConvolution(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w_zero,
                     const PackedFilters& filters)
      : s_(shape),
        x_(call.tensor(x)),
        packed_(filters),
        kernels_(filters.kernels()),
        groups_(filters.groups()),
        depth_(groups_.depth()),
        pool_(call.threads()) {
    if (call.has_input(x_zero)) x_zero_ = call.integer_of(x_zero);
    x_offset_ = kernels_.right_offset(x_.dtype() == DType::Int8, false);
    std::vector<int64_t> zeros{0};
    if (call.has_input(w_zero)) zeros = call.integers_of(w_zero);
    for (int64_t f = 0; f < s_.filters; ++f) {
      const int64_t zero = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(f)] + filters.offset();
      filter_zeros_.push_back(static_cast<int32_t>(zero));
      any_filter_zero_ |= zero != 0;
    }
    in_ = count_of(s_.window.input);
    out_ = count_of(s_.window.output);
    filters_ = s_.filters / s_.groups;
    pointwise_ = is_pointwise(s_.window);
    choose_strips();
    if (!lines_) choose_blocks();
    parts_ = std::clamp<int64_t>(pool_.size() / (s_.batch * s_.groups * ceil_div(out_, block_)), 1,
                                 std::max<int64_t>(1, filters_ / 16));
    choose_sums();
    for (int64_t f = 0; f < s_.filters && x_zero_ + x_offset_ != 0; ++f) {
      const auto zero = static_cast<uint32_t>(x_zero_ + x_offset_);
      starts_.push_back(static_cast<int32_t>(-zero * static_cast<uint32_t>(*packed_.sums(f))));
    }
  }

  void run(SumsTarget& target) {
    // Of the run's thread, whose memory is kept for later runs.
    Scratch size;
    lay_out(size);
    Tensor memory(DType::UInt8, {pool_.size() * size.bytes});
    std::vector<Scratch> scratches(static_cast<size_t>(pool_.size()));
    const int64_t across = ceil_div(out_, block_);
    pool_.parallel_for(s_.batch * s_.groups * across * parts_, [&](int64_t task, int worker) {
      const int64_t part = task % parts_, image = task / parts_ / across;
      Scratch& space = scratches[static_cast<size_t>(worker)];
      if (space.memory == nullptr) {
        space.memory = static_cast<char*>(memory.mutable_data()) + worker * size.bytes;
        lay_out(space);
      }
      const int64_t number = task / parts_ % across;
      Block block{image, begin_of(number, across), 0, 0, worker};
      block.count = begin_of(number + 1, across) - block.begin;
      lines_ ? fill_lines(space, block) : fill_columns(space, block);
      const int64_t first = filters_ * part / parts_, last = filters_ * (part + 1) / parts_;
      for (int64_t f = first; f < last; f += chunk_) {
        for (Block part = block; part.offset < block.count; part.offset += positions_) {
          part.count = std::min(positions_, block.count - part.offset);
          multiply(space, part, f, std::min(chunk_, last - f), target);
        }
      }
    });
  }

 private:
  // Of a worker: arrays in its memory, which has `bytes`.
  struct Scratch {
    char* memory = nullptr;
    int64_t bytes = 0;
    uint8_t *columns = nullptr, *right = nullptr;
    int32_t *sums = nullptr, *planes = nullptr, *terms = nullptr;

    template <typename T>
    void take(T*& array, int64_t count) {
      constexpr int64_t kAlignment = 64;
      if (memory != nullptr) array = reinterpret_cast<T*>(memory + bytes);
      bytes += ceil_div(count * int64_t{sizeof(T)}, kAlignment) * kAlignment;
    }
  };
  // Output positions [begin + offset, begin + offset + count) of an image, which is a group of a
  // batch entry. The right factor begins with `begin`.
  struct Block {
    int64_t image, begin, offset, count;
    int worker;
  };

  // Where a block begins. Strips have as many lines as others, or one more.
  int64_t begin_of(int64_t number, int64_t across) const {
    if (!lines_) return std::min(number * block_, out_);
    return s_.window.output[1] * number / across * width_;
  }

  int64_t most_tasks() const {
    const int64_t images = s_.batch * s_.groups;
    return ceil_div(2 * pool_.size(), images);
  }

  // Strips of lines whose input stays in the second-level cache, yet several for every thread,
  // where the products of padding take less time than columns do.
  void choose_strips() {
    const Window& w = s_.window;
    if (groups_.size != kernels_.depth_multiple) return;
    if (kernels_.interleave == nullptr || w.input[0] * w.kernel[0] * w.output[0] != 1) return;
    if (w.pad_begin[0] != 0) return;
    const int64_t pitch = InterleavedLines::pitch(w), height = w.output[1];
    const int64_t words = groups_.count() * groups_.size / kernels_.group();
    const int64_t line = words * w.stride[1] * w.stride[2] * pitch;
    const int64_t halo = (w.kernel[1] - 1) * w.dilation[1] / w.stride[1];
    int64_t lines = std::clamp<int64_t>(kBytes / (4 * line) - halo, 1, height);
    lines = std::min(lines, ceil_div(height, most_tasks()));
    if ((lines + halo) * line > kBytes) return;
    const select::CpuMachine& machine = this_machine();
    const auto elements = static_cast<double>(depth_ * out_);
    const double padded =
        static_cast<double>(pitch - w.output[2]) / static_cast<double>(w.output[2]);
    const double filled =
        static_cast<double>(ceil_div(height, lines) * (lines + halo) * line * kernels_.group());
    const double products = padded * elements * static_cast<double>(filters_) / machine.dot_rate;
    const double columns =
        elements / machine.pack_rate + (pointwise_ ? 0 : elements / machine.columns_rate);
    if (products + filled / machine.pack_rate > columns) return;
    width_ = w.output[2];
    block_ = lines * width_;
    lines_.emplace(kernels_, w, groups_, lines);
  }

  void choose_blocks() {
    const int64_t panel = kernels_.columns;
    const auto panels = [&](int64_t positions) {
      return std::max<int64_t>(1, ceil_div(positions, panel)) * panel;
    };
    block_ = std::clamp<int64_t>(kBytes / depth_ / panel * panel, 2 * panel, 4096);
    block_ = std::min(block_, panels(ceil_div(out_, most_tasks())));
  }

  // Sums of a part of a block's positions, whole lines or panels, and of filters that stay near.
  void choose_sums() {
    const int64_t unit = lines_ ? width_ : kernels_.columns;
    const auto pitched = [&](int64_t count) {
      return lines_ ? count / width_ * lines_->pitch() : count;
    };
    positions_ =
        std::clamp<int64_t>(kSumBytes / (4 * kRows * pitched(unit)), 1, ceil_div(block_, unit)) *
        unit;
    stride_ = kernels_.packed_columns(pitched(positions_)) + 16;
    chunk_ = std::clamp<int64_t>(kSumBytes / (4 * stride_) / kRows * kRows, kRows,
                                 std::max<int64_t>(filters_, kRows));
  }

  // Without memory it counts the bytes alone.
  void lay_out(Scratch& space) const {
    const int64_t positions =
        kernels_.packed_columns(lines_ ? block_ / width_ * lines_->pitch() : block_) + 16;
    if (lines_) {
      space.take(space.right, lines_->bytes());
      if (any_filter_zero_) space.take(space.planes, lines_->plane_elements());
    } else {
      if (!pointwise_) {
        space.take(space.columns, depth_ * block_);
        // Of channels that fill up the last group, 0 after the move.
        if (space.memory != nullptr) {
          std::fill_n(space.columns, depth_ * block_, static_cast<uint8_t>(-x_offset_));
        }
      }
      space.take(space.right, kernels_.panel_bytes(block_, depth_));
    }
    space.take(space.sums, std::min(chunk_, filters_) * stride_);
    space.take(space.terms, positions);
  }

  const uint8_t* planes(int64_t image) const {
    return static_cast<const uint8_t*>(x_.data()) + image * groups_.channels * in_;
  }

  void fill_lines(Scratch& space, const Block& block) const {
    lines_->fill(planes(block.image), block.begin / width_, block.count / width_,
                 static_cast<uint8_t>(x_zero_), static_cast<uint8_t>(x_offset_), space.right,
                 space.planes, space.terms);
    center_terms(space, positions(block));
  }

  void fill_columns(Scratch& space, const Block& block) const {
    IntegerPackArgs args;
    args.matrix = {planes(block.image) + block.begin,
                   static_cast<uint8_t>(x_.dtype()),
                   in_,
                   1,
                   nullptr,
                   nullptr};
    if (!pointwise_) {
      for (int64_t channel = 0; channel < groups_.channels; ++channel) {
        gather_columns(s_.window, planes(block.image) + channel * in_, block.begin,
                       block.begin + block.count, space.columns + groups_.first(channel) * block_,
                       groups_.size * block_, static_cast<uint8_t>(x_zero_));
      }
      args.matrix.data = space.columns;
      args.matrix.row_stride = block_;
    }
    args.count = block.count;
    args.depth = pointwise_ ? groups_.channels : depth_;
    args.offset = x_offset_;
    args.out = space.right;
    args.sums = any_filter_zero_ ? space.terms : nullptr;
    kernels_.pack_columns(args);
    center_terms(space, block.count);
  }

  // The terms become those of IntegerFinishArgs.
  void center_terms(const Scratch& space, int64_t count) const {
    if (!any_filter_zero_) return;
    const auto whole = static_cast<uint32_t>(groups_.channels * groups_.taps) *
                       static_cast<uint32_t>(x_zero_ + x_offset_);
    for (int64_t p = 0; p < count; ++p) {
      int32_t& term = space.terms[p];
      term = static_cast<int32_t>(static_cast<uint32_t>(term) - whole);
    }
  }

  // With those of the padding between lines.
  int64_t positions(const Block& block) const {
    return lines_ ? (block.count / width_ - 1) * lines_->pitch() + width_ : block.count;
  }

  // Filters [first, first + count) of the image's group at the block's positions.
  void multiply(const Scratch& space, const Block& block, int64_t first, int64_t count,
                SumsTarget& target) const {
    const int64_t filter = block.image % s_.groups * filters_ + first;
    IntegerMultiplyArgs g;
    g.m = count;
    g.n = positions(block);
    g.depth = kernels_.packed_depth(depth_);
    g.a = packed_.row(filter);
    g.a_stride = kernels_.row_bytes(depth_);
    // Its place in the right factor: positions of lines are words of 4 bytes.
    const int64_t at = lines_ ? block.offset / width_ * lines_->pitch() : block.offset;
    g.b = space.right + (lines_ ? 4 * at : kernels_.panel_bytes(at, depth_));
    if (lines_) g.group_offsets = lines_->offsets().data();
    g.c = space.sums;
    g.c_stride = stride_;
    g.left_signed = true;
    g.rests = packed_.rests(filter);
    g.starts = starts_.empty() ? nullptr : starts_.data() + filter;
    const SumsTarget::Block to{block.image / s_.groups, filter, block.begin + block.offset, count,
                               block.count};
    const bool one_line = !lines_ || lines_->pitch() == width_;
    if (one_line && !any_filter_zero_) {
      const SumsTarget::Place wide = target.wide_place(block.worker, to, stride_);
      if (wide.data != nullptr) {
        g.c = static_cast<int32_t*>(wide.data);
        kernels_.multiply(g);
        return target.done(block.worker, to, wide);
      }
    }
    kernels_.multiply(g);
    const SumsTarget::Place place = target.place(block.worker, to);
    const int64_t width = one_line ? block.count : width_;
    const int64_t pitch = one_line ? block.count : lines_->pitch();
    for (int64_t line = 0; line * width < block.count; ++line) {
      IntegerFinishArgs f;
      f.rows = count;
      f.columns = width;
      f.c = g.c + line * pitch;
      f.c_stride = stride_;
      if (any_filter_zero_) {
        f.row_zeros = filter_zeros_.data() + filter;
        f.column_terms = space.terms + at + line * pitch;
      }
      f.out = static_cast<int32_t*>(place.data) + line * width;
      f.out_stride = place.stride;
      kernels().finish_i32(f);
    }
    target.done(block.worker, to, place);
  }

  const ConvShape& s_;
  const Tensor& x_;
  const PackedFilters& packed_;
  const IntegerKernels& kernels_;
  const ChannelGroups groups_;
  const int64_t depth_;
  ThreadPool& pool_;
  int64_t x_zero_ = 0, x_offset_ = 0;
  std::vector<int32_t> filter_zeros_;
  std::vector<int32_t> starts_;  // of each filter's sums; empty for 0
  bool any_filter_zero_ = false, pointwise_ = false;
  int64_t in_ = 1, out_ = 1, filters_ = 1;
  int64_t block_ = 1, width_ = 1, parts_ = 1;
  int64_t positions_ = 1, stride_ = 1, chunk_ = 1;  // of sums at once
  std::optional<InterleavedLines> lines_;           // absent: columns
};

// Constant filters in the forms that the runs of a node have asked for.
class KeptFilters {
 public:
  KeptFilters() : kept_(std::make_unique<Kept>()) {}

  template <typename Make>
  const PackedFilters& rows(const Make& make) const {
    return get(kept_->rows, make);
  }
  template <typename Make>
  const IntegerPanels& panels(const Make& make) const {
    return get(kept_->panels, make);
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::optional<PackedFilters> rows;
    std::optional<IntegerPanels> panels;
  };

  template <typename T, typename Make>
  const T& get(std::optional<T>& value, const Make& make) const {
    const std::lock_guard lock(kept_->mutex);
    if (!value) value.emplace(make());
    return *value;
  }

  std::unique_ptr<Kept> kept_;
};

// The signed filters have zero points of 0, in every run.
bool is_centred(const OpaqueCall& call, int w, int w_zero, const IntegerKernels& kernels) {
  const int64_t moved = kernels.right_offset(call.tensor(w).dtype() == DType::Int8, true);
  if (!call.has_input(w_zero)) return moved == 0;
  const std::vector<int64_t> zeros = call.integers_of(w_zero);
  return std::all_of(zeros.begin(), zeros.end(), [&](int64_t zero) { return zero + moved == 0; });
}

}  // namespace

bool convolve_integers(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, SumsTarget& target) {
  const bool one_zero = !call.has_input(x_zero) || call.tensor(x_zero).size() == 1;
  const bool fits = !call.has_input(w_zero) || call.tensor(w_zero).size() == 1 ||
                    call.tensor(w_zero).size() == shape.filters;
  if (!is_byte(call.tensor(x).dtype()) || !is_byte(call.tensor(w).dtype())) return false;
  if (!one_zero || !fits || shape.groups == shape.channels) return false;
  if (shape.batch * shape.filters * count_of(shape.window.output) == 0) return true;
  if (call.tensor(w).size() == 0) return false;
  const auto pack = [&] {
    return PackedFilters(call.tensor(w), shape.channels / shape.groups,
                         count_of(shape.window.kernel), call.is_constant(w));
  };
  const auto run = [&](const PackedFilters& filters) {
    IntegerConvolution(call, shape, x, x_zero, w_zero, filters).run(target);
  };
  if (!call.is_constant(w)) {
    run(pack());
    return true;
  }
  const auto& filters = call.prepared<KeptFilters>([] { return KeptFilters(); });
  const IntegerKernels& kernels = integer_kernels();
  if (!is_centred(call, w, w_zero, kernels) || !gains_by_positions(kernels, shape)) {
    run(filters.rows(pack));
    return true;
  }
  const ChannelGroups groups =
      channel_groups(kernels, shape.channels / shape.groups, count_of(shape.window.kernel));
  const IntegerPanels& panels =
      filters.panels([&] { return IntegerPanels(kernels, call.tensor(w), shape.groups, groups); });
  const bool is_signed = call.tensor(x).dtype() == DType::Int8;
  const PositionConvolution convolution{kernels,
                                        shape,
                                        groups,
                                        panels,
                                        static_cast<const uint8_t*>(call.tensor(x).data()),
                                        call.has_input(x_zero) ? call.integer_of(x_zero) : 0,
                                        kernels.left_offset(is_signed, false)};
  convolution.run(target, call.threads());
  return true;
}

}  // namespace redfuser::cpu
