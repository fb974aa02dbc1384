// Images of 8-bit integers with the channels of a group side by side and the padding in place. Each
// kernel tap of all output positions of a strip of lines is then a run of memory at an offset of
// its own, and a convolution a product whose right factor is the image itself: no columns are
// copied for each tap. Strides take the image apart into phases, of which a tap reads one.
#pragma once

#include <vector>

#include "cpu/opaque/image/integers/integer_filters.h"
#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

class InterleavedLines {
 public:
  // For strips of at most `lines` output lines of a window that visits one plane. Position (line,
  // column) of a strip is number line · pitch() + column.
  InterleavedLines(const IntegerKernels& kernels, const Window& window, const ChannelGroups& groups,
                   int64_t lines);

  // Output positions per line of a strip, those of the padding included.
  static int64_t pitch(const Window& window);
  int64_t pitch() const { return pitch_; }
  int64_t bytes() const;  // of a strip's memory, which may be read beyond its positions
  int64_t plane_elements() const { return phases_ * plane_; }
  // Byte offset of every group of a filter's elements, for IntegerMultiplyArgs.
  const std::vector<int64_t>& offsets() const { return offsets_; }

  // The strip of output lines [first, first + lines) of the planes at `image`. `flip` is applied to
  // all bytes by exclusive or, after `padding` took the place of elements outside of the image.
  // Where `sums` is present, of plane_elements(), terms[p] becomes the sum of all bytes that
  // position p multiplies.
  void fill(const uint8_t* image, int64_t first, int64_t lines, uint8_t padding, uint8_t flip,
            void* strip, int32_t* sums, int32_t* terms) const;

 private:
  void fill_phase(IntegerInterleaveArgs args, int64_t phase, int64_t first, int64_t lines,
                  uint8_t padding, char* plane, int32_t* sums) const;

  const IntegerKernels& kernels_;
  const Window& window_;
  ChannelGroups groups_;
  int64_t rows_, pitch_, plane_, phases_;
  int64_t words_;  // of a group of channels
  std::vector<int64_t> offsets_;
  struct Tap {
    int64_t phase, row, column;
  };
  std::vector<Tap> taps_;
  std::vector<bool> used_;  // phases
};

}  // namespace redfuser::cpu
