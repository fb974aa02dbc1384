// The tiles of contractions, and the time that they take.
#pragma once

#include <optional>

#include "codegen/contraction/contraction_form.h"

namespace redfuser::codegen {

inline constexpr const char* kContractionFamily = "contraction";

struct ContractionConfig {
  int rows, columns, depth, rows_of_thread, columns_of_thread;

  int threads() const { return rows / rows_of_thread * (columns / columns_of_thread); }
  Parameters parameters() const;
};

// Bytes of the elements of a row, or column, at one term.
int element_bytes(const std::vector<ir::Expr>& parts);

// Bytes of a block's shared memory (ContractionStage of src/device/contraction/contraction.cuh).
int shared_bytes(const ContractionForm& form, const ContractionConfig& config);

// Of a thread, by estimate.
int contraction_registers(const ContractionForm& form, const ContractionConfig& config);

// Microseconds by estimate. Sizes that are not known count as many.
double contraction_time(const StepBuilder& builder, const KnownSizes& sizes,
                        const ContractionForm& form, const ContractionConfig& config);

// The fastest form and tile by estimate; nullopt where no tile fits.
struct ContractionChoice {
  const ContractionForm* form;
  ContractionConfig config;
  double time;
};
std::optional<ContractionChoice> contraction_choice(const StepBuilder& builder,
                                                    const KnownSizes& sizes,
                                                    const std::vector<ContractionForm>& forms);

}  // namespace redfuser::codegen
