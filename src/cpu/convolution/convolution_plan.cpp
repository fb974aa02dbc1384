#include "cpu/convolution/convolution_plan.h"

#include <new>

#include "base/error.h"

namespace redfuser::cpu {

double ConvolutionForm::output_bytes() const {
  return static_cast<double>(shape.batch * shape.filters * count_of(shape.window.output)) *
         static_cast<double>(size_of(dtype));
}

ConvolutionForm convolution_of(const StepForm& form) {
  const auto& step = std::get<fuse::OpaqueStep>(form.kind);
  const ir::Node& node = form.graph.nodes[static_cast<size_t>(step.node)];
  const ops::NodeView view(form.graph, node);
  const auto sizes = [&](int input) {
    return dims_of(form.graph, node.inputs[input], form.symbols);
  };
  ConvolutionForm result{form.graph, step.node, make_conv_shape(view, sizes(0), sizes(1))};
  if (view.dtype(0) == DType::Float64) result.dtype = DType::Float64;
  result.constant_weights = view.input(1).is_constant();
  return result;
}

void ConvolutionPlan::run(RunContext& context) const {
  Prepared none;
  OpaqueCall call(context, context.graph.nodes[static_cast<size_t>(form_.node)], none);
  const ConvShape& s = form_.shape;
  try {
    const Tensor x = call.widened(0), weights = call.widened(1);
    const Tensor bias = call.has_input(2) ? call.widened(2) : Tensor();
    if (bias.defined() && bias.size() != s.filters) {
      call.fail(fmt::format("bias {} for {} filters", describe(bias), s.filters));
    }
    Tensor y(form_.dtype, s.window.dims(s.batch, s.filters, s.window.output));
    if (!form_.empty()) {
      compute({x.data(), weights.data(), bias.defined() ? bias.data() : nullptr, y.mutable_data(),
               call.threads()});
    }
    call.set(0, std::move(y));
  } catch (const std::bad_alloc&) {
    call.fail("out of memory");
  }
}

void ConvolutionPlan::run_tasks(ThreadPool& pool, bool alone, int64_t tasks,
                                const std::function<void(int64_t, int)>& body) {
  if (!alone) return pool.parallel_for(tasks, body);
  for (int64_t task = 0; task < tasks; ++task) body(task, 0);
}

}  // namespace redfuser::cpu
