// Recurrent layers, src/device/recurrent, on the host: a thread for each of the device's, of all
// blocks of a cluster. Results are those of the operators' equations in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace host_layers {

struct Dim {
  unsigned x;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int min(int a, int b) { return std::min(a, b); }

// A barrier that counts arrivals and bytes.
struct ByteBarrier {
  std::mutex mutex;
  int arrivals = 0, pending = 0, bytes = 0;
  unsigned phase = 0;

  void change(int arrived, int more) {
    const std::lock_guard lock(mutex);
    pending -= arrived;
    bytes += more;
    if (pending != 0 || bytes != 0) return;
    pending = arrivals;
    ++phase;
  }
  bool passed(unsigned parity) {
    const std::lock_guard lock(mutex);
    return (phase & 1) != parity;
  }
};

struct Block {
  explicit Block(int bytes, int threads, int warps) : memory(bytes + 16, '\xa5'), meeting(threads) {
    for (int i = 0; i < warps; ++i) warp_meetings.push_back(std::make_unique<std::barrier<>>(32));
    operands.resize(static_cast<size_t>(threads));
  }
  char* shared() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (15 - (address + 15) % 16);
  }
  std::vector<char> memory;
  std::barrier<> meeting;
  std::vector<std::unique_ptr<std::barrier<>>> warp_meetings;
  struct Operands {
    unsigned a[4], b[2];
  };
  std::vector<Operands> operands;  // of a product of tensor cores, by thread
  ByteBarrier barriers[2];
  unsigned first_barrier = 0;
};

// Of a thread.
thread_local Dim threadIdx, blockIdx;
thread_local Block* own_block = nullptr;
thread_local unsigned own_rank = 0;
thread_local std::vector<std::unique_ptr<Block>>* cluster = nullptr;
thread_local std::barrier<>* cluster_meeting = nullptr;

inline void __syncthreads() { own_block->meeting.arrive_and_wait(); }
inline unsigned ptx_cluster_rank() { return own_rank; }
inline void ptx_cluster_arrive() {}
inline void ptx_cluster_wait() { cluster_meeting->arrive_and_wait(); }
inline unsigned ptx_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const char*>(p) - own_block->shared());
}
// The rank in the upper bits, above that of any address.
inline unsigned ptx_map_shared(unsigned address, unsigned rank) {
  return address | (rank + 1) << 24;
}
inline Block& block_at(unsigned address) {
  return address >> 24 == 0 ? *own_block : *(*cluster)[(address >> 24) - 1];
}
inline ByteBarrier& barrier_at(unsigned address) {
  Block& block = block_at(address);
  return block.barriers[(address & 0xffffff) == block.first_barrier ? 0 : 1];
}
inline void ptx_barrier_init(unsigned address, int arrivals) {
  if (address < own_block->first_barrier || own_block->first_barrier == 0) {
    own_block->first_barrier = address;
  }
  ByteBarrier& barrier = barrier_at(address);
  barrier.arrivals = barrier.pending = arrivals;
}
inline void ptx_barrier_init_fence() {}
inline void ptx_barrier_expect(unsigned address, int bytes) {
  barrier_at(address).change(1, bytes);
}
inline bool ptx_barrier_try_wait(unsigned address, unsigned parity) {
  if (barrier_at(address).passed(parity)) return true;
  std::this_thread::yield();
  return false;
}
inline void ptx_store_async(unsigned to, uint4 bits, unsigned barrier) {
  std::memcpy(block_at(to).shared() + (to & 0xffffff), &bits, sizeof bits);
  barrier_at(barrier).change(0, -16);
}
inline void ptx_prefetch(const void*) {}
inline void ptx_count_release(unsigned* counter) {
  std::atomic_ref<unsigned>(*counter).fetch_add(1, std::memory_order_release);
}
inline unsigned ptx_load_acquire(const unsigned* counter) {
  std::this_thread::yield();
  return std::atomic_ref<unsigned>(*const_cast<unsigned*>(counter)).load(std::memory_order_acquire);
}
inline uint4 ptx_load_global(const void* from) { return *static_cast<const uint4*>(from); }
inline unsigned ptx_count(unsigned* counter, unsigned most) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const unsigned before = *counter;
  *counter = before == most ? 0 : before + 1;
  return before;
}

inline float half_value(unsigned bits) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}
inline float ptx_half_to_float(unsigned short bits) { return half_value(bits); }
inline unsigned short ptx_float_to_half(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}
inline unsigned short ptx_float_to_bfloat(float value) {
  return static_cast<unsigned short>(std::bit_cast<unsigned>(value) >> 16);
}
inline float ptx_exp2(float x) { return std::exp2(x); }
inline float ptx_reciprocal(float x) { return 1 / x; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }

// mma.m16n8k16: lane 4 g + q has a of rows g and g + 8, b of column g, and c of columns 2 q.
inline void ptx_mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Block::Operands* all = own_block->operands.data() + warp * 32;
  all[lane] = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  own_block->warp_meetings[warp]->arrive_and_wait();
  const auto half = [](unsigned word, unsigned which) { return half_value(word >> 16 * which); };
  for (unsigned x = 0; x < 4; ++x) {
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned lane_of_k = k % 8 / 2, word = k / 8;
      const auto& row = all[lane / 4 * 4 + lane_of_k];
      const auto& column = all[(lane % 4 * 2 + x % 2) * 4 + lane_of_k];
      c[x] += half(row.a[word * 2 + x / 2], k % 2) * half(column.b[word], k % 2);
    }
  }
  own_block->warp_meetings[warp]->arrive_and_wait();
}
inline void ptx_mma_bfloat(float (&)[4], const unsigned (&)[4], unsigned, unsigned) {}
template <typename T>
T __ldg(const T* from) {
  return *from;
}

#define __device__
#define __host__
#define __forceinline__ inline
#define __CUDA_ARCH__ 900
#include "device/recurrent/layer.cuh"
#undef __CUDA_ARCH__
#undef __forceinline__
#undef __host__
#undef __device__

}  // namespace host_layers

namespace redfuser::codegen_tests {
namespace {

using namespace host_layers;

struct Gates {
  static constexpr bool kBias = true, kPeepholes = true, kCoupled = false;
  using A = Activation<false>;
  int direction;
  float f(float x) const { return direction == 0 ? A::sigmoid(x) : A::hard_sigmoid(x, 0.3f, 0.4f); }
  float g(float x) const { return A::tanh(clipped(x, 0.9f)); }
  float h(float x) const { return A::softsign(x); }
};

struct ExactGates {
  int direction;
  double f(double x) const {
    return direction == 0 ? 1 / (1 + std::exp(-x)) : std::clamp(0.3 * x + 0.4, 0.0, 1.0);
  }
  double g(double x) const { return std::tanh(std::clamp(x, -0.9, 0.9)); }
  double h(double x) const { return x / (1 + std::abs(x)); }
};

template <typename T>
T narrow(double value) {
  return Element<T>::put(static_cast<float>(value));
}
template <typename T>
double wide(T value) {
  return Element<T>::get(value);
}

// Random tensors of a layer of two directions, and its results by the equations.
template <typename Config>
class Layer {
 public:
  using T = typename Config::Element;
  static constexpr int64_t kHidden = Config::kHidden, kGates = Config::kGates;
  static constexpr int64_t kRows = kGates * kHidden;

  Layer(int64_t steps, int64_t batch, bool vector)
      : steps_(steps), batch_(batch), vector_(vector), lengths_(static_cast<size_t>(batch)) {
    if constexpr (Config::kGrid) {
      shared_.resize(static_cast<size_t>(2 * batch * Config::Exchange::kShared));
    }
    x_ = floats(steps * batch * 2 * kRows, 1);
    draw(r_, 2 * kRows * kHidden, 1.5 / std::sqrt(kHidden));
    draw(bias_, 2 * 2 * kRows, 0.3);
    draw(h_, 2 * batch * kHidden, 0.5);
    draw(c_, 2 * batch * kHidden, 0.5);
    draw(peepholes_, 2 * 3 * kHidden, 0.3);
    for (int64_t b = 0; b < batch; ++b) {
      lengths_[static_cast<size_t>(b)] = static_cast<int>(std::max<int64_t>(0, steps - b * 2));
    }
    for (auto* result : {&y_, &y_h_, &y_c_}) {
      result->resize(static_cast<size_t>((result == &y_ ? steps : 1) * 2 * batch * kHidden));
    }
  }

  LayerTensors<T> tensors() {
    const bool cells = Config::kCell == Cell::kLstm;
    return {x_.data(),
            r_.data(),
            bias_.data(),
            h_.data(),
            cells ? c_.data() : nullptr,
            cells ? peepholes_.data() : nullptr,
            lengths_.data(),
            y_.data(),
            y_h_.data(),
            cells ? y_c_.data() : nullptr,
            steps_,
            batch_,
            false,
            vector_,
            batch_ * 2 * kRows,
            2 * kRows,
            2 * batch_ * kHidden,
            kHidden,
            batch_ * kHidden,
            kHidden,
            batch_ * kHidden,
            shared_.data(),
            counters_.data()};
  }

  void check(double tolerance) const {
    EXPECT_EQ(counters_, std::vector<unsigned>(counters_.size()));
    for (int direction = 0; direction < 2; ++direction) {
      for (int64_t b = 0; b < batch_; ++b) check(direction, b, tolerance);
    }
  }

 private:
  std::vector<float> floats(int64_t count, double deviation) {
    std::normal_distribution<double> normal(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(normal(random_));
    return values;
  }
  void draw(std::vector<T>& to, int64_t count, double deviation) {
    for (const float value : floats(count, deviation)) to.push_back(narrow<T>(value));
  }
  static double at(const std::vector<T>& values, int64_t index) {
    return wide(values[static_cast<size_t>(index)]);
  }

  void check(int direction, int64_t b, double tolerance) const {
    const int64_t state = (direction * batch_ + b) * kHidden;
    std::vector<double> h, c;
    for (int64_t u = 0; u < kHidden; ++u) {
      h.push_back(at(h_, state + u));
      c.push_back(at(c_, state + u));
    }
    const int64_t length = lengths_[static_cast<size_t>(b)];
    for (int64_t step = 0; step < steps_; ++step) {
      const int64_t t = direction == 1 && step < length ? length - 1 - step : step;
      if (step < length) advance(direction, b, t, h, c);
      for (int64_t u = 0; u < kHidden; ++u) {
        const double y = at(y_, ((t * 2 + direction) * batch_ + b) * kHidden + u);
        const double expected = step < length ? h[static_cast<size_t>(u)] : 0;
        ASSERT_NEAR(y, expected, tolerance) << "step " << step << ", sequence " << b << ", unit "
                                            << u << ", direction " << direction;
      }
    }
    for (int64_t u = 0; u < kHidden; ++u) {
      ASSERT_NEAR(at(y_h_, state + u), h[static_cast<size_t>(u)], tolerance);
      if (Config::kCell != Cell::kLstm) continue;
      ASSERT_NEAR(at(y_c_, state + u), c[static_cast<size_t>(u)], tolerance);
    }
  }

  // Σ_k R[gate, u, k] · of[k].
  double product(int direction, int64_t gate, int64_t u, const std::vector<double>& of) const {
    double sum = 0;
    for (int64_t k = 0; k < kHidden; ++k) {
      sum += at(r_, ((direction * kGates + gate) * kHidden + u) * kHidden + k) *
             of[static_cast<size_t>(k)];
    }
    return sum;
  }

  void advance(int direction, int64_t b, int64_t t, std::vector<double>& h,
               std::vector<double>& c) const {
    const ExactGates gates{direction};
    const auto w_bias = [&](int64_t gate, int64_t u) {
      return at(bias_, direction * 2 * kRows + gate * kHidden + u);
    };
    const auto r_bias = [&](int64_t gate, int64_t u) {
      return at(bias_, (direction * 2 + 1) * kRows + gate * kHidden + u);
    };
    const auto input = [&](int64_t gate, int64_t u) {
      return x_[static_cast<size_t>(((t * batch_ + b) * 2 + direction) * kRows + gate * kHidden +
                                    u)] +
             w_bias(gate, u);
    };
    const auto sum = [&](int64_t gate, int64_t u) {
      return input(gate, u) + r_bias(gate, u) + product(direction, gate, u, h);
    };
    const auto peephole = [&](int64_t which, int64_t u) {
      return at(peepholes_, (direction * 3 + which) * kHidden + u);
    };
    std::vector<double> next(h.size()), reset(h.size());
    for (int64_t u = 0; u < kHidden; ++u) {
      const auto i = static_cast<size_t>(u);
      if constexpr (Config::kCell == Cell::kGru) {
        reset[i] = gates.f(sum(1, u)) * (Config::kLinear ? 1 : h[i]);
      }
    }
    for (int64_t u = 0; u < kHidden; ++u) {
      const auto i = static_cast<size_t>(u);
      if constexpr (Config::kCell == Cell::kRnn) {
        next[i] = gates.f(sum(0, u));
      } else if constexpr (Config::kCell == Cell::kLstm) {
        const double in = gates.f(sum(0, u) + peephole(0, u) * c[i]);
        const double forget = gates.f(sum(2, u) + peephole(2, u) * c[i]);
        c[i] = forget * c[i] + in * gates.g(sum(3, u));
        next[i] = gates.f(sum(1, u) + peephole(1, u) * c[i]) * gates.h(c[i]);
      } else {
        const double z = gates.f(sum(0, u));
        const double inner = Config::kLinear
                                 ? reset[i] * (product(direction, 2, u, h) + r_bias(2, u))
                                 : product(direction, 2, u, reset) + r_bias(2, u);
        next[i] = (1 - z) * gates.g(input(2, u) + inner) + z * h[i];
      }
    }
    h = next;
  }

  std::mt19937 random_{31};
  int64_t steps_, batch_;
  bool vector_;
  std::vector<float> x_;
  std::vector<int> lengths_;
  std::vector<unsigned> counters_ = std::vector<unsigned>(4096);
  std::vector<T> r_, bias_, h_, c_, peepholes_, y_, y_h_, y_c_, shared_;
};

template <typename Config>
void expect_layer(int64_t steps, int64_t batch, double tolerance) {
  constexpr int kWidth = 16 / sizeof(typename Config::Element), kTeam = Config::kTeam;
  Layer<Config> layer(steps, batch, Config::kHidden % kWidth == 0);
  const LayerTensors<typename Config::Element> tensors = layer.tensors();
  const int teams = static_cast<int>(2 * ((batch + Config::kBatch - 1) / Config::kBatch));
  for (int team = 0; team < teams; ++team) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (int rank = 0; rank < kTeam; ++rank) {
      blocks.push_back(std::make_unique<Block>(Config::kBytes, Config::kThreads, Config::kWarps));
    }
    std::barrier<> meeting(kTeam * Config::kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kTeam * Config::kThreads; ++i) {
      threads.emplace_back([&, i] {
        own_rank = static_cast<unsigned>(i / Config::kThreads);
        own_block = blocks[own_rank].get();
        cluster = &blocks;
        cluster_meeting = &meeting;
        threadIdx.x = static_cast<unsigned>(i % Config::kThreads);
        blockIdx.x = static_cast<unsigned>(team * kTeam) + own_rank;
        LayerRun<Config, Gates>(tensors, own_block->shared()).run();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  layer.check(tolerance);
}

// Cell, linear, units, units of a block, blocks, sequences, held and resident tiles,
// through memory.
template <Cell Kind, bool Linear, int Hidden, int Units, int Team, int Batch, int Held,
          int Resident, bool Grid = false>
using Floats =
    LayerConfig<float, Kind, Linear, Hidden, Units, Team, Batch, 2, Held, Resident, Grid>;
template <Cell Kind, bool Linear, int Hidden, int Units, int Team, int Batch, int Held,
          int Resident, bool Grid = false>
using Halves =
    LayerConfig<half_t, Kind, Linear, Hidden, Units, Team, Batch, 2, Held, Resident, Grid>;

TEST(RecurrentLayer, OfFloatsAgreesWithDoublePrecision) {
  expect_layer<Floats<Cell::kLstm, false, 24, 16, 2, 8, 0, 99>>(7, 3, 1e-5);
  expect_layer<Floats<Cell::kLstm, false, 50, 16, 4, 8, 0, 2>>(4, 9, 1e-5);
  expect_layer<Floats<Cell::kGru, false, 40, 24, 2, 8, 0, 99>>(6, 5, 1e-5);
  expect_layer<Floats<Cell::kGru, true, 37, 40, 1, 16, 0, 0>>(5, 12, 1e-5);
  expect_layer<Floats<Cell::kRnn, false, 17, 8, 4, 8, 0, 2>>(9, 2, 1e-5);
  expect_layer<Floats<Cell::kLstm, false, 16, 16, 1, 8, 0, 99>>(0, 2, 1e-5);
  expect_layer<Floats<Cell::kLstm, false, 50, 16, 4, 8, 1, 2>>(4, 3, 1e-5);
  expect_layer<Floats<Cell::kLstm, false, 50, 16, 4, 8, 1, 2, true>>(6, 9, 1e-5);
  expect_layer<Floats<Cell::kGru, false, 40, 24, 2, 8, 9, 0>>(4, 5, 1e-5);
}

TEST(RecurrentLayer, OfHalvesAgreesWithDoublePrecision) {
  expect_layer<Halves<Cell::kLstm, false, 48, 24, 2, 8, 0, 99>>(5, 3, 4e-3);
  expect_layer<Halves<Cell::kGru, false, 70, 40, 2, 16, 0, 2>>(4, 11, 4e-3);
  expect_layer<Halves<Cell::kGru, true, 40, 40, 1, 8, 0, 0>>(4, 5, 4e-3);
  expect_layer<Halves<Cell::kRnn, false, 33, 16, 4, 8, 0, 0>>(6, 4, 4e-3);
  expect_layer<Halves<Cell::kRnn, false, 33, 16, 4, 8, 2, 0>>(6, 4, 4e-3);
  expect_layer<Halves<Cell::kGru, false, 70, 16, 8, 8, 1, 99>>(4, 3, 4e-3);
  expect_layer<Halves<Cell::kLstm, false, 100, 8, 16, 8, 1, 2>>(3, 3, 4e-3);
  expect_layer<Halves<Cell::kGru, false, 50, 8, 7, 8, 1, 2, true>>(5, 3, 4e-3);
}

}  // namespace
}  // namespace redfuser::codegen_tests
