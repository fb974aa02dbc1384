// A program cut where sizes become known in a run, so that a GPU computes what follows.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ir/graph.h"

namespace redfuser::runtime {

struct CompiledProgram;

// Steps of a program between two moments of a run at which sizes become known. They are a program
// of their own, whose graph has the whole one's values and expressions. Its inputs are those of the
// whole program (all of them in the first part) and what parts before write; its outputs are what
// parts behind read and the whole program's.
struct ProgramPart {
  std::shared_ptr<const CompiledProgram> program;
  std::vector<size_t> steps;  // by step of the part, its number in the whole program
  // Nodes whose output sizes are bound between this part and the next one, in order, and the values
  // that decide them: inputs of the whole program, or outputs of this part or one before.
  std::vector<ir::NodeId> binds;
  std::vector<ir::ValueId> sources;
};

class ProgramParts {
 public:
  // In the order in which they run; empty where the program needs no cut, or has lists that a cut
  // would part from their readers. At most sixteen: later sizes are bound within the last one.
  // `whole` must be the same at every call. Thread-safe.
  const std::vector<ProgramPart>& of(const CompiledProgram& whole) const;

 private:
  mutable std::once_flag made_;
  mutable std::vector<ProgramPart> parts_;
};

// Visits what runs on a GPU as one program: every part with the numbers of its steps, or the whole
// program where it has no parts.
void visit_parts(const CompiledProgram& whole,
                 const std::function<void(const CompiledProgram& program,
                                          const std::vector<size_t>& steps)>& visit);

}  // namespace redfuser::runtime
