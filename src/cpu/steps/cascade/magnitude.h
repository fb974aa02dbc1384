// The largest magnitude of a tensor's elements, which bounds what masks hide.
#pragma once

#include "cpu/estimate/program_time.h"
#include "cpu/step.h"

namespace redfuser::cpu {

// Of a floating tensor; NaN if an element is NaN, 0 if there are none.
double largest_magnitude(ThreadPool& pool, const Tensor& tensor);

// Microseconds that it takes one thread.
double magnitude_time(double elements, const select::CpuMachine& machine = this_machine());

}  // namespace redfuser::cpu
