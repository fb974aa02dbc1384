// Graphs of one recurrent layer in ONNX's text syntax, for tests of their kernels.
#pragma once

#include <fmt/format.h>

#include <string>

namespace redfuser::testing {

struct RecurrentCase {
  const char* name;
  const char* op;
  int64_t hidden;
  const char* type = "float16";
  const char* direction = "forward";
  const char* attributes = "";  // ", clip = 0.5"
  // Inputs beyond x, w and r: bias, lengths, h, c, peepholes, as letters "blhcp".
  const char* given = "";
  const char* steps = "7";
  const char* batch = "3";
  int64_t input = 20;

  bool has(char letter) const { return std::string(given).find(letter) != std::string::npos; }
  int64_t gates() const { return op[0] == 'L' ? 4 : op[0] == 'G' ? 3 : 1; }
  int64_t directions() const { return direction[0] == 'b' ? 2 : 1; }
  bool batch_first() const {
    return std::string(attributes).find("layout = 1") != std::string::npos;
  }
};

inline std::string recurrent_model(const RecurrentCase& c) {
  const int64_t d = c.directions(), rows = c.gates() * c.hidden;
  const bool cells = c.op[0] == 'L';
  const std::string state = c.batch_first() ? fmt::format("{}, {}, {}", c.batch, d, c.hidden)
                                            : fmt::format("{}, {}, {}", d, c.batch, c.hidden);
  std::string inputs =
      fmt::format("{0}[{1}] x, {0}[{2}, {3}, {4}] w, {0}[{2}, {3}, {5}] r", c.type,
                  c.batch_first() ? fmt::format("{}, {}, {}", c.batch, c.steps, c.input)
                                  : fmt::format("{}, {}, {}", c.steps, c.batch, c.input),
                  d, rows, c.input, c.hidden);
  if (c.has('b')) inputs += fmt::format(", {}[{}, {}] b", c.type, d, 2 * rows);
  if (c.has('l')) inputs += fmt::format(", int32[{}] l", c.batch);
  if (c.has('h')) inputs += fmt::format(", {}[{}] h", c.type, state);
  if (c.has('c')) inputs += fmt::format(", {}[{}] c", c.type, state);
  if (c.has('p')) inputs += fmt::format(", {}[{}, {}] p", c.type, d, 3 * c.hidden);
  const auto name = [&](char letter) { return c.has(letter) ? std::string(1, letter) : ""; };
  std::string arguments = fmt::format("x, w, r, {}, {}, {}", name('b'), name('l'), name('h'));
  if (cells) arguments += fmt::format(", {}, {}", name('c'), name('p'));
  const std::string all = c.batch_first()
                              ? fmt::format("{}, {}, {}, {}", c.batch, c.steps, d, c.hidden)
                              : fmt::format("{}, {}, {}, {}", c.steps, d, c.batch, c.hidden);
  std::string outputs = fmt::format("{0}[{1}] y, {0}[{2}] y_h", c.type, all, state);
  if (cells) outputs += fmt::format(", {}[{}] y_c", c.type, state);
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 22]> g ({}) => ({}) "
      "{{ y, y_h{} = {}<hidden_size = {}, direction = \"{}\"{}>({}) }}",
      inputs, outputs, cells ? ", y_c" : "", c.op, c.hidden, c.direction, c.attributes, arguments);
}

}  // namespace redfuser::testing
