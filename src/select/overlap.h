// Times of work that runs at once.
#pragma once

#include <cmath>

namespace redfuser::select {

// The time of two kinds of work that mostly run at once: from that of the longer up to 1.4 times
// it. Times are far from overflow, which std::hypot guards against by a function that glibc has
// from 2.35 on.
inline double overlapped(double first, double second) {
  return std::sqrt(first * first + second * second);
}

}  // namespace redfuser::select
