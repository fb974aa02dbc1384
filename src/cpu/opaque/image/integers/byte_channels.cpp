#include "cpu/opaque/image/integers/byte_channels.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "cpu/opaque/image/im2col.h"
#include "cpu/opaque/image/integers/byte_words.h"
#include "cpu/opaque/image/integers/vector_filters.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kSums = 4096;  // of a block of several filters

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

template <typename Word>
void copy_word(const uint8_t* from, uint64_t flip, uint8_t* to) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  word = static_cast<Word>(word ^ flip);
  std::memcpy(to, &word, sizeof(word));
}

// to[i] = from[i] ^ flip, of any count; the last words overlap.
void copy_line(const uint8_t* from, int64_t count, uint8_t flip, uint8_t* to) {
  const uint64_t flips = flip * uint64_t{0x0101010101010101};
  if (count >= 8) {
    for (int64_t i = 0; i + 8 <= count; i += 8) copy_word<uint64_t>(from + i, flips, to + i);
    copy_word<uint64_t>(from + count - 8, flips, to + count - 8);
  } else if (count >= 4) {
    copy_word<uint32_t>(from, flips, to);
    copy_word<uint32_t>(from + count - 4, flips, to + count - 4);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ flip;
  }
}

// A channel with its padding.
class PaddedBytes {
 public:
  explicit PaddedBytes(const Window& w) : w_(w) {
    for (size_t i = 0; i < 3; ++i)
      size_[i] = (w.output[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    require_memory(element_count({size_[0], size_[1], size_[2]}), 1);
  }

  int64_t size() const { return count_of(size_) + kByteFilterSlack; }
  int64_t line_step() const { return w_.stride[1] * size_[2]; }
  int64_t slice_step() const { return w_.stride[0] * size_[1] * size_[2]; }
  int64_t offset(int64_t slice, int64_t line, int64_t column) const {
    return ((slice * w_.dilation[0] * size_[1]) + line * w_.dilation[1]) * size_[2] +
           column * w_.dilation[2];
  }
  // All but the padding. `flip` is applied to the bytes by exclusive or.
  void fill(const uint8_t* image, uint8_t flip, uint8_t* to) const {
    const auto inside = [&](size_t i) { return std::min(w_.input[i], size_[i] - w_.pad_begin[i]); };
    const int64_t slices = inside(0), lines = inside(1), columns = inside(2);
    for (int64_t d = 0; d < slices; ++d) {
      const uint8_t* from = image + d * w_.input[1] * w_.input[2];
      uint8_t* line = to + ((d + w_.pad_begin[0]) * size_[1] + w_.pad_begin[1]) * size_[2];
      for (int64_t h = 0; h < lines; ++h, from += w_.input[2], line += size_[2])
        copy_line(from, columns, flip, line + w_.pad_begin[2]);
    }
  }

 private:
  const Window& w_;
  Size3 size_;
};

class ChannelConvolution {
 public:
  ChannelConvolution(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero,
                     const Window& window, const TapGroups& groups, const ByteWords& words)
      : s_(shape),
        w_(window),
        words_(words),
        padded_(window),
        spread_(window.stride[2], window.dilation[2]),
        image_(static_cast<const uint8_t*>(call.tensor(x).data())) {
    const bool is_signed = call.tensor(x).dtype() == DType::Int8;
    flip_ = is_signed ? 0x80 : 0;
    const int64_t zero = call.has_input(x_zero) ? call.integer_of(x_zero) : 0;
    zero_ = static_cast<uint8_t>(zero + flip_);
    for (int64_t group = 0; group < groups.count(); ++group) {
      const int64_t line = group / groups.across(), column = group % groups.across() * groups.size;
      offsets_.push_back(padded_.offset(line / w_.kernel[1], line % w_.kernel[1], column));
    }
  }

  void run(SumsTarget& target, ThreadPool& pool) const {
    constexpr int64_t kTasks = 8;  // for each thread
    const int64_t planes = s_.batch * s_.channels, out = count_of(w_.output);
    const int64_t filters = s_.filters / s_.channels;
    const int64_t most = std::clamp<int64_t>(kSums / (filters * out), 1, s_.channels);
    const int64_t tasks = std::min(planes, kTasks * pool.size());
    std::vector<ScratchArray<uint8_t>> buffers(static_cast<size_t>(pool.size()));
    pool.parallel_for(tasks, [&](int64_t task, int worker) {
      ScratchArray<uint8_t>& buffer = buffers[static_cast<size_t>(worker)];
      if (!buffer) {
        buffer = scratch<uint8_t>(padded_.size());
        std::fill_n(buffer.get(), padded_.size(), zero_);
      }
      const int64_t end = planes * (task + 1) / tasks;
      for (int64_t plane = planes * task / tasks, last; plane < end; plane = last) {
        const int64_t channel = plane % s_.channels;
        last = std::min({end, plane + most, plane - channel + s_.channels});
        const SumsTarget::Block block{plane / s_.channels, channel * filters, 0,
                                      (last - plane) * filters, out};
        const SumsTarget::Place place = target.place(worker, block);
        auto* to = static_cast<int32_t*>(place.data);
        for (int64_t p = plane; p < last; ++p, to += filters * out) {
          padded_.fill(image_ + p * count_of(w_.input), flip_, buffer.get());
          for (int64_t f = 0; f < filters; ++f)
            run_filter((p % s_.channels) * filters + f, buffer.get(), to + f * out);
        }
        target.done(worker, block, place);
      }
    });
  }

 private:
  void run_filter(int64_t number, const uint8_t* padded, int32_t* out) const {
    const FilterWords filter = words_.filter(number);
    ByteFilterArgs args;
    args.lines = w_.output[1];
    args.columns = w_.output[2];
    args.line_step = padded_.line_step();
    args.step = w_.stride[2];
    args.spread = &spread_;
    args.count = static_cast<int64_t>(filter.words.size());
    args.words = filter.words.data();
    args.numbers = filter.numbers.data();
    args.offsets = offsets_.data();
    args.start =
        static_cast<int32_t>(-static_cast<uint32_t>(zero_) * static_cast<uint32_t>(filter.sum));
    for (int64_t slice = 0; slice < w_.output[0]; ++slice) {
      args.in = padded + slice * padded_.slice_step();
      args.out = out + slice * args.lines * args.columns;
      kernels().byte_filter->run(args);
    }
  }

  const ConvShape& s_;
  const Window& w_;
  const ByteWords& words_;
  const PaddedBytes padded_;
  const ByteSpread spread_;
  const uint8_t* image_;
  uint8_t flip_ = 0, zero_ = 0;
  std::vector<int64_t> offsets_;  // of groups of taps
};

// Filters in the form that the machine's kernel takes.
class ChannelFilters {
 public:
  // `size`: taps of a group of ByteWords.
  ChannelFilters(const Tensor& w, std::span<const int64_t> zeros, const Window& window,
                 int64_t size) {
    if (by_vectors(window)) {
      vectors_.emplace(w, zeros, groups_of(window, ChannelVectors::kTaps));
    } else {
      words_.emplace(w, zeros, groups_of(window, size), kernels().byte_filter->saturates);
    }
  }

  // Attributes alone decide.
  static bool by_vectors(const Window& window) {
    return kernels().byte_filter->run_vectors != nullptr && ChannelVectors::reaches(window);
  }
  static TapGroups groups_of(const Window& window, int64_t size) {
    return {window.kernel[0] * window.kernel[1], window.kernel[2], size};
  }
  // One of both is present.
  const std::optional<VectorFilters>& vectors() const { return vectors_; }
  const std::optional<ByteWords>& words() const { return words_; }

 private:
  std::optional<VectorFilters> vectors_;
  std::optional<ByteWords> words_;
};

}  // namespace

bool convolve_byte_channels(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero,
                            int w, int w_zero, SumsTarget& target) {
  const ByteFilterKernel* kernel = kernels().byte_filter;
  const bool one_zero = !call.has_input(x_zero) || call.tensor(x_zero).size() == 1;
  const int64_t zeros = call.has_input(w_zero) ? call.tensor(w_zero).size() : 1;
  if (kernel == nullptr || shape.groups != shape.channels || !one_zero) return false;
  if (!is_byte(call.tensor(x).dtype()) || !is_byte(call.tensor(w).dtype())) return false;
  if (zeros != 1 && zeros != shape.filters) return false;
  // Attributes alone decide where constant filters are prepared.
  const Window& given = shape.window;
  const int64_t size = ByteSpread::most_taps(given.stride[2], given.dilation[2]);
  if (size == 0 && !ChannelFilters::by_vectors(given)) return false;
  if (shape.batch * shape.filters * count_of(given.output) == 0) return true;
  const auto filters = [&] {
    const auto numbers =
        call.has_input(w_zero) ? call.integers_of(w_zero) : std::vector<int64_t>{0};
    return ChannelFilters(call.tensor(w), numbers, given, size);
  };
  const auto run = [&](const ChannelFilters& filters) {
    if (filters.words()) {
      const TapGroups groups = ChannelFilters::groups_of(given, size);
      ChannelConvolution(call, shape, x, x_zero, given, groups, *filters.words())
          .run(target, call.threads());
      return true;
    }
    if (!ChannelVectors::takes(given)) return false;
    const Tensor& input = call.tensor(x);
    const int64_t zero = call.has_input(x_zero) ? call.integer_of(x_zero) : 0;
    filters.vectors()->run(shape, input, zero, target, call.threads());
    return true;
  };
  if (call.is_constant(w) && (!call.has_input(w_zero) || call.is_constant(w_zero))) {
    return run(call.prepared<ChannelFilters>(filters));
  }
  return run(filters());
}

}  // namespace redfuser::cpu
