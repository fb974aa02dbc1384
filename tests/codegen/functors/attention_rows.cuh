// Functors written by hand for the merges of src/device/attention, on a GPU and on the host.
#pragma once

// `rows` rows for each other coordinate, of `columns` columns without padding.
struct OutputRows {
  struct Row {
    long long number, other, line;
  };
  float* y;
  long long rows;
  int columns;
  __device__ Row row_of(long long other, long long line) const {
    return {other * rows + line, other, line};
  }
  // Adds to zeros, so that an element that is written twice is wrong.
  __device__ void put(float value, const Row& row, int column, bool exists) const {
    if (exists && column < columns) y[row.number * columns + column] += value;
  }
};

// Σ exp(s - m) v / Σ exp(s - m) with the maximum m.
template <int Columns>
struct Softmax : OutputRows {
  static constexpr int kColumns = Columns, kScalars = 2;
  static constexpr float kLeast = -1e30f;
  struct State {
    float most, sum;
  };
  struct Tail {
    float inverse;
  };
  __device__ static float scale(const State& from, const State& to) {
    return expf(from.most - to.most);
  }
  __device__ State identity(const Row&) const { return {kLeast, 0}; }
  __device__ void add(Scalar<0>, State& to, const State& part, const Row&) const {
    to.most = fmaxf(to.most, part.most);
  }
  __device__ void add(Scalar<1>, State& to, const State& part, const Row&) const {
    to.sum += part.sum * scale(part, to);
  }
  template <int I>
  __device__ void settle(Scalar<I>, State&, const Row&) const {}
  template <int N>
  __device__ void move(float (&values)[N], const State& from, const State& to, const Row&) const {
    for (int e = 0; e < N; ++e) values[e] *= scale(from, to);
  }
  __device__ Tail finish(const State& s, const Row&) const { return {1 / s.sum}; }
  template <int N>
  __device__ void write(const float (&values)[N], const State&, const Row& row, const Tail& tail,
                        int first, bool exists) const {
    for (int e = 0; e < N; ++e) this->put(values[e] * tail.inverse, row, first + e, exists);
  }
};

// Σ v / sqrt(Σ (s - mean)²): the squares are moved to the merged mean, which the count and the sum
// of the scores determine.
template <int Columns>
struct Deviation : OutputRows {
  static constexpr int kColumns = Columns, kScalars = 3;
  struct State {
    float sum, squares, mean;
    int count;
  };
  struct Tail {};
  __device__ State identity(const Row&) const { return {0, 0, 0, 0}; }
  __device__ void add(Scalar<0>, State& to, const State& part, const Row&) const {
    to.count += part.count;
  }
  __device__ void add(Scalar<1>, State& to, const State& part, const Row&) const {
    to.sum += part.sum;
  }
  __device__ void add(Scalar<2>, State& to, const State& part, const Row&) const {
    const float d = part.mean - to.mean;
    to.squares += part.squares + static_cast<float>(part.count) * d * d;
  }
  template <int I>
  __device__ void settle(Scalar<I>, State& to, const Row&) const {
    if (I == 1) to.mean = to.count > 0 ? to.sum / static_cast<float>(to.count) : 0;
  }
  template <int N>
  __device__ void move(float (&)[N], const State&, const State&, const Row&) const {}
  __device__ Tail finish(const State&, const Row&) const { return {}; }
  template <int N>
  __device__ void write(const float (&values)[N], const State& s, const Row& row, const Tail&,
                        int first, bool exists) const {
    for (int e = 0; e < N; ++e) {
      this->put(values[e] / sqrtf(s.squares), row, first + e, exists);
    }
  }
};
