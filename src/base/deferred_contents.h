// The source of a deferred tensor's elements. Storage is allocated at its first use; a device
// copies the elements piece by piece and needs no storage.
#pragma once

#include <cstddef>
#include <mutex>

#include "redfuser/tensor.h"

namespace redfuser {

class DeferredContents {
 public:
  virtual ~DeferredContents() = default;

  // Writes bytes [offset, offset + bytes) of the tensor to `to`. Called by several threads at once.
  virtual void write(size_t offset, size_t bytes, char* to) const = 0;

  // All `bytes` of the tensor, filled by every core at the first call.
  const void* data(size_t bytes) const;

 protected:
  // The elements where they are in memory already, one after another; else null.
  virtual const void* in_memory() const { return nullptr; }

 private:
  mutable std::once_flag once_;
  mutable Tensor filled_;
};

// Equal for tensors that share storage. It fills none.
inline const void* storage_of(const Tensor& tensor) {
  return tensor.contents() != nullptr ? tensor.contents().get() : tensor.data();
}

}  // namespace redfuser
