#include "codegen/product_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "ir/polynomial.h"

namespace redfuser {
namespace {

// As src/device/product.cuh has them.
constexpr int kTile = 128, kDepth = 64, kStages = 4, kWidth = 8, kSlab = 64;
constexpr int kGroup = 128, kThreads = 2 * kGroup + 32;
constexpr int kRingBytes = kStages * 2 * kTile * kDepth * 2;
constexpr int kStagedBytes = 64 * (kTile + 8) * 4;
constexpr int kAlignment = 1024, kBarrierBytes = 64;

bool multiple(ExprPool& pool, Expr size) {
  return pool.floormod(size, pool.integer(kWidth))->is_constant(0);
}

// [batch, line, inner] as the copy engine takes it; strides of a dimension of one element do not
// matter, but have to be valid.
std::optional<TensorView> view_of(ExprPool& pool, const BufferRef& buffer, DType dtype, Expr offset,
                                  Expr inner, Expr lines, Expr line, Expr batches, Expr batch,
                                  std::vector<int> box) {
  if (!multiple(pool, offset) || !multiple(pool, line) || !multiple(pool, batch)) {
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

// Measured rates of an H100: of this kernel's tiles, of the library's products, of a map in place.
bool pays(const ProductCall& call, const Target& target) {
  constexpr double kTileRate = 4.2e6, kLibraryRate = 600e6, kMapRate = 3e6;  // per microsecond
  constexpr double kLaunch = 2.5, kFill = 2;
  for (Expr size : {call.batch, call.m, call.n, call.k}) {
    if (!size->is_constant() || size->integer < 1) return false;
  }
  const double m = constant(call.m), n = constant(call.n), batch = constant(call.batch);
  const double work = 2.0 * kTile * kTile * constant(call.k) / kTileRate;
  const auto across = [](double size) { return std::ceil(size / kTile); };
  const double rounds = std::ceil(across(m) * across(n) * batch / target.multiprocessors);
  const double library = 2 * m * n * batch * constant(call.k) / kLibraryRate;
  // Rows that start anywhere take the library to its slowest kernels.
  const double ragged = call.n->integer % kWidth == 0 ? 1 : 4;
  return kFill + work * rounds < ragged * library + kLaunch + 4 * m * n * batch / kMapRate;
}

class ProductKernel {
 public:
  ProductKernel(StepBuilder& builder, const ProductStep& step, const ProductCall& call,
                const ProductEpilogue& epilogue)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        call_(call),
        epilogue_(epilogue),
        kernel_(builder.kernel()),
        emitter_(kernel_) {}

  std::optional<KernelLaunch> launch(const std::string& comment) {
    merge_rows();
    by_rows_ = !call_.b_column->is_constant(1);
    if (!call_.a_column->is_constant(1) || (by_rows_ && !call_.b_row->is_constant(1))) {
      return std::nullopt;
    }
    auto a = view_of(pool_, call_.a, call_.dtype, call_.a_offset, call_.k, call_.m, call_.a_row,
                     call_.batch, call_.a_batch, {kDepth, kTile, 1});
    auto b = by_rows_ ? view_of(pool_, call_.b, call_.dtype, call_.b_offset, call_.k, call_.n,
                                call_.b_column, call_.batch, call_.b_batch, {kDepth, kTile, 1})
                      : view_of(pool_, call_.b, call_.dtype, call_.b_offset, call_.n, call_.k,
                                call_.b_row, call_.batch, call_.b_batch, {kSlab, kDepth, 1});
    if (!a || !b) return std::nullopt;
    multiply(*a, *b);
    finish();
    KernelLaunch launch = kernel_.launch(
        "product_tile", comment_of(comment),
        {"ptx", "math", "types", "reduce", "ptx_hopper", "hopper", "ptx_product", "product"}, "",
        emitter_.close(), kThreads, 1);
    launch.shared = kAlignment + kRingBytes + 2 * kStagedBytes + kBarrierBytes;
    launch.grid[0] =
        pool_.make(ExprOp::Min, {tile_count(), pool_.integer(builder_.target.multiprocessors)});
    return launch;
  }

 private:
  Expr rows() { return ceil_div(pool_, call_.m, kTile); }
  Expr columns() { return ceil_div(pool_, call_.n, kTile); }
  Expr tile_count() { return pool_.mul(call_.batch, pool_.mul(rows(), columns())); }

  // One axis for the rows where the epilogue addresses memory by their number.
  void merge_rows() {
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
    auto depends = [&](Expr e) {
      return std::any_of(rows_.begin(), rows_.end(),
                         [&](Expr axis) { return e->depends_on(axis); });
    };
    Expr offset = by_row(epilogue_.offset);
    Expr body = pool_.rewrite(epilogue_.body, [&](Expr e) -> Expr {
      if (e->op != ExprOp::Read || !depends(e)) return nullptr;
      Expr at = by_row(e->args[0]);
      return at ? pool_.read(e->integer, e->dtype, {at}) : nullptr;
    });
    if (!offset || depends(body)) return;
    epilogue_.offset = offset;
    epilogue_.body = body;
    rows_ = {row};
  }

  static bool whole(Expr size) { return size->is_constant() && size->integer % kTile == 0; }

  void multiply(const TensorView& a, const TensorView& b) {
    const std::string a_batch = a.dims[2]->is_constant(1) ? "0" : "place.batch";
    const std::string b_batch = b.dims[2]->is_constant(1) ? "0" : "place.batch";
    const std::string a_name = kernel_.view(a), b_name = kernel_.view(b);
    emitter_.line(fmt::format(
        "extern __shared__ char memory[];\n"
        "const unsigned start = ptx_shared_address(memory), ring_at = (start + {0}) & ~{0}u;\n"
        "const Ring<kTileStages> ring{{ring_at + kTileStages * kTileBytes + 2 * kStagedBytes}};\n"
        "if (threadIdx.x == 0) {{\nring.init(4);\nptx_barrier_init_fence();\n}}\n"
        "__syncthreads();\n"
        "const unsigned rows = {1}, columns = {2}, tiles = {3};\n"
        "const int steps = ({4} + kTileDepth - 1) / kTileDepth;\n"
        "const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);",
        kAlignment - 1, kernel_.size(rows()), kernel_.size(columns()), kernel_.size(tile_count()),
        kernel_.size(call_.k)));
    emitter_.line(fmt::format(
        "if (group == 2) {{\nif (threadIdx.x > {0}) return;\nunsigned use = 0;\n"
        "for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n"
        "const TilePlace place = place_tile(tile, rows, columns);\n"
        "use = load_tile<{1}>({2}, {3}, ring_at, ring, use, steps, place, {4}, {5});\n}}\n"
        "return;\n}}",
        2 * kGroup, by_rows_, a_name, b_name, a_batch, b_batch));
  }

  // Groups of consecutive columns, as an elementwise kernel has them.
  void finish() {
    const DType out = builder_.dtype_of(epilogue_.value);
    Expr base = first_of(epilogue_.offset);
    // Neighbouring threads write neighbouring elements where rows start anywhere.
    width_ = base && multiple(pool_, call_.n) ? kWidth : 1;
    const std::string target = kernel_.buffer(epilogue_.value, true);
    const std::string m = kernel_.size(call_.m), n = kernel_.size(call_.n);
    emitter_.set_fast_math(size_of(out) == 2);
    emitter_.open();
    emitter_.line(fmt::format(
        "const int line = part_at / (kTileEdge / {0}), part = part_at % (kTileEdge / {0}) * {0};\n"
        "const long long row = place.row + h * kStagedRows + line, first = place.column + part, "
        "valid = {1};\n{2}{3}float p[{0}];\n"
        "staged_group(p, staged + line * kStagedPitch + part);",
        width_, whole(call_.n) ? std::to_string(width_) : n + " - first",
        whole(call_.m) ? "" : fmt::format("if (row >= {}) break;\n", m),
        whole(call_.n) ? "" : "if (valid <= 0) continue;\n"));
    bind_coordinates(emitter_, step_.batch, "place.batch");
    bind_coordinates(emitter_, rows_, "row");
    load_groups();
    if (base) require(target, base);
    const std::string start = base ? emitter_.emit(base) : "";
    emitter_.line(fmt::format("{} y[{}];", value_type(out), width_));
    emitter_.open();
    emitter_.line(fmt::format("const long long at = min_of(first + v, {} - 1);", n));
    bind_coordinates(emitter_, step_.n, "at");
    emitter_.bind(epilogue_.product, "p[v]");
    for (const auto& [read, name] : loaded_) emitter_.bind(read, name + "[v]");
    emitter_.line(fmt::format("y[v] = {};", emitter_.emit_as(epilogue_.body, out)));
    if (!base) {
      emitter_.line(fmt::format("if (v < valid) store({}, {}, y[v]);", target,
                                emitter_.emit(epilogue_.offset)));
    }
    const std::string elements = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}", width_, elements));
    if (base) {
      emitter_.line(
          fmt::format("store_group<{}>({}, {} + first, y, valid, vector);", width_, target, start));
    }
    const std::string loop = emitter_.close();
    units_.push_back(call_.n);
    std::string vector = width_ > 1 ? kernel_.multiples(units_, width_) : "false";
    for (const std::string& buffer : aligned_) vector += fmt::format(" && aligned({})", buffer);
    // Aligned or not, the loop has no branches within, so that its iterations overlap.
    auto rows_of = [&](bool aligned) {
      return fmt::format(
          "constexpr bool vector = {4};\n#pragma unroll {0}\nfor (int part_at = threadIdx.x & 127; "
          "part_at < kStagedRows * kTileEdge / {1}; part_at += {2}) {{\n{3}}}\n",
          width_ > 1 ? 4 : 8, width_, kGroup, loop, aligned);
    };
    emitter_.line(fmt::format(
        "float* staged = reinterpret_cast<float*>(memory + (ring_at - start) + kTileStages * "
        "kTileBytes + group * kStagedBytes);\n"
        "const bool all_aligned = {0};\nunsigned use = group * steps;\n"
        "if (group == 1) pass_turn<2>(group);\n"
        "for (unsigned tile = blockIdx.x + group * gridDim.x; tile < tiles; tile += 2 * gridDim.x, "
        "use += 2 * steps) {{\nconst TilePlace place = place_tile(tile, rows, columns);\n"
        "float d[2][kTileEdge / 8][4];\nmultiply_tile<{1}, {2}>(d, ring_at, ring, use, steps, "
        "group);\n#pragma unroll\nfor (int h = 0; h < 2; ++h) {{\nstage_rows(d[h], staged, "
        "group);\n{3}}}\n}}",
        vector, storage_type(call_.dtype), by_rows_,
        width_ == 1 ? rows_of(false)
                    : fmt::format("if (all_aligned) {{\n{}}} else {{\n{}}}\n", rows_of(true),
                                  rows_of(false))));
  }

  void load_groups() {
    std::set<Expr> seen;
    visit(epilogue_.body, [&](Expr e) {
      if (e->op != ExprOp::Read || e->integer < 0 || !seen.insert(e).second) return;
      Expr base = first_of(e->args[0]);
      if (!base) return;
      const std::string buffer = kernel_.buffer(e->integer), name = emitter_.fresh("g");
      require(buffer, base);
      const std::string start = emitter_.emit(base);
      emitter_.line(
          fmt::format("{0} {1}[{2}];\nload_group<{2}>({1}, {3}, {4} + first, valid, vector);",
                      value_type(e->dtype), name, width_, buffer, start));
      loaded_.emplace_back(e, name);
    });
  }

  // The offset at column 0, if columns are consecutive elements.
  Expr first_of(Expr offset) {
    if (step_.n.size() != 1 || step_.n[0]->op != ExprOp::Axis) return nullptr;
    auto affine = affine_in(pool_, offset, step_.n[0]);
    const bool consecutive =
        affine && affine->stride->is_constant(1) && !affine->base->depends_on(step_.n[0]);
    return consecutive ? affine->base : nullptr;
  }

  void require(const std::string& buffer, Expr base) {
    if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
      aligned_.push_back(buffer);
    }
    for (Expr unit : offset_units(pool_, base)) units_.push_back(unit);
  }

  StepBuilder& builder_;
  ExprPool& pool_;
  const ProductStep& step_;
  const ProductCall& call_;
  ProductEpilogue epilogue_;
  std::vector<Expr> rows_;
  KernelText kernel_;
  Emitter emitter_;
  bool by_rows_ = false;
  int width_ = kWidth;
  std::vector<std::pair<Expr, std::string>> loaded_;
  std::vector<std::string> aligned_;
  std::vector<Expr> units_;
};

}  // namespace

std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const ProductStep& step,
                                           const ProductCall& call, const ProductEpilogue& epilogue,
                                           const std::string& comment) {
  const Target& target = builder.target;
  const bool types = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  if (!types || target.architecture != 90 || target.portable || !pays(call, target)) {
    return std::nullopt;
  }
  bool ready = true;  // nothing is read from where it is written
  visit(epilogue.body, [&](Expr e) {
    ready &= e->op != ExprOp::Reduce && !(e->op == ExprOp::Read && e->integer == epilogue.value);
  });
  if (!ready) return std::nullopt;
  return ProductKernel(builder, step, call, epilogue).launch(comment);
}

}  // namespace redfuser
