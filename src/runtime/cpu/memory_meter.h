// Bytes of the tensors alive in a run. Tensors that share storage count once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/deferred_contents.h"

namespace redfuser::runtime {

class MemoryMeter {
 public:
  void add(const Tensor& tensor) {
    if (tensor.bytes() == 0) return;
    Storage& storage = storages_[storage_of(tensor)];
    if (storage.users++ == 0) {
      storage.bytes = static_cast<int64_t>(tensor.bytes());
      live_ += storage.bytes;
      peak_ = std::max(peak_, live_);
    }
  }
  // Forgets all tensors and the peak.
  void restart() {
    storages_.clear();
    live_ = peak_ = 0;
  }
  // Does nothing for a tensor that was not added.
  void remove(const Tensor& tensor) {
    const auto found = storages_.find(storage_of(tensor));
    if (found == storages_.end() || --found->second.users > 0) return;
    live_ -= found->second.bytes;
    storages_.erase(found);
  }
  // Bytes beside those of the tensors, for a while.
  void note(int64_t bytes) { peak_ = std::max(peak_, live_ + bytes); }
  bool has(const Tensor& tensor) const { return storages_.count(storage_of(tensor)) > 0; }
  int64_t live() const { return live_; }
  int64_t peak() const { return peak_; }

 private:
  struct Storage {
    int64_t bytes = 0;
    int users = 0;
  };
  std::unordered_map<const void*, Storage> storages_;
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace redfuser::runtime
