// Builds a kernel: its parameters, and the text that uses them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "codegen/text/type_text.h"

namespace redfuser::codegen {

// The value numbers of scratch buffers in Reads.
inline constexpr int64_t kScratchValues = int64_t{1} << 32;

class KernelText {
 public:
  // For a kernel of `step` on a machine; all must outlive this.
  KernelText(const ir::Graph& graph, const fuse::Step& step, std::vector<DType> scratch_dtypes,
             const select::Machine& machine)
      : graph_(graph), step_(step), scratch_dtypes_(std::move(scratch_dtypes)), machine_(machine) {}

  const ir::Graph& graph() const { return graph_; }
  ir::ExprPool& pool() const { return *graph_.pool; }
  DType dtype_of(int64_t value) const;
  // The pointer parameter of a value (or scratch buffer, by its number).
  std::string buffer(int64_t value, bool written = false);
  // The same of a value in the block's shared memory: the body declares the pointer.
  std::string shared_buffer(int64_t value);
  bool in_shared(int64_t value) const;
  // The tensor map parameter of a view.
  std::string view(TmaView view);
  // Text of the kernel has values of this type: the launch has its header.
  void note_type(DType dtype) { low_bit_ |= is_low_bit_float(dtype); }
  // Text of the kernel has reductions within an expression: the launch has their header.
  void note_terms() { terms_ = true; }
  // The kernel may start while those before it still run (KernelLaunch::early), where the machine
  // can: it begins with a wait for them. Values that a run writes are then not declared as
  // read-only memory, whose loads the compiler would be free to move before the wait.
  void start_early() { early_ = machine_.starts_early(); }
  // The body itself waits (ptx_await_launches), in all blocks, and until then reads constants and
  // inputs of the graph alone.
  void wait_in_body() { waits_in_body_ = true; }
  // The parameter of the launch's counter.
  std::string counter();
  // The parameter or literal of a size: an Int64 expression over symbols.
  std::string size(ir::Expr size);
  // The text of a bool: sizes are multiples of `unit` (1 where the expression is not null).
  std::string multiples(const std::vector<ir::Expr>& sizes, int64_t unit);
  const std::vector<std::string>& buffer_names() const { return names_; }
  // The parameters so far, buffers and sizes, as members of a struct, and their names as its
  // initialisers, with commas between.
  std::string members() const;
  std::string member_values() const;

  // The launch of a kernel with this `body`. The step's equations are a comment before it, `before`
  // is text at namespace scope, `headers` are the templates that both use ("device/scan.cuh"). The
  // caller sets grid, shared, cluster and config.
  KernelLaunch launch(const std::string& family, const std::string& equations,
                      std::vector<std::string_view> headers, const std::string& before,
                      const std::string& body, int block, int min_blocks = 0) const;

 private:
  struct Parameter {
    int64_t value;
    bool written;
    bool shared = false;
  };
  using ValueOrder = std::map<std::string, size_t>;  // "%107" -> 0
  std::string buffer_declaration(size_t number) const;
  static std::string comment_of(const std::string& equations, ValueOrder& order);
  std::vector<std::string> describe_parameters(const ValueOrder& order) const;
  std::string describe(const BufferRef& buffer, const ValueOrder& order) const;

  const ir::Graph& graph_;
  const fuse::Step& step_;
  std::vector<DType> scratch_dtypes_;
  const select::Machine& machine_;
  bool early_ = false;
  std::vector<TmaView> views_;
  bool counter_ = false, low_bit_ = false, terms_ = false, waits_in_body_ = false;
  std::vector<Parameter> buffers_;
  std::vector<std::string> names_;
  std::vector<ir::Expr> sizes_;
};

// The conjunction of the conditions as text: "true" is omitted, and "false" makes it "false".
std::string all_of(const std::vector<std::string>& conditions);
// The conjunction of `condition` and aligned(buffer) for all buffers.
std::string all_aligned(const std::string& condition, const std::vector<std::string>& buffers);
// The expression as an int; a literal that fits needs no conversion.
std::string as_int(const std::string& value);

// Whether an Int64 expression depends only on symbols and constants.
bool is_size(ir::Expr expr);

// ⌈a / b⌉ of sizes.
ir::Expr ceil_div(ir::ExprPool& pool, ir::Expr a, int64_t b);
// The product of sizes.
ir::Expr product_of(ir::ExprPool& pool, const std::vector<ir::Expr>& sizes);
// The extents of axes; 1 for the integer 0 that stands for a dimension of one element.
std::vector<ir::Expr> extents_of(ir::ExprPool& pool, const std::vector<ir::Expr>& axes);

}  // namespace redfuser::codegen
