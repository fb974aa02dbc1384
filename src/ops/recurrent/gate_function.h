// The activations of recurrent layers.
#pragma once

#include <cstdint>

namespace redfuser::ops {

// Of x: Affine is αx + β, LeakyRelu αx below 0, ThresholdedRelu x above α and 0 elsewhere,
// ScaledTanh α·tanh(βx), HardSigmoid αx + β within [0, 1], Elu α(exp(x) − 1) below 0.
enum class GateFunction : uint8_t {
  Sigmoid,
  Tanh,
  Relu,
  Affine,
  LeakyRelu,
  ThresholdedRelu,
  ScaledTanh,
  HardSigmoid,
  Elu,
  Softsign,
  Softplus,
};
struct Gate {
  GateFunction function = GateFunction::Sigmoid;
  double alpha = 0, beta = 0;
  bool operator==(const Gate&) const = default;
};

}  // namespace redfuser::ops
