// What a plan becomes for a GPU: launches of generated kernels and calls of a product library, over
// values, scratch buffers and sizes. No CUDA call is made here.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "plan/plan.h"

namespace redfuser {

// What text is specialised on.
struct Target {
  int architecture = 90;  // 80, 89, 90, 100: compute capability times ten
  int multiprocessors = 132;
  int shared_bytes = 227 * 1024;  // largest dynamic shared memory of a block
  bool tf32 = false;              // fp32 products may round their operands to TF32
};

// A device buffer: a value of the graph, or a scratch buffer of the step.
struct BufferRef {
  ValueId value = -1;
  int scratch = -1;
  bool defined() const { return value >= 0 || scratch >= 0; }
};

struct Scratch {
  Expr bytes;  // Int64 over symbols
};

// A kernel of one generated source. Arguments in order: one pointer per buffer, then one int64 per
// size expression.
struct KernelLaunch {
  std::string name;    // extern "C" symbol; also the family's name in traces
  std::string source;  // CUDA C++ text; equal sources are compiled once
  std::vector<BufferRef> buffers;
  std::vector<Expr> sizes;
  Expr grid[3];  // Int64 over symbols; a zero means nothing to launch
  int block = 256;
  int shared = 0;   // dynamic shared memory, bytes
  int cluster = 1;  // blocks per cluster along x
};

// c[batch, m, n] = Σ_k a · b with element strides, batched; all Int64 expressions over symbols.
// Either the row or the column stride of each matrix is 1.
struct ProductCall {
  BufferRef a, b, c;
  DType dtype = DType::Float32;   // of a and b
  DType result = DType::Float32;  // of c; accumulation is fp32
  Expr m, n, k;
  Expr a_row, a_column, b_row, b_column, c_row;  // c's column stride is 1
  Expr a_offset, b_offset;
  Expr batch, a_batch, b_batch, c_batch;
  // Where there are such: n contiguous elements of the result's dtype, and a matrix laid out as c;
  // c[batch, m, n] = Σ_k a · b + bias[n] + addend[batch, m, n], rounded once.
  BufferRef bias, addend;
};

using DeviceCall = std::variant<KernelLaunch, ProductCall>;

struct DeviceStep {
  std::vector<DeviceCall> calls;
  std::vector<Scratch> scratch;
};

// The device form of a step. Throws UserError naming the user's node if there is none.
DeviceStep generate(const Graph& graph, const Step& step, const Target& target);

}  // namespace redfuser
