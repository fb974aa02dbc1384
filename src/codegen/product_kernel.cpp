#include "codegen/product_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/product_text.h"
#include "ir/polynomial.h"

namespace redfuser {
namespace {

constexpr int kSlab = 64, kAlignment = 1024, kBarrierBytes = 64;
constexpr int kTileRows = ProductText::kTileRows, kTileColumns = ProductText::kTileColumns;
constexpr int kDepth = ProductText::kDepth, kStagedBytes = ProductText::kStagedBytes;
constexpr int kRingBytes = ProductText::kStages * (kTileRows + kTileColumns) * kDepth * 2;
// Two warpgroups multiply, the first warp of a third loads. Registers of their threads.
constexpr int kThreads = 384, kMultiplyRegisters = 240, kLoadRegisters = 24;

// [batch, line, inner] as the copy engine takes it; strides of a dimension of one element do not
// matter, but have to be valid.
std::optional<TensorView> view_of(ExprPool& pool, const BufferRef& buffer, DType dtype, Expr offset,
                                  Expr inner, Expr lines, Expr line, Expr batches, Expr batch,
                                  std::vector<int> box) {
  const auto multiple = [&](Expr size) { return ProductText::multiple(pool, size); };
  if (!multiple(offset) || !multiple(line) || !multiple(batch)) {
    return std::nullopt;
  }
  if (!proved_less(pool, pool.integer(0), line)) return std::nullopt;
  const bool shared = batch->is_constant(0) || batches->is_constant(1);
  if (!shared && !proved_less(pool, pool.integer(0), batch)) return std::nullopt;
  TensorView view;
  view.buffer = buffer;
  view.dtype = dtype;
  view.offset = offset;
  view.dims = {inner, lines, shared ? pool.integer(1) : batches};
  view.strides = {line, shared ? line : batch};
  view.box = std::move(box);
  return view;
}

double constant(Expr size) { return static_cast<double>(size->integer); }

bool known(const ProductCall& call) {
  for (Expr size : {call.batch, call.m, call.n, call.k}) {
    if (!size->is_constant() || size->integer < 1) return false;
  }
  return true;
}

// Measured rates of an H100: of this kernel's tiles, of the library's products, of a map in place.
bool pays(const ProductCall& call, const Target& target) {
  constexpr double kTileRate = 4.7e6, kLibraryRate = 600e6, kMapRate = 3e6;  // per microsecond
  constexpr double kLaunch = 2.5, kFill = 6, kLibraryFill = 2;
  const double m = constant(call.m), n = constant(call.n), batch = constant(call.batch);
  const double work = 2.0 * kTileRows * kTileColumns * constant(call.k) / kTileRate;
  const double tiles = std::ceil(m / kTileRows) * std::ceil(n / kTileColumns) * batch;
  const double rounds = std::ceil(tiles / target.multiprocessors);
  const double library = kLibraryFill + 2 * m * n * batch * constant(call.k) / kLibraryRate;
  // Rows that start anywhere take the library to its slowest kernels.
  const double ragged = call.n->integer % ProductText::kWidth == 0 ? 1 : 4;
  return kFill + work * rounds < ragged * library + kLaunch + 4 * m * n * batch / kMapRate;
}

}  // namespace

bool ProductText::multiple(ExprPool& pool, Expr size) {
  return pool.floormod(size, pool.integer(kWidth))->is_constant(0);
}

std::optional<KernelLaunch> ProductText::launch(const std::string& comment) {
  merge_rows();
  by_rows_ = !call_.b_column->is_constant(1);
  if (!call_.a_column->is_constant(1) || (by_rows_ && !call_.b_row->is_constant(1))) {
    return std::nullopt;
  }
  auto a = view_of(pool_, call_.a, call_.dtype, call_.a_offset, call_.k, call_.m, call_.a_row,
                   call_.batch, call_.a_batch, {kDepth, kTileRows, 1});
  auto b = by_rows_ ? view_of(pool_, call_.b, call_.dtype, call_.b_offset, call_.k, call_.n,
                              call_.b_column, call_.batch, call_.b_batch, {kDepth, kTileColumns, 1})
                    : view_of(pool_, call_.b, call_.dtype, call_.b_offset, call_.n, call_.k,
                              call_.b_row, call_.batch, call_.b_batch, {kSlab, kDepth, 1});
  if (!a || !b) return std::nullopt;
  load(*a, *b);
  finish();
  KernelLaunch launch = kernel_.launch(
      "product_tile", comment_of(comment),
      {"ptx", "math", "types", "reduce", "ptx_hopper", "hopper", "ptx_product", "product"}, "",
      emitter_.close(), kThreads, 1);
  launch.shared = kAlignment + kRingBytes + kStagedBytes + kBarrierBytes;
  launch.grid[0] =
      pool_.make(ExprOp::Min, {tile_count(), pool_.integer(builder_.target.multiprocessors)});
  return launch;
}

void ProductText::merge_rows() {
  rows_ = step_.m;
  std::erase_if(rows_, [](Expr axis) { return axis->op != ExprOp::Axis; });
  if (rows_.size() < 2) return;
  Expr row = pool_.axis("row", call_.m);
  auto by_row = [&](Expr offset) -> Expr {
    auto parts = strided(pool_, offset, rows_);
    if (!parts) return nullptr;
    for (size_t i = 0; i + 1 < rows_.size(); ++i) {
      Expr next = pool_.mul(parts->strides[i + 1], rows_[i + 1]->extent());
      if (parts->strides[i] != next) return nullptr;
    }
    return pool_.add(parts->base, pool_.mul(row, parts->strides.back()));
  };
  Expr offset = by_row(epilogue_.offset);
  Expr body = pool_.rewrite(epilogue_.body, [&](Expr e) -> Expr {
    if (e->op != ExprOp::Read || !depends_on_row(e)) return nullptr;
    Expr at = by_row(e->args[0]);
    return at ? pool_.read(e->integer, e->dtype, {at}) : nullptr;
  });
  if (!offset || depends_on_row(body)) return;
  epilogue_.offset = offset;
  epilogue_.body = body;
  rows_ = {row};
}

void ProductText::load(const TensorView& a, const TensorView& b) {
  const std::string a_batch = a.dims[2]->is_constant(1) ? "0" : "place.batch";
  const std::string b_batch = b.dims[2]->is_constant(1) ? "0" : "place.batch";
  const std::string a_name = kernel_.view(a), b_name = kernel_.view(b);
  emitter_.line(fmt::format(
      "extern __shared__ char memory[];\n"
      "const unsigned start = ptx_shared_address(memory), ring_at = (start + {0}) & ~{0}u;\n"
      "const Ring<kTileStages> ring{{ring_at + kTileStages * kTileBytes + {1}}};\n"
      "if (threadIdx.x == 0) {{\nring.init(8);\nptx_barrier_init_fence();\n}}\n"
      "__syncthreads();\n"
      "const unsigned rows = {2}, columns = {3}, tiles = {4};\n"
      "const int steps = ({5} + kTileDepth - 1) / kTileDepth;\n"
      "const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);",
      kAlignment - 1, kStagedBytes, kernel_.size(rows()), kernel_.size(columns()),
      kernel_.size(tile_count()), kernel_.size(call_.k)));
  emitter_.line(fmt::format(
      "if (warp >= 8) {{\nptx_give_registers<{0}>();\nif (threadIdx.x > 8 * 32) return;\n"
      "unsigned use = 0;\n{1}"
      "use = load_tile<{2}>({3}, {4}, ring_at, ring, use, steps, place, {5}, {6});\n}}\n"
      "return;\n}}\nptx_take_registers<{7}>();",
      kLoadRegisters, kTiles, by_rows_, a_name, b_name, a_batch, b_batch, kMultiplyRegisters));
}

std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const ProductStep& step,
                                           const ProductCall& call, const ProductEpilogue& epilogue,
                                           const std::string& comment) {
  const Target& target = builder.target;
  const bool types = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  if (!types || target.architecture != 90 || target.portable || !known(call)) return std::nullopt;
  if (builder.product_family == ProductFamily::ByEstimate && !pays(call, target)) {
    return std::nullopt;
  }
  bool ready = true;  // nothing is read from where it is written
  visit(epilogue.body, [&](Expr e) {
    ready &= e->op != ExprOp::Reduce && !(e->op == ExprOp::Read && e->integer == epilogue.value);
  });
  if (!ready) return std::nullopt;
  return ProductText(builder, step, call, epilogue).launch(comment);
}

}  // namespace redfuser
