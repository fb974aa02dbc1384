#include "passes/pipeline.h"

#include <span>

#include "passes/integers/integer_contractions.h"
#include "passes/integers/maxima_of_codes.h"
#include "passes/integers/moved_codes.h"
#include "passes/integers/same_codes.h"
#include "passes/passes.h"
#include "passes/weights/store_codes.h"

namespace redfuser::passes {
namespace {

struct Pass {
  const char* name;
  bool (*run)(ir::Graph&);
};

struct Pipeline {
  std::span<const Pass> passes;
  int max_rounds;
};

constexpr Pass kOptimize[] = {
    {"eliminate_identity", eliminate_identity},   {"fold_constants", fold_constants},
    {"nonzero_indices", nonzero_indices},         {"join_scatters", join_scatters},
    {"split_concatenation", split_concatenation}, {"eliminate_common", eliminate_common},
    {"eliminate_dead", eliminate_dead},
};
constexpr Pass kExecution[] = {
    {"join_windows", join_windows},
    {"divide_einsums", divide_einsums},
    {"maxima_of_codes", maxima_of_codes},
    {"moved_codes", moved_codes},
    {"same_codes", same_codes},
    {"integer_contractions", integer_contractions},
    {"eliminate_dead", eliminate_dead},
    {"fold_scales", fold_scales},
    {"recover_index_expressions", recover_index_expressions},
    {"merge_products", merge_products},
    {"align_codes", align_codes},
    {"store_codes", store_codes},
};

void run(const Pipeline& pipeline, ir::Graph& graph, std::vector<PassRecord>* log) {
  verify(graph);
  bool changed = true;
  for (int round = 0; changed && round < pipeline.max_rounds; ++round) {
    changed = false;
    for (const Pass& pass : pipeline.passes) {
      const NodeList before = log != nullptr ? nodes_of(graph) : NodeList();
      if (!pass.run(graph)) continue;
      verify(graph);
      changed = true;
      if (log != nullptr) log->push_back(record_of(pass.name, before, nodes_of(graph)));
    }
  }
}

}  // namespace

void optimize(ir::Graph& graph, std::vector<PassRecord>* log) { run({kOptimize, 8}, graph, log); }

void optimize_for_execution(ir::Graph& graph, std::vector<PassRecord>* log) {
  run({kExecution, 1}, graph, log);
}

}  // namespace redfuser::passes
