// The estimated time of tile programs.
#pragma once

#include <cstdint>

#include "cpu/machine/this_machine.h"
#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Of one whole task of a program whose tiles are set and laid out, in microseconds.
struct TaskTime {
  double time = 0;
  // The arithmetic and the bytes alone: what no other tiles and no other division into steps save.
  double floor = 0;
};
TaskTime task_time(const TileProgram& program, const select::CpuMachine& machine = this_machine());

// Of one call of the product kernels, m by n by k, besides the bytes of B, which is of 16 bits
// (`half`) and has its columns or its rows side by side.
struct ProductSizes {
  double m, n, k;
  bool half, along_columns;
  bool packed = false;  // the right operand, once for all runs
};
double product_time(const ProductSizes& p, const select::CpuMachine& machine = this_machine());

// Of a step of equal tasks on so many threads, with the pages of its outputs. `share` is the part
// of its elements that a task visits.
struct StepTime {
  double time = 0, floor = 0;
  double saved = 0;  // by several threads, before what waking them costs
};
// Whether a step saves so little that the calling thread runs it alone.
bool runs_alone(double saved, const select::CpuMachine& machine = this_machine());
StepTime step_time(const TaskTime& task, double tasks, int threads, double output_bytes,
                   double share = 1, const select::CpuMachine& machine = this_machine());

// Bytes of the values that the program writes.
double output_bytes(const TileProgram& program);

}  // namespace redfuser::cpu
