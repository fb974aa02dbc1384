// A hash table of expressions for one walk over them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "ir/expr.h"

namespace redfuser::ir {

// A map from expressions that only grows. Most walks are short: the first entries lie in the object
// itself, without an allocation.
template <class Value>
class ExprMapTo {
 public:
  ExprMapTo() = default;
  ExprMapTo(const ExprMapTo&) = delete;
  ExprMapTo& operator=(const ExprMapTo&) = delete;

  // The value of `key`, until the next insertion; null if it has none.
  const Value* find(Expr key) const {
    const Entry& entry = entries_[slot(key)];
    return entry.key != nullptr ? &entry.value : nullptr;
  }
  // False, with nothing changed, if `key` has a value.
  bool insert(Expr key, Value value) {
    Entry& entry = entries_[slot(key)];
    if (entry.key != nullptr) return false;
    entry = {key, value};
    if (2 * ++count_ > mask_ + 1) grow();
    return true;
  }

 private:
  struct Entry {
    Expr key = nullptr;
    Value value = {};
  };

  // Where the key is, or where it would be: linear probing. At most half of the slots are taken.
  size_t slot(Expr key) const {
    size_t at = (key->id * 0x9e3779b97f4a7c15ull >> 32) & mask_;
    while (entries_[at].key != nullptr && entries_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  void grow() {
    const size_t size = mask_ + 1;
    const std::unique_ptr<Entry[]> old = std::move(more_);
    const Entry* before = entries_;
    more_ = std::make_unique<Entry[]>(4 * size);
    entries_ = more_.get();
    mask_ = 4 * size - 1;
    for (size_t i = 0; i < size; ++i) {
      if (before[i].key != nullptr) entries_[slot(before[i].key)] = before[i];
    }
  }

  static constexpr size_t kFirst = 32;  // a power of two
  std::array<Entry, kFirst> first_;
  std::unique_ptr<Entry[]> more_;
  Entry* entries_ = first_.data();
  size_t mask_ = kFirst - 1, count_ = 0;
};

class ExprMap {
 public:
  // The value of `key`; null if it has none.
  Expr find(Expr key) const {
    const Expr* value = map_.find(key);
    return value != nullptr ? *value : nullptr;
  }
  // False, with nothing changed, if `key` has a value.
  bool insert(Expr key, Expr value) { return map_.insert(key, value); }
  // As a set: false if the expression was added before.
  bool add(Expr key) { return insert(key, key); }

 private:
  ExprMapTo<Expr> map_;
};

}  // namespace redfuser::ir
