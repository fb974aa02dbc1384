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
constexpr int kTileRows = 128, kTileColumns = 256, kDepth = 64, kStages = 3, kWidth = 8, kSlab = 64;
constexpr int kRingBytes = kStages * (kTileRows + kTileColumns) * kDepth * 2;
constexpr int kStagedBytes = kTileRows * (kTileColumns + 8) * 2;
constexpr int kStagedWarpBytes = kStagedBytes / 8;
constexpr int kAlignment = 1024, kBarrierBytes = 64;
// Two warpgroups multiply, the first warp of a third loads. Registers of their threads.
constexpr int kThreads = 384, kMultiplyRegisters = 240, kLoadRegisters = 24;

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
                     call_.batch, call_.a_batch, {kDepth, kTileRows, 1});
    auto b = by_rows_
                 ? view_of(pool_, call_.b, call_.dtype, call_.b_offset, call_.k, call_.n,
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

 private:
  Expr rows() { return ceil_div(pool_, call_.m, kTileRows); }
  Expr columns() { return ceil_div(pool_, call_.n, kTileColumns); }
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

  static bool whole(Expr size, int tile) {
    return size->is_constant() && size->integer % tile == 0;
  }

  // The tiles of the block, for each of its roles.
  static constexpr const char* kTiles =
      "for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n"
      "const TilePlace place = place_tile(tile, rows, columns);\n";

  void load(const TensorView& a, const TensorView& b) {
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

  // The sums are rounded as the graph's product is.
  std::string_view staged_type() const {
    const DType dtype = epilogue_.product->dtype;
    return storage_type(size_of(dtype) == 2 ? dtype : DType::Float32);
  }

  // Lines of the warp's, one after the other; a thread takes groups of consecutive columns, as an
  // elementwise kernel has them.
  void finish() {
    const DType out = builder_.dtype_of(epilogue_.value);
    Expr base = first_of(epilogue_.offset);
    // Neighbouring threads write neighbouring elements where rows start anywhere.
    width_ = base && multiple(pool_, call_.n) ? kWidth : 1;
    const std::string target = kernel_.buffer(epilogue_.value, true);
    emitter_.set_fast_math(size_of(out) == 2);
    const std::string columns = width_ > 1 ? read_columns() : "";
    emitter_.open();
    bind_coordinates(emitter_, step_.batch, "place.batch");
    const auto write = [&] {
      emitter_.line(
          fmt::format("float p[{0}];\nstaged_group(p, staged + line % kStagedLines<{1}> * "
                      "kStagedPitch<{1}> + part);",
                      width_, staged_type()));
      load_groups(true);
      if (width_ == 1) load_groups(false);
      write_elements(target, base, out);
    };
    if (width_ > 1) {
      emitter_.line(fmt::format("const {};\n{}", part(), first_column("return")));
      in_lines(2, write);
    } else {
      in_lines(1, [&] { in_parts(write); });
    }
    add_tiles(columns, emitter_.close());
  }

  template <typename Write>
  void in_lines(int unroll, Write write) {
    emitter_.open();
    emitter_.line("const long long row = top + line;");
    bind_coordinates(emitter_, rows_, "row");
    write();
    emitter_.line(
        fmt::format("#pragma unroll {}\nfor (int line = from; line < end; ++line) {{\n{}}}", unroll,
                    emitter_.close()));
  }

  template <typename Write>
  void in_parts(Write write) {
    emitter_.open();
    emitter_.line(first_column("continue"));
    write();
    emitter_.line(
        fmt::format("#pragma unroll\nfor ({}; part < kTileColumns; part += 32 * {}) {{\n{}}}",
                    part(), width_, emitter_.close()));
  }

  // The thread's first column in a tile.
  std::string part() const { return fmt::format("int part = (threadIdx.x & 31) * {}", width_); }

  std::string first_column(std::string_view beyond) {
    const bool whole_tiles = whole(call_.n, kTileColumns);
    return fmt::format("const long long first = place.column + part, valid = {};\n{}",
                       whole_tiles ? std::to_string(width_) : kernel_.size(call_.n) + " - first",
                       whole_tiles ? "" : fmt::format("if (valid <= 0) {};\n", beyond));
  }

  // What only the columns of a tile determine is read once, as soon as its sums are staged.
  std::string read_columns() {
    std::string declared;
    emitter_.open();
    emitter_.line(fmt::format("const {};\nconst bool vector = all_aligned;\n{}", part(),
                              first_column("return")));
    bind_coordinates(emitter_, step_.batch, "place.batch");
    load_groups(false, &declared);
    return fmt::format("{}auto read_columns = [&](const TilePlace& place) {{\n{}}};\n", declared,
                       emitter_.close());
  }

  void write_elements(const std::string& target, Expr base, DType out) {
    if (base) require(target, base);
    const std::string start = base ? emitter_.emit(base) : "";
    emitter_.line(fmt::format("{} y[{}];", value_type(out), width_));
    emitter_.open();
    emitter_.line(
        fmt::format("const long long at = min_of(first + v, {} - 1);", kernel_.size(call_.n)));
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
  }

  // `body`: of lines `from` to `end` of a tile's.
  void add_tiles(const std::string& columns, const std::string& body) {
    units_.push_back(call_.n);
    std::string vector = width_ > 1 ? kernel_.multiples(units_, width_) : "false";
    for (const std::string& buffer : aligned_) vector += fmt::format(" && aligned({})", buffer);
    // Aligned or not, the loops have no branches within.
    auto lines_of = [&](bool aligned) {
      return fmt::format("constexpr bool vector = {};\n{}", aligned, body);
    };
    const std::string lines = width_ == 1 ? lines_of(false)
                                          : fmt::format("if (all_aligned) {{\n{}}} else {{\n{}}}\n",
                                                        lines_of(true), lines_of(false));
    const std::string_view staged = staged_type();
    emitter_.line(fmt::format(
        "const bool all_aligned = {0};\n{9}"
        "{1}* staged = reinterpret_cast<{1}*>(memory + (ring_at - start) + kTileStages * "
        "kTileBytes + warp * {2});\n"
        "auto finish = [&](const TilePlace& place, int from, int to) {{\n"
        "const int top = place.row + warp * kWarpLines, end = {3};\nif (from >= end) return;\n"
        "{4}}};\nTilePlace last = {{}};\nbool waits = false;\nunsigned use = 0;\n{5}"
        "float d[kTileColumns / 8][4];\n"
        "use = multiply_tile<{6}, {7}>(d, ring_at, ring, use, steps, warp / 4, [&](int step) {{\n"
        "if (waits) finish(last, finish_from(step, steps), finish_from(step + 1, steps));\n}});\n"
        "{8}}}\nif (waits) finish(last, 0, kWarpLines);",
        vector, staged, kStagedWarpBytes,
        whole(call_.m, kTileRows)
            ? "to"
            : fmt::format("min(to, static_cast<int>({}) - top)", kernel_.size(call_.m)),
        lines, kTiles, storage_type(call_.dtype), by_rows_, stage(), columns));
  }

  // Sums of 16 bits wait for the next tile; there is no room for all in fp32.
  std::string stage() const {
    const std::string columns = width_ > 1 ? "read_columns(place);\n" : "";
    const std::string_view later =
        "__syncwarp();\nstage_lines(d, staged, 0);\nstage_lines(d, staged, 1);\n__syncwarp();\n"
        "last = place;\nwaits = true;\n";
    const std::string_view now =
        "#pragma unroll\nfor (int r = 0; r < 2; ++r) {\n__syncwarp();\n"
        "stage_lines(d, staged, r);\n__syncwarp();\n"
        "finish(place, r * kStagedLines<float>, (r + 1) * kStagedLines<float>);\n}\n";
    return columns + std::string(staged_type() == "float" ? now : later);
  }

  // Of what changes from row to row, or of the rest. Variables are declared here, or in `declared`.
  void load_groups(bool with_row, std::string* declared = nullptr) {
    std::set<Expr> seen;
    visit(epilogue_.body, [&](Expr e) {
      if (e->op != ExprOp::Read || e->integer < 0 || !seen.insert(e).second) return;
      if (depends_on_row(e) != with_row) return;
      Expr base = first_of(e->args[0]);
      if (!base) return;
      const std::string buffer = kernel_.buffer(e->integer), name = emitter_.fresh("g");
      require(buffer, base);
      const std::string start = emitter_.emit(base);
      const std::string variable = fmt::format("{} {}[{}];\n", value_type(e->dtype), name, width_);
      emitter_.line(fmt::format("{}load_group<{}>({}, {}, {} + first, valid, vector);",
                                declared ? "" : variable, width_, name, buffer, start));
      if (declared) *declared += variable;
      loaded_.emplace_back(e, name);
    });
  }

  bool depends_on_row(Expr e) const {
    return std::any_of(rows_.begin(), rows_.end(), [&](Expr axis) { return e->depends_on(axis); });
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
  if (!types || target.architecture != 90 || target.portable || !known(call)) return std::nullopt;
  if (builder.product_family == ProductFamily::ByEstimate && !pays(call, target)) {
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
