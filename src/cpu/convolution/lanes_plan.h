// Depthwise convolution with as many channels side by side as a vector has lanes: a task copies the
// inputs of some channels and a strip of positions position by position, filters them, and
// transposes the results into the order of the tensor.
#pragma once

#include <memory>
#include <vector>

#include "cpu/convolution/strips.h"
#include "cpu/estimate/program_time.h"
#include "select/offer.h"

namespace redfuser::cpu {

inline constexpr const char* kLanesFamily = "lanes";

class LanesPlan final : public ConvolutionPlan {
 public:
  // Null, or why the convolution has other families only.
  static const char* refuses(const ConvolutionForm& form);
  // Strips are of at most so many lines, or columns of an image of one line.
  LanesPlan(ConvolutionForm form, int64_t lines, int64_t columns);

  // The filters by blocks of channels: [block][filter of a channel][tap][channel].
  Tensor pack_weights(const void* weights) const;
  // Before the first run; unset for weights that are not constant.
  void set_weights(std::shared_ptr<const Tensor> packed) { packed_ = std::move(packed); }
  void set_alone(bool alone) { alone_ = alone; }
  // The same of bytes less a zero point, by packed weights: sums of int32, as many as are exact in
  // floats. The form's dtype is float32.
  void filter_bytes(const Tensor& x, int64_t zero, SumsTarget& sums, ThreadPool& pool) const;
  StepTime time(int threads) const;
  // Of the largest block of sums.
  int64_t most_filters() const { return std::min(lanes_, form().shape.channels) * filters_; }
  int64_t most_positions() const { return strips_.lines() * strips_.columns(); }

 protected:
  void compute(const ConvolutionRun& run) const override;

 private:
  // The inputs of a strip in the image: rows and columns [begin, end) of it are within the tensor.
  struct Inputs {
    int64_t first_row, first_column;  // of the tensor, at the image's begin
    int64_t row_begin, row_end, column_begin, column_end;
  };
  Inputs inputs_of(const Strip& strip) const;
  template <typename T>
  void clear_padding(const Inputs& inputs, T* image) const;
  // What a task reads, and its kernel.
  struct Source {
    const char* x;
    int64_t width;  // bytes of an element
    LanesFn filter;
    float zero = 0;
    const void* bias = nullptr;
  };
  template <typename T>
  void filter_as(const ConvolutionRun& run) const;
  template <typename T>
  void filter(const Source& source, const T* weights, SumsTarget& sums, ThreadPool& pool) const;
  double task_time() const;

  // Positions of a line, and taps of one, are side by side and more than a few.
  bool slides() const {
    return window_.stride[2] == 1 && window_.dilation[2] == 1 && window_.output[2] >= 4;
  }
  int64_t blocks() const { return (form().shape.channels + lanes_ - 1) / lanes_; }

  Window window_;
  Strips strips_;
  int64_t lanes_, filters_;  // of a vector; of a channel
  int64_t rows_, pitch_;     // of the image, in vectors
  int64_t row_;              // inputs of one of its rows
  std::vector<int32_t> places_;
  std::vector<int64_t> positions_, offsets_;
  bool alone_ = false;
  std::shared_ptr<const Tensor> packed_;
};

// Plans with strips of several sizes, the fastest by estimate first.
std::vector<select::Candidate> lanes_candidates(const ConvolutionForm& form, int threads);

}  // namespace redfuser::cpu
