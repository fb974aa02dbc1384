#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

template <class T, bool kScalarA, bool kScalarB>
void select_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand condition,
                   Operand a, Operand b) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* p = row_of<uint8_t>(condition, r);
    const T* x = row_of<T>(a, r);
    const T* y = row_of<T>(b, r);
    T* z = static_cast<T*>(out) + r * out_stride;
    const T x0 = kScalarA ? *x : T{}, y0 = kScalarB ? *y : T{};
    RF_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) {
      const T xc = kScalarA ? x0 : x[c];
      const T yc = kScalarB ? y0 : y[c];
      z[c] = p[c] ? xc : yc;
    }
  }
}

template <class T>
void add(KernelTable& table, Elem elem) {
  auto& modes = table.select[static_cast<int>(elem)];
  modes[0][0] = select_kernel<T, false, false>;
  modes[0][1] = select_kernel<T, false, true>;
  modes[1][0] = select_kernel<T, true, false>;
  modes[1][1] = select_kernel<T, true, true>;
}

}  // namespace

void add_select(KernelTable& table) {
  add<float>(table, Elem::F32);
  add<double>(table, Elem::F64);
  add<int32_t>(table, Elem::I32);
  add<int64_t>(table, Elem::I64);
  add<uint64_t>(table, Elem::U64);
  add<uint8_t>(table, Elem::Bool);
}

}  // namespace redfuser::cpu::RF_ISA
