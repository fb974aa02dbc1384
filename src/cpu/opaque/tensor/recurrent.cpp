#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/recurrent/byte_matrix.h"
#include "cpu/recurrent/float_matrix.h"
#include "cpu/recurrent/layer.h"
#include "ops/recurrent/recurrent_layer.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

RecurrentShape shape_of(const OpaqueCall& call, const ops::RecurrentLayer& layer) {
  const Dims &x = call.dims(0), &r = call.dims(2);
  RecurrentShape shape;
  shape.cell = layer.cell;
  shape.batch_first = layer.batch_first;
  shape.steps = x[shape.batch_first ? 1 : 0];
  shape.batch = x[shape.batch_first ? 0 : 1];
  shape.input = x[2];
  shape.hidden = r[2];
  shape.directions = layer.directions;
  shape.backward = layer.backward;
  shape.linear_before_reset = layer.linear_before_reset;
  return shape;
}

std::vector<int64_t> lengths_of(const OpaqueCall& call, const RecurrentShape& shape) {
  if (!call.has_input(4)) {
    return std::vector<int64_t>(static_cast<size_t>(shape.batch), shape.steps);
  }
  std::vector<int64_t> lengths = call.integers_of(4);
  if (static_cast<int64_t>(lengths.size()) != shape.batch) call.fail("one length per sequence");
  for (const int64_t length : lengths) {
    if (length < 0 || length > shape.steps) call.fail("a sequence length is out of range");
  }
  return lengths;
}

template <typename T>
LayerWeights<FloatMatrix<T>> pack_floats(const OpaqueCall& call, const RecurrentShape& shape) {
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  const Tensor w = call.widened(1), r = call.widened(2);
  const int64_t rows = shape.gates() * shape.hidden;
  const auto matrix = [rows](const Tensor& from, int64_t depth) {
    return [&from, rows, depth](int64_t direction, const std::vector<int64_t>& columns) {
      return FloatMatrix<T>(from.as<T>() + direction * rows * depth, depth, columns);
    };
  };
  return pack_weights<FloatMatrix<T>>(shape, matrix(w, shape.input), matrix(r, shape.hidden));
}

// Reads the inputs and sets the outputs that recurrent layers have in common.
template <typename Matrix>
void run_with(OpaqueCall& call, const ops::RecurrentLayer& layer, const RecurrentShape& shape,
              const LayerWeights<Matrix>& weights) {
  using T = typename Matrix::Element;
  const int64_t size = shape.directions * shape.hidden;
  std::vector<Tensor> inputs(8), outputs(3);
  const auto read = [&](int input, int64_t count) -> const T* {
    if (!call.has_input(input)) return nullptr;
    Tensor& tensor = inputs[static_cast<size_t>(input)] = call.widened(input);
    if (tensor.size() != count) {
      call.fail(fmt::format("input {} is {}, not of {} elements", input, describe(tensor), count));
    }
    return tensor.as<T>();
  };
  LayerTensors<T> tensors;
  tensors.x = read(0, shape.steps * shape.batch * shape.input);
  tensors.bias = read(3, 2 * shape.gates() * size);
  tensors.h = read(5, shape.batch * size);
  if (shape.cell == Cell::Lstm) {
    tensors.c = read(6, shape.batch * size);
    tensors.peepholes = read(7, 3 * size);
  }
  const std::vector<int64_t> lengths = lengths_of(call, shape);
  tensors.lengths = lengths;
  tensors.gates = layer.gates;
  tensors.clip = layer.clip;
  tensors.coupled = layer.coupled;

  const Dims state = shape.batch_first ? Dims{shape.batch, shape.directions, shape.hidden}
                                       : Dims{shape.directions, shape.batch, shape.hidden};
  const Dims all = shape.batch_first
                       ? Dims{shape.batch, shape.steps, shape.directions, shape.hidden}
                       : Dims{shape.steps, shape.directions, shape.batch, shape.hidden};
  T** const results[] = {&tensors.y, &tensors.y_h, &tensors.y_c};
  const DType dtype = inputs[0].dtype();
  for (int i = 0; i < std::min(call.output_count(), 3); ++i) {
    if (!call.has_output(i)) continue;
    Tensor& output = outputs[static_cast<size_t>(i)] = Tensor(dtype, i == 0 ? all : state);
    *results[i] = output.as<T>();
  }
  // Steps after a sequence's end are zero.
  const bool whole = std::all_of(lengths.begin(), lengths.end(),
                                 [&](int64_t length) { return length == shape.steps; });
  if (tensors.y != nullptr && !whole) std::fill_n(tensors.y, outputs[0].size(), T(0));
  run_layer(shape, weights, tensors, call.threads());
  for (int i = 0; i < std::min(call.output_count(), 3); ++i) {
    if (call.has_output(i)) call.set(i, std::move(outputs[static_cast<size_t>(i)]));
  }
}

template <typename T>
void run_floats(OpaqueCall& call, const ops::RecurrentLayer& layer, const RecurrentShape& shape) {
  using Weights = LayerWeights<FloatMatrix<T>>;
  const auto pack = [&] { return pack_floats<T>(call, shape); };
  if (call.is_constant(1) && call.is_constant(2)) {
    run_with(call, layer, shape, call.prepared<Weights>(pack));
  } else {
    run_with(call, layer, shape, pack());
  }
}

// UserError unless every scale is a positive number.
void check_scales(const OpaqueCall& call, int input) {
  const Tensor& scales = call.tensor(input);
  for (int64_t i = 0; i < scales.size(); ++i) {
    const float scale = scales.as<float>()[i];
    if (scale > 0 && std::isfinite(scale)) continue;
    call.fail(fmt::format("scale {} of input {} (\"{}\") is not a positive number", scale, input,
                          call.input(input).name));
  }
}

LayerWeights<ByteMatrix> pack_bytes(const OpaqueCall& call, const RecurrentShape& shape) {
  const MemoryLimit none(0);
  const int64_t columns = shape.gates() * shape.hidden;
  const auto matrix = [&](int input, int64_t depth) {
    const Tensor &from = call.tensor(input), &scales = call.tensor(6 + 2 * input),
                 &zeros = call.tensor(7 + 2 * input);
    check_scales(call, 6 + 2 * input);
    return [=](int64_t direction, const std::vector<int64_t>& of) {
      const int64_t parameters = scales.size() / shape.directions;
      ByteColumns bytes;
      bytes.data = static_cast<const char*>(from.data()) + direction * depth * columns;
      bytes.dtype = from.dtype();
      bytes.row_stride = columns;
      bytes.scales = scales.as<float>() + direction * parameters;
      bytes.zeros = static_cast<const char*>(zeros.data()) + direction * parameters;
      bytes.per_column = scales.dims().size() == 2;
      return ByteMatrix(bytes, depth, of);
    };
  };
  return pack_weights<ByteMatrix>(shape, matrix(1, shape.input), matrix(2, shape.hidden));
}

void run_recurrent(OpaqueCall& call, Cell cell) {
  const ops::RecurrentLayer layer = recurrent_layer(call, cell);
  const RecurrentShape shape = shape_of(call, layer);
  if (call.dtype(0) == DType::Float64) return run_floats<double>(call, layer, shape);
  run_floats<float>(call, layer, shape);
}

}  // namespace

void run_rnn(OpaqueCall& call) { run_recurrent(call, Cell::Rnn); }
void run_gru(OpaqueCall& call) { run_recurrent(call, Cell::Gru); }
void run_lstm(OpaqueCall& call) { run_recurrent(call, Cell::Lstm); }

void run_dynamic_quantize_lstm(OpaqueCall& call) {
  const ops::RecurrentLayer layer = recurrent_layer(call, Cell::Lstm);
  RecurrentShape shape = shape_of(call, layer);
  shape.hidden = call.dims(2)[1];
  const auto pack = [&] { return pack_bytes(call, shape); };
  bool constant = true;
  for (const int input : {1, 2, 8, 9, 10, 11}) constant = constant && call.is_constant(input);
  if (constant) {
    run_with(call, layer, shape, call.prepared<LayerWeights<ByteMatrix>>(pack));
  } else {
    run_with(call, layer, shape, pack());
  }
}

}  // namespace redfuser::cpu
