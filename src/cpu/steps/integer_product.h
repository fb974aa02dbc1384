// The products of a step over 8-bit integers, for fixed sizes: packed factors, zero points and the
// blocks of the result.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cpu/prepared.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/step.h"
#include "cpu/tile/product_layout.h"

namespace redfuser::cpu {

// A zero point for each batch and row (or column) of an operand.
struct ZeroPoint {
  int32_t constant = 0;
  ir::ValueId value = ir::kAbsent;  // where present: element `at` of it, of parts batch and row
  SeparatedOffset at;
};

struct IntegerOperand {
  ir::ValueId value = ir::kAbsent;
  DType dtype = DType::Int8;
  bool constant = false;
  SeparatedOffset at;  // parts: batch, row (or column), k
  ZeroPoint zero;
};

// A constant right operand in panels, one set of them for each batch.
struct PackedPanels {
  SeparatedOffset at;
  int64_t n = 0, k = 0, batches = 1;
  const IntegerKernels* kernels = nullptr;  // that multiply them
  Tensor panels;
  std::vector<int32_t> sums;  // of columns
  // The rests of the panels of all batches (split_pairs).
  std::vector<int64_t> begins;
  std::vector<int32_t> split_groups;
  std::vector<uint32_t> split_words;

  // Of a batch's panels from a column on, a whole number of panels behind the first.
  IntegerRests rests(int64_t batch, int64_t column) const;
};

// The panels of a step's constant operands, shared by the plans of all sizes. Thread-safe.
class PanelStore {
 public:
  // `operand` is number `index` of the step, of n columns and depth k; it is packed unless it was.
  std::shared_ptr<const PackedPanels> get(size_t index, const IntegerOperand& operand,
                                          const Tensor& tensor, int64_t batches, int64_t n,
                                          int64_t k);
  // The same for the filters of a convolution in a family's layout, which depends on no size.
  std::shared_ptr<const Tensor> filters(const std::string& family,
                                        const std::function<Tensor()>& pack);
  // Of the step's node.
  Prepared& prepared() { return prepared_; }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const PackedPanels>> kept_;
  std::map<std::string, std::shared_ptr<const Tensor>> filters_;  // by family
  Prepared prepared_;
};

struct IntegerBlock {
  int64_t batch = 0, row = 0, column = 0, rows = 0, columns = 0;
  void* out = nullptr;  // row-major
  int64_t out_stride = 0;
  DType dtype = DType::Int32;  // of the result: int32 or float32
  char* scratch = nullptr;     // IntegerProduct::scratch_bytes(), aligned to 64
};

class IntegerProduct {
 public:
  int64_t k = 0;
  IntegerOperand a;
  std::vector<IntegerOperand> b;
  std::vector<std::shared_ptr<const PackedPanels>> packed;  // null for one that is not constant

  // Takes the panels of right operands that are constants of `graph` from `store`.
  void pack_constants(const ir::Graph& graph, PanelStore& store, int64_t batches, int64_t n);
  // Microseconds of one block of all products, besides the bytes of the operands.
  double time(double rows, double columns) const;
  // Of blocks of at most this size.
  int64_t scratch_bytes(int64_t rows, int64_t columns) const;
  // out = Σ_k (a − a_zero) · (b − b_zero) of product `index`.
  void run(const RunContext& context, size_t index, const IntegerBlock& block) const;

 private:
  struct Parts;
  Parts parts_of(char* scratch, int64_t rows, int64_t columns) const;
};

}  // namespace redfuser::cpu
