#include "codegen/core/kernel_text.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "codegen/core/device_text.h"
#include "codegen/core/kernel_name.h"
#include "codegen/text/indent.h"

namespace redfuser::codegen {

DType KernelText::dtype_of(int64_t value) const {
  if (value >= kScratchValues)
    return scratch_dtypes_.at(static_cast<size_t>(value - kScratchValues));
  return graph_.values.at(static_cast<size_t>(value)).dtype;
}

std::string KernelText::buffer(int64_t value, bool written) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].value != value) continue;
    buffers_[i].written |= written;
    return names_[i];
  }
  note_type(dtype_of(value));
  buffers_.push_back({value, written, false});
  names_.push_back(fmt::format("p{}", names_.size()));
  return names_.back();
}

std::string KernelText::shared_buffer(int64_t value) {
  std::string name = buffer(value);
  for (Parameter& parameter : buffers_) parameter.shared |= parameter.value == value;
  return name;
}

bool KernelText::in_shared(int64_t value) const {
  return std::any_of(buffers_.begin(), buffers_.end(), [&](const Parameter& parameter) {
    return parameter.value == value && parameter.shared;
  });
}

std::string KernelText::view(TmaView view) {
  views_.push_back(std::move(view));
  return fmt::format("m{}", views_.size() - 1);
}

std::string KernelText::counter() {
  counter_ = true;
  return "counter";
}

std::string KernelText::size(ir::Expr size) {
  if (size->is_constant()) return fmt::format("{}ll", size->integer);
  auto found = std::find(sizes_.begin(), sizes_.end(), size);
  const auto number = static_cast<size_t>(found - sizes_.begin());
  if (found == sizes_.end()) sizes_.push_back(size);
  return fmt::format("n{}", number);
}

std::string KernelText::multiples(const std::vector<ir::Expr>& sizes, int64_t unit) {
  ir::ExprPool& pool = this->pool();
  std::vector<std::string> terms;
  for (ir::Expr size : sizes) {
    if (!size) continue;
    if (size->is_constant()) {
      if (size->integer % unit != 0) return "false";
      continue;
    }
    const auto polynomial = pool.floormod(size, pool.integer(unit));
    if (polynomial->is_constant(0)) continue;
    std::string term = fmt::format("({} & {}) == 0", this->size(size), unit - 1);
    if (std::find(terms.begin(), terms.end(), term) == terms.end()) terms.push_back(term);
  }
  return all_of(terms);
}

std::string KernelText::buffer_declaration(size_t number) const {
  const Parameter& buffer = buffers_[number];
  // The compiler may move loads of memory that no kernel seems to write before the wait.
  const bool given =
      buffer.value < kScratchValues && graph_.values[static_cast<size_t>(buffer.value)].is_given();
  return fmt::format("{}{}*{} {}", buffer.written ? "" : "const ",
                     storage_type(dtype_of(buffer.value)), given || !early_ ? " __restrict__" : "",
                     names_[number]);
}

std::string KernelText::members() const {
  std::string text;
  for (size_t i = 0; i < buffers_.size(); ++i) text += buffer_declaration(i) + ";\n";
  for (size_t i = 0; i < sizes_.size(); ++i) text += fmt::format("long long n{};\n", i);
  return text;
}

std::string KernelText::member_values() const {
  std::vector<std::string> values = names_;
  for (size_t i = 0; i < sizes_.size(); ++i) values.push_back(fmt::format("n{}", i));
  return fmt::format("{}", fmt::join(values, ", "));
}

KernelLaunch KernelText::launch(const std::string& family, const std::string& equations,
                                std::vector<std::string_view> headers, const std::string& before,
                                const std::string& body, int block, int min_blocks) const {
  // The templates use the types' functions, and expressions those of reduce.cuh.
  headers.insert(headers.begin(), {low_bit_ ? "device/low_bit.cuh" : "device/types.cuh",
                                   terms_ ? "device/terms.cuh" : "device/reduce.cuh"});
  KernelLaunch launch;
  launch.family = family;
  launch.headers = headers;
  launch.nodes = step_.label;
  launch.block = block;
  launch.views = views_;
  std::vector<std::string> parameters;
  for (size_t i = 0; i < views_.size(); ++i) {
    parameters.push_back(fmt::format("const __grid_constant__ TensorMap m{}", i));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const int64_t value = buffers_[i].value;
    if (buffers_[i].shared) continue;
    parameters.push_back(buffer_declaration(i));
    BufferRef ref;
    (value >= kScratchValues ? ref.scratch : ref.value) =
        static_cast<int>(value >= kScratchValues ? value - kScratchValues : value);
    launch.buffers.push_back(ref);
  }
  for (size_t i = 0; i < sizes_.size(); ++i) parameters.push_back(fmt::format("long long n{}", i));
  if (counter_) parameters.push_back("unsigned* counter");
  launch.counter = counter_;
  launch.sizes = sizes_;
  ValueOrder order;
  const std::string comment = comment_of(equations, order);
  launch.parameters = describe_parameters(order);
  const std::string bounds =
      fmt::format("{}{}", block, min_blocks > 0 ? fmt::format(", {}", min_blocks) : "");
  launch.early = early_;
  const std::string rest =
      fmt::format("({}) {{\nptx_launch_dependents();\n{}{}}}\n", fmt::join(parameters, ", "),
                  early_ && !waits_in_body_ ? "ptx_await_launches_together();\n" : "", body);
  launch.name = kernel_name(
      family, graph_, step_,
      fmt::format("{}{}{}{}{}", comment, fmt::join(headers, " "), before, bounds, rest));
  launch.source =
      fmt::format("{}{}{}", comment, device_prelude(headers),
                  indented(fmt::format("{}extern \"C\" __global__ void __launch_bounds__({}) {}{}",
                                       before, bounds, launch.name, rest)));
  for (ir::Expr& grid : launch.grid) grid = pool().integer(1);
  return launch;
}

std::string all_of(const std::vector<std::string>& conditions) {
  std::vector<std::string> left;
  for (const std::string& condition : conditions) {
    if (condition == "false") return condition;
    if (condition != "true") left.push_back(condition);
  }
  return left.empty() ? "true" : fmt::format("{}", fmt::join(left, " && "));
}

std::string all_aligned(const std::string& condition, const std::vector<std::string>& buffers) {
  std::vector<std::string> conditions = {condition};
  for (const std::string& buffer : buffers) {
    conditions.push_back(fmt::format("aligned({})", buffer));
  }
  return all_of(conditions);
}

std::string as_int(const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc() && std::string_view(rest, end) == "ll") return std::to_string(number);
  return fmt::format("static_cast<int>({})", value);
}

bool is_size(ir::Expr expr) {
  return expr->dtype == DType::Int64 && expr->free_axes.empty() && !expr->has_leaf &&
         !expr->has_read && expr->op != ir::ExprOp::Axis && expr->op != ir::ExprOp::Reduce &&
         expr->bound_level == 0;
}

// Numbers every %N by its first appearance, so that equal kernels of different layers have equal
// text.
std::string KernelText::comment_of(const std::string& equations, ValueOrder& order) {
  std::string result = "// ";
  for (size_t i = 0; i < equations.size();) {
    if (equations[i] == '\n') {
      if (i + 1 < equations.size()) result += "\n// ";
      ++i;
    } else if (equations[i] == '%' && i + 1 < equations.size() &&
               std::isdigit(equations[i + 1]) != 0) {
      size_t end = i + 1;
      while (end < equations.size() && std::isdigit(equations[end]) != 0) ++end;
      const std::string name = equations.substr(i, end - i);
      result += fmt::format("%{}", order.emplace(name, order.size()).first->second);
      i = end;
    } else {
      // A backslash at the end of a line would continue the comment.
      result += equations[i] == '\\' ? '/' : equations[i];
      ++i;
    }
  }
  return result + "\n";
}

std::string KernelText::describe(const BufferRef& buffer, const ValueOrder& order) const {
  if (buffer.value < 0) {
    return fmt::format("scratch {} {}", buffer.scratch,
                       short_name(scratch_dtypes_.at(static_cast<size_t>(buffer.scratch))));
  }
  const ir::Value& value = graph_.values.at(static_cast<size_t>(buffer.value));
  const std::string number = fmt::format("%{}", buffer.value);
  std::vector<std::string> sizes;
  for (ir::Expr size : value.shape) sizes.push_back(to_string(pool(), size));
  const auto found = order.find(number);
  return fmt::format("{} {}[{}]{}", value.name.empty() ? number : value.name,
                     short_name(value.dtype), fmt::join(sizes, ","),
                     found == order.end() ? "" : fmt::format(" (%{})", found->second));
}

std::vector<std::string> KernelText::describe_parameters(const ValueOrder& order) const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < views_.size(); ++i) {
    lines.push_back(fmt::format("m{} = {}, by boxes of {}", i, describe(views_[i].buffer, order),
                                fmt::join(views_[i].box, "x")));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const int64_t value = buffers_[i].value;
    if (buffers_[i].shared) continue;
    BufferRef ref;
    (value >= kScratchValues ? ref.scratch : ref.value) =
        static_cast<int>(value >= kScratchValues ? value - kScratchValues : value);
    lines.push_back(fmt::format("{} = {}", names_[i], describe(ref, order)));
  }
  for (size_t i = 0; i < sizes_.size(); ++i) {
    lines.push_back(fmt::format("n{} = {}", i, to_string(pool(), sizes_[i])));
  }
  return lines;
}

ir::Expr ceil_div(ir::ExprPool& pool, ir::Expr a, int64_t b) {
  return pool.floordiv(pool.add(a, pool.integer(b - 1)), pool.integer(b));
}

ir::Expr product_of(ir::ExprPool& pool, const std::vector<ir::Expr>& sizes) {
  ir::Expr result = pool.integer(1);
  for (ir::Expr size : sizes) result = pool.mul(result, size);
  return result;
}

std::vector<ir::Expr> extents_of(ir::ExprPool& pool, const std::vector<ir::Expr>& axes) {
  std::vector<ir::Expr> result;
  for (ir::Expr axis : axes) {
    result.push_back(axis->op == ir::ExprOp::Axis ? axis->extent() : pool.integer(1));
  }
  return result;
}

}  // namespace redfuser::codegen
