#include <fmt/format.h>

#include "cascade/streaming.h"

namespace redfuser::cascade {
namespace {

std::string axis_list(const ir::ExprPool& pool, const std::vector<ir::Expr>& axes) {
  std::string text;
  for (ir::Expr axis : axes) {
    if (!text.empty()) text += ", ";
    text += axis->op == ir::ExprOp::Axis
                ? fmt::format("{}<{}", pool.axis_name(axis), to_string(pool, axis->extent()))
                : to_string(pool, axis);
  }
  return text;
}

std::string output_lines(const ir::ExprPool& pool, const std::vector<CascadeOutput>& outputs) {
  std::string text;
  for (const CascadeOutput& output : outputs) {
    text += fmt::format("  %{}[{}] = {}\n", output.value, axis_list(pool, output.axes),
                        to_string(pool, output.body));
  }
  return text;
}

}  // namespace

std::string_view name_of(Form form) {
  switch (form) {
    case Form::Plain:
      return "plain";
    case Form::Deferred:
      return "deferred";
    case Form::Rescaled:
      return "rescaled";
    case Form::Translated:
      return "translated";
  }
  return "?";
}

std::string to_string(const ir::ExprPool& pool, const Cascade& cascade) {
  std::string text = fmt::format("cascade over {} for [{}]\n", axis_list(pool, {cascade.stream}),
                                 axis_list(pool, cascade.rows));
  for (size_t i = 0; i < cascade.stages.size(); ++i) {
    const Stage& stage = cascade.stages[i];
    text +=
        fmt::format("  d{}[{}] = {}", i, axis_list(pool, stage.columns), name_of(stage.reduction));
    if (stage.k != 1) text += fmt::format(" {}", stage.k);
    text += fmt::format(" {}\n", to_string(pool, stage.body));
  }
  return text + output_lines(pool, cascade.outputs);
}

std::string to_string(const ir::ExprPool& pool, const Streaming& streaming) {
  std::string text =
      fmt::format("streaming over {} for [{}]\n", axis_list(pool, {streaming.cascade.stream}),
                  axis_list(pool, streaming.cascade.rows));
  for (size_t i = 0; i < streaming.references.size(); ++i) {
    const Reference& reference = streaming.references[i];
    text += fmt::format("  reference {} = {}  (after {})\n", i, to_string(pool, reference.value),
                        reference.ready_after);
  }
  for (size_t i = 0; i < streaming.accumulators.size(); ++i) {
    const Accumulator& a = streaming.accumulators[i];
    text += fmt::format("  A{}[{}] ({}) <- {}", i, axis_list(pool, a.columns), name_of(a.form),
                        name_of(a.reduction));
    text += fmt::format(" {}", to_string(pool, a.lift));
    if (a.transport) text += fmt::format(", moved by {}", to_string(pool, a.transport));
    text += "\n";
  }
  for (size_t i = 0; i < streaming.finish.size(); ++i) {
    text += fmt::format("  d{} = {}\n", i, to_string(pool, streaming.finish[i]));
  }
  return text + output_lines(pool, streaming.cascade.outputs);
}

}  // namespace redfuser::cascade
