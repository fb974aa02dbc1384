#include "cpu/steps/ranking.h"

#include <algorithm>
#include <functional>

#include "cpu/tile/tile_instructions.h"

namespace redfuser::cpu {
namespace {

// Lists up to this length are inserted into at once.
constexpr int64_t kShortList = 8;

void for_lists(const Block& block, const std::function<void(KeepBest&)>& each) {
  for (const auto& instruction : block) {
    if (instruction->body() != nullptr) for_lists(*instruction->body(), each);
    if (auto* list = dynamic_cast<KeepBest*>(instruction.get())) each(*list);
  }
}

}  // namespace

int64_t longest_list(const TileProgram& program) {
  int64_t longest = 0;
  for_lists(program.block, [&](const KeepBest& list) { longest = std::max(longest, list.keep); });
  return longest;
}

bool ranks(const TileProgram& program) { return longest_list(program) > 0; }

std::vector<bool> ranking_choices(const TileProgram& program) {
  if (longest_list(program) <= kShortList) return {false};
  return {false, true};
}

void set_merges(TileProgram& program, bool merges) {
  for_lists(program.block, [&](KeepBest& list) { list.merges = merges; });
}

void set_merges(TileProgram& program, const select::KernelConfig& choice) {
  for (const auto& [name, value] : choice.parameters) {
    if (name == "merges") set_merges(program, value != 0);
  }
}

void set_list_tiles(TileProgram& program, int64_t tile) {
  for_lists(program.block, [&](const KeepBest& list) {
    Scope& scope = program.scopes[static_cast<size_t>(
        program.registers[static_cast<size_t>(list.reads[0])].scope)];
    scope.tile = std::clamp<int64_t>(list.merges ? std::max(tile, list.keep) : tile, 1,
                                     std::max<int64_t>(scope.extent, 1));
  });
}

}  // namespace redfuser::cpu
