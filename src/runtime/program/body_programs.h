// Programs of a subgraph or a main graph, made when a run first needs them.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "onnx/import/import.h"
#include "redfuser/redfuser.h"

namespace redfuser::runtime {

// A graph's program for inputs of some types and sizes. Immutable.
struct BodyProgram {
  std::vector<onnx::BodyInput> inputs;  // of the graph, as it was compiled for
  Program program;

  // Whether the program is for such inputs; of an input that is a constant it does not ask.
  bool takes(std::span<const Tensor* const> given) const;
  // Whether it is for one size of each dimension alone; lists are of any length.
  bool is_exact() const;
};

// The programs of one subgraph, or of the main graph. They are compiled for the sizes of a run;
// from the third set of sizes on, dimensions that vary are open. Their number is bounded, and a
// program serves its sizes as long as this lives, so that equal inputs give equal bits.
// Thread-safe; two threads may compile the same program at the same time.
class BodyPrograms {
 public:
  // `body` is null for the model's main graph. `constants` has a tensor for each input of the graph
  // that is the same in every run; the others are undefined.
  BodyPrograms(std::shared_ptr<const onnx::LoadedModel> model,
               std::shared_ptr<const onnx::Subgraph> body, std::vector<Tensor> constants,
               const CompileOptions& options)
      : model_(std::move(model)),
        body_(std::move(body)),
        constants_(std::move(constants)),
        options_(options) {}

  // The program for these inputs, one for each input of the graph: the one for their sizes alone
  // where there is one. With `exact`, no other. Null where none of as many programs as are kept
  // serves. Throws UserError for a graph that is invalid for the inputs.
  std::shared_ptr<const BodyProgram> of(std::span<const Tensor* const> inputs,
                                        bool exact = false) const;

  const onnx::LoadedModel& model() const { return *model_; }
  const onnx::Subgraph* body() const { return body_.get(); }

 private:
  // `full` tells whether no other program is kept.
  std::shared_ptr<const BodyProgram> find(std::span<const Tensor* const> inputs, bool exact,
                                          bool& full) const;
  std::shared_ptr<const BodyProgram> compiled(std::vector<onnx::BodyInput> inputs) const;
  std::vector<onnx::BodyInput> types_of(std::span<const Tensor* const> inputs) const;
  // `inputs` with dimensions open that differ in a program of the same ranks; false where too few
  // programs are known.
  bool widen(std::vector<onnx::BodyInput>& inputs) const;

  const std::shared_ptr<const onnx::LoadedModel> model_;  // of the graph around the subgraph
  const std::shared_ptr<const onnx::Subgraph> body_;
  const std::vector<Tensor> constants_;
  const CompileOptions options_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const BodyProgram>> programs_;  // exact ones first
};

}  // namespace redfuser::runtime
