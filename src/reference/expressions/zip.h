// Functions of two arrays, point by point.
#pragma once

#include "reference/expressions/lanes.h"

namespace redfuser::reference {

template <typename T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1>;

// f of every pair; an array of one element pairs with every element of the other.
template <typename T, typename F>
auto zip(const Array<T>& a, const Array<T>& b, F f) {
  using Result = Array<decltype(f(T{}, T{}))>;
  if (a.size() == b.size()) return Result(a.binaryExpr(b, f));
  if (a.size() == 1) return Result(b.unaryExpr([x = a[0], f](T y) { return f(x, y); }));
  return Result(a.unaryExpr([y = b[0], f](T x) { return f(x, y); }));
}

inline Lanes lanes(Numbers numbers) { return {std::move(numbers), {}}; }
inline Lanes lanes(Words words) { return {{}, std::move(words)}; }
inline int64_t word(bool truth) { return truth ? 1 : 0; }

}  // namespace redfuser::reference
