#include "base/deferred_contents.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace redfuser {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

const void* DeferredContents::data(size_t bytes) const {
  if (const void* elements = in_memory()) return elements;
  std::call_once(once_, [&] {
    Tensor filled(DType::UInt8, {static_cast<int64_t>(bytes)});
    char* to = static_cast<char*>(filled.mutable_data());
    const size_t pieces = (bytes + kPiece - 1) / kPiece;
    ThreadPool(pieces > 1 ? 0 : 1).parallel_for(static_cast<int64_t>(pieces), [&](int64_t i, int) {
      const size_t offset = static_cast<size_t>(i) * kPiece;
      write(offset, std::min(kPiece, bytes - offset), to + offset);
    });
    filled_ = std::move(filled);
  });
  return filled_.data();
}

}  // namespace redfuser
