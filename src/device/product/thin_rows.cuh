// Thin products whose lines are rows that every block makes itself: the rows are few and in L2, so
// that computing them in each block takes less than a launch before.
//
// Config and Form are those of row_fold.cuh. The Form stores the lines in shared memory; what else
// it stores, the first block stores alone.
#pragma once

#include "device/product/thin_product.cuh"
#include "device/row_fold.cuh"

// Makes a row in kLanes threads. Of a row in several tiles, the outputs load them again: the Form
// takes a tile for the row.
template <typename Config, bool Vector, typename Form, typename Memory>
__device__ __forceinline__ void make_line(const Form& form, const Memory& memory,
                                          const typename Form::Row& row) {
  constexpr int kTile = kRowTile<Config, Form>;
  const int lane = Config::kLanes > 32 ? threadIdx.x : threadIdx.x % Config::kLanes;
  typename Form::State s = form.identity();
  typename Form::Running t;
  RowTile<Config, Form> tile;
  if constexpr (Config::kWhole) {
    load_tile<Config, Vector>(form, tile, row, lane, 0, 0, memory.staging);
    fold_tile<Config, Vector>(form, t, s, tile, row, lane, 0, 0);
  } else {
    form.start(t, s);
#pragma unroll 1
    for (int start = 0; start < row.extent; start += kTile) {
      load_tile<Config, Vector>(form, tile, row, lane, 0, start, memory.staging);
      fold_tile<Config, Vector>(form, t, s, tile, row, lane, 0, start);
    }
  }
  merge_row<Config>(form, s, memory);
  const typename Form::Tail tail = form.finish(s, row);
  form.template write_rows<Config::kLanes>(row, tail, lane);
  if constexpr (Config::kWhole) {
    write_tile<Config, Vector>(form, tile, row, tail, lane, 0, 0);
  } else {
#pragma unroll 1
    for (int start = 0; start < row.extent; start += kTile) {
      load_tile<Config, Vector>(form, tile, row, lane, 0, start, memory.staging);
      write_tile<Config, Vector>(form, tile, row, tail, lane, 0, start);
    }
  }
}

// `rows` rows of `length` elements as the lines of ThinProduct::multiply.
template <typename Config, typename Form, typename Memory>
struct ThinRows {
  const Form& form;
  const Memory& memory;
  int rows, length;

  // Waits for the kernels before this one, then makes each row in a warp, or the only one in all
  // threads. Vector: groups are aligned vectors. All threads of the block call this, and may read
  // the lines afterwards.
  template <bool Vector>
  __device__ __forceinline__ void make() const {
    ptx_await_launches();
    // ptxas moves weak loads before the wait, but not before a barrier.
    __syncthreads();
    if constexpr (Config::kLanes > 32) {
      make_line<Config, Vector>(form, memory, form.row_of(0, 0, length));
    } else {
      for_whole_rows<Config>(0, rows, [&](long long number) {
        make_line<Config, Vector>(form, memory, form.row_of(number, 0, length));
      });
    }
    __syncthreads();
  }
};
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ ThinRows<Config, Form, Memory> thin_rows(const Form& form,
                                                                    const Memory& memory, int rows,
                                                                    int length) {
  return {form, memory, rows, length};
}
