// What scatters of updates into a tensor share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dispatch.h"
#include "base/integers.h"
#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

struct ReplaceUpdate {
  template <typename T>
  static T apply(T, T update) {
    return update;
  }
};
struct AddUpdate {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping_sum(a, b);
  }
};
struct MulUpdate {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping_product(a, b);
  }
};
// NaN wins.
struct MinUpdate {
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a < b ? a : b;
  }
};
struct MaxUpdate {
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a > b ? a : b;
  }
};

template <typename Update, typename T>
void update_element(T& target, T update) {
  if constexpr (std::is_same_v<Update, ReplaceUpdate>) {
    target = update;
  } else {
    using A = Arithmetic<T>;
    target = static_cast<T>(Update::apply(static_cast<A>(target), static_cast<A>(update)));
  }
}

// Calls body(Update{}, TypeTag<T>{}) for the node's attribute `reduction` and the type of its data.
// Replacing depends on an element's bytes alone, so T is an unsigned integer then. UserError for an
// unknown reduction.
template <typename Body>
void dispatch_update(const OpaqueCall& call, const Body& body) {
  const std::string reduction = call.text("reduction", "none");
  const DType dtype = call.tensor(0).dtype();
  const auto with = [&](auto update) { dispatch(dtype, [&](auto tag) { body(update, tag); }); };
  if (reduction == "add") return with(AddUpdate{});
  if (reduction == "mul") return with(MulUpdate{});
  if (reduction == "min") return with(MinUpdate{});
  if (reduction == "max") return with(MaxUpdate{});
  if (reduction != "none") call.fail("unknown reduction \"" + reduction + "\"");
  switch (size_of(dtype)) {
    case 1:
      return body(ReplaceUpdate{}, TypeTag<uint8_t>{});
    case 2:
      return body(ReplaceUpdate{}, TypeTag<uint16_t>{});
    case 4:
      return body(ReplaceUpdate{}, TypeTag<uint32_t>{});
    default:
      return body(ReplaceUpdate{}, TypeTag<uint64_t>{});
  }
}

// Copies the first input, the tensor that updates go into, to the output.
Tensor& start_output(OpaqueCall& call);

// The positions of input 1, in any integer type.
class PositionReader {
 public:
  explicit PositionReader(const OpaqueCall& call);
  // Calls body(positions) with a pointer to int32 or int64.
  template <typename Body>
  void dispatch(const Body& body) const {
    narrow_ != nullptr ? body(narrow_) : body(wide_);
  }

 private:
  std::vector<int64_t> converted_;
  const int32_t* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
};

// `index`, counted from the end where it is negative; -1 outside of `size` elements. Without a
// branch, which signs at random would mislead.
inline int64_t from_begin(int64_t index, int64_t size) {
  index += size & (index >> 63);
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size) ? index : -1;
}
[[noreturn]] void fail_outside(const OpaqueCall& call, int64_t index, int64_t size);

}  // namespace redfuser::cpu
