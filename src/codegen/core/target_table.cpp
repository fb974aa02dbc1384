#include "codegen/core/target_table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace redfuser::codegen {
namespace {

// Multiprocessors, and shared memory of a block: NVIDIA, CUDA C++ Programming Guide, table
// "Technical Specifications per Compute Capability".
constexpr int kKilo = 1024;
constexpr NamedTarget kTargets[] = {
    {"sm_80", {80, 108, 163 * kKilo}},     // A100
    {"sm_86", {86, 84, 99 * kKilo}},       // A10, RTX A6000
    {"sm_89", {89, 142, 99 * kKilo}},      // L40S
    {"sm_90a", {90, 132, 227 * kKilo}},    // H100, H200
    {"sm_100a", {100, 148, 227 * kKilo}},  // B200
    {"sm_120a", {120, 170, 99 * kKilo}},   // RTX 5090
};

}  // namespace

std::span<const NamedTarget> known_targets() { return kTargets; }

const Target& target_named(std::string_view name) {
  for (const NamedTarget& known : kTargets) {
    if (known.name == name) return known.target;
  }
  std::vector<std::string_view> names;
  for (const NamedTarget& known : kTargets) names.push_back(known.name);
  user_error("no target is called \"{}\"; the targets are {}", name, fmt::join(names, ", "));
}

}  // namespace redfuser::codegen
