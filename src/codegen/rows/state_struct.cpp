#include "codegen/rows/state_struct.h"

#include <algorithm>

namespace redfuser::codegen {

void StateStruct::define() {
  emitter_.line(fmt::format("auto identity = [] {{\n{}}};", identity_body()));
  const std::string body = merged_lanes_body("lanes_reduce", "kLanes");
  for (const int lanes : merged_lanes()) {
    emitter_.line(fmt::format(
        "auto merged{0} = [&](State s) {{\nconstexpr int kLanes = {0};\n{1}}};", lanes, body));
  }
}

// The lane counts of the merges: lanes of a row in a warp, warps, blocks, segments.
std::set<int> StateStruct::merged_lanes() const {
  std::set<int> result{std::min(config_.lanes, 32)};
  if (config_.lanes > 32) result.insert(config_.threads / 32);
  if (config_.cluster > 1) result.insert(config_.cluster);
  return result;
}

void StateStruct::merge_block() {
  emitter_.line(fmt::format("s = merged{}(s);", std::min(config_.lanes, 32)));
  if (config_.lanes > 32) merge_warps();
}

void StateStruct::merge_warps() {
  const int warps = config_.threads / 32;
  emitter_.line(
      fmt::format("if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = s;\n__syncthreads();\n"
                  "s = merged{}(slots[threadIdx.x & {}]);",
                  warps, warps - 1));
  if (config_.cluster > 1) {
    emitter_.line(
        fmt::format("cluster_states.exchange(s);\n"
                    "s = merged{}(cluster_states.values[threadIdx.x & {}]);",
                    config_.cluster, config_.cluster - 1));
  }
}

void StateStruct::merge_segments(const std::string& stored) {
  emitter_.line(fmt::format(
      "const State* states = reinterpret_cast<const State*>({0}) + row * segments;\n"
      "s = threadIdx.x < segments ? states[threadIdx.x] : identity();\ns = merged32(s);\n"
      "for (unsigned first = {1} + (threadIdx.x >> 5) * 31; first < segments; first += {2}) {{\n"
      "const unsigned one = first + (threadIdx.x & 31) - 1;\n"
      "if ((threadIdx.x & 31) != 0) s = one < segments ? states[one] : identity();\n"
      "s = merged32(s);\n}}",
      stored, config_.threads, config_.threads / 32 * 31));
  merge_warps();
}

}  // namespace redfuser::codegen
