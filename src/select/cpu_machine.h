// The one row of CPUs: what estimates of CPU kernels know of the machine.
#pragma once

#include <cstdint>

namespace redfuser::select {

// Rates of one thread per microsecond, as kernels reach them with 512-bit vectors.
struct CpuMachine {
  int64_t l1_bytes = 48 << 10, l2_bytes = 2 << 20;
  // Bytes that move between registers and the level that holds them. Memory is all beyond the
  // second level.
  double l1_rate = 280000, l2_rate = 140000, memory_rate = 20000;
  double line_rate = 2000;       // cache lines from memory, each far from the one before
  double fault_rate = 2500;      // bytes of fresh pages
  double special_rate = 2300;    // exponentials and the like
  double convert_rate = 9500;    // elements between types
  double scalar_rate = 450;      // elements one by one: ranked, summed as they run
  double gather_rate = 1500;     // elements at a stride or by a table of offsets
  double transpose_rate = 1900;  // elements of rows that lie beside each other
  double sort_rate = 150;        // comparisons
  double move_rate = 1200;       // elements and their indices, within a list
  double product_rate = 45000;   // multiply-adds of matrices
  double pack_rate = 8000;       // elements of a matrix, put in the order that products read
  double pack_half_rate = 540;   // the same of 16 bits
  double window_rate = 85000;    // multiply-adds of windows
  double window_block = 0.006;   // of a register block of a window
  double filter_rate = 20000;    // multiply-adds of a channel's filter
  double square_rate = 12000;    // elements of whole squares of vectors, transposed
  double far_rate = 300;     // short reads of an image's planes, each a page or more from the last
  double copy_rate = 8000;   // elements of an image's lines, with padding
  double dot_rate = 200000;  // multiply-adds of matrices of 8-bit integers
  double integer_rate = 10000;  // 64-bit integers
  double index_rate = 1100;     // indices, counted one by one
  double instruction = 0.011;   // of a tile program, besides its elements
  double row = 0.002;           // of an instruction's elements
  double convert_row = 0.012;   // of elements between types, or reduced
  double product_call = 0.2;    // of the product kernels
  double task = 0.1;            // handed to a thread
  double step = 0.2;            // with one task
  double wake = 4;              // of other threads
};

inline constexpr CpuMachine kCpu;

}  // namespace redfuser::select
