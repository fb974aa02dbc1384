#include "passes/column_concat.h"

#include <algorithm>
#include <cstring>

#include "base/deferred_contents.h"
#include "base/error.h"

namespace redfuser::passes {
namespace {

// to[r, c] = from[c, r] for elements of type T.
template <typename T>
void transpose(const T* from, size_t from_pitch, T* to, size_t to_pitch, size_t rows,
               size_t columns) {
  constexpr size_t kBlock = 64;  // rows of either side stay in the cache
  for (size_t top = 0; top < rows; top += kBlock) {
    const size_t bottom = std::min(top + kBlock, rows);
    for (size_t c = 0; c < columns; ++c) {
      for (size_t r = top; r < bottom; ++r) to[r * to_pitch + c] = from[c * from_pitch + r];
    }
  }
}

class ColumnConcat : public DeferredContents {
 public:
  ColumnConcat(int64_t rows, std::vector<MatrixPart> parts)
      : rows_(static_cast<size_t>(rows)),
        width_(size_of(parts[0].matrix.dtype())),
        parts_(std::move(parts)) {
    for (const MatrixPart& part : parts_) columns_ += static_cast<size_t>(part.columns);
  }

  void write(size_t offset, size_t bytes, char* to) const override {
    RF_CHECK(offset % width_ == 0 && bytes % width_ == 0, "half an element of merged weights");
    size_t at = offset / width_;
    const size_t end = at + bytes / width_;
    // The rest of a row, whole rows, and the beginning of a row.
    while (at < end) {
      const size_t row = at / columns_, column = at % columns_;
      const bool whole = column == 0 && end - at >= columns_;
      const size_t rows = whole ? (end - at) / columns_ : 1;
      const size_t columns = whole ? columns_ : std::min(columns_ - column, end - at);
      write_rows(row, rows, column, columns, to);
      at += rows * columns;
      to += rows * columns * width_;
    }
  }

 private:
  // Columns [first, first + columns) of some rows, contiguous in `to`.
  void write_rows(size_t row, size_t rows, size_t first, size_t columns, char* to) const {
    size_t begin = 0;  // of the part
    for (const MatrixPart& part : parts_) {
      const size_t end = begin + static_cast<size_t>(part.columns);
      const size_t from = std::max(begin, first), until = std::min(end, first + columns);
      if (from < until) {
        write_part(part, row, rows, from - begin, until - from, to + (from - first) * width_,
                   columns);
      }
      begin = end;
    }
  }

  // To rows that are `pitch` elements apart.
  void write_part(const MatrixPart& part, size_t row, size_t rows, size_t column, size_t columns,
                  char* to, size_t pitch) const {
    const auto* data = static_cast<const char*>(part.matrix.data());
    if (!part.transposed) {
      const size_t part_pitch = static_cast<size_t>(part.columns) * width_;
      const char* from = data + row * part_pitch + column * width_;
      for (size_t r = 0; r < rows; ++r) {
        std::memcpy(to + r * pitch * width_, from + r * part_pitch, columns * width_);
      }
      return;
    }
    const char* from = data + (column * rows_ + row) * width_;
    const auto as = [&](auto element) {
      using T = decltype(element);
      transpose(reinterpret_cast<const T*>(from), rows_, reinterpret_cast<T*>(to), pitch, rows,
                columns);
    };
    switch (width_) {
      case 1:
        return as(uint8_t{});
      case 2:
        return as(uint16_t{});
      case 4:
        return as(uint32_t{});
      default:
        return as(uint64_t{});
    }
  }

  const size_t rows_, width_;
  const std::vector<MatrixPart> parts_;
  size_t columns_ = 0;
};

}  // namespace

Tensor column_concat(int64_t rows, std::vector<MatrixPart> parts) {
  int64_t columns = 0;
  for (const MatrixPart& part : parts) {
    const DType own = part.matrix.dtype();
    RF_CHECK(part.matrix.size() == rows * part.columns && own == parts[0].matrix.dtype() &&
                 (is_float(own) || is_low_bit_float(own)),
             "{} is not a part of {} rows", describe(part.matrix), rows);
    columns += part.columns;
  }
  const DType dtype = parts[0].matrix.dtype();
  return Tensor::deferred(dtype, {rows, columns},
                          std::make_shared<ColumnConcat>(rows, std::move(parts)));
}

}  // namespace redfuser::passes
