#include "cpu/recurrent/layer.h"

#include <algorithm>
#include <functional>

#include "cpu/recurrent/byte_matrix.h"
#include "cpu/recurrent/chain.h"
#include "cpu/recurrent/float_matrix.h"

namespace redfuser::cpu {
namespace {

// In multiplications: below it a loop is not worth its threads; above it, with one sequence, a step
// is.
constexpr int64_t kLoopWork = 1 << 15, kStepWork = 1 << 17;
// Of a state's weights: up to the first, threads that each read them all are faster than threads
// that share each step. Up to the second, they stay in a core's second-level cache.
constexpr int64_t kSharedBytes = 1 << 18, kCoreBytes = 3 << 19;
// Elements of the products with the input that are held at a time, and their least rows.
constexpr int64_t kHeldSums = 1 << 18, kLeastRows = 96;

template <typename Matrix>
class LayerRun {
 public:
  using T = typename Matrix::Element;

  LayerRun(const RecurrentShape& shape, const LayerWeights<Matrix>& weights,
           const LayerTensors<T>& tensors, ThreadPool& pool)
      : shape_(shape), pool_(pool) {
    for (const int64_t length : tensors.lengths) steps_ = std::max(steps_, length);
    const int64_t groups = divide();
    for (int64_t d = 0; d < shape.directions; ++d) {
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t first = shape.batch * group / groups;
        const int64_t last = shape.batch * (group + 1) / groups;
        chains_.emplace_back(shape, weights, tensors, d, first, last - first);
      }
    }
  }

  void run() {
    const int64_t columns = std::max<int64_t>(1, shape_.gates() * shape_.hidden);
    const int64_t rows = std::clamp<int64_t>(kHeldSums / columns, kLeastRows, 4096);
    const int64_t held = std::max<int64_t>(1, rows / std::max<int64_t>(1, shape_.batch));
    for (int64_t begin = 0; begin < steps_; begin += held) {
      const int64_t steps = std::min(held, steps_ - begin);
      project(begin, steps);
      const int64_t chains = in_turn_ ? 1 : size();
      if (by_steps_) {
        for (int64_t first = 0; first < size(); first += chains) {
          for (int64_t step = begin; step < begin + steps; ++step) together(first, chains, step);
        }
      } else {
        each(size(), work(shape_.batch * steps, shape_.hidden), [&](int64_t task) {
          for (int64_t step = begin; step < begin + steps; ++step) alone(chain(task), step);
        });
      }
    }
  }

 private:
  int64_t size() const { return static_cast<int64_t>(chains_.size()); }
  Chain<Matrix>& chain(int64_t i) { return chains_[static_cast<size_t>(i)]; }
  // Of all directions, for rows of `depth`.
  int64_t work(int64_t rows, int64_t depth) const {
    return shape_.directions * rows * depth * shape_.gates() * shape_.hidden;
  }

  // The number of groups of sequences; decides whether the threads share each step, and whether all
  // of them take one direction after the other.
  int64_t divide() {
    const int64_t threads = pool_.size(), chains = shape_.directions;
    const int64_t weights = shape_.gates() * shape_.hidden * shape_.hidden;
    const int64_t bytes = weights * Matrix::kElementBytes;
    if (threads > 1 && chains > 1 && shape_.blocks() > 1 && bytes * chains > kCoreBytes * threads) {
      by_steps_ = in_turn_ = true;
      return 1;
    }
    if (chains >= threads || shape_.blocks() == 0) return 1;
    const int64_t groups = std::min(shape_.batch, (threads + chains - 1) / chains);
    const bool kept = bytes <= kSharedBytes;
    by_steps_ = shape_.blocks() > 1 && weights * shape_.batch >= kStepWork &&
                (groups <= 1 || !kept || !Matrix::kRowsApart);
    return by_steps_ || !Matrix::kRowsApart ? 1 : std::max<int64_t>(1, groups);
  }

  void each(int64_t tasks, int64_t work, const std::function<void(int64_t)>& body) {
    if (tasks > 1 && work >= kLoopWork && pool_.size() > 1) {
      return pool_.parallel_for(tasks, [&](int64_t task, int) { body(task); });
    }
    for (int64_t task = 0; task < tasks; ++task) body(task);
  }

  void project(int64_t begin, int64_t steps) {
    const int64_t total = work(shape_.batch * steps, shape_.input), blocks = shape_.blocks();
    for (Chain<Matrix>& chain : chains_) chain.reserve(steps);
    each(size(), shape_.directions * shape_.batch * steps * shape_.input,
         [&](int64_t task) { chain(task).begin(begin, steps); });
    const int64_t tasks = size() * blocks;
    if (tasks == 0) return;
    const int64_t rows = chains_[0].count() * steps;
    const int64_t pieces = std::clamp<int64_t>((2 * pool_.size() + tasks - 1) / tasks, 1,
                                               std::max<int64_t>(1, rows / 24));
    each(tasks * pieces, total, [&](int64_t task) {
      Chain<Matrix>& of = chain(task / pieces / blocks);
      const int64_t all = of.count() * steps, piece = task % pieces;
      const int64_t first = all * piece / pieces, last = all * (piece + 1) / pieces;
      of.project(task / pieces % blocks, first, last - first);
    });
  }

  void alone(Chain<Matrix>& chain, int64_t step) const {
    const int64_t blocks = shape_.blocks();
    chain.prepare();
    for (int64_t block = 0; block < blocks; ++block) chain.advance(block, step);
    if (chain.two_phases()) {
      chain.prepare_second();
      for (int64_t block = 0; block < blocks; ++block) chain.advance_second(block, step);
    }
    chain.turn();
  }

  // A step of some chains by all threads, each of which takes neighbouring blocks.
  void together(int64_t first, int64_t count, int64_t step) {
    const std::span<Chain<Matrix>> chains(&chain(first), static_cast<size_t>(count));
    const int64_t blocks = shape_.blocks();
    const int64_t parts = std::min<int64_t>(blocks, (pool_.size() + count - 1) / count);
    const auto phase = [&](void (Chain<Matrix>::*advance)(int64_t, int64_t)) {
      pool_.parallel_for(count * parts, [&](int64_t task, int) {
        const int64_t part = task % parts;
        for (int64_t i = blocks * part / parts; i < blocks * (part + 1) / parts; ++i) {
          (chain(first + task / parts).*advance)(i, step);
        }
      });
    };
    for (Chain<Matrix>& chain : chains) chain.prepare();
    phase(&Chain<Matrix>::advance);
    if (chains[0].two_phases()) {
      for (Chain<Matrix>& chain : chains) chain.prepare_second();
      phase(&Chain<Matrix>::advance_second);
    }
    for (Chain<Matrix>& chain : chains) chain.turn();
  }

  const RecurrentShape& shape_;
  ThreadPool& pool_;
  int64_t steps_ = 0;
  bool by_steps_ = false, in_turn_ = false;
  std::vector<Chain<Matrix>> chains_;
};

}  // namespace

std::vector<int64_t> RecurrentShape::columns(int64_t block, int64_t first, int64_t last) const {
  std::vector<int64_t> result;
  for (int64_t gate = first; gate < last; ++gate) {
    for (int64_t unit = 0; unit < units(block); ++unit) {
      result.push_back(gate * hidden + block * kUnits + unit);
    }
  }
  return result;
}

template <typename Matrix>
void run_layer(const RecurrentShape& shape, const LayerWeights<Matrix>& weights,
               const LayerTensors<typename Matrix::Element>& tensors, ThreadPool& pool) {
  LayerRun<Matrix>(shape, weights, tensors, pool).run();
}

template void run_layer(const RecurrentShape&, const LayerWeights<ByteMatrix>&,
                        const LayerTensors<float>&, ThreadPool&);
template void run_layer(const RecurrentShape&, const LayerWeights<FloatMatrix<float>>&,
                        const LayerTensors<float>&, ThreadPool&);
template void run_layer(const RecurrentShape&, const LayerWeights<FloatMatrix<double>>&,
                        const LayerTensors<double>&, ThreadPool&);

}  // namespace redfuser::cpu
