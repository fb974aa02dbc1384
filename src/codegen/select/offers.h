// What the families of steps that are no cascades offer, and offers as text.
#pragma once

#include <string>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// True if the shapes of all values that the step reads or writes are known.
bool sizes_known(const ir::Graph& graph, const fuse::Step& step, const KnownSizes& sizes);

// "3 calls: library, 2 map" of those with work at these sizes, "row lanes=32" of a single one.
// Those with work at these sizes.
size_t count_calls(const GpuStep& step, const KnownSizes& sizes);
std::string calls_text(const GpuStep& step, const KnownSizes& sizes);

// As kernel_configs, for a ReduceStep.
std::vector<Candidate> reduce_configs(StepBuilder& builder, const fuse::ReduceStep& step);

// A reduction by the row kernels or by a thread for each result; the refusals of others are among
// the offers.
void choose_reduce(StepBuilder& builder, const fuse::ReduceStep& step);
// A product by the library or the kernel of ours, likewise.
void choose_product(StepBuilder& builder, const fuse::ProductStep& step);

// Gives a step whose calls are made its time, and its offer where there is none. Of unknown sizes
// no offer has a time.
void finish_offers(StepBuilder& builder);

}  // namespace redfuser::codegen
