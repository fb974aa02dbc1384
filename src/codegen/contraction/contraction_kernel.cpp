#include "codegen/contraction/contraction_kernel.h"

#include <fmt/format.h>

#include "codegen/contraction/factor_turns.h"
#include "codegen/core/emitter.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/map_body.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kHeader = "device/contraction/contraction.cuh";
constexpr int64_t kSumPart = 4096;  // longer sums of floats are added in parts
constexpr int kDoubt = 32;          // registers, of their estimate

std::string part_name(const char* side, size_t number) { return fmt::format("{}{}", side, number); }

class ContractionText {
 public:
  ContractionText(const StepBuilder& builder, const ContractionForm& form,
                  const ContractionConfig& config)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        kernel_(builder.kernel()),
        emitter_(kernel_) {
    const DType result = builder.dtype_of(form.store.value);
    emitter_.set_fast_math(is_float(result) && size_of(result) == 2);
  }

  KernelLaunch launch(const std::string& comment) {
    const std::string row = element_text("A", form_.rows, form_.a),
                      column = element_text("B", form_.columns, form_.b);
    const std::string term = term_text(), finish = finish_text();
    const std::string type(value_type(form_.reduce->dtype));
    emitter_.line(tile_text() + element_type("A", form_.a) + element_type("B", form_.b));
    emitter_.line("__shared__ __align__(16) ContractionStage<A, Tile::Rows, Tile::Depth> rows;");
    emitter_.line(
        "__shared__ __align__(16) ContractionStage<B, Tile::Columns, Tile::Depth> columns;");
    emitter_.line(fmt::format(
        "contract<Tile, {}, {}>({{{}, {}, {}, {}}}, {}, rows, columns,\n{},\n{},\n{},\n{});",
        combiner_of(form_.reduce->reduction), type, size(form_.batch), size(form_.rows),
        size(form_.columns), size(form_.depth),
        identity_of(form_.reduce->reduction, form_.reduce->dtype), row, column, term, finish));
    KernelLaunch launch = kernel_.launch(kContractionFamily, comment, {kHeader}, "",
                                         emitter_.close(), config_.threads(), min_blocks());
    launch.config = config_.parameters();
    launch.static_shared = shared_bytes(form_, config_);
    launch.grid[0] = blocks();
    return launch;
  }

 private:
  // Without a number of blocks, ptxas may take half of the registers at most.
  int min_blocks() const {
    const int halves = select::kRegistersOfMultiprocessor / (2 * config_.threads());
    return contraction_registers(form_, config_) + kDoubt > halves ? 1 : 0;
  }

  std::string size(const std::vector<ir::Expr>& axes) {
    return kernel_.size(product_of(pool_, extents_of(pool_, axes)));
  }

  ir::Expr blocks() const {
    constexpr int64_t kMostBlocks = int64_t{1} << 30;
    const auto count = [&](const std::vector<ir::Expr>& axes, int tile) {
      return ceil_div(pool_, product_of(pool_, extents_of(pool_, axes)), tile);
    };
    ir::Expr all = pool_.mul(
        count(form_.batch, 1),
        pool_.mul(count(form_.rows, config_.rows), count(form_.columns, config_.columns)));
    return pool_.make(ir::ExprOp::Min, {all, pool_.integer(kMostBlocks)});
  }

  bool by_depth(const std::vector<ir::Expr>& parts) const {
    return ContractionForm::lies_along(pool_, parts, form_.depth.back());
  }

  std::string tile_text() const {
    const ir::Expr length = product_of(pool_, extents_of(pool_, form_.depth));
    const bool is_long = !length->is_constant() || length->integer > kSumPart;
    const bool sum = form_.reduce->reduction == ir::Reduction::Sum;
    const int64_t part = sum && is_float(form_.reduce->dtype) && is_long ? kSumPart : 0;
    return fmt::format("using Tile = ContractionTile<{}, {}, {}, {}, {}, {}, {}, {}>;\n",
                       config_.rows, config_.columns, config_.depth, config_.rows_of_thread,
                       config_.columns_of_thread, by_depth(form_.a), by_depth(form_.b), part);
  }

  static std::string element_type(const char* side, const std::vector<ir::Expr>& parts) {
    std::string text = fmt::format("struct {} {{\n", side);
    for (size_t i = 0; i < parts.size(); ++i) {
      text += fmt::format("{} {};\n", value_type(parts[i]->dtype), part_name("p", i));
    }
    return text + "};\n";
  }

  std::string element_text(const char* side, const std::vector<ir::Expr>& lines,
                           const std::vector<ir::Expr>& parts) {
    emitter_.open();
    bind_coordinates(emitter_, form_.batch, "batch");
    bind_coordinates(emitter_, lines, "line");
    bind_coordinates(emitter_, form_.depth, "k");
    std::string values;
    for (ir::Expr part : parts) {
      values += (values.empty() ? "" : ", ") + emitter_.emit_as(part, part->dtype);
    }
    emitter_.line(fmt::format("return {}{{{}}};", side, values));
    return fmt::format("[&](long long batch, long long line, long long k) {{\n{}}}",
                       emitter_.close());
  }

  std::string term_text() {
    emitter_.open();
    for (size_t i = 0; i < form_.a.size(); ++i) emitter_.bind(form_.a[i], part_name("a.p", i));
    for (size_t i = 0; i < form_.b.size(); ++i) emitter_.bind(form_.b[i], part_name("b.p", i));
    emitter_.line(fmt::format("return {};", emitter_.emit_as(form_.term, form_.reduce->dtype)));
    return fmt::format("[&](const A& a, const B& b) {{\n{}}}", emitter_.close());
  }

  std::string finish_text() {
    const DType dtype = kernel_.dtype_of(form_.store.value);
    emitter_.open();
    bind_coordinates(emitter_, form_.batch, "batch");
    bind_coordinates(emitter_, form_.rows, "m");
    bind_coordinates(emitter_, form_.columns, "n");
    emitter_.bind(form_.reduce, "result");
    const std::string value = emitter_.emit_as(form_.store.body, dtype);
    emitter_.line(fmt::format("store({}, {}, {});", kernel_.buffer(form_.store.value, true),
                              emitter_.emit(form_.store.offset), value));
    return fmt::format("[&](long long batch, long long m, long long n, {} result) {{\n{}}}",
                       value_type(form_.reduce->dtype), emitter_.close());
  }

  ir::ExprPool& pool_;
  const ContractionForm& form_;
  const ContractionConfig config_;
  KernelText kernel_;
  Emitter emitter_;
};

// The kernels of a store: by points, and by tiles of one of the forms.
class Ways {
 public:
  Ways(StepBuilder& builder, const std::vector<ir::Expr>& axes, const Store& store,
       const std::string& comment)
      : builder_(builder), pool_(builder.pool()), comment_(comment) {
    KernelText kernel = builder.kernel();
    points_ = map_body(kernel, simplified(pool_, {axes, {store}}));
    const bool fails =
        builder.leaves_out(kContractionFamily) || builder.leaves_out_offer(kContractionFamily);
    if (fails) {
      forms_ = "it fails";
    } else {
      forms_ = contraction_forms(pool_, axes, store);
    }
  }

  std::string refusal() const {
    const auto* text = std::get_if<std::string>(&forms_);
    return text == nullptr ? "" : *text;
  }

  std::optional<ContractionChoice> tiles(const KnownSizes& sizes) const {
    return contraction_choice(builder_, sizes, std::get<std::vector<ContractionForm>>(forms_));
  }
  bool takes_tiles(const KnownSizes& sizes) const {
    const auto choice = tiles(sizes);
    return choice && choice->time < points_.time(builder_, sizes);
  }

  // The sizes where tiles take less time; null: none.
  ir::Expr where_tiles() const {
    ir::Expr size = measure();
    if (size->is_constant()) {
      return takes_tiles(builder_.sizes) ? pool_.boolean(true) : nullptr;
    }
    return sizes_where(pool_, size, [&](const KnownSizes& sizes) { return takes_tiles(sizes); });
  }

  // For which the tiles are chosen.
  KnownSizes nominal() const {
    constexpr int64_t kMany = 1024;  // for each size that a run decides
    return measure()->is_constant() ? builder_.sizes : KnownSizes::all(kMany);
  }

  // Of the tiles that are best at `sizes`.
  KernelLaunch launch(const KnownSizes& sizes) const {
    const ContractionChoice choice = *tiles(sizes);
    KernelLaunch launch = ContractionText(builder_, *choice.form, choice.config).launch(comment_);
    launch.time = contraction_time(builder_, builder_.sizes, *choice.form, choice.config);
    return launch;
  }

 private:
  // The number of results, or where that is known of terms.
  ir::Expr measure() const {
    const auto& form = std::get<std::vector<ContractionForm>>(forms_).front();
    const auto size = [&](const std::vector<ir::Expr>& axes) {
      return product_of(pool_, extents_of(pool_, axes));
    };
    ir::Expr results = pool_.mul(size(form.batch), pool_.mul(size(form.rows), size(form.columns)));
    return results->is_constant() ? size(form.depth) : results;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const std::string& comment_;
  MapBody points_;
  std::variant<std::vector<ContractionForm>, std::string> forms_;
};

Offer offer_of(const KernelLaunch& launch) {
  return {launch.family, to_string(KernelConfig{launch.family, launch.config}), launch.time, ""};
}

// Of the kernels that run at the builder's sizes.
double time_of_calls(const StepBuilder& builder) {
  double time = 0;
  for (const GpuCall& call : builder.result.calls) {
    const auto* launch = std::get_if<KernelLaunch>(&call);
    if (launch && builder.sizes.of(launch->grid[0]) != 0) time += launch->time;
  }
  return time;
}

// The kernels of a sum in two steps; false, with nothing added, where it has no factors.
bool add_factors(StepBuilder& builder, const std::string& name, const std::vector<ir::Expr>& axes,
                 const Store& store, const std::string& comment) {
  const auto scratch = kScratchValues + static_cast<int64_t>(builder.scratch_dtypes.size());
  const auto factors = factored_turns(builder.pool(), axes, store, scratch);
  if (!factors) return false;
  builder.add_scratch(factors->dtype, builder.pool().integer(factors->table_elements));
  builder.add_scratch(factors->dtype, factors->elements);
  add_map(builder, name, factors->table.axes, {factors->table.store}, comment);
  add_reductions(builder, name, factors->inner.axes, factors->inner.store, comment);
  for (const DividedStore& outer : factors->outer) {
    add_reductions(builder, name, outer.axes, outer.store, comment);
  }
  return true;
}

Offer add_whole(StepBuilder& builder, const std::string& name, const std::vector<ir::Expr>& axes,
                const Store& store, const std::string& comment) {
  ir::ExprPool& pool = builder.pool();
  const Ways ways(builder, axes, store, comment);
  const Offer none{kContractionFamily, "", 0, ways.refusal()};
  add_map(builder, name, axes, {store}, comment);
  if (!none.refusal.empty()) return none;
  auto& plain = std::get<KernelLaunch>(builder.result.calls.back());
  ir::Expr where = ways.where_tiles();
  const bool open = where != nullptr && !where->is_constant();
  const KnownSizes sizes = ways.nominal();
  if (!ways.tiles(sizes)) return {kContractionFamily, "", 0, "no tile has room for its elements"};
  KernelLaunch tiles = ways.launch(sizes);
  const Offer other = offer_of(where == nullptr ? tiles : plain);
  if (open) {
    plain.grid[0] = pool.select(where, pool.integer(0), plain.grid[0]);
    tiles.grid[0] = pool.select(where, tiles.grid[0], pool.integer(0));
    builder.result.calls.push_back(std::move(tiles));
  } else if (where != nullptr) {
    plain = std::move(tiles);
  }
  return other;
}

}  // namespace

Offer add_reductions(StepBuilder& builder, const std::string& name,
                     const std::vector<ir::Expr>& axes, const Store& store,
                     const std::string& comment) {
  StepBuilder factors = builder.trial(), whole = builder.trial();
  factors.scratch_dtypes = whole.scratch_dtypes = builder.scratch_dtypes;
  if (add_factors(factors, name, axes, store, comment)) {
    add_whole(whole, name, axes, store, comment);
    const double time = time_of_calls(whole);
    if (time_of_calls(factors) < time) {
      add_factors(builder, name, axes, store, comment);
      return {kContractionFamily, "", time, ""};
    }
  }
  return add_whole(builder, name, axes, store, comment);
}

Offer generate_reduce(StepBuilder& builder, const fuse::ReduceStep& step) {
  const std::string comment =
      fmt::format("reduce\n%{} = {}\n", step.value, to_string(builder.pool(), step.body));
  return add_reductions(
      builder, "reduce", builder.memory_axes(step.value, step.axes),
      {step.value, builder.flat.flat(step.body), builder.offset_of(step.value, step.axes)},
      comment);
}

}  // namespace redfuser::codegen
