// A step of the plan for a GPU: launches of generated kernels and calls of a product library, over
// values, scratch buffers and sizes. Nothing here calls CUDA.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/core/memory_order.h"
#include "fuse/plan.h"
#include "select/machine.h"
#include "select/offer.h"

namespace redfuser::codegen {

// The machine that kernels are specialised for, the options of the user, and where values are in
// memory.
struct Target : select::Machine {
  bool tf32 = false;            // fp32 products may round their operands to TF32
  bool exact_products = false;  // fp32 operands stay whole
  bool exact_masks = false;     // elements hidden by attention masks may be infinite or NaN
  bool portable = false;        // only families that every GPU runs
  bool scaled_products = true;  // the product library scales lines of products of 8-bit floats
  std::shared_ptr<const MemoryOrders> orders = nullptr;  // null: every value is row-major
  std::shared_ptr<const Appends> appends = nullptr;      // null: no memory has room

  // Null: row-major.
  const MemoryOrder* order_of(int64_t value) const;
  // Null: dense memory that is written whole.
  const fuse::Append* append_of(int64_t value) const;
};

using select::kBlockReserved;
using select::Offer;
using select::Parameters;

// A device buffer: a value of the graph, or a scratch buffer of the step.
struct BufferRef {
  ir::ValueId value = -1;
  int scratch = -1;
  bool defined() const { return value >= 0 || scratch >= 0; }
  // Whether no kernel of a run writes it: a constant, or an input of the graph.
  bool is_given(const ir::Graph& graph) const {
    return value >= 0 && graph.values[static_cast<size_t>(value)].is_given();
  }
};

struct Scratch {
  ir::Expr bytes;  // Int64 over symbols
};

// A view of a buffer for TMA: the driver's tiled tensor map of 16-bit
// elements, with 128-byte swizzle and zeros outside of its dimensions. Dimensions are innermost
// first, the first contiguous; strides and offset are multiples of 8 elements by construction, and
// the buffer must be aligned to 16 bytes.
struct TmaView {
  BufferRef buffer;
  DType dtype = DType::Float16;
  ir::Expr offset;  // elements from the buffer's start; Int64 over symbols, like the rest
  std::vector<ir::Expr> dims;     // 3 to 5
  std::vector<ir::Expr> strides;  // elements, of every dimension but the first
  std::vector<int> box;           // elements of a copy, per dimension
  // As cuda::TensorLayout has them, for copies of windows. Empty for boxes.
  std::vector<ir::Expr> lower = {}, upper = {};
  std::vector<int> steps = {};

  // The offset, then all sizes.
  std::vector<ir::Expr> sizes() const {
    std::vector<ir::Expr> all = {offset};
    for (const auto* list : {&dims, &strides, &lower, &upper}) {
      all.insert(all.end(), list->begin(), list->end());
    }
    return all;
  }
};

inline constexpr int kLaunchCounters = 4096;

// A kernel of one generated source. Arguments in order: one tensor map by value per view, one
// pointer per buffer, one int64 per size expression, then, for one with counters, the address of
// kLaunchCounters unsigned numbers, which are 0 when it starts and when it ends.
struct KernelLaunch {
  std::string family;  // "attention_hopper"
  std::string name;    // extern "C" symbol, by kernel_name
  std::string source;  // CUDA C++ text; equal sources are compiled once, whatever step they are of
  Parameters config;   // of the family
  std::vector<std::string_view> headers;  // of src/device, whose text is part of the source
  // The launch as a comment on the text: the user's nodes, and a line per argument such as
  // "p0 = scores f16[8,12,512,64]".
  std::string nodes;
  std::vector<std::string> parameters;
  std::vector<TmaView> views;
  std::vector<BufferRef> buffers;
  std::vector<ir::Expr> sizes;
  ir::Expr grid[3];  // Int64 over symbols; a zero means nothing to launch
  int block = 256;
  int shared = 0;  // dynamic shared memory, bytes
  int static_shared =
      0;            // static shared memory, with padding to the alignment of the dynamic one, bytes
  int cluster = 1;  // blocks per cluster along x
  bool counter = false;
  bool together =
      false;  // all blocks run at the same time: the grid has at most one per multiprocessor
  // Whether the kernel may start while the launches before it still run, for which it waits itself
  // (programmatic dependent launch).
  bool early = false;
  double time = 0;  // microseconds by estimate, at the sizes that the builder knows; 0: unknown
};

// c[batch, m, n] = Σ_k a · b with element strides, batched; all Int64 expressions over symbols.
// Either the row or the column stride of each matrix is 1.
struct ProductCall {
  BufferRef a, b, c;
  DType dtype = DType::Float32;   // of a and b
  DType result = DType::Float32;  // of c; accumulation is fp32
  ir::Expr m, n, k;
  ir::Expr a_row, a_column, b_row, b_column, c_row;  // c's column stride is 1
  ir::Expr a_offset, b_offset;
  ir::Expr batch, a_batch, b_batch, c_batch;
  // Optional: n contiguous elements of the result's dtype, and a matrix with the layout of c;
  // c[batch, m, n] = Σ_k a · b + bias[n] + addend[batch, m, n], rounded once.
  BufferRef bias, addend;
  // Null, or the size of whole vectors: up to there both operands have zeros behind k, and b has
  // columns behind n. The library may multiply these too.
  ir::Expr padded_n = nullptr, padded_k = nullptr;
  // Optional, for 8-bit floats: fp32 factors of Σ a · b, one of the whole product in a_scale, or,
  // with line_scales, of its m rows in a_scale and of its n columns in b_scale. Bias and addend are
  // added behind them.
  BufferRef a_scale, b_scale;
  bool line_scales = false;
  // Number of an algorithm in the order of the library's proposals, from 0 to kProductAlgorithms
  // - 1. Some numbers have no algorithm.
  int algorithm = 0;
};
inline constexpr int kProductAlgorithms = 5;

using GpuCall = std::variant<KernelLaunch, ProductCall>;

// What is not offered for a step because its kernels failed to compile, load or launch, each with
// the error: families of configurations and of kernels, and whole offers by their names.
struct LeftOut {
  std::map<std::string, std::string> families, offers;
};

// A size that the kernels of a step find: an int64 in a scratch buffer, which the host reads behind
// them. Values that have the size lie dense in memory for `most`.
struct FoundSize {
  ir::Expr symbol = nullptr;
  ir::Expr most = nullptr;  // Int64 over symbols
  int scratch = -1;
};

struct GpuStep {
  std::vector<GpuCall> calls;
  double time = 0;            // microseconds by estimate at sizes that the builder knew; 0: unknown
  std::vector<Offer> offers;  // the chosen one first; none for an alias
  LeftOut left_out;           // that it was made without
  std::vector<Scratch> scratch;
  std::optional<FoundSize> found;
  std::shared_ptr<const ir::ExprPool> pool = nullptr;  // owns the sizes
};

}  // namespace redfuser::codegen
