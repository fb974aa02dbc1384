// What an attention workload computes.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>

#include "bench_workload.h"

namespace redfuser::tools {

struct Attention {
  std::string suite, name;
  int64_t batch, heads, key_heads, queries, keys, size;
  bool causal = false, alibi = false;
  double cap = 0;          // soft cap of the scores
  int64_t window = 0;      // keys that a query sees
  int64_t radius = 0;      // a query sees keys that are at most so far, to both sides
  int64_t prefix = 0;      // with a window or radius: the first keys, which all queries see
  int64_t value_size = 0;  // 0: size
  bool bfloat = false;
  bool by_token = false;  // tensors are [batch, tokens, heads, size], transposed in the graph
  bool symbolic = false;  // batch and lengths are known at run time only; without masks
  bool single = false;    // fp32

  int64_t values() const { return value_size > 0 ? value_size : size; }
  DType dtype() const {
    return single ? DType::Float32 : bfloat ? DType::BFloat16 : DType::Float16;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size)); }
  // Position of query i among the keys.
  int64_t position(int64_t i) const { return i + keys - queries; }
  bool masked() const { return (causal && queries > 1) || window > 0 || radius > 0; }
  bool sees(int64_t i, int64_t j) const {
    if (!masked() || j < prefix) return true;
    return (!causal || position(i) >= j) && (window == 0 || position(i) - j < window) &&
           (radius == 0 || std::abs(position(i) - j) <= radius);
  }
  double slope(int64_t head) const {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
  }
};

std::string attention_model(const Attention& a);
Workload attention_workload(const Attention& a);

}  // namespace redfuser::tools
