// NonZero and Compress.
#include "codegen/opaque/selection.h"

#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "ops/lowering.h"
#include "ops/sizes.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kHeader = "device/selection/selection.cuh";
constexpr int64_t kMostBlocks = 1024;  // a block adds up the numbers of all

ir::Expr is_set(ir::ExprPool& pool, ir::Expr element) {
  if (element->dtype == DType::Bool) return element;
  if (is_float(element->dtype) && size_of(element->dtype) < 4) {
    element = pool.cast(DType::Float32, element);
  }
  ir::Expr zero = is_float(element->dtype) ? pool.number(0, element->dtype)
                                           : pool.number_int(0, element->dtype);
  return pool.make(ir::ExprOp::Not, {pool.make(ir::ExprOp::Equal, {element, zero})});
}

// Declares the coordinates of the point with this number. A scalar has no coordinates.
void bind_point(Emitter& emitter, const std::vector<ir::Expr>& axes, const std::string& name) {
  if (!axes.empty()) bind_coordinates(emitter, axes, name);
}

}  // namespace

int64_t add_found_size(StepBuilder& builder, const ops::NodeView& view, size_t dimension,
                       ir::Expr most) {
  constexpr int64_t kMostBytes = int64_t{4} << 30;
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  const std::vector<ir::Expr>& shape = builder.shape(value);
  ir::Expr bytes = most;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != dimension) bytes = pool.mul(bytes, shape[d]);
  }
  bytes = pool.mul(bytes, pool.integer(static_cast<int64_t>(size_of(builder.dtype_of(value)))));
  if (bytes->is_constant() && bytes->integer > kMostBytes) {
    builder.fail(fmt::format("its result may take {} bytes of GPU memory", bytes->integer));
  }
  if (shape[dimension]->op != ir::ExprOp::Symbol) {
    builder.fail("the size of its result is that of another value");
  }
  if (builder.target.order_of(value) != nullptr) builder.fail("its result is not row-major");
  const int64_t found = builder.add_scratch(DType::Int64, pool.integer(1));
  builder.result.found = FoundSize{shape[dimension], most, builder.buffer(found).scratch};
  return found;
}

void add_selection(StepBuilder& builder, const std::vector<ir::Expr>& axes, ir::Expr flag,
                   int64_t found, const StoreText& store) {
  ir::ExprPool& pool = builder.pool();
  ir::Expr places = product_of(pool, extents_of(pool, axes));
  // Of no places, one block says that there are none.
  ir::Expr blocks = ops::max_of(
      pool, ops::min_of(pool, ceil_div(pool, places, kSelectionTile), pool.integer(kMostBlocks)),
      pool.integer(1));
  const int64_t words = builder.add_scratch(
      DType::UInt32,
      pool.mul(ceil_div(pool, places, kSelectionTile), pool.integer(kSelectionTile / 32)));
  const int64_t counts = builder.add_scratch(DType::UInt32, pool.integer(kMostBlocks));
  const auto add = [&](const KernelText& kernel, const char* name, const std::string& body) {
    KernelLaunch launch =
        kernel.launch(name, std::string(name) + "\n", {kHeader}, "", body, kSelectionThreads);
    launch.grid[0] = blocks;
    builder.result.calls.emplace_back(std::move(launch));
  };
  KernelText flags = builder.kernel();
  const std::string to = flags.buffer(words, true) + ", " + flags.buffer(counts, true);
  Emitter test(flags);
  bind_point(test, axes, "place");
  test.line(fmt::format("return {};", test.emit_whole(builder.flat.flat(flag), DType::Bool)));
  const std::string tested = test.close();
  add(flags, "selection_flags",
      fmt::format("selection_flags({}, {}, [&](long long place) {{\n{}}});\n", to,
                  flags.size(places), tested));
  KernelText kernel = builder.kernel();
  const std::string from =
      kernel.buffer(words) + ", " + kernel.buffer(counts) + ", " + kernel.buffer(found, true);
  Emitter emitter(kernel);
  store(emitter);
  const std::string stored = emitter.close();
  add(kernel, "selection_places",
      fmt::format("selection_places({}, {}, [&](long long place, long long number, long long "
                  "found) {{\n{}}});\n",
                  from, kernel.size(places), stored));
}

void generate_nonzero(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().inputs[0]);
  ir::Expr most = product_of(pool, view.shape(0));
  const int64_t found = add_found_size(builder, view, 1, most);
  ir::Expr flag = is_set(pool, pool.read(view.node().inputs[0], view.dtype(0), axes));
  add_selection(builder, axes, flag, found, [&](Emitter& emitter) {
    bind_point(emitter, axes, "place");
    for (size_t d = 0; d < axes.size(); ++d) {
      emitter.line(fmt::format("store({}, {} * found + number, {});",
                               emitter.kernel().buffer(value, true), d,
                               emitter.emit_as(axes[d], DType::Int64)));
    }
  });
}

void generate_compress(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().inputs[0]);
  const std::vector<ir::Expr> places = ops::output_axes(builder.graph, view.node().inputs[1]);
  const bool along = view.has("axis");
  const auto axis =
      static_cast<size_t>(along ? view.axis(view.integer("axis", 0), view.rank(0)) : 0);
  std::vector<ir::Expr> lines, own = axes, columns;
  if (along) {
    const auto at = axes.begin() + static_cast<long>(axis);
    lines = {axes.begin(), at};
    own = {at, at + 1};
    columns = {at + 1, axes.end()};
  }
  ir::Expr length = product_of(pool, view.shape(1));
  const int64_t found = add_found_size(builder, view, axis, length);
  const int64_t list = builder.add_scratch(DType::Int64, length);
  ir::Expr flag = pool.read(view.node().inputs[1], DType::Bool, places);
  add_selection(builder, places, flag, found, [&](Emitter& emitter) {
    emitter.line(fmt::format("{}[number] = place;", emitter.kernel().buffer(list, true)));
  });
  KernelText kernel = builder.kernel();
  const std::string from = kernel.buffer(list) + ", " + kernel.buffer(found);
  Emitter emitter(kernel);
  bind_point(emitter, lines, "line");
  bind_point(emitter, own, "place");
  bind_point(emitter, columns, "column");
  ir::Expr element = builder.flat.flat(pool.read(view.node().inputs[0], view.dtype(0), axes));
  const std::string text = emitter.emit_as(element, view.dtype(0));
  emitter.line(fmt::format("store({}, number, {});", kernel.buffer(value, true), text));
  const std::string stored = emitter.close();
  const auto count = [&](const std::vector<ir::Expr>& of) {
    return product_of(pool, extents_of(pool, of));
  };
  KernelLaunch launch = kernel.launch(
      "selection_gather", "selection_gather\n", {kHeader}, "",
      fmt::format("selection_gather({}, {}, {}, [&](long long line, long long place, long long "
                  "column, long long number) {{\n{}}});\n",
                  from, kernel.size(count(lines)), kernel.size(count(columns)), stored),
      kSelectionThreads);
  ir::Expr most = pool.mul(pool.mul(count(lines), length), count(columns));
  launch.grid[0] = pool.make(ir::ExprOp::Min, {ceil_div(pool, most, 4 * kSelectionThreads),
                                               pool.integer(int64_t{1} << 20)});
  builder.result.calls.emplace_back(std::move(launch));
}

}  // namespace redfuser::codegen
