// Convolution without a matrix of columns: the inputs of each tap are broadcast from the image
// against vectors of filters, or weights against vectors of positions. Images with padding are
// copied strip by strip.
#pragma once

#include "cpu/convolution/packed_filters.h"
#include "cpu/convolution/strips.h"
#include "cpu/estimate/program_time.h"

namespace redfuser::cpu {

class WindowPlan final : public ConvolutionPlan {
 public:
  // Tasks are strips of at most this size, times `parts` of the panels of filters. `packed` is null
  // for weights that are not constant.
  struct Blocks {
    int64_t lines, columns, parts;
    bool copied;        // else from the tensor, which needs reads_within()
    bool rows = false;  // vectors of positions, which need has_rows()
  };
  WindowPlan(ConvolutionForm form, const Blocks& blocks);

  // Whether lines of all strips have a vector of positions side by side.
  static bool has_rows(const ConvolutionForm& form, const Blocks& blocks);
  const FilterPanels& panels() const { return panels_; }
  // Before the first run; unset for weights that are not constant.
  void set_weights(std::shared_ptr<const Tensor> packed) { packed_ = std::move(packed); }
  void set_alone(bool alone) { alone_ = alone; }
  StepTime time(int threads) const;
  // Of the largest block of sums.
  int64_t most_filters() const { return panels_.most_filters(); }
  int64_t most_positions() const;

 protected:
  void compute(const ConvolutionRun& run) const override;

 private:
  template <typename T>
  void compute_as(const ConvolutionRun& run) const;
  // The panels of one part of a strip, from its inputs at `in`.
  template <typename T>
  struct Task {
    int64_t image, part;
    int worker;
    Strip strip;
    const T *in, *weights, *bias;
    T* tile;
    SumsTarget& sums;
  };
  template <typename T>
  void run_task(const Task<T>& task) const;
  // Panels from `first` on of a strip of one position whose taps lie side by side, by a product of
  // one row. Returns the first panel that is left.
  template <typename T>
  int64_t multiply_row(const Task<T>& task, int64_t first, int64_t last) const;
  double task_time() const;
  // Of a panel at the positions of a task, in microseconds.
  double filters_time(int64_t panel) const;
  double rows_time(int64_t panel) const;
  int64_t tile_bytes() const;

  Window window_;
  Strips strips_;
  StripInputs inputs_;
  FilterPanels panels_;
  int64_t parts_;
  bool rows_, alone_ = false;
  std::shared_ptr<const Tensor> packed_;
};

}  // namespace redfuser::cpu
