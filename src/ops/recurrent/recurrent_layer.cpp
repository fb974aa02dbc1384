#include "ops/recurrent/recurrent_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <variant>

namespace redfuser::ops {
namespace {

struct Activation {
  const char* name;
  GateFunction function;
  bool alpha, beta;
  double default_alpha, default_beta;
};
constexpr Activation kActivations[] = {
    {"sigmoid", GateFunction::Sigmoid, false, false, 0, 0},
    {"tanh", GateFunction::Tanh, false, false, 0, 0},
    {"relu", GateFunction::Relu, false, false, 0, 0},
    {"affine", GateFunction::Affine, true, true, 1, 0},
    {"leakyrelu", GateFunction::LeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", GateFunction::ThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", GateFunction::ScaledTanh, true, true, 1, 1},
    {"hardsigmoid", GateFunction::HardSigmoid, true, true, 0.2, 0.5},
    {"elu", GateFunction::Elu, true, false, 1, 0},
    {"softsign", GateFunction::Softsign, false, false, 0, 0},
    {"softplus", GateFunction::Softplus, false, false, 0, 0},
};

template <typename T>
T attribute_of(const NodeView& view, const std::string& name) {
  if (!view.has(name)) return {};
  const auto* value = std::get_if<T>(&view.node().attributes.at(name));
  if (!value) view.fail(fmt::format("attribute \"{}\" has the wrong kind", name));
  return *value;
}

const Activation& activation_of(const NodeView& view, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const Activation& a) { return a.name == name; });
  if (known == std::end(kActivations)) {
    view.fail(fmt::format("activation \"{}\" is not supported", name));
  }
  return *known;
}

// Parameters are listed in the order of the activations that have them.
std::vector<Gate> gates_of(const NodeView& view, Cell cell, int64_t directions) {
  std::vector<std::string> defaults = {"Sigmoid", "Tanh", "Tanh"};
  if (cell == Cell::Gru) defaults.pop_back();
  if (cell == Cell::Rnn) defaults = {"Tanh"};
  auto names = attribute_of<std::vector<std::string>>(view, "activations");
  const auto alphas = attribute_of<std::vector<float>>(view, "activation_alpha");
  const auto betas = attribute_of<std::vector<float>>(view, "activation_beta");
  for (int64_t d = 0; !view.has("activations") && d < directions; ++d) {
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const size_t needed = defaults.size() * static_cast<size_t>(directions);
  if (names.size() != needed) {
    view.fail(fmt::format("{} activations, {} are needed", names.size(), needed));
  }
  std::vector<Gate> gates;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const Activation& known = activation_of(view, name);
    Gate gate{known.function, known.default_alpha, known.default_beta};
    if (known.alpha && next_alpha < alphas.size()) gate.alpha = alphas[next_alpha++];
    if (known.beta && next_beta < betas.size()) gate.beta = betas[next_beta++];
    gates.push_back(gate);
  }
  return gates;
}

}  // namespace

RecurrentLayer recurrent_layer(const NodeView& view, Cell cell) {
  RecurrentLayer layer;
  const std::string direction = view.text("direction", "forward");
  layer.cell = cell;
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.batch_first = view.integer("layout", 0) != 0;
  layer.backward = direction == "reverse";
  layer.linear_before_reset = view.integer("linear_before_reset", 0) != 0;
  layer.clip = view.real("clip", 0);
  layer.coupled = view.integer("input_forget", 0) != 0;
  layer.gates = gates_of(view, cell, layer.directions);
  return layer;
}

}  // namespace redfuser::ops
