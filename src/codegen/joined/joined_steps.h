// Steps of a plan that a GPU computes as one: the rows of a cascade, and the product of few rows
// that reads them. The product's step then has the calls of both, that of the rows has none.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

class JoinedSteps {
 public:
  // None.
  JoinedSteps() = default;
  // Of the steps that are not `on_host`: pairs that have a thin_rows_form, by their structure
  // alone. A step between the two touches no value of the rows, and no other step reads the
  // product's lines.
  JoinedSteps(const ir::Graph& graph, const fuse::Plan& plan, const Target& target,
              const std::set<size_t>& on_host);

  // The rows that the step with this number computes with its product.
  std::optional<size_t> rows_of(size_t step) const;
  // The step that computes the step with this number, where that is another one.
  std::optional<size_t> taken_by(size_t step) const;
  // The steps that are computed once this one has been, in order.
  std::vector<size_t> done_by(size_t step) const;
  // The product's step is computed alone.
  void separate(size_t step);

  // As codegen::generate, kernel_configs and offers_at, of a step of the plan. The kernels that
  // make the rows are compared with the two steps apart, by estimate, for each class of the number
  // of rows.
  GpuStep generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                   const Target& target, const KnownSizes& sizes = {},
                   const LeftOut& left_out = {}) const;
  GpuStep generate(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                   const Target& target, const KernelConfig& choice) const;
  std::vector<Candidate> kernel_configs(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                                        const Target& target, std::span<const int64_t> symbols,
                                        const LeftOut& left_out = {}) const;
  std::vector<Offer> offers_at(const ir::Graph& graph, const fuse::Plan& plan, size_t step,
                               const Target& target, const KnownSizes& sizes,
                               const GpuStep& form) const;

 private:
  std::map<size_t, size_t> rows_;     // by product
  std::map<size_t, size_t> product_;  // by rows
};

}  // namespace redfuser::codegen
