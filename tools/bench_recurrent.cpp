// Recurrent layers, one behind the other.
#include <cmath>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Recurrent {
  const char* op;
  int64_t hidden, batch = 16, steps = 500;
  DType dtype = DType::Float16;
  int layers = 1, directions = 2;
  const char* attributes = "";

  int64_t gates() const { return op[0] == 'L' ? 4 : op[0] == 'G' ? 3 : 1; }
  int64_t width() const { return directions * hidden; }
  // Of a layer. The first one has as many inputs as units.
  int64_t inputs(int layer) const { return layer == 0 ? hidden : width(); }
};

std::string graph_of(const Recurrent& r) {
  const std::string type = type_name(r.dtype);
  std::string inputs = fmt::format("{}[{}, {}, {}] x0", type, r.steps, r.batch, r.hidden);
  std::string nodes = "last = Constant<value = int64[3] {0, 0, -1}>() ";
  for (int i = 0; i < r.layers; ++i) {
    const int64_t rows = r.gates() * r.hidden;
    inputs += fmt::format(", {0}[{1}, {2}, {3}] w{5}, {0}[{1}, {2}, {4}] r{5}, {0}[{1}, {6}] b{5}",
                          type, r.directions, rows, r.inputs(i), r.hidden, i, 2 * rows);
    nodes += fmt::format(
        "s{0} = {1}<hidden_size = {2}, direction = \"{3}\"{4}>(x{0}, w{0}, r{0}, b{0}) "
        "t{0} = Transpose<perm = [0, 2, 1, 3]>(s{0}) {5} = Reshape(t{0}, last) ",
        i, r.op, r.hidden, r.directions == 2 ? "bidirectional" : "forward", r.attributes,
        i + 1 == r.layers ? "y" : fmt::format("x{}", i + 1));
  }
  return fmt::format("g ({}) => ({}[{}, {}, {}] y) {{ {} }}", inputs, type, r.steps, r.batch,
                     r.width(), nodes);
}

// The expected values are the CPU's, whose gates and products have tests in double precision.
Workload recurrent(const std::string& name, const Recurrent& r) {
  Workload workload;
  workload.suite = "recurrent";
  workload.name = name;
  workload.model = model_text(graph_of(r));
  const auto add = [&](const std::string& input, Dims dims, double deviation) {
    workload.inputs[input] =
        normal_tensor(input, r.dtype, std::move(dims), static_cast<float>(deviation));
  };
  add("x0", {r.steps, r.batch, r.hidden}, 1);
  for (int i = 0; i < r.layers; ++i) {
    const int64_t rows = r.gates() * r.hidden, depth = r.inputs(i);
    add(fmt::format("w{}", i), {r.directions, rows, depth}, 1 / std::sqrt(depth));
    add(fmt::format("r{}", i), {r.directions, rows, r.hidden}, 0.8 / std::sqrt(r.hidden));
    add(fmt::format("b{}", i), {r.directions, 2 * rows}, 0.1);
  }
  workload.rows = r.steps * r.batch;
  workload.width = r.width();
  SessionOptions on_cpu;
  on_cpu.device = "cpu";
  workload.expected = Session(compile(Model::parse(workload.model)), on_cpu).run(workload.inputs);
  return workload;
}

struct Named {
  const char* name;
  Recurrent layers;
};

constexpr DType kFloat = DType::Float32, kHalf = DType::Float16;
constexpr const char* kLinear = ", linear_before_reset = 1";

const Named kRecurrent[] = {
    {"lstm3_h512_b16", {"LSTM", 512, 16, 500, kHalf, 3}},
    {"lstm_h512_b16", {"LSTM", 512}},
    {"lstm_h512_b1", {"LSTM", 512, 1}},
    {"lstm_h512_b64", {"LSTM", 512, 64}},
    {"lstm_h512_b16_f32", {"LSTM", 512, 16, 500, kFloat}},
    {"lstm_h16_b16", {"LSTM", 16}},
    {"lstm_h128_b16", {"LSTM", 128}},
    {"lstm_h128_b16_f32", {"LSTM", 128, 16, 500, kFloat}},
    {"lstm_h256_b16", {"LSTM", 256}},
    {"lstm_h300_b20", {"LSTM", 300, 20}},
    {"lstm_h1024_b16", {"LSTM", 1024, 16, 200}},
    {"lstm_h1024_b16_f32", {"LSTM", 1024, 16, 50, kFloat}},
    {"lstm_h2048_b16", {"LSTM", 2048, 16, 50}},
    {"lstm_h2048_b64", {"LSTM", 2048, 64, 20}},
    {"lstm_h2048_b16_f32", {"LSTM", 2048, 16, 20, kFloat}},
    {"gru_h512_b16", {"GRU", 512}},
    {"gru_h512_b16_linear", {"GRU", 512, 16, 500, kHalf, 1, 2, kLinear}},
    {"gru_h512_b16_f32", {"GRU", 512, 16, 500, kFloat}},
    {"gru_h2048_b16", {"GRU", 2048, 16, 50, kHalf, 1, 1, kLinear}},
    {"rnn_h512_b16", {"RNN", 512}},
    {"rnn_h2048_b16", {"RNN", 2048, 16, 200}},
};

}  // namespace

std::vector<WorkloadMaker> recurrent_workloads() {
  std::vector<WorkloadMaker> makers;
  for (const Named& each : kRecurrent) {
    makers.push_back({each.name, [&each] { return recurrent(each.name, each.layers); }});
  }
  return makers;
}

}  // namespace redfuser::tools
