// Convolutions at fixed sizes: what the plans of all families share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cpu/convolution/convolution_epilogue.h"
#include "cpu/opaque/image/conv.h"
#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

// A node's sizes and constants.
struct ConvolutionForm {
  const ir::Graph& graph;
  ir::NodeId node = 0;
  ConvShape shape;
  DType dtype = DType::Float32;  // of the sums: float32, float64 or int32
  bool constant_weights = false;
  // Microseconds for each sum of what follows: as a pass, in kernels that compute activations, and
  // in those that add no residual.
  double epilogue_time = 0, activation_time = 0, channel_activation_time = 0;

  bool empty() const { return shape.batch * shape.filters * count_of(shape.window.output) == 0; }
  int64_t channels() const { return shape.channels / shape.groups; }
  int64_t filters() const { return shape.filters / shape.groups; }  // of a group
  int64_t taps() const { return channels() * count_of(shape.window.kernel); }
  double output_bytes() const;
  // Microseconds of a group of one channel by filters that slide over its lines, in fp32.
  double channel_time() const;
  // With so many multiply-adds of vectors instead of one for each tap.
  double channel_time(int64_t steps) const;
};

// Elements that a convolution reads many times may take so many bytes to stay in the second level,
// which sums and results pass through as well.
double near_bytes();
// Microseconds to read so many bytes from the second level, or from memory.
double read_time(double bytes, bool near);

// Of a step whose node is a convolution. UserError if its sizes do not fit together.
ConvolutionForm convolution_of(const StepForm& form);

// The tensors of one run of a convolution of floats (Conv), row-major, of the form's dtype. `bias`
// may be null.
struct ConvolutionRun {
  const void *x, *weights, *bias;
  SumsTarget& sums;
  ThreadPool& pool;
};

class ConvolutionPlan : public StepPlan {
 public:
  explicit ConvolutionPlan(ConvolutionForm form) : form_(std::move(form)) {}
  // Where the step has an epilogue, before the first run.
  void set_epilogue(std::shared_ptr<const ConvolutionEpilogue> epilogue) {
    epilogue_ = std::move(epilogue);
  }
  void run(RunContext& context) const final;

 protected:
  // Called unless the result is empty.
  virtual void compute(const ConvolutionRun& run) const = 0;
  const ConvolutionForm& form() const { return form_; }
  // Runs tasks on the pool, or on the calling thread alone.
  static void run_tasks(ThreadPool& pool, bool alone, int64_t tasks,
                        const std::function<void(int64_t task, int worker)>& body);

 private:
  void compute(RunContext& context, OpaqueCall& call) const;

  ConvolutionForm form_;
  std::shared_ptr<const ConvolutionEpilogue> epilogue_;
};

}  // namespace redfuser::cpu
