#include "codegen/product/product_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/core/tma_tile.h"
#include "codegen/matrix/epilogue_work.h"
#include "codegen/matrix/matrix_layout.h"
#include "codegen/product/product_text.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

constexpr int kBarrierBytes = 64;
constexpr int kTileRows = ProductText::kTileRows, kTileColumns = ProductText::kTileColumns;
constexpr int kDepth = ProductText::kDepth, kStagedBytes = ProductText::kStagedBytes;
// A step along the contracted axis is a slab where operands are contiguous along it.
static_assert(kDepth == TmaTile::kSlabColumns);
constexpr int kRingBytes = ProductText::kStages * (kTileRows + kTileColumns) * kDepth * 2;

// Constants of the time are fitted to products of 1 to 4096 rows, on an H200. Cycles of a kernel's
// start and end, and of a plain tile's epilogue by vectors of kWidth, which the next tile's
// products wait for.
constexpr double kFill = 6820, kFinish = 1500;
constexpr EpilogueCost kEpilogue = {0.62, 4.1, 0.73};
// Rows that do not start on whole vectors are accessed in parts, to this power.
constexpr double kNarrow = 0.25;
// Shares of the machine's rates of matrix products and of memory.
constexpr double kTileShare = 1.134, kMemoryShare = 0.627;

}  // namespace

double product_kernel_time(StepBuilder& builder, const ProductCall& call, size_t products,
                           const EpilogueWork& work, const OperandReuse& reuse) {
  if (size_of(call.dtype) != 2 || ProductText::columns_of_each(products) == 0) return HUGE_VAL;
  const Target& target = builder.target;
  const auto known = [&](ir::Expr size) { return static_cast<double>(builder.sizes.of(size)); };
  const double batch = known(call.batch), m = known(call.m), n = known(call.n), k = known(call.k);
  if (batch <= 0 || m <= 0 || n <= 0 || k <= 0) return HUGE_VAL;
  const int each = ProductText::columns_of_each(products);
  const double tiles = batch * std::ceil(m / kTileRows) * std::ceil(n / each);
  const double turns = std::ceil(tiles / target.multiprocessors);
  const double rate = kTileShare * target.tensor_rate(call.dtype) / target.multiprocessors;
  const double sums = 2.0 * kTileRows * kTileColumns * k / rate;
  const double narrow = 1.0 * ProductText::kWidth / ProductText::width_of(builder.pool(), call.n);
  const double groups = 1.0 * each / kTileColumns * std::pow(narrow, kNarrow);
  const double finish = groups * target.microseconds(kFinish) * kEpilogue.of(work);
  const double operands = (m / reuse.rows + static_cast<double>(products) * n / reuse.columns) * k;
  const double elements = batch * (operands + m * n * (1 + work.elements));
  const double bytes = elements * static_cast<double>(size_of(call.dtype));
  return select::kLaunchTime + target.microseconds(kFill) +
         std::max(bytes / (kMemoryShare * target.dram_rate), turns * (sums + finish));
}

int ProductText::columns_of_each(size_t products) {
  const int columns = kTileColumns / static_cast<int>(products);
  return products * static_cast<size_t>(columns) == kTileColumns &&
                 columns % TmaTile::kSlabColumns == 0
             ? columns
             : 0;
}

int ProductText::width_of(ir::ExprPool& pool, ir::Expr columns) {
  int width = kWidth;
  while (!pool.floormod(columns, pool.integer(width))->is_constant(0)) width /= 2;
  return width;
}

std::optional<TmaView> ProductText::rows_view() {
  if (!call_.a_column->is_constant(1)) return std::nullopt;
  return matrix_view(pool_, call_.a, call_.dtype, call_.a_offset, call_.k, call_.m, call_.a_row,
                     call_.batch, call_.a_batch, {kDepth, kTileRows, 1});
}

std::optional<TmaView> ProductText::columns_view(const ProductCall& call) {
  if (by_rows_ ? !call.b_row->is_constant(1) : !call.b_column->is_constant(1)) return std::nullopt;
  if (by_rows_) {
    return matrix_view(pool_, call.b, call.dtype, call.b_offset, call.k, call.n, call.b_column,
                       call.batch, call.b_batch, {kDepth, tile_columns(), 1});
  }
  return matrix_view(pool_, call.b, call.dtype, call.b_offset, call.n, call.k, call.b_row,
                     call.batch, call.b_batch, {TmaTile::kSlabColumns, kDepth, 1});
}

std::vector<TmaView> ProductText::views() {
  by_rows_ = windows_ != nullptr || !call_.b_column->is_constant(1);
  if (windows_ != nullptr) return {windows_->rows, windows_->columns};
  std::vector<TmaView> views;
  if (const auto a = rows_view()) views.push_back(*a);
  for (const ProductCall& call : calls_) {
    const auto view = columns_view(call);
    const bool alike = view && (views.size() < 2 || view->dims[2] == views[1].dims[2]);
    if (alike && !views.empty()) views.push_back(*view);
  }
  return views.size() == calls_.size() + 1 ? views : std::vector<TmaView>();
}

std::optional<KernelLaunch> ProductText::launch(const std::string& comment) {
  group_.merge_rows(call_.m);
  const std::vector<TmaView> views = this->views();
  if (views.empty()) return std::nullopt;
  // Accesses are as wide as rows are aligned.
  width_ = group_.consecutive() ? widest() : 1;
  width_ = std::min(width_, width_of(pool_, call_.n));
  load(views);
  multiply();
  KernelLaunch launch = kernel_.launch(
      windows_ != nullptr ? windows_->family : kProductKernelFamily, comment,
      {"device/product/product_loop.cuh"}, tile_text(), emitter_.close(), kThreads, 1);
  launch.shared = TmaTile::kAlignment + kRingBytes + kStagedBytes + kBarrierBytes;
  launch.grid[0] =
      pool_.make(ir::ExprOp::Min, {tile_count(), pool_.integer(builder_.target.multiprocessors)});
  return launch;
}

void ProductText::load(const std::vector<TmaView>& views) {
  std::string maps;
  for (const TmaView& view : views) maps += ", " + kernel_.view(view);
  const auto batches = [](const TmaView& view) { return !view.dims[2]->is_constant(1); };
  const std::string operands =
      windows_ != nullptr
          ? windows_->operands(kernel_)
          : fmt::format("MatrixOperands{{{}, {}}}", batches(views[0]), batches(views[1]));
  emitter_.line(fmt::format(
      "extern __shared__ char memory[];\n"
      "ProductTiles<Tile> product(memory, {{{}, {}, {}, {}, {}, {}}});\n"
      "if (product.load({}{})) return;",
      kernel_.size(call_.m), kernel_.size(call_.n), kernel_.size(call_.k), kernel_.size(rows()),
      kernel_.size(columns()), kernel_.size(tile_count()), operands, maps));
}

std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                           const std::vector<ProductCall>& calls,
                                           const ProductEpilogue& epilogue,
                                           const std::string& comment) {
  const Target& target = builder.target;
  const ProductCall& call = calls[0];
  const bool types = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  if (!types || target.architecture != 90 || target.portable) return std::nullopt;
  if (ProductText::columns_of_each(calls.size()) == 0) return std::nullopt;
  bool ready = true;
  for (ir::Expr product : epilogue.products) ready &= product->dtype == epilogue.products[0]->dtype;
  if (!ready) return std::nullopt;
  std::optional<KernelLaunch> launch = ProductText(builder, step, calls, epilogue).launch(comment);
  const double time =
      launch ? product_kernel_time(builder, call, calls.size(), epilogue_work(epilogue, step))
             : HUGE_VAL;
  if (time < HUGE_VAL) launch->time = time;
  return launch;
}

KernelLaunch window_product_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                   const ProductCall& call, const ProductWindows& windows,
                                   const ProductEpilogue& epilogue, const std::string& comment) {
  const std::vector<ProductCall> calls = {call};
  KernelLaunch launch = *ProductText(builder, step, calls, epilogue, &windows).launch(comment);
  const double time =
      product_kernel_time(builder, call, 1, epilogue_work(epilogue, step), windows.reuse);
  if (time < HUGE_VAL) launch.time = time;
  return launch;
}

}  // namespace redfuser::codegen
