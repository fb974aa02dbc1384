#include "cpu/simd/recurrent.h"

#include "cpu/simd/isa.h"
#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {
namespace {

template <class T, class F>
RF_INLINE void map(int64_t count, T* x, const F& f) {
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
}

template <class T>
void activate(int64_t count, T* x, const Gate& gate, double limit = 0) {
  const T a = static_cast<T>(gate.alpha), b = static_cast<T>(gate.beta),
          clip = static_cast<T>(limit);
  const T zero = 0, one = 1;
  if (limit > 0) {
    map(count, x, [=](T v) {
      v = v < -clip ? -clip : v;
      return v > clip ? clip : v;
    });
  }
  switch (gate.function) {
    case GateFunction::Sigmoid:
      return map(count, x, [=](T v) { return one / (one + exp_of(-v)); });
    case GateFunction::Tanh:
      return map(count, x, [=](T v) { return tanh_of(v); });
    case GateFunction::Relu:
      return map(count, x, [=](T v) { return v < zero ? zero : v; });
    case GateFunction::Affine:
      return map(count, x, [=](T v) { return a * v + b; });
    case GateFunction::LeakyRelu:
      return map(count, x, [=](T v) { return v < zero ? a * v : v; });
    case GateFunction::ThresholdedRelu:
      return map(count, x, [=](T v) { return v <= a ? zero : v; });
    case GateFunction::ScaledTanh:
      return map(count, x, [=](T v) { return a * tanh_of(b * v); });
    case GateFunction::HardSigmoid:
      return map(count, x, [=](T v) {
        v = a * v + b;
        v = v < zero ? zero : v;
        return v > one ? one : v;
      });
    case GateFunction::Elu:
      return map(count, x, [=](T v) { return v < zero ? a * (exp_of(v) - one) : v; });
    case GateFunction::Softsign:
      return map(count, x, [=](T v) { return v / (one + (v < zero ? -v : v)); });
    case GateFunction::Softplus:
      return map(count, x, [=](T v) {
        return (v < zero ? zero : v) + log_of(one + exp_of(v < zero ? v : -v));
      });
  }
}

template <class T>
void add_product(int64_t count, T* to, const T* a, const T* b) {
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];
}

template <class T>
void rnn(const CellArgs& args) {
  T* h = static_cast<T*>(args.h);
  __builtin_memcpy(h, args.sums, static_cast<size_t>(args.units) * sizeof(T));
  activate(args.units, h, args.gates[0], args.clip);
}

template <class T>
void lstm(const CellArgs& args) {
  const int64_t n = args.units;
  T *input = static_cast<T*>(args.sums), *output = input + n, *forget = output + n,
    *value = forget + n, *c = static_cast<T*>(args.c), *h = static_cast<T*>(args.h);
  const bool peepholes = args.peepholes[0] != nullptr;
  if (peepholes) {
    add_product<T>(n, input, static_cast<const T*>(args.peepholes[0]), c);
    add_product<T>(n, forget, static_cast<const T*>(args.peepholes[2]), c);
  }
  activate(n, input, args.gates[0], args.clip);
  if (args.coupled) {
    RF_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) forget[i] = 1 - input[i];
  } else {
    activate(n, forget, args.gates[0], args.clip);
  }
  activate(n, value, args.gates[1], args.clip);
  RF_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) h[i] = c[i] = forget[i] * c[i] + input[i] * value[i];
  if (peepholes) add_product<T>(n, output, static_cast<const T*>(args.peepholes[1]), c);
  activate(n, output, args.gates[0], args.clip);
  activate(n, h, args.gates[2]);
  RF_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) h[i] *= output[i];
}

template <class T>
void gru_finish(const CellArgs& args) {
  const int64_t n = args.units;
  const T *z = static_cast<const T*>(args.sums), *before = static_cast<const T*>(args.before);
  T *next = static_cast<T*>(args.sums) + 2 * n, *h = static_cast<T*>(args.h);
  activate(n, next, args.gates[1], args.clip);
  RF_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) h[i] = (1 - z[i]) * next[i] + z[i] * before[i];
}

template <class T>
void gru_reset(const CellArgs& args) {
  const int64_t n = args.units;
  T *sums = static_cast<T*>(args.sums), *reset = static_cast<T*>(args.reset);
  const T *r = sums + n, *before = static_cast<const T*>(args.before);
  activate(2 * n, sums, args.gates[0], args.clip);
  RF_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) reset[i] = r[i] * before[i];
}

template <class T>
void gru_linear(const CellArgs& args) {
  T* sums = static_cast<T*>(args.sums);
  activate(2 * args.units, sums, args.gates[0], args.clip);
  add_product<T>(args.units, sums + 2 * args.units, sums + args.units,
                 static_cast<const T*>(args.reset));
  gru_finish<T>(args);
}

template <class T>
constexpr RecurrentKernels kRecurrent = {rnn<T>, lstm<T>, gru_reset<T>, gru_finish<T>,
                                         gru_linear<T>};

}  // namespace

void add_recurrent(KernelTable& table) {
  table.recurrent_f32 = &kRecurrent<float>;
  table.recurrent_f64 = &kRecurrent<double>;
}

}  // namespace redfuser::cpu::RF_ISA
