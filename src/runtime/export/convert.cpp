#include "redfuser/convert.h"

#include "base/dispatch.h"
#include "base/error.h"
#include "onnx/export/export.h"
#include "onnx/proto/type_support.h"
#include "passes/pipeline.h"
#include "passes/precision/convert_floats.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {

ConvertedModel convert(const Model& model, const ConvertOptions& options) {
  RF_CHECK(model.handle() != nullptr, "convert: the model is empty");
  if (options.to != DType::Float16 && options.to != DType::BFloat16) {
    user_error("a model is converted to float16 or bfloat16, not to {}", name_of(options.to));
  }
  if (const std::string reason = model.handle()->run_time_structure(); !reason.empty()) {
    user_error("cannot be converted before its values are known: {}", reason);
  }
  ir::Graph graph = clone(model.handle()->graph);
  passes::optimize(graph);
  ConvertedModel result;
  passes::FloatConversion conversion{options.to, options.keep_io};
  conversion.allowed = [&](const ir::Node& node) { return onnx::takes_type(node, options.to); };
  for (const passes::OverflowingConstant& constant : convert_floats(graph, conversion)) {
    result.overflowing.push_back({constant.name, constant.largest, constant.elements});
  }
  passes::optimize(graph);
  result.model = Model(with_graph(*model.handle(), graph));
  return result;
}

Tensor cast_floats(const Tensor& tensor, DType dtype) {
  if (!is_float(tensor.dtype()) || !is_float(dtype)) {
    user_error("no cast of {} to {}", describe(tensor), name_of(dtype));
  }
  if (tensor.dtype() == dtype) return tensor;
  Tensor result(dtype, tensor.dims());
  dispatch(tensor.dtype(), [&](auto from) {
    dispatch(dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      for (int64_t i = 0; i < tensor.size(); ++i) {
        const auto value = static_cast<Arithmetic<From>>(tensor.as<From>()[i]);
        result.as<To>()[i] = static_cast<To>(static_cast<double>(value));
      }
    });
  });
  return result;
}

}  // namespace redfuser
