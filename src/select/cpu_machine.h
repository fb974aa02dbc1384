// What estimates of CPU kernels know of the machine: a row for each width of vectors.
#pragma once

#include <cstdint>

namespace redfuser::select {

// Rates of one thread per microsecond, as kernels reach them; the defaults are those of 512-bit
// vectors.
struct CpuMachine {
  double lanes = 16;       // floats of a vector
  double block_rows = 12;  // of a register block of products: each of two vectors
  int64_t l1_bytes = 48 << 10, l2_bytes = 2 << 20;
  // Bytes that move between registers and the level that holds them. Memory is all beyond the
  // second level.
  double l1_rate = 280000, l2_rate = 140000, memory_rate = 20000;
  double line_rate = 250;           // cache lines from memory, each far from the one before
  double fault_rate = 2500;         // bytes of fresh pages
  double special_rate = 3700;       // exponentials and the like
  double divide_rate = 1500;        // integers
  double convert_rate = 10500;      // elements between types
  double narrow_rate = 5500;        // to 16 bits
  double bfloat_share = 0.6;        // of the time of both for bfloat16
  double fill_rate = 6000;          // elements of a register that are set
  double lookup_rate = 2500;        // elements of a table of bytes' values
  double scalar_rate = 450;         // elements one by one: ranked, summed as they run
  double gather_rate = 2300;        // elements at a stride or by a table of offsets
  double permute_rate = 8000;       // elements by a table that several rows share
  double transpose_rate = 3000;     // elements of rows that lie beside each other
  double sort_rate = 150;           // comparisons
  double move_rate = 1200;          // elements and their indices, within a list
  double product_rate = 95000;      // multiply-adds of matrices
  double product_row_rate = 19000;  // the same of a row with columns that lie in place
  double product_dot_rate = 65000;  // and with rows in place
  double far_rows_rate = 500000;    // in addition, with rows in place that are filters
  double product_out_rate = 14000;  // elements of results
  double pack_rate = 10500;         // elements of a matrix, put in the order that products read
  double pack_half_rate = 7000;     // the same of 16 bits, across the order that they lie in
  double window_rate = 85000;       // multiply-adds of windows
  double window_block = 0.006;      // of a register block of a window
  double filter_rate = 20000;       // multiply-adds of a channel's filter
  double square_rate = 12000;       // elements of whole squares of vectors, transposed
  double far_rate = 300;     // short reads of an image's planes, each a page or more from the last
  double bound_rate = 6000;  // elements whose least and largest are found
  double copy_rate = 8000;   // elements of an image's lines, with padding
  double sums_rate = 5250;   // sums of columns, which begin with a bias
  double columns_rate = 2500;   // elements of windows, as the columns of a matrix
  double dot_rate = 200000;     // multiply-adds of matrices of 8-bit integers
  double integer_rate = 10000;  // 64-bit integers
  double index_rate = 1600;     // indices, counted one by one
  double instruction = 0.018;   // of a tile program, besides its elements
  double row = 0.0017;          // of an instruction's elements
  double convert_row = 0.004;   // of elements between types
  double reduce_row = 0.009;    // of long rows, reduced
  double column = 0.0012;       // of rows that lie beside each other
  double product_call = 0.06;   // of the product kernels
  double task = 0.1;            // handed to a thread
  double step = 0.2;            // with one task
  double wake = 0.8;            // of other threads, which wait for work
};

// The row of a processor whose widest vectors have so many bytes: 16, 32 (measured on AVX2) or 64
// (on AVX-512).
const CpuMachine& cpu_machine(int64_t vector_bytes);

}  // namespace redfuser::select
