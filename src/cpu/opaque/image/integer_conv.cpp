#include "cpu/opaque/image/integer_conv.h"

#include <algorithm>

#include "cpu/opaque/image/im2col.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

// The filters are the left and signed factor, the columns of the input the right one.
struct PackedFilters {
  int64_t depth = 0;
  int64_t offset = 0;
  Tensor rows;
  std::vector<int32_t> sums;

  const char* row(int64_t filter) const {
    const int64_t bytes = integer_kernels().packed_depth(depth) * integer_kernels().element_bytes;
    return static_cast<const char*>(rows.data()) + filter * bytes;
  }
};

PackedFilters pack_filters(const Tensor& w) {
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  const IntegerKernels& kernels = integer_kernels();
  PackedFilters packed;
  const int64_t filters = w.dims()[0];
  packed.depth = w.size() / filters;
  packed.offset = kernels.offset(w.dtype() == DType::Int8, true);
  packed.rows =
      Tensor(DType::UInt8, {filters * kernels.packed_depth(packed.depth) * kernels.element_bytes});
  packed.sums.resize(static_cast<size_t>(filters));
  IntegerPackArgs args;
  args.matrix = {w.data(), static_cast<uint8_t>(w.dtype()), packed.depth, 1, nullptr, nullptr};
  args.count = filters;
  args.depth = packed.depth;
  args.offset = packed.offset;
  args.out = packed.rows.mutable_data();
  args.sums = packed.sums.data();
  kernels.pack_rows(args);
  return packed;
}

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

class IntegerConvolution {
 public:
  IntegerConvolution(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w_zero,
                     const PackedFilters& filters)
      : s_(shape), x_(call.tensor(x)), packed_(filters), pool_(call.threads()) {
    if (call.has_input(x_zero)) x_zero_ = call.integer_of(x_zero);
    x_offset_ = kernels_.offset(x_.dtype() == DType::Int8, false);
    std::vector<int64_t> zeros{0};
    if (call.has_input(w_zero)) zeros = call.integers_of(w_zero);
    for (int64_t f = 0; f < s_.filters; ++f) {
      const int64_t zero = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(f)] + filters.offset;
      filter_zeros_.push_back(static_cast<int32_t>(zero));
      any_filter_zero_ |= zero != 0;
    }
    in_ = count_of(s_.window.input);
    out_ = count_of(s_.window.output);
    taps_ = count_of(s_.window.kernel);
    channels_ = s_.channels / s_.groups;
    filters_ = s_.filters / s_.groups;
    pointwise_ = is_pointwise(s_.window);
    choose_blocks();
  }

  void run(const std::function<void(const SumRow&)>& finish) {
    std::vector<Scratch> scratches(static_cast<size_t>(pool_.size()));
    const int64_t across = (out_ + block_ - 1) / block_;
    pool_.parallel_for(s_.batch * s_.groups * across * parts_, [&](int64_t task, int worker) {
      const int64_t part = task % parts_, block = task / parts_ % across,
                    image = task / parts_ / across;
      Scratch& space = scratches[static_cast<size_t>(worker)];
      if (!space.sums) allocate(space);
      const int64_t begin = block * block_, count = std::min(block_, out_ - begin);
      const int64_t first = filters_ * part / parts_, last = filters_ * (part + 1) / parts_;
      pack_columns(space, image, begin, count);
      multiply(space, image, first, last, begin, count, finish);
    });
  }

 private:
  struct Scratch {
    ScratchArray<uint8_t> columns, panels;
    ScratchArray<int32_t> sums, terms;
  };

  // Blocks of pixels whose columns stay in the second-level cache, yet several for every thread.
  void choose_blocks() {
    constexpr int64_t kBytes = 1 << 18;
    const int64_t panel = kernels_.columns, images = s_.batch * s_.groups;
    const int64_t per_image = (2 * pool_.size() + images - 1) / images;
    const auto panels = [&](int64_t pixels) {
      return std::max<int64_t>(1, (pixels + panel - 1) / panel) * panel;
    };
    block_ = std::clamp<int64_t>(kBytes / packed_.depth / panel * panel, 2 * panel, 4096);
    block_ = std::min(block_, panels((out_ + per_image - 1) / per_image));
    const int64_t tasks = images * ((out_ + block_ - 1) / block_);
    parts_ = std::clamp<int64_t>(pool_.size() / tasks, 1, std::max<int64_t>(1, filters_ / 16));
    stride_ = block_ + 16;
  }

  void allocate(Scratch& space) const {
    const int64_t depth = kernels_.packed_depth(packed_.depth);
    if (!pointwise_) space.columns = scratch<uint8_t>(packed_.depth * block_);
    space.panels = scratch<uint8_t>(block_ * depth * kernels_.element_bytes);
    space.sums = scratch<int32_t>(filters_ * stride_);
    space.terms = scratch<int32_t>(block_);
  }

  void pack_columns(Scratch& space, int64_t image, int64_t begin, int64_t count) const {
    const auto* planes = static_cast<const uint8_t*>(x_.data()) + image * channels_ * in_;
    IntegerPackArgs args;
    args.matrix = {planes + begin, static_cast<uint8_t>(x_.dtype()), in_, 1, nullptr, nullptr};
    if (!pointwise_) {
      for (int64_t channel = 0; channel < channels_; ++channel) {
        gather_columns(s_.window, planes + channel * in_, begin, begin + count,
                       space.columns.get() + channel * taps_ * block_, block_,
                       static_cast<uint8_t>(x_zero_));
      }
      args.matrix.data = space.columns.get();
      args.matrix.row_stride = block_;
    }
    args.count = count;
    args.depth = packed_.depth;
    args.offset = x_offset_;
    args.out = space.panels.get();
    args.sums = any_filter_zero_ ? space.terms.get() : nullptr;
    kernels_.pack_columns(args);
  }

  // Filters [first, last) of the image's group.
  void multiply(const Scratch& space, int64_t image, int64_t first, int64_t last, int64_t begin,
                int64_t count, const std::function<void(const SumRow&)>& finish) const {
    const int64_t filter = image % s_.groups * filters_ + first;
    const auto zero = static_cast<uint32_t>(x_zero_ + x_offset_);
    IntegerMultiplyArgs g;
    g.m = last - first;
    g.n = count;
    g.depth = kernels_.packed_depth(packed_.depth);
    g.a = packed_.row(filter);
    g.a_stride = g.depth * kernels_.element_bytes;
    g.b = space.panels.get();
    g.c = space.sums.get();
    g.c_stride = stride_;
    g.left_signed = true;
    kernels_.multiply(g);
    if (any_filter_zero_) {
      const uint32_t whole = static_cast<uint32_t>(packed_.depth) * zero;
      for (int64_t j = 0; j < count; ++j) {
        int32_t& term = space.terms.get()[j];
        term = static_cast<int32_t>(static_cast<uint32_t>(term) - whole);
      }
      kernels().finish_i32({g.m, count, g.c, stride_, filter_zeros_.data() + filter,
                            space.terms.get(), nullptr, nullptr, g.c, stride_});
    }
    for (int64_t i = 0; i < g.m; ++i) {
      const auto sum = static_cast<uint32_t>(packed_.sums[static_cast<size_t>(filter + i)]);
      finish({image / s_.groups, filter + i, begin, count, g.c + i * stride_,
              static_cast<int32_t>(-sum * zero)});
    }
  }

  const IntegerKernels& kernels_ = integer_kernels();
  const ConvShape& s_;
  const Tensor& x_;
  const PackedFilters& packed_;
  ThreadPool& pool_;
  int64_t x_zero_ = 0, x_offset_ = 0;
  std::vector<int32_t> filter_zeros_;
  bool any_filter_zero_ = false, pointwise_ = false;
  int64_t in_ = 1, out_ = 1, taps_ = 1, channels_ = 1, filters_ = 1;
  int64_t block_ = 1, parts_ = 1, stride_ = 1;
};

}  // namespace

bool convolve_integers(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, const std::function<void(const SumRow&)>& finish) {
  const bool one_zero = !call.has_input(x_zero) || call.tensor(x_zero).size() == 1;
  const bool fits = !call.has_input(w_zero) || call.tensor(w_zero).size() == 1 ||
                    call.tensor(w_zero).size() == shape.filters;
  if (!is_byte(call.tensor(x).dtype()) || !is_byte(call.tensor(w).dtype())) return false;
  if (!one_zero || !fits || shape.groups == shape.channels) return false;
  if (shape.batch * shape.filters * count_of(shape.window.output) == 0) return true;
  if (call.tensor(w).size() == 0) return false;
  const auto pack = [&] { return pack_filters(call.tensor(w)); };
  const auto run = [&](const PackedFilters& filters) {
    IntegerConvolution(call, shape, x, x_zero, w_zero, filters).run(finish);
  };
  if (call.is_constant(w)) {
    run(call.prepared<PackedFilters>(pack));
  } else {
    run(pack());
  }
  return true;
}

}  // namespace redfuser::cpu
