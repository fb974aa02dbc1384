// Recurrent layers over all steps: one product of the inputs of many steps with W, then a product
// of the state with R and the gates for each step.
//
// `Matrix` is the form of the weights, such as FloatMatrix<float>. It multiplies
// Matrix::Rows (the inputs of many steps, or the states of a step) and adds to
// Matrix::Element.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/recurrent/shape.h"
#include "cpu/simd/recurrent.h"

namespace redfuser::cpu {

// By block of hidden units.
template <typename Matrix>
struct DirectionWeights {
  std::vector<Matrix> input;  // of all gates
  std::vector<Matrix> state;  // of the direct gates
  std::vector<Matrix> next;   // of a GRU's n, with the state
};

template <typename Matrix>
using LayerWeights = std::vector<DirectionWeights<Matrix>>;

// Packs the weights of every direction: w(d) and r(d) return what makes a Matrix of columns.
template <typename Matrix, typename W, typename R>
LayerWeights<Matrix> pack_weights(const RecurrentShape& shape, const W& w, const R& r) {
  LayerWeights<Matrix> weights(static_cast<size_t>(shape.directions));
  for (int64_t d = 0; d < shape.directions; ++d) {
    DirectionWeights<Matrix>& to = weights[static_cast<size_t>(d)];
    for (int64_t block = 0; block < shape.blocks(); ++block) {
      const int64_t direct = shape.direct_gates(), gates = shape.gates();
      to.input.push_back(w(d, shape.columns(block, 0, gates)));
      to.state.push_back(r(d, shape.columns(block, 0, direct)));
      if (direct < gates) to.next.push_back(r(d, shape.columns(block, direct, gates)));
    }
  }
  return weights;
}

// Null pointers are inputs that are absent (zeros) and outputs that are not wanted. T is
// Matrix::Element.
template <typename T>
struct LayerTensors {
  const T *x = nullptr, *bias = nullptr, *h = nullptr, *c = nullptr, *peepholes = nullptr;
  T *y = nullptr, *y_h = nullptr, *y_c = nullptr;
  std::span<const int64_t> lengths;  // one for each sequence, within [0, steps]
  std::span<const Gate> gates;       // of every direction, in turn
  double clip = 0;
  bool coupled = false;
};

template <typename Matrix>
void run_layer(const RecurrentShape& shape, const LayerWeights<Matrix>& weights,
               const LayerTensors<typename Matrix::Element>& tensors, ThreadPool& pool);

}  // namespace redfuser::cpu
