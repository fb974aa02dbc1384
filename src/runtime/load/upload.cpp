#include "runtime/load/upload.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/deferred_contents.h"
#include "base/thread_pool.h"

namespace redfuser::runtime {
namespace {

constexpr int64_t kChunk = int64_t{4} << 20;    // bytes of a page-locked buffer
constexpr int64_t kPiece = int64_t{512} << 10;  // bytes that a thread reads at a time
constexpr int64_t kStaged = int64_t{16}
                            << 20;  // smaller uploads take less time than locking buffers
constexpr int kMaxThreads = 8;      // so many read faster than the link to the GPU

void write(const Tensor& tensor, int64_t offset, int64_t bytes, char* to) {
  const auto from = static_cast<size_t>(offset), count = static_cast<size_t>(bytes);
  if (tensor.contents() != nullptr) {
    tensor.contents()->write(from, count, to);
  } else {
    std::memcpy(to, static_cast<const char*>(tensor.data()) + from, count);
  }
}

int64_t end_of(const Placed& placed) {
  return placed.offset + static_cast<int64_t>(placed.tensor.bytes());
}

// A part of a tensor within the current buffer.
struct Piece {
  const Placed* placed;
  int64_t begin, end;  // in the device's memory
};

// The parts of tensors in [begin, end) of the device's memory; `next` is the first tensor that ends
// after it.
std::vector<Piece> pieces_of(const std::vector<Placed>& tensors, size_t& next, int64_t begin,
                             int64_t end) {
  std::vector<Piece> pieces;
  while (next < tensors.size() && tensors[next].offset < end) {
    const Placed& placed = tensors[next];
    const int64_t last = std::min(end_of(placed), end);
    for (int64_t at = std::max(placed.offset, begin); at < last; at += kPiece) {
      pieces.push_back({&placed, at, std::min(at + kPiece, last)});
    }
    if (end_of(placed) > end) break;
    ++next;
  }
  return pieces;
}

int threads_for(int threads) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads > 0 ? threads : cores, 1, kMaxThreads);
}

}  // namespace

void upload(const cuda::DevicePtr& device, const cuda::Buffer& memory,
            const std::vector<Placed>& tensors, int threads) {
  if (tensors.empty()) return;
  const cuda::Stream stream(device);
  const int64_t total = end_of(tensors.back());
  if (total < kStaged) {
    for (const Placed& placed : tensors) {
      stream.to_device(memory.address() + static_cast<uint64_t>(placed.offset),
                       placed.tensor.data(), static_cast<int64_t>(placed.tensor.bytes()));
    }
    stream.synchronize();
    return;
  }
  const cuda::HostBuffer staging(device, 2 * kChunk);
  const cuda::Event copied[2] = {cuda::Event(device), cuda::Event(device)};
  ThreadPool pool(threads_for(threads));
  size_t next = 0;
  for (int64_t chunk = 0; chunk * kChunk < total; ++chunk) {
    const int64_t begin = chunk * kChunk, end = std::min(begin + kChunk, total);
    char* const buffer = staging.data() + chunk % 2 * kChunk;
    if (chunk > 1) copied[chunk % 2].synchronize();
    const std::vector<Piece> pieces = pieces_of(tensors, next, begin, end);
    pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i, int) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      write(piece.placed->tensor, piece.begin - piece.placed->offset, piece.end - piece.begin,
            buffer + (piece.begin - begin));
    });
    stream.to_device(memory.address() + static_cast<uint64_t>(begin), buffer, end - begin);
    copied[chunk % 2].record(stream);
  }
  stream.synchronize();
}

}  // namespace redfuser::runtime
