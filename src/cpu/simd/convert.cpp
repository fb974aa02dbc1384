#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// How one element becomes another; the general case is the language's conversion.
template <class Out, class In>
struct To {
  static RF_INLINE Out of(In x) { return static_cast<Out>(x); }
};
struct Logic {  // to Bool: every non-zero value (and NaN) is true
  template <class In>
  static RF_INLINE uint8_t of(In x) {
    return x != In{};
  }
};
// Values beyond the integer's range, and NaN, become its smallest value, as on x86.
template <class In>
struct ToInteger {
  static RF_INLINE int64_t of(In x) {
    const In limit = static_cast<In>(9223372036854775808.0);
    return x >= -limit && x < limit ? static_cast<int64_t>(x) : INT64_MIN;
  }
};
template <class In>
struct ToInt32 {
  static RF_INLINE int32_t of(In x) {
    // Floats of that size are whole.
    const In limit = static_cast<In>(2147483648.0), below = sizeof(In) == 8 ? limit + 1 : limit;
    const bool fits = (sizeof(In) == 8 ? x > -below : x >= -limit) && x < limit;
    return fits ? static_cast<int32_t>(x) : INT32_MIN;
  }
};
// As ToInteger modulo 2^64, except for values that only unsigned words hold; 0 from 2^64 on.
template <class In>
struct ToUnsigned {
  static RF_INLINE uint64_t of(In x) {
    const In limit = static_cast<In>(9223372036854775808.0);
    if (!(x >= limit)) return static_cast<uint64_t>(ToInteger<In>::of(x));
    return x < 2 * limit ? static_cast<uint64_t>(x) : 0;
  }
};
struct FromBFloat {
  static RF_INLINE float of(uint16_t x) { return bfloat_to_float(x); }
};
template <class In>
struct ToHalf {
  static RF_INLINE uint16_t of(In x) { return float_to_half(static_cast<float>(x)); }
};
template <class In>
struct ToBFloat {
  static RF_INLINE uint16_t of(In x) { return float_to_bfloat(static_cast<float>(x)); }
};

template <class Out, class In, class Function = To<Out, In>>
void convert_kernel(int64_t count, void* out, const void* in) {
  Out* y = static_cast<Out*>(out);
  const In* x = static_cast<const In*>(in);
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] = Function::of(x[i]);
}

void halves_to_floats(int64_t count, void* out, const void* in) {
  constexpr int W = VectorOf<float>::kWidth;
  const auto* x = static_cast<const uint16_t*>(in);
  auto* y = static_cast<float*>(out);
  Halves h{};
  for (; count >= W; count -= W, x += W, y += W) {
    __builtin_memcpy(&h, x, sizeof(h));
    store_vector(y, floats_of(h));
  }
  for (int64_t i = 0; i < count; ++i) h[i] = x[i];
  if (count > 0) store_part(y, floats_of(h), count);
}

void floats_to_halves(int64_t count, void* out, const void* in) {
  constexpr int W = VectorOf<float>::kWidth;
  const auto* x = static_cast<const float*>(in);
  auto* y = static_cast<uint16_t*>(out);
  for (; count >= W; count -= W, x += W, y += W) {
    const Halves h = halves_of(load_vector(x));
    __builtin_memcpy(y, &h, sizeof(h));
  }
  if (count == 0) return;
  const Halves h = halves_of(load_part(x, count));
  for (int64_t i = 0; i < count; ++i) y[i] = h[i];
}

enum Storage {  // DType's numbers
  kFloat32 = 1,
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kInt32,
  kInt64,
  kString,
  kBool,
  kFloat16,
  kFloat64,
  kUInt32,
  kUInt64,
  kBFloat16 = 16,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kUInt4,
  kInt4,
  kFloat4E2M1,
  kFloat8E8M0,
  kUInt2,
  kInt2,
};

// Low-bit types are held as bytes: integers as such, floats as their codes.
constexpr Storage kUnsignedBytes[] = {kUInt4, kUInt2}, kSignedBytes[] = {kInt4, kInt2};
constexpr Storage kCodes[] = {kFloat8E4M3FN,   kFloat8E4M3FNUZ, kFloat8E5M2,
                              kFloat8E5M2FNUZ, kFloat4E2M1,     kFloat8E8M0};

template <class In>
void add_stores(ConvertFn* store) {
  store[kUInt8] = convert_kernel<uint8_t, In>;
  store[kInt8] = convert_kernel<int8_t, In>;
  store[kUInt16] = convert_kernel<uint16_t, In>;
  store[kInt16] = convert_kernel<int16_t, In>;
  store[kInt32] = convert_kernel<int32_t, In>;
  store[kUInt32] = convert_kernel<uint32_t, In>;
  store[kInt64] = convert_kernel<int64_t, In>;
  store[kUInt64] = convert_kernel<uint64_t, In>;
  store[kString] = convert_kernel<int64_t, In>;
  for (const Storage type : kUnsignedBytes) store[type] = convert_kernel<uint8_t, In>;
  for (const Storage type : kSignedBytes) store[type] = convert_kernel<int8_t, In>;
  for (const Storage type : kCodes) store[type] = convert_kernel<uint8_t, In>;
}

void add_between(KernelTable& table) {
  constexpr int f32 = 0, f64 = 1, i64 = 2, logic = 3, u64 = 4, i32 = 5;
  auto& to = table.convert;
  to[f32][f32] = convert_kernel<float, float>;
  to[f32][f64] = convert_kernel<float, double>;
  to[f32][i64] = convert_kernel<float, int64_t>;
  to[f32][logic] = convert_kernel<float, uint8_t>;
  to[f64][f32] = convert_kernel<double, float>;
  to[f64][f64] = convert_kernel<double, double>;
  to[f64][i64] = convert_kernel<double, int64_t>;
  to[f64][logic] = convert_kernel<double, uint8_t>;
  to[i64][f32] = convert_kernel<int64_t, float, ToInteger<float>>;
  to[i64][f64] = convert_kernel<int64_t, double, ToInteger<double>>;
  to[i64][i64] = convert_kernel<int64_t, int64_t>;
  to[i64][logic] = convert_kernel<int64_t, uint8_t>;
  to[logic][f32] = convert_kernel<uint8_t, float, Logic>;
  to[logic][f64] = convert_kernel<uint8_t, double, Logic>;
  to[logic][i64] = convert_kernel<uint8_t, int64_t, Logic>;
  to[logic][logic] = convert_kernel<uint8_t, uint8_t>;
  to[f32][u64] = convert_kernel<float, uint64_t>;
  to[f64][u64] = convert_kernel<double, uint64_t>;
  to[i64][u64] = to[u64][i64] = to[u64][u64] = to[i64][i64];
  to[logic][u64] = to[logic][i64];
  to[u64][f32] = convert_kernel<uint64_t, float, ToUnsigned<float>>;
  to[u64][f64] = convert_kernel<uint64_t, double, ToUnsigned<double>>;
  to[u64][logic] = to[i64][logic];
  to[f32][i32] = convert_kernel<float, int32_t>;
  to[f64][i32] = convert_kernel<double, int32_t>;
  to[i64][i32] = to[u64][i32] = convert_kernel<int64_t, int32_t>;
  to[logic][i32] = convert_kernel<uint8_t, int32_t, Logic>;
  to[i32][f32] = convert_kernel<int32_t, float, ToInt32<float>>;
  to[i32][f64] = convert_kernel<int32_t, double, ToInt32<double>>;
  to[i32][i64] = to[i32][u64] = convert_kernel<int32_t, int64_t>;
  to[i32][i32] = convert_kernel<int32_t, int32_t>;
  to[i32][logic] = convert_kernel<int32_t, uint8_t>;
}

}  // namespace

void add_convert(KernelTable& table) {
  add_between(table);
  ConvertFn* load = table.load;
  load[kFloat32] = convert_kernel<float, float>;
  load[kFloat64] = convert_kernel<double, double>;
  load[kFloat16] = halves_to_floats;
  load[kBFloat16] = convert_kernel<float, uint16_t, FromBFloat>;
  load[kUInt8] = convert_kernel<int32_t, uint8_t>;
  load[kInt8] = convert_kernel<int32_t, int8_t>;
  load[kUInt16] = convert_kernel<int32_t, uint16_t>;
  load[kInt16] = convert_kernel<int32_t, int16_t>;
  load[kInt32] = convert_kernel<int32_t, int32_t>;
  load[kUInt32] = convert_kernel<int64_t, uint32_t>;
  load[kInt64] = convert_kernel<int64_t, int64_t>;
  load[kUInt64] = convert_kernel<int64_t, uint64_t>;
  load[kString] = convert_kernel<int64_t, int64_t>;
  for (const Storage type : kUnsignedBytes) load[type] = convert_kernel<int32_t, uint8_t>;
  for (const Storage type : kSignedBytes) load[type] = convert_kernel<int32_t, int8_t>;
  for (const Storage type : kCodes) load[type] = convert_kernel<int64_t, uint8_t>;
  load[kBool] = convert_kernel<uint8_t, uint8_t, Logic>;
  auto& store = table.store;
  for (int floating = 0; floating < 2; ++floating) {
    store[floating][kFloat32] = table.convert[0][floating];
    store[floating][kFloat64] = table.convert[1][floating];
  }
  store[0][kFloat16] = floats_to_halves;
  store[1][kFloat16] = convert_kernel<uint16_t, double, ToHalf<double>>;
  store[0][kBFloat16] = convert_kernel<uint16_t, float, ToBFloat<float>>;
  store[1][kBFloat16] = convert_kernel<uint16_t, double, ToBFloat<double>>;
  add_stores<int64_t>(store[2]);
  add_stores<uint64_t>(store[4]);
  add_stores<int32_t>(store[5]);
  store[3][kBool] = convert_kernel<uint8_t, uint8_t>;
}

}  // namespace redfuser::cpu::RF_ISA
