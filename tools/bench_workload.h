// The workloads of redfuser-bench: plain ONNX graphs, their inputs, and an independent reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser::tools {

struct Workload {
  std::string suite, name;
  std::string model;      // ONNX's text syntax; its only output is `y`
  std::string path;       // or a file
  NamedTensors expected;  // of a file, and where there is no `reference`
  NamedTensors inputs;
  int64_t rows = 0, width = 1;  // y as a matrix
  int64_t sampled_rows = 64;    // at most, spread evenly, that are checked
  // A row of y in fp64.
  std::function<std::vector<double>(int64_t row)> reference;
};

// Made one at a time, since their tensors are large.
struct WorkloadMaker {
  std::string name;
  std::function<Workload()> make;
};

// Rows of `length` elements, each the sum of those of `terms` tensors.
struct RowShape {
  int64_t rows, length;
  DType dtype = DType::Float16;
  int terms = 1;
  bool symbolic = false;  // the model has them as m and n
};
// "softmax", "layernorm", ...
std::vector<std::string> row_kinds();
std::string row_model(const std::string& kind, const RowShape& shape);
Workload row_workload(const std::string& kind, const std::string& name, const RowShape& shape);

// Rows over some of a tensor's dimensions.
enum class LayoutKind { Softmax, Norm, Sum, Max, Variance };
struct LayoutShape {
  LayoutKind kind;
  Dims dims;
  std::vector<int> reduced;        // dimensions
  std::vector<int> channels = {};  // dimensions that a norm's scale and bias have
  DType dtype = DType::Float16;
};
// `operators`: the graph's nodes from x, g and b to y, in place of the kind's own.
std::string layout_model(const LayoutShape& layout, const char* operators = nullptr);
Workload layout_workload(const std::string& name, const LayoutShape& layout,
                         const char* operators = nullptr);

std::vector<WorkloadMaker> row_workloads(bool quick);
std::vector<WorkloadMaker> row_curve_workloads();
// Rows of any axis and layout.
std::vector<WorkloadMaker> layout_workloads();
// Elementwise steps that change the order of dimensions.
std::vector<WorkloadMaker> map_workloads();
std::vector<WorkloadMaker> attention_workloads(bool quick);
std::vector<WorkloadMaker> decode_workloads(bool quick);
// Attention with less usual masks, types and sizes.
std::vector<WorkloadMaker> accept_attention_workloads();
// Attention of many small and odd shapes, for checks.
std::vector<WorkloadMaker> shape_workloads();
// Top-k, sort, routing, positions of extremes, running sums.
std::vector<WorkloadMaker> select_workloads(bool quick);
// Products of few rows or columns.
std::vector<WorkloadMaker> product_workloads(bool quick);
// Routing to experts, and other reductions over the columns of a product.
std::vector<WorkloadMaker> routing_workloads();
// Norms into products.
std::vector<WorkloadMaker> norm_product_workloads();
// Feed-forward layers: two products with a map, or a gate, between.
std::vector<WorkloadMaker> ffn_workloads(bool quick);
// Rows quantised to 8-bit floats for a product; products of 8-bit integers.
std::vector<WorkloadMaker> quantised_workloads(bool quick);
std::vector<WorkloadMaker> integer_product_workloads(bool quick);
// RNN, GRU and LSTM.
std::vector<WorkloadMaker> recurrent_workloads();
std::vector<WorkloadMaker> model_workloads(const std::string& folder);
// Graphs drawn at random, the same for the same seed: cascades of one to five stages over any axes,
// layout and type; attention of any sizes, types and masks; products beside reductions.
// `small`: of sizes that a CPU computes in milliseconds.
std::vector<WorkloadMaker> gate_workloads(size_t count, uint64_t seed, bool small = false);

// "float16", as ONNX's text syntax has it, and the number of the type in ONNX.
std::string type_name(DType dtype);
int type_number(DType dtype);

// "<ir_version: 9, opset_import: [...]> " and a graph.
std::string model_text(const std::string& graph);

// N(0, deviation²), repeating after about a million elements; other names give other numbers.
// Thread-safe.
Tensor normal_tensor(const std::string& name, DType dtype, Dims dims, float deviation = 1);
// An element of a floating tensor.
double element(const Tensor& tensor, int64_t index);
// ||y - reference|| / ||reference|| over the sampled rows; of whole models over all outputs.
double relative_error(const Workload& workload, const NamedTensors& outputs);

}  // namespace redfuser::tools
