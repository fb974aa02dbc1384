// A recurrent layer (RNN, GRU, LSTM) over all steps in one kernel, after the product of all inputs
// with W.
//
// A cluster of blocks has one direction and kBatch sequences. A block keeps its rows of R, as far
// as it has room, and the states of its units, in fp32, in shared memory. At each step it
// multiplies its rows with h of all units, applies the gates, and sends its part of h to the other
// blocks (exchange.cuh). After Diamos et al., "Persistent RNNs: Stashing Recurrent Weights
// On-Chip", 2016.
#pragma once

#include "device/recurrent/cell.cuh"
#include "device/recurrent/gates.cuh"

// Pointers are null for inputs and outputs that are absent. Distances are in elements.
template <typename T>
struct LayerTensors {
  const float* x;  // x · Wᵀ: rows of all gates of all directions
  const T *r, *bias, *h, *c, *peepholes;
  const int* lengths;
  T *y, *y_h, *y_c;
  long long steps, batch;
  bool backward;  // the first direction is the backward one
  bool vector;    // rows of R are aligned to 16 bytes
  long long x_step, x_sequence;
  long long y_step, y_sequence, y_direction, state_sequence, state_direction;
  T* shared;           // of blocks that exchange states through memory: kShared for each team
  unsigned* counters;  // and kCounters
};

template <typename Config, typename Gates>
struct LayerRun {
  using T = typename Config::Element;
  using First = typename Config::First;
  using Second = typename Config::Second;
  static constexpr int kUnits = Config::kUnits, kGates = Config::kGates;
  static constexpr int kAll = kUnits * Config::kBatch, kThreads = Config::kThreads;
  static constexpr int kCells = divide_up(kAll, kThreads);  // of a thread
  static constexpr bool kPeepholes = Gates::kPeepholes && Config::kCell == Cell::kLstm;
  // Whether registers have the room for a step's inputs from its start on. Else they are brought
  // to L2 then, and the cells are not all unrolled.
  static constexpr bool kEarly = kCells * kGates <= 8;
  static constexpr int kUnroll = kEarly ? kCells : 2;

  Gates gates;
  const LayerTensors<T>& tensors;
  typename Config::Exchange exchange;
  BlockWeights<T> weights;
  First first;
  Second second;  // of two phases
  float *sums, *parameters;
  CellState* states;  // of cells
  int* lengths;       // of the tile's sequences; 0 where there is none
  int direction, first_unit;
  long long first_sequence;
  float inputs[kEarly ? kCells : 1][kGates];

  __device__ __forceinline__ LayerRun(const LayerTensors<T>& tensors, char* shared)
      : tensors(tensors) {
    const long long team = blockIdx.x / Config::kTeam;
    const long long tiles = (tensors.batch + Config::kBatch - 1) / Config::kBatch;
    direction = static_cast<int>(team / tiles);
    gates.direction = direction;
    first_sequence = team % tiles * Config::kBatch;
    exchange.rank = static_cast<int>(blockIdx.x % Config::kTeam);
    first_unit = exchange.rank * kUnits;
    weights = {
        tensors.r + static_cast<long long>(direction) * kGates * Config::kHidden * Config::kHidden,
        first_unit, Config::kHidden, tensors.vector};
    if constexpr (Config::kGrid) {
      exchange.shared = tensors.shared + team * Config::Exchange::kShared;
      exchange.counters = tensors.counters + team * Config::Exchange::kCounters;
    }
    first.resident = reinterpret_cast<uint4*>(shared);
    second.resident = reinterpret_cast<uint4*>(shared += Config::kFirstBytes);
    exchange.states = reinterpret_cast<T*>(shared += Config::kSecondBytes);
    exchange.piece = reinterpret_cast<T*>(shared += Config::kStateBytes);
    sums = reinterpret_cast<float*>(shared += Config::kPieceBytes);
    parameters = reinterpret_cast<float*>(shared += Config::kSumBytes);
    states = reinterpret_cast<CellState*>(shared += Config::kParameterBytes);
    lengths = reinterpret_cast<int*>(shared += Config::kCellBytes);
    exchange.barriers = ptx_shared_address(shared += Config::kLengthBytes);
  }

  __device__ __forceinline__ void run() {
    exchange.open();
    first.fill(weights);
    if constexpr (Config::kTwoPhases) second.fill(weights);
    load_parameters();
    load_states();
    exchange.begin();
    int number = 0;
    const auto steps = static_cast<int>(tensors.steps);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      load_inputs(step);
      if (number > 0) exchange.wait(number);
      first.multiply(weights, exchange.buffer(number), sums);
      __syncthreads();
      if constexpr (Config::kTwoPhases) {
        reset(step);
        __syncthreads();
        exchange.send(++number);
        exchange.wait(number);
        second.multiply(weights, exchange.buffer(number), sums);
        __syncthreads();
      }
      advance(step);
      if (step + 1 == steps) break;
      __syncthreads();
      exchange.send(++number);
    }
    store_states();
    exchange.end();
  }

 private:
  __device__ __forceinline__ bool backward() const { return tensors.backward || direction == 1; }
  static __device__ __forceinline__ int index_of(int i) { return threadIdx.x + i * kThreads; }
  static __device__ __forceinline__ int unit_of(int i) { return index_of(i) % kUnits; }
  static __device__ __forceinline__ int batch_of(int i) { return index_of(i) / kUnits; }
  static __device__ __forceinline__ bool has(int i) {
    return kAll % kThreads == 0 || index_of(i) < kAll;
  }
  // The unit is of the layer, and the sequence of the batch.
  __device__ __forceinline__ bool exists(int i) const {
    return has(i) && first_unit + unit_of(i) < Config::kHidden &&
           first_sequence + batch_of(i) < tensors.batch;
  }
  __device__ __forceinline__ long long state_offset(long long sequence, int unit) const {
    return sequence * tensors.state_sequence + direction * tensors.state_direction + unit;
  }

  __device__ __forceinline__ void load_parameters() {
    constexpr int kHidden = Config::kHidden, kRows = kGates * kHidden;
    for (int i = threadIdx.x; i < Config::kParameters * kUnits; i += kThreads) {
      const int which = i / kUnits, unit = first_unit + i % kUnits;
      float value = 0;
      if (unit < kHidden) {
        const T* const bias = tensors.bias + static_cast<long long>(direction) * 2 * kRows + unit;
        // n's own bias of R is inside of the product with r.
        const bool apart = Config::kCell == Cell::kGru && Config::kLinear && which == 2;
        if (Gates::kBias && which < kGates) {
          value = load(bias, which * kHidden);
          if (!apart) value += load(bias, kRows + which * kHidden);
        }
        if (Gates::kBias && Config::kCell == Cell::kGru && which == kGates) {
          value = load(bias, kRows + 2 * kHidden);
        }
        if (kPeepholes && which > kGates) {
          value =
              load(tensors.peepholes,
                   (static_cast<long long>(direction) * 3 + which - kGates - 1) * kHidden + unit);
        }
      }
      parameters[i] = value;
    }
  }
  __device__ __forceinline__ float parameter(int which, int unit) const {
    return parameters[which * kUnits + unit];
  }

  // h of all units in the block's shared memory, and the states of its own.
  __device__ __forceinline__ void load_states() {
    constexpr int kPitch = Config::kPitch;
    for (int i = threadIdx.x; i < Config::Exchange::kBuffers * Config::Exchange::kBuffer;
         i += kThreads) {
      const int row = i / kPitch, unit = i % kPitch;
      const long long sequence = first_sequence + row;
      const bool given = tensors.h != nullptr && row < Config::kBatch && unit < Config::kHidden &&
                         sequence < tensors.batch;
      exchange.states[i] = given ? tensors.h[state_offset(sequence, unit)] : Element<T>::put(0.0f);
    }
#pragma unroll 1
    for (int i = 0; i < kCells; ++i) {
      if (!has(i)) continue;
      CellState& state = states[index_of(i)];
      state = {0, 0};
      if (!exists(i)) continue;
      const long long at = state_offset(first_sequence + batch_of(i), first_unit + unit_of(i));
      if (tensors.h != nullptr) state.h = load(tensors.h, at);
      if (tensors.c != nullptr) state.c = load(tensors.c, at);
    }
    for (int i = threadIdx.x; i < Config::kBatch; i += kThreads) {
      long long length = 0;
      if (first_sequence + i < tensors.batch) {
        length = tensors.lengths != nullptr
                     ? static_cast<long long>(tensors.lengths[first_sequence + i])
                     : tensors.steps;
      }
      lengths[i] = static_cast<int>(min_of(max_of(length, 0ll), tensors.steps));
    }
  }

  // The position of a sequence's step; past its end, that of the zeros which end its results.
  __device__ __forceinline__ int time_of(int length, int step) const {
    return backward() && step < length ? length - 1 - step : step;
  }

  // Of a cell's first gate.
  __device__ __forceinline__ const float* inputs_of(int i, int length, int step) const {
    return tensors.x + time_of(length, step) * tensors.x_step +
           (first_sequence + batch_of(i)) * tensors.x_sequence +
           static_cast<long long>(direction) * kGates * Config::kHidden + first_unit + unit_of(i);
  }
  __device__ __forceinline__ bool active(int i, int step) const {
    return exists(i) && step < lengths[batch_of(i)];
  }
  __device__ __forceinline__ void load_inputs(float (&to)[kGates], int i, int step) const {
    const bool given = active(i, step);
    const float* const from = inputs_of(i, given ? lengths[batch_of(i)] : 0, step);
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) {
      to[gate] = given ? from[gate * Config::kHidden] : 0.0f;
    }
  }
  __device__ __forceinline__ void load_inputs(int step) {
#pragma unroll kUnroll
    for (int i = 0; i < kCells; ++i) {
      if constexpr (kEarly) {
        load_inputs(inputs[i], i, step);
      } else if (active(i, step)) {
        const float* const from = inputs_of(i, lengths[batch_of(i)], step);
#pragma unroll
        for (int gate = 0; gate < kGates; ++gate) ptx_prefetch(from + gate * Config::kHidden);
      }
    }
  }
  // Those of a cell, at any time of the step.
  __device__ __forceinline__ void get_inputs(float (&to)[kGates], int i, int step) const {
    if constexpr (kEarly) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) to[gate] = inputs[i][gate];
    } else {
      load_inputs(to, i, step);
    }
  }

  // The sum of a gate of the first phase.
  __device__ __forceinline__ float sum_of(const float (&input)[kGates], int i, int gate) const {
    const int unit = unit_of(i);
    return First::sum(sums, batch_of(i), gate * kUnits + unit) + input[gate] +
           parameter(gate, unit);
  }

  __device__ __forceinline__ void put_piece(int i, float value) {
    exchange.piece[index_of(i)] = Element<T>::put(exists(i) ? value : 0.0f);
  }

  // r ∘ h; z is kept in place of c.
  __device__ __forceinline__ void reset(int step) {
#pragma unroll kUnroll
    for (int i = 0; i < kCells; ++i) {
      if (!has(i)) continue;
      float input[kGates];
      get_inputs(input, i, step);
      CellState& state = states[index_of(i)];
      state.c = gates.f(sum_of(input, i, 0));
      put_piece(i, gates.f(sum_of(input, i, 1)) * state.h);
    }
  }

  __device__ __forceinline__ void advance_cell(int i, int step, CellState& next) const {
    const int unit = unit_of(i), batch = batch_of(i);
    float input[kGates];
    get_inputs(input, i, step);
    if constexpr (Config::kCell == Cell::kRnn) {
      advance_rnn(gates, sum_of(input, i, 0), next);
    } else if constexpr (Config::kCell == Cell::kLstm) {
      float all[4], peepholes[3];
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) all[gate] = sum_of(input, i, gate);
#pragma unroll
      for (int p = 0; p < 3; ++p) peepholes[p] = kPeepholes ? parameter(kGates + 1 + p, unit) : 0;
      advance_lstm(gates, all, peepholes, next);
    } else if constexpr (Config::kTwoPhases) {
      advance_gru(gates, next.c, Second::sum(sums, batch, unit) + input[2] + parameter(2, unit),
                  next);
    } else {
      const float product = First::sum(sums, batch, 2 * kUnits + unit) + parameter(kGates, unit);
      advance_gru(gates, gates.f(sum_of(input, i, 0)),
                  input[2] + parameter(2, unit) + gates.f(sum_of(input, i, 1)) * product, next);
    }
  }

  // The states after the step, for the other blocks and in y.
  __device__ __forceinline__ void advance(int step) {
#pragma unroll kUnroll
    for (int i = 0; i < kCells; ++i) {
      if (!has(i)) continue;
      CellState next = states[index_of(i)];
      const CellState before = next;
      advance_cell(i, step, next);
      const int length = lengths[batch_of(i)];
      if (step >= length) next = before;
      states[index_of(i)] = next;
      put_piece(i, next.h);
      if (tensors.y == nullptr || !exists(i)) continue;
      store(tensors.y,
            time_of(length, step) * tensors.y_step +
                (first_sequence + batch_of(i)) * tensors.y_sequence +
                direction * tensors.y_direction + first_unit + unit_of(i),
            step < length ? next.h : 0.0f);
    }
  }

  __device__ __forceinline__ void store_states() const {
#pragma unroll 1
    for (int i = 0; i < kCells; ++i) {
      if (!exists(i)) continue;
      const long long at = state_offset(first_sequence + batch_of(i), first_unit + unit_of(i));
      const CellState state = states[index_of(i)];
      if (tensors.y_h != nullptr) store(tensors.y_h, at, state.h);
      if (tensors.y_c != nullptr) store(tensors.y_c, at, state.c);
    }
  }
};
