// How the tiles of product.cuh load their operands: matrices, or windows of images and filters.
#pragma once

#include "device/product/product_ring.cuh"
#include "device/ptx_hopper.cuh"

struct TilePlace {
  int row, column, batch;  // of the tile's first element
};

// Batches: false of operands that all batches share.
struct MatrixOperands {
  static constexpr int kMissingBytes = 0;
  bool a_batches, b_batches;

  // At a step of 64 terms.
  struct Tile {
    const TilePlace& place;
    int a_batch, b_batch;

    __device__ __forceinline__ void copy_rows(unsigned to, const TensorMap& a, unsigned full,
                                              int step) const {
      ptx_copy_box(to, a, full, step * kStageDepth, place.row, a_batch);
    }
    template <bool ByRows, int Columns>
    __device__ __forceinline__ void copy_columns(unsigned to, const TensorMap& b, unsigned full,
                                                 int step) const {
      load_columns<ByRows, Columns>(to, b, full, place.column, step * kStageDepth, b_batch);
    }
  };
  __device__ __forceinline__ Tile tile(const TilePlace& place) const {
    return {place, a_batches ? place.batch : 0, b_batches ? place.batch : 0};
  }
};

// A convolution: one operand has the windows of the positions of a result [image, plane, row,
// column] over an input with its channels last, which TMA takes one position after the other
// (im2col); the other one is a tensor [tap, filter, channel]. The terms are the channels of one tap
// of the windows after the other, in steps of 64 channels of which the last one may have fewer.
//
// AsRows: rows are the positions of all images and columns filters; else rows are filters, columns
// the positions of an image, and images batches. Spatial: dimensions of images, 2 or 3. Missing:
// filters by which a tile's lines exceed them all; these lines are not loaded, as zeros would take
// the time of elements, and give results that do not exist. Along z, y, then x: the result's sizes,
// and the windows'.
template <int Spatial, bool AsRows, int Missing>
struct WindowOperands {
  static constexpr int kMissingBytes = Missing * kSlabRowBytes;  // of a step
  int out[3], kernel[3], stride[3], dilation[3], pad[3];
  int chunks;  // of 64 channels

  struct Tile {
    const WindowOperands& windows;
    const TilePlace& place;
    int image, z, y, x;  // of the first window's first element, outside of the image for pads

    __device__ __forceinline__ void copy_rows(unsigned to, const TensorMap& a, unsigned full,
                                              int step) const {
      if constexpr (AsRows) {
        copy_windows(to, a, full, step);
      } else {
        copy_filters(to, a, full, place.row, step);
      }
    }
    template <bool ByRows, int Columns>
    __device__ __forceinline__ void copy_columns(unsigned to, const TensorMap& b, unsigned full,
                                                 int step) const {
      static_assert(ByRows);
      if constexpr (AsRows) {
        copy_filters(to, b, full, place.column, step);
      } else {
        copy_windows(to, b, full, step);
      }
    }

   private:
    __device__ __forceinline__ void copy_filters(unsigned to, const TensorMap& map, unsigned full,
                                                 int filter, int step) const {
      const int tap = step / windows.chunks, chunk = step - tap * windows.chunks;
      ptx_copy_box(to, map, full, chunk * kStageDepth, filter, tap);
    }
    __device__ __forceinline__ void copy_windows(unsigned to, const TensorMap& map, unsigned full,
                                                 int step) const {
      const int tap = step / windows.chunks, channel = (step - tap * windows.chunks) * kStageDepth;
      const int line = tap / windows.kernel[2], column = tap - line * windows.kernel[2];
      const int plane = line / windows.kernel[1], row = line - plane * windows.kernel[1];
      const int dx = column * windows.dilation[2], dy = row * windows.dilation[1];
      if constexpr (Spatial == 2) {
        ptx_copy_windows(to, map, full, channel, x, y, image, dx, dy);
      } else {
        const int dz = plane * windows.dilation[0];
        ptx_copy_windows(to, map, full, channel, x, y, z, image, dx, dy, dz);
      }
    }
  };
  __device__ __forceinline__ Tile tile(const TilePlace& place) const {
    const int position = AsRows ? place.row : place.column;
    const int line = position / out[2], all = line / out[1], plane = all % out[0];
    return {*this,
            place,
            AsRows ? all / out[0] : place.batch,
            plane * stride[0] - pad[0],
            (line - all * out[1]) * stride[1] - pad[1],
            (position - line * out[2]) * stride[2] - pad[2]};
  }
};
