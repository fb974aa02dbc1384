#include "codegen/recurrent/recurrent_kernel.h"

#include <fmt/ranges.h>

#include "codegen/recurrent/gate_functor.h"

namespace redfuser::codegen {
namespace {

const char* cell_name(ops::Cell cell) {
  return cell == ops::Cell::Lstm ? "kLstm" : cell == ops::Cell::Gru ? "kGru" : "kRnn";
}

class RecurrentText {
 public:
  RecurrentText(StepBuilder& builder, const ops::NodeView& view, const RecurrentForm& form,
                const RecurrentConfig& config)
      : builder_(builder),
        pool_(builder.pool()),
        view_(view),
        form_(form),
        config_(config),
        exchanged_(config.grid ? add_exchanged(builder, form, config) : -1),
        kernel_(builder.kernel()) {}

  KernelLaunch launch(int64_t inputs) {
    const std::string body = fmt::format(
        "extern __shared__ __align__(16) char memory[];\n"
        "const LayerTensors<{0}> tensors{{{1}}};\n"
        "LayerRun<Layer, Gates>(tensors, memory).run();\n",
        storage_type(form_.dtype), tensors(inputs));
    KernelLaunch launch =
        kernel_.launch(config_.family(), equations(), {"device/recurrent/layer.cuh"},
                       gate_functor(view_, form_) + layer(), body, RecurrentConfig::kWarps * 32, 1);
    launch.config = config_.parameters();
    launch.cluster = config_.grid ? 1 : config_.blocks;
    launch.together = config_.grid;
    launch.shared = static_cast<int>(recurrent_shared_bytes(form_, config_));
    launch.grid[0] = pool_.mul(ceil_div(pool_, form_.batch, config_.batch),
                               pool_.integer(form_.layer.directions * config_.blocks));
    return launch;
  }

  static int64_t add_exchanged(StepBuilder& builder, const RecurrentForm& form,
                               const RecurrentConfig& config) {
    const int64_t elements = recurrent_exchanged(form, config);
    return builder.add_scratch(form.dtype, builder.pool().integer(elements));
  }

 private:
  std::string equations() const {
    return fmt::format("{} of {} units, {} direction{}\n", view_.node().op, form_.hidden,
                       form_.layer.directions, form_.layer.directions > 1 ? "s" : "");
  }

  std::string layer() const {
    const int64_t bytes = recurrent_shared_bytes(form_, config_);
    return fmt::format(
        "using Layer = LayerConfig<{}, Cell::{}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;\n"
        "static_assert(Layer::kBytes == {});\n",
        storage_type(form_.dtype), cell_name(form_.layer.cell), form_.layer.linear_before_reset,
        form_.hidden, recurrent_units(form_, config_), config_.blocks, config_.batch,
        RecurrentConfig::kWarps, config_.held, config_.resident, config_.grid, bytes);
  }

  std::string input(int number) {
    if (!view_.has_input(number)) return "nullptr";
    return kernel_.buffer(view_.node().inputs[static_cast<size_t>(number)]);
  }
  std::string output(int number) {
    if (!view_.has_output(number)) return "nullptr";
    return kernel_.buffer(view_.node().outputs[static_cast<size_t>(number)], true);
  }
  std::string size(const std::vector<ir::Expr>& factors) {
    return kernel_.size(product_of(pool_, factors));
  }

  // The members of LayerTensors.
  std::string tensors(int64_t inputs) {
    const ops::RecurrentLayer& layer = form_.layer;
    const bool cells = layer.cell == ops::Cell::Lstm;
    const ir::Expr hidden = pool_.integer(form_.hidden), columns = pool_.integer(form_.columns());
    const ir::Expr both = pool_.integer(layer.directions * form_.hidden);
    const ir::Expr steps = form_.steps, batch = form_.batch, one = pool_.integer(1);
    const bool first = layer.batch_first;
    const std::string r = input(2);
    const int64_t width = 16 / static_cast<int64_t>(size_of(form_.dtype));
    std::vector<std::string> members = {
        kernel_.buffer(inputs),
        r,
        input(3),
        input(5),
        cells ? input(6) : "nullptr",
        cells ? input(7) : "nullptr",
        input(4),
        output(0),
        output(1),
        cells ? output(2) : "nullptr",
        kernel_.size(steps),
        kernel_.size(batch),
        layer.backward ? "true" : "false",
        form_.hidden % width == 0 ? fmt::format("aligned({})", r) : "false",
        // x_step, x_sequence
        size({first ? one : batch, columns}),
        size({first ? steps : one, columns}),
        // y_step, y_sequence, y_direction
        size({first ? one : batch, both}),
        first ? size({steps, both}) : size({hidden}),
        first ? size({hidden}) : size({batch, hidden}),
        // state_sequence, state_direction
        first ? size({both}) : size({hidden}),
        first ? size({hidden}) : size({batch, hidden}),
        config_.grid ? kernel_.buffer(exchanged_, true) : "nullptr",
        config_.grid ? kernel_.counter() : "nullptr",
    };
    return fmt::format("{}", fmt::join(members, ", "));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ops::NodeView& view_;
  const RecurrentForm& form_;
  const RecurrentConfig& config_;
  int64_t exchanged_;  // a scratch buffer, of a grid
  KernelText kernel_;
};

}  // namespace

KernelLaunch recurrent_kernel(StepBuilder& builder, const ops::NodeView& view,
                              const RecurrentForm& form, const RecurrentConfig& config,
                              int64_t inputs) {
  return RecurrentText(builder, view, form, config).launch(inputs);
}

}  // namespace redfuser::codegen
