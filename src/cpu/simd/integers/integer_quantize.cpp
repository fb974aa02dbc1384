// Sums of integers as 8-bit integers. The definition is by float64; most sums take float32, which
// has four times as many lanes for each conversion.
//
// For r = round(x), x = s · scale + offset, and t the same in float32, rounded at each of its
// steps:
//
//   |t − x| <= 2^-21 · (|offset| + kReach) where |t| <= kReach,
//
// so that round(t) = round(x) unless t lies within that of the middle between two whole numbers.
// There, the vector is computed anew in float64. Beyond kReach both are out of all bounds.
#include "cpu/simd/byte_groups.h"
#include "cpu/simd/integers/residual.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr double kReach = 512, kMostOffset = 8192;

struct Row {
  int64_t count;
  const int32_t* c;
  double scale, offset, zero, low, high;
};

// Bounds are whole numbers, so that they may come before the rounding.
template <class Out>
void quantize_doubles(const Row& row, Out* out) {
  const Row q = row;
  const double low = q.low - q.zero, high = q.high - q.zero;
  const auto zero = static_cast<uint32_t>(static_cast<int32_t>(q.zero));
  RF_INDEPENDENT
  for (int64_t j = 0; j < q.count; ++j) {
    double x = q.c[j] * q.scale + q.offset;
    x = low > x ? low : x;
    x = high < x ? high : x;
    out[j] = static_cast<Out>(rounded(x) + zero);
  }
}

// Scales and offsets may be infinite or NaN.
template <class Out>
void quantize_any(const Row& row, Out* out) {
  const Row q = row;
  RF_INDEPENDENT
  for (int64_t j = 0; j < q.count; ++j) {
    double x = q.c[j] * q.scale + q.offset;
    x = x == x ? __builtin_nearbyint(x) : 0.0;
    x += q.zero;
    x = x < q.low ? q.low : x;
    x = x > q.high ? q.high : x;
    out[j] = static_cast<Out>(static_cast<int32_t>(x));
  }
}

#if defined(__x86_64__)
#if RF_VECTOR_BYTES == 64
// The first elements of a group, fewer than it has.
RF_INLINE void load_group_part(const int32_t* from, int64_t count, Ints* x) {
  const uint64_t part = (uint64_t{1} << count) - 1;
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const auto lanes = static_cast<__mmask16>(part >> (v * kLanes));
    x[v] = (Ints)_mm512_maskz_loadu_epi32(lanes, from + v * kLanes);
  }
}
RF_INLINE void store_group_part(uint8_t* to, int64_t count, const uint8_t* part) {
  _mm512_mask_storeu_epi8(to, (uint64_t{1} << count) - 1, _mm512_loadu_si512(part));
}
#else
// The first elements of a group, fewer than it has.
RF_INLINE void load_group_part(const int32_t* from, int64_t count, Ints* x) {
#pragma GCC unroll 4
  for (int64_t v = 0; v < 4; ++v, count -= kLanes, from += kLanes) {
    x[v] = count >= kLanes ? load_vector(from) : load_part(from, count < 0 ? 0 : count);
  }
}
#endif

template <class Out>
RF_INLINE void store_group_part(Out* to, int64_t count, const Out* part) {
  for (int64_t i = 0; i < count; ++i) to[i] = part[i];
}

// Of finite scales and offsets: a scale of at most 1/4 keeps sums within int32.
class Singles {
 public:
  explicit Singles(const Row& q)
      : exact_scale_(q.scale),
        exact_offset_(q.offset),
        scale_(static_cast<float>(q.scale)),
        offset_(static_cast<float>(q.offset)),
        most_(static_cast<float>(0.5 - 0x1p-21 * (__builtin_fabs(q.offset) + kReach))),
        zero_(static_cast<int32_t>(q.zero)),
        low_(static_cast<int32_t>(q.low)),
        high_(static_cast<int32_t>(q.high)) {}

  // A group of sums, which become whole numbers.
  RF_INLINE void round(Ints* sums) const {
    Floats most{};
    Ints r[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Floats t = __builtin_convertvector(sums[v], Floats) * scale_ + offset_;
      r[v] = nearest(t);
      most = larger_magnitude(most, beyond(t, r[v]));
    }
    if (any_above(most, most_)) [[unlikely]]
      return round_exactly(sums);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[v] = r[v];
  }

  RF_INLINE void bound(Ints* x) const {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Ints moved = x[v] + zero_;
      const Ints above = moved < low_ ? low_ - Ints{} : moved;
      x[v] = above > high_ ? high_ - Ints{} : above;
    }
  }

  RF_INLINE void finish(Ints* x, int32_t* out) const {
    bound(x);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) store_vector(out + v * kLanes, x[v]);
  }
  RF_INLINE void finish(Ints* x, uint8_t* out) const {
    const auto first = bounded_words(pack_words(x[0], x[1]), zero_, low_, high_);
    const auto second = bounded_words(pack_words(x[2], x[3]), zero_, low_, high_);
    store_bytes(low_ < 0, first, second, out);
  }

 private:
  __attribute__((noinline)) void round_exactly(Ints* sums) const {
    int32_t lanes[kGroup];
    __builtin_memcpy(lanes, sums, sizeof(lanes));
    for (int32_t& x : lanes) x = static_cast<int32_t>(rounded(x * exact_scale_ + exact_offset_));
    __builtin_memcpy(sums, lanes, sizeof(lanes));
  }

  double exact_scale_, exact_offset_;
  float scale_, offset_, most_;  // the most that a float32 may be from a whole number
  int32_t zero_, low_, high_;
};

bool singles_take(const Row& q) {
  const double scale = __builtin_fabs(q.scale);
  return scale >= 0x1p-100 && scale <= 0.25 && __builtin_fabs(q.offset) <= kMostOffset &&
         __builtin_fabs(q.zero) <= 255 && q.low >= -128 && q.high <= 255;
}

// Groups; the last one may have fewer elements.
template <class Out>
RF_INLINE void quantize_singles(const Row& q, Out* out) {
  const Singles singles(q);
  const int32_t* c = q.c;
  const int64_t count = q.count;
  Ints x[4];
  int64_t j = 0;
  for (; j + kGroup <= count; j += kGroup) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) x[v] = load_vector(c + j + v * kLanes);
    singles.round(x);
    singles.finish(x, out + j);
  }
  if (j == count) return;
  Out part[kGroup];
  load_group_part(c + j, count - j, x);
  singles.round(x);
  singles.finish(x, part);
  store_group_part(out + j, count - j, part);
}

RF_INLINE void quantize_singles(const Row& q, const ResidualGroups& rest, const uint8_t* bytes,
                                uint8_t* out) {
  const Singles singles(q);
  Ints x[4];
  int64_t j = 0;
  for (; j + kGroup <= q.count; j += kGroup) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) x[v] = load_vector(q.c + j + v * kLanes);
    singles.round(x);
    singles.bound(x);
    rest.run(x, bytes + j, out + j);
  }
  if (j == q.count) return;
  uint8_t part[kGroup], beside[kGroup] = {};
  __builtin_memcpy(beside, bytes + j, static_cast<size_t>(q.count - j));
  load_group_part(q.c + j, q.count - j, x);
  singles.round(x);
  singles.bound(x);
  rest.run(x, beside, part);
  store_group_part(out + j, q.count - j, part);
}
#endif

template <class Out>
RF_INLINE void quantize_row(const Row& q, Out* out) {
  if (!(q.scale - q.scale == 0 && q.offset - q.offset == 0)) return quantize_any(q, out);
#if defined(__x86_64__)
  if (singles_take(q)) {
    return quantize_singles(q, out);
  }
#endif
  quantize_doubles(q, out);
}

Row row_of(const IntegerQuantizeArgs& q, int64_t i) {
  return {q.count,
          q.c + i * q.c_stride,
          q.scales[i * q.scale_step],
          q.offsets[i * q.offset_step],
          q.zero,
          q.low,
          q.high};
}

template <class Out>
void quantize_as(const IntegerQuantizeArgs& q) {
  for (int64_t i = 0; i < q.rows; ++i) {
    quantize_row(row_of(q, i), static_cast<Out*>(q.out) + i * q.out_stride);
  }
}

void quantize_twice(const IntegerQuantizeArgs& q) {
  constexpr int64_t kPart = 256;
  const IntegerResidual& rest = *q.residual;
#if defined(__x86_64__)
  const bool singles = ResidualGroups::takes(rest);
  const ResidualGroups groups(rest);
#endif
  for (int64_t i = 0; i < q.rows; ++i) {
    Row row = row_of(q, i);
    const uint8_t* bytes = rest.bytes + i * rest.stride;
    auto* out = static_cast<uint8_t*>(q.out) + i * q.out_stride;
#if defined(__x86_64__)
    if (singles && singles_take(row)) {
      quantize_singles(row, groups, bytes, out);
      continue;
    }
#endif
    for (int64_t j = 0; j < q.count; j += kPart) {
      int32_t codes[kPart];
      row.count = q.count - j < kPart ? q.count - j : kPart;
      quantize_row(row, codes);
      add_residual(rest, row.count, codes, bytes + j, out + j);
      row.c += kPart;
    }
  }
}

}  // namespace

void quantize_integers(const IntegerQuantizeArgs& args) {
  args.residual != nullptr ? quantize_twice(args) : quantize_as<uint8_t>(args);
}
void quantize_words(const IntegerQuantizeArgs& args) { quantize_as<int32_t>(args); }

}  // namespace redfuser::cpu::RF_ISA
