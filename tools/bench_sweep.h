// Kernels at many sizes: whether they launch and what they compute, untimed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_workload.h"

namespace redfuser::tools {

struct SweepCase {
  std::string name;
  double tolerance = 0;  // of relative_error
  int64_t elements = 0;  // of all inputs
  double work = 0;       // multiply-adds, or elements of rows
  std::function<std::string()> model;
  std::function<Workload()> make;
};

// Every kind of row over one to four summed tensors, in three types: powers of two and what lies
// between them up to 2^21, and their neighbours.
std::vector<SweepCase> row_sweep();
std::vector<int64_t> row_lengths();
// Rows over strided, several and distant dimensions, of few and many elements and neighbours.
std::vector<SweepCase> layout_sweep();
// Head sizes from 1 to 512, few and many queries, keys and heads.
std::vector<SweepCase> attention_sweep();
// Products alone and with an epilogue.
std::vector<SweepCase> product_sweep();

// `count` of the cases, all if there are not so many: the same for the same seed everywhere.
std::vector<SweepCase> sampled(std::vector<SweepCase> cases, size_t count, uint64_t seed);

struct SweepOptions {
  size_t count = 400;  // cases
  uint64_t seed = 1;
  std::string only;  // those whose name contains this
  std::string json;  // where the results go; empty: nowhere
  std::string commit;
  SessionOptions session;
};
// Runs a sample of all that fit into memory, as many at a time as there are cores, and compares
// them with fp64. Prints a line for each as it ends, so that the first failure of a GPU comes
// first. Returns the tool's exit code.
int run_sweep(const SweepOptions& options);

}  // namespace redfuser::tools
