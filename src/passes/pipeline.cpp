#include "passes/pipeline.h"

#include "passes/passes.h"

namespace redfuser::passes {
namespace {

struct Pass {
  const char* name;
  bool (*run)(ir::Graph&);
};

constexpr Pass kPasses[] = {
    {"eliminate_identity", eliminate_identity},   {"fold_constants", fold_constants},
    {"split_concatenation", split_concatenation}, {"eliminate_common", eliminate_common},
    {"eliminate_dead", eliminate_dead},
};
constexpr int kMaxRounds = 8;

}  // namespace

void optimize(ir::Graph& graph, std::vector<PassRecord>* log) {
  verify(graph);
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (const Pass& pass : kPasses) {
      auto before = static_cast<int>(graph.nodes.size());
      if (!pass.run(graph)) continue;
      verify(graph);
      changed = true;
      if (log != nullptr) log->push_back({pass.name, before, static_cast<int>(graph.nodes.size())});
    }
  }
}

}  // namespace redfuser::passes
