#include "cpu/opaque/image/integers/vector_filters.h"

#include <algorithm>
#include <cstring>

#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kSums = 4096;   // of a block, which stay in the first-level cache
constexpr int64_t kVectors = 64;  // of a block
constexpr int64_t kTasks = 8;     // for each thread
constexpr int64_t kFilters = ByteVectorsArgs::kFilters;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The input, of which the first and the last planes are copied where the kernel reads beyond them.
class Planes {
 public:
  Planes(const Tensor& x, int64_t plane, const ChannelVectors& vectors)
      : x_(static_cast<const uint8_t*>(x.data())),
        bytes_(x.size()),
        plane_(plane),
        before_(vectors.before()),
        after_(vectors.after()) {}

  int64_t copy_bytes() const { return before_ + plane_ + after_; }
  // `copy`: memory of copy_bytes().
  const uint8_t* of(int64_t number, uint8_t* copy) const {
    const uint8_t* from = x_ + number * plane_;
    if (number * plane_ >= before_ && (number + 1) * plane_ + after_ <= bytes_) return from;
    std::memcpy(copy + before_, from, static_cast<size_t>(plane_));
    return copy + before_;
  }

 private:
  const uint8_t* x_;
  int64_t bytes_, plane_, before_, after_;
};

// Parts of a plane. Where it is large enough, each thread has the same part of all planes, as
// products of all channels have.
int64_t chunks_of(int64_t vectors, int threads) {
  constexpr int64_t kFewest = 6;
  const int64_t chunks = ceil_div(vectors, kVectors);
  return vectors < kFewest * threads ? chunks : ceil_div(chunks, threads) * threads;
}

bool is_same(const Window& a, const Window& b) {
  return a.input == b.input && a.output == b.output && a.pad_begin == b.pad_begin;
}

}  // namespace

VectorFilters::VectorFilters(const Tensor& w, std::span<const int64_t> zeros,
                             const TapGroups& groups)
    : groups_(groups), kept_(std::make_unique<Kept>()) {
  const MemoryLimit none(0);  // they stay for later runs, and so count for none
  const ByteWords words(w, zeros, groups, false);
  const int64_t filters = w.dims()[0], count = groups.count();
  const auto round = static_cast<size_t>(ceil_div(filters, kFilters) * count * kFilters);
  // The last group of filters is filled up with copies of the last filter.
  for (int64_t f = 0; f < ceil_div(filters, kFilters) * kFilters; ++f) {
    const FilterWords filter = words.filter(std::min(f, filters - 1));
    std::vector<size_t> used(static_cast<size_t>(count));
    for (size_t i = 0; i < filter.words.size(); ++i) {
      const auto group = static_cast<size_t>(filter.numbers[i]);
      const size_t number = used[group]++;
      if (words_.size() < (number + 1) * round) words_.resize((number + 1) * round);
      const int64_t at = (f / kFilters * count + filter.numbers[i]) * kFilters + f % kFilters;
      words_[number * round + static_cast<size_t>(at)] = filter.words[i];
    }
    if (f < filters) sums_.push_back(filter.sum);
  }
  if (words_.empty()) words_.resize(round);
  rounds_ = static_cast<int64_t>(words_.size() / round);
}

std::shared_ptr<const ChannelVectors> VectorFilters::vectors_of(const Window& window) const {
  const std::lock_guard lock(kept_->mutex);
  if (kept_->vectors == nullptr || !is_same(kept_->window, window)) {
    kept_->vectors = std::make_shared<const ChannelVectors>(window, groups_);
    kept_->window = window;
  }
  return kept_->vectors;
}

void VectorFilters::run(const ConvShape& s, const Tensor& x, int64_t zero, SumsTarget& target,
                        ThreadPool& pool) const {
  const std::shared_ptr<const ChannelVectors> vectors = vectors_of(s.window);
  const Planes planes(x, count_of(s.window.input), *vectors);
  const int64_t positions = count_of(s.window.output), count = groups_.count();
  const int64_t chunks = chunks_of(vectors->count(), pool.size()), each = s.filters / s.channels;
  const int64_t most = std::max<int64_t>(1, kSums / (kFilters * positions)) * kFilters;
  const int64_t blocks = ceil_div(s.filters, most);
  const uint8_t flip = x.dtype() == DType::Int8 ? 0x80 : 0;
  const auto start = static_cast<uint32_t>(static_cast<uint8_t>(zero) ^ flip);
  const auto run_block = [&](int64_t number, int worker, uint8_t* copies) {
    const int64_t image = number / blocks / chunks, chunk = number / blocks % chunks;
    const int64_t from = vectors->count() * chunk / chunks;
    const int64_t to = vectors->count() * (chunk + 1) / chunks;
    ByteVectorsArgs args = vectors->args(from, to - from);
    args.padding = static_cast<uint8_t>(zero);
    args.flip = flip;
    args.rounds = rounds_;
    args.round = static_cast<int64_t>(words_.size()) / rounds_;
    SumsTarget::Block block{image, number % blocks * most, vectors->vector(from).first};
    block.filters = std::min(most, s.filters - block.filter);
    block.positions =
        (to < vectors->count() ? vectors->vector(to).first : positions) - block.position;
    const SumsTarget::Place place = target.place(worker, block);
    for (int64_t first = 0; first < block.filters; first += kFilters) {
      args.words = words_.data() + (block.filter + first) * count;
      for (int64_t i = 0; i < kFilters; ++i) {
        const int64_t row = std::min(first + i, block.filters - 1), filter = block.filter + row;
        args.in[i] =
            planes.of(image * s.channels + filter / each, copies + i * planes.copy_bytes());
        args.starts[i] = static_cast<int32_t>(
            -start * static_cast<uint32_t>(sums_[static_cast<size_t>(filter)]));
        args.out[i] = static_cast<int32_t*>(place.data) + row * place.stride - block.position;
      }
      kernels().byte_filter->run_vectors(args);
    }
    target.done(worker, block, place);
  };
  const int64_t all = s.batch * blocks * chunks, tasks = std::min(all, kTasks * pool.size());
  std::vector<ScratchArray<uint8_t>> copies(static_cast<size_t>(pool.size()));
  pool.parallel_for(tasks, [&](int64_t task, int worker) {
    ScratchArray<uint8_t>& own = copies[static_cast<size_t>(worker)];
    if (!own) own = scratch<uint8_t>(kFilters * planes.copy_bytes());
    for (int64_t number = all * task / tasks; number < all * (task + 1) / tasks; ++number)
      run_block(number, worker, own.get());
  });
}

}  // namespace redfuser::cpu
