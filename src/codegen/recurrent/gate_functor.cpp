#include "codegen/recurrent/gate_functor.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

// Functions of Activation (src/device/recurrent/gates.cuh), in the order of ops::GateFunction.
struct Function {
  const char* name;
  bool alpha, beta;
};
constexpr Function kFunctions[] = {
    {"sigmoid", false, false},   {"tanh", false, false},       {"relu", false, false},
    {"affine", true, true},      {"leaky_relu", true, false},  {"thresholded_relu", true, false},
    {"scaled_tanh", true, true}, {"hard_sigmoid", true, true}, {"elu", true, false},
    {"softsign", false, false},  {"softplus", false, false},
};

std::string number(double value) { return literal(value, DType::Float32); }

std::string call_text(const ops::Gate& gate) {
  const Function& function = kFunctions[static_cast<size_t>(gate.function)];
  std::string arguments = "x";
  if (function.alpha) arguments += ", " + number(gate.alpha);
  if (function.beta) arguments += ", " + number(gate.beta);
  return fmt::format("A::{}({})", function.name, arguments);
}

}  // namespace

std::string gate_functor(const ops::NodeView& view, const RecurrentForm& form) {
  const ops::RecurrentLayer& layer = form.layer;
  const size_t count = layer.gates.size() / static_cast<size_t>(layer.directions);
  std::string text = fmt::format(
      "static constexpr bool kBias = {}, kPeepholes = {}, kCoupled = {};\n"
      "using A = Activation<{}>;\n"
      "int direction;\n",
      view.has_input(3), view.has_input(7), layer.coupled, size_of(form.dtype) == 2);
  for (size_t i = 0; i < count; ++i) {
    const char name = "fgh"[i];
    const std::string first = call_text(layer.gates[i]);
    const std::string second = call_text(layer.gates[layer.gates.size() - count + i]);
    // Clipping is of sums; h is of the cell.
    const std::string cut = layer.clip > 0 && name != 'h'
                                ? fmt::format("x = clipped(x, {});\n", number(layer.clip))
                                : "";
    const std::string value =
        first == second ? first : fmt::format("direction == 0 ? {} : {}", first, second);
    text += function_text(fmt::format("float {}(float x) const", name),
                          fmt::format("{}return {};\n", cut, value));
  }
  return struct_text("Gates", text);
}

}  // namespace redfuser::codegen
