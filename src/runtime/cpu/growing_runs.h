// The programs of a session for runs that append to states.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/cpu/growing_program.h"

namespace redfuser::runtime {

class GrowingRuns {
 public:
  // `chained`: outputs of a run are inputs of the next one, such as those of a loop's body.
  GrowingRuns(const CompiledProgram& program, int threads, bool chained = false)
      : program_(program), threads_(threads), chained_(chained) {}

  // After each run: its sizes, from which the next one tells what grows.
  void note(const std::vector<int64_t>& symbols) { last_ = symbols; }
  // Forgets the last run and what grows; the programs stay.
  void forget();
  // For a run with these symbols; null where none serves it. The states have positions. Without
  // states, sizes grow that have become greater by the same number since the last run.
  std::shared_ptr<const GrowingProgram> find(const std::vector<GrowingState>& states,
                                             const std::vector<int64_t>& symbols);
  // The programs that were made.
  int64_t made() const { return made_; }

 private:
  using Key = std::vector<int64_t>;
  bool learn(const std::vector<GrowingState>& states, const std::vector<int64_t>& symbols);
  // How many more positions this run has than the last one.
  int64_t added(const std::vector<GrowingState>& states, const std::vector<int64_t>& symbols) const;

  const CompiledProgram& program_;
  const int threads_;
  const bool chained_;
  std::vector<int64_t> last_;
  std::vector<bool> grows_;  // by symbol; empty until two runs had other positions
  int64_t made_ = 0;
  std::deque<std::pair<Key, std::shared_ptr<const GrowingProgram>>> programs_;  // the last used
};

}  // namespace redfuser::runtime
