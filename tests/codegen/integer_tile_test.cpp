// The template of integer products, src/device/product/integer_product.cuh, on the host: a thread
// for each of the device's, and instructions of warps by what the PTX ISA says of their fragments.
// Copies arrive as late as their waits allow.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace host_warps {

struct Dim {
  unsigned x;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct int4 {
  int x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
template <typename T>
T min(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T max(T a, T b) {
  return std::max(a, b);
}

struct Warp {
  std::barrier<> meeting{32};
  unsigned words[32][6] = {};  // what a lane gives to an instruction
};
struct Block {
  Block(int warps, size_t bytes)
      : meeting(warps * 32), warps(new Warp[warps]), bytes(bytes, '\xa5') {}
  char* memory() {
    auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (127 - (address + 127) % 128);
  }
  std::barrier<> meeting;
  std::unique_ptr<Warp[]> warps;
  std::vector<char> bytes;
};
struct Copy {
  char* to;
  const void* from;
  int bytes, width;
};

// Of a thread.
thread_local Dim threadIdx, blockIdx;
thread_local Block* own = nullptr;
thread_local std::vector<std::unique_ptr<Block>>* cluster = nullptr;
thread_local std::barrier<>* cluster_meeting = nullptr;
thread_local std::deque<std::vector<Copy>> copies;
std::atomic<int> conflicts{0}, misaligned{0};

inline unsigned lane() { return threadIdx.x % 32; }
inline Warp& warp() { return own->warps[threadIdx.x / 32]; }
inline void __syncthreads() { own->meeting.arrive_and_wait(); }
inline unsigned ptx_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const char*>(p) - own->memory());
}

inline void ptx_copy_async_part(void* to, const void* from, int bytes, int width = 16) {
  misaligned += reinterpret_cast<uintptr_t>(from) % static_cast<unsigned>(width) != 0;
  if (copies.empty()) copies.emplace_back();
  copies.back().push_back({static_cast<char*>(to), from, bytes, width});
}
template <int Width>
void ptx_copy_async_narrow(void* to, const void* from, int bytes) {
  ptx_copy_async_part(to, from, bytes, Width);
}
inline void ptx_copy_commit() { copies.emplace_back(); }
template <int Pending>
void ptx_copy_wait() {
  // The last group is the one that is not committed.
  while (copies.size() > Pending + 1) {
    for (const Copy& copy : copies.front()) {
      std::memset(copy.to, 0, static_cast<size_t>(copy.width));
      std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
    }
    copies.pop_front();
  }
}

// What a lane gives is seen by all lanes of the warp during `use`.
template <typename Use>
void exchange(const std::vector<unsigned>& words, Use use) {
  std::copy(words.begin(), words.end(), warp().words[lane()]);
  warp().meeting.arrive_and_wait();
  use(warp().words);
  warp().meeting.arrive_and_wait();
}

inline unsigned byte_at(unsigned address) {
  return static_cast<unsigned char>(own->memory()[address]);
}
inline unsigned pair_at(unsigned address) { return byte_at(address) | byte_at(address + 1) << 8; }

inline void note_conflicts(const unsigned (&words)[32][6]) {
  for (unsigned matrix = 0; matrix < 4 && lane() == 0; ++matrix) {
    unsigned banks = 0;
    for (unsigned row = 0; row < 8; ++row) banks |= 1u << (words[matrix * 8 + row][0] / 16 % 8);
    conflicts += banks != 0xff;
  }
}

template <bool Transposed>
void load_matrices(unsigned (&r)[4], unsigned address) {
  exchange({address}, [&](const unsigned(&words)[32][6]) {
    note_conflicts(words);
    for (unsigned i = 0; i < 4; ++i) {
      const auto element = [&](unsigned row, unsigned column) {
        return pair_at(words[i * 8 + row][0] + column * 2);
      };
      const unsigned major = lane() / 4, minor = lane() % 4 * 2;
      r[i] = Transposed ? element(minor, major) | element(minor + 1, major) << 16
                        : element(major, minor) | element(major, minor + 1) << 16;
    }
  });
}
inline void ptx_load_matrix(unsigned (&r)[4], unsigned address) {
  load_matrices<false>(r, address);
}
inline void ptx_load_matrix_transposed(unsigned (&r)[4], unsigned address) {
  load_matrices<true>(r, address);
}

template <typename T>
int byte_of(unsigned word, unsigned i) {
  return static_cast<T>(word >> (i * 8));
}

template <typename A, typename B>
struct IntegerMma {
  static void add(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    exchange({a[0], a[1], a[2], a[3], b0, b1}, [&](const unsigned(&words)[32][6]) {
      for (unsigned x = 0; x < 4; ++x) {
        const unsigned row = lane() / 4, half = x / 2, column = lane() % 4 * 2 + x % 2;
        auto sum = static_cast<unsigned>(c[x]);
        for (unsigned k = 0; k < 32; ++k) {
          const unsigned from = k % 16 / 4, upper = k / 16;
          const int left = byte_of<A>(words[row * 4 + from][upper * 2 + half], k % 4);
          const int right = byte_of<B>(words[column * 4 + from][4 + upper], k % 4);
          sum += static_cast<unsigned>(left * right);
        }
        c[x] = static_cast<int>(sum);
      }
    });
  }
};

inline int __shfl_xor_sync(unsigned, int value, int mask) {
  int result = 0;
  exchange({static_cast<unsigned>(value)}, [&](const unsigned(&words)[32][6]) {
    result = static_cast<int>(words[lane() ^ static_cast<unsigned>(mask)][0]);
  });
  return result;
}
inline int __dp4a(int word, int, int sum) {
  for (unsigned i = 0; i < 4; ++i) sum += byte_of<signed char>(static_cast<unsigned>(word), i);
  return sum;
}
inline unsigned __dp4a(unsigned word, unsigned, unsigned sum) {
  for (unsigned i = 0; i < 4; ++i) sum += static_cast<unsigned>(byte_of<unsigned char>(word, i));
  return sum;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = x | static_cast<unsigned long long>(y) << 32;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(both >> ((selector >> (i * 4) & 7) * 8) & 0xff) << (i * 8);
  }
  return result;
}
inline void atomicAdd(int* to, int value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }

inline void ptx_cluster_arrive() {}
inline void ptx_cluster_wait() { cluster_meeting->arrive_and_wait(); }
// The rank in the upper bits.
inline unsigned ptx_map_shared(unsigned address, unsigned rank) { return address | rank << 24; }
inline int ptx_load_cluster_int(unsigned address) {
  int value = 0;
  std::memcpy(&value, (*cluster)[address >> 24]->memory() + (address & 0xffffff), sizeof value);
  return value;
}

#define __device__
#define __forceinline__ inline
#define __CUDA_ARCH__ 900
#include "device/product/integer_product.cuh"
#undef __CUDA_ARCH__
#undef __forceinline__
#undef __device__

}  // namespace host_warps

namespace redfuser::codegen_tests {
namespace {

using namespace host_warps;

struct Sizes {
  int m, n, k;
};

template <typename T>
std::vector<T> bytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> result(count + 16);
  for (T& each : result) each = static_cast<T>(random());
  return result;
}

// The product of one b after the other, with zero points of a's rows and of b's columns.
template <typename Tile>
class Run {
 public:
  static constexpr int kProducts = Tile::Products;

  explicit Run(const Sizes& sizes)
      : sizes_(sizes), a_(bytes<typename Tile::A>(static_cast<size_t>(sizes.m) * sizes.k, 1)) {
    const size_t size = static_cast<size_t>(sizes.k) * sizes.n;
    for (int p = 0; p < kProducts; ++p) b_.push_back(bytes<typename Tile::B>(size, 2u + p));
    results_.assign(static_cast<size_t>(kProducts) * sizes.m * sizes.n, 0);
    written_.assign(results_.size(), 0);
  }

  void expect_exact() {
    const int rows = (sizes_.m + Tile::Rows - 1) / Tile::Rows;
    const int columns = (sizes_.n + Tile::Columns - 1) / Tile::Columns;
    for (int tile = 0; tile < rows * columns; ++tile) run(tile, rows, columns);
    for (int p = 0; p < kProducts; ++p) {
      for (int i = 0; i < sizes_.m; ++i) {
        for (int j = 0; j < sizes_.n; ++j) {
          ASSERT_EQ(written_[at(p, i, j)], 1);
          ASSERT_EQ(results_[at(p, i, j)], expected(p, i, j)) << p << " " << i << " " << j;
        }
      }
    }
  }

 private:
  static int a_zero(int row) { return Tile::SumB ? row * 37 % 200 - 50 : 0; }
  static int b_zero(int column) { return Tile::SumA ? column * 53 % 190 - 60 : 0; }
  size_t at(int p, int64_t i, int64_t j) const {
    return static_cast<size_t>((p * sizes_.m + i) * sizes_.n + j);
  }

  int expected(int p, int i, int j) const {
    int sum = 0;
    for (int k = 0; k < sizes_.k; ++k) {
      const int a = a_[Tile::AlongA ? i * sizes_.k + k : k * sizes_.m + i];
      const int b = b_[p][Tile::AlongB ? j * sizes_.k + k : k * sizes_.n + j];
      sum += (a - a_zero(i)) * (b - b_zero(j));
    }
    return sum;
  }

  void run(int tile, int rows, int columns) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (int i = 0; i < Tile::Blocks; ++i) {
      const size_t lines = Tile::Rows + kProducts * Tile::Columns;
      blocks.push_back(std::make_unique<Block>(Tile::Warps, Tile::DataBytes + lines * 4 + 128));
    }
    std::barrier<> all(Tile::Blocks * Tile::Threads);
    std::vector<std::thread> threads;
    for (int i = 0; i < Tile::Blocks * Tile::Threads; ++i) {
      threads.emplace_back([&, i] {
        threadIdx.x = i % Tile::Threads;
        blockIdx.x = tile * Tile::Blocks + i / Tile::Threads;
        own = blocks[i / Tile::Threads].get();
        cluster = &blocks;
        cluster_meeting = &all;
        thread(rows, columns);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void thread(int rows, int columns) {
    const IntegerPlace place = place_integer_tile<Tile>(rows, columns);
    const auto& [m, n, k] = sizes_;
    const auto a =
        integer_matrix<Tile::AlongA>(a_.data(), Tile::AlongA ? k : 1, Tile::AlongA ? 1 : m);
    IntegerMatrix<typename Tile::B> b[kProducts];
    for (int p = 0; p < kProducts; ++p) {
      b[p] = integer_matrix<Tile::AlongB>(b_[p].data(), Tile::AlongB ? k : 1, Tile::AlongB ? 1 : n);
    }
    IntegerProduct<Tile> product(own->memory(), a, b, place, m, n, k);
    product.multiply();
    product.finish([&](long long column, const typename IntegerProduct<Tile>::Lines& lines) {
      lines.each([&](long long row, const IntegerSums<kProducts>& sums) {
        const int i = static_cast<int>(row), j = static_cast<int>(column);
        for (int p = 0; p < kProducts; ++p) {
          results_[at(p, i, j)] = sums.of(p, a_zero(i), b_zero(j), sizes_.k);
          __atomic_fetch_add(&written_[at(p, i, j)], 1, __ATOMIC_RELAXED);
        }
      });
    });
  }

  Sizes sizes_;
  std::vector<typename Tile::A> a_;
  std::vector<std::vector<typename Tile::B>> b_;
  std::vector<int> results_, written_;
};

using s8 = signed char;
using u8 = unsigned char;

template <typename Tile>
void expect_exact(const std::vector<Sizes>& all) {
  for (const Sizes& sizes : all) {
    SCOPED_TRACE(fmt::format("{} {} {}", sizes.m, sizes.n, sizes.k));
    Run<Tile>(sizes).expect_exact();
  }
  EXPECT_EQ(conflicts, 0);
  EXPECT_EQ(misaligned, 0);
}

TEST(IntegerTile, TakesEveryLayout) {
  const std::vector<Sizes> sizes = {{48, 80, 208}, {37, 43, 71}, {40, 44, 100}};
  expect_exact<IntegerTile<u8, s8, true, false, true, true, 1, 32, 32, 2, 1, 1, 64, 3, 1>>(sizes);
  expect_exact<IntegerTile<s8, u8, true, true, true, true, 1, 32, 32, 1, 2, 1, 64, 2, 1>>(sizes);
  expect_exact<IntegerTile<u8, u8, false, false, true, true, 1, 32, 64, 1, 2, 1, 64, 4, 1>>(sizes);
  expect_exact<IntegerTile<s8, s8, false, true, true, true, 1, 64, 32, 2, 1, 1, 64, 2, 1>>(sizes);
}

TEST(IntegerTile, WarpsAndBlocksDivideTheContractedAxis) {
  const std::vector<Sizes> sizes = {{1, 65, 641}, {16, 96, 272}};
  expect_exact<IntegerTile<u8, s8, true, false, false, true, 1, 16, 64, 1, 1, 4, 128, 4, 1>>(sizes);
  expect_exact<IntegerTile<s8, s8, true, true, true, false, 1, 16, 32, 1, 1, 2, 64, 2, 4>>(sizes);
}

TEST(IntegerTile, HasSeveralProducts) {
  expect_exact<IntegerTile<u8, s8, true, false, true, true, 2, 16, 32, 1, 2, 1, 64, 2, 2>>(
      {{16, 48, 96}});
}

}  // namespace
}  // namespace redfuser::codegen_tests
