#include "codegen/row_product/row_product_kernel.h"

#include <fmt/ranges.h>

#include "codegen/core/tma_tile.h"
#include "codegen/functor/rank_key.h"
#include "codegen/ranking/ranking_form.h"
#include "codegen/rows/row_functor.h"
#include "codegen/text/type_text.h"

namespace redfuser::codegen {
namespace {

constexpr int kLoadThreads = 32;

SinglePassConfig rows_config(StepBuilder& builder, const RowProductForm& form,
                             const RowProductConfig& config) {
  SinglePassConfig rows;
  rows.threads = config.rows * 2;
  rows.width = row_width(builder, form.rows);
  rows.lanes = lanes_of(form, config, rows.width);
  rows.chunks = form.chunks(rows.lanes, rows.width);
  rows.whole = true;
  return rows;
}

class RowProductText {
 public:
  RowProductText(StepBuilder& builder, const RowProductForm& form, const RowProductConfig& config)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        config_(config),
        ranking_(ranking_form(pool_, form.rows)),
        rows_(rows_config(builder, form, config)),
        kernel_(builder.kernel()) {}

  std::optional<KernelLaunch> launch() {
    const auto left = left_view(), right = right_view();
    if (!left || !right) return std::nullopt;
    const std::string product = kernel_.shared_buffer(form_.product);
    const bool ranks = !ranking_.ranked.empty();
    RowFunctor functor(kernel_, ranking_.whole, ranking_.rest, rows_,
                       !ranks && rounds_smoothly(builder_, form_.rows), ranking_.ranked);
    const std::string text = functor.text();
    const std::string values = kernel_.member_values(), vector = functor.vector_condition();
    const int staging = functor.reads().staging_words();
    const std::string_view sums = storage_type(kernel_.dtype_of(form_.product));
    const std::string lists = ranks ? ", Lists(places[threadIdx.x / Config::kLanes])" : "";
    const std::string body = fmt::format(
        "{}{}multiply_rows<Tile>({}, {}, {}, {}, [&](const {}* {}, long long first, long long end) "
        "{{\nconst Form form{{{}}};\n{}<Config>(form, memory{}, first, end, {}, {});\n}});\n",
        row_memory(rows_, 0, staging),
        ranks ? "__shared__ unsigned places[Config::kThreads / Config::kLanes][Lists::kCount];\n"
              : "",
        kernel_.view(*left), kernel_.view(*right), kernel_.size(form_.count),
        as_int(kernel_.size(form_.depth)), sums, product, values,
        ranks ? "rank_whole_rows" : "fold_whole_rows", lists, form_.columns, vector);
    const std::string before =
        tile_text(sums) + row_config(form_.rows, rows_, vector != "false") + lists_text() + text;
    KernelLaunch launch =
        kernel_.launch(kRowProductFamily, form_.rows.comment, headers(ranks), before, body,
                       rows_.threads + kLoadThreads, config_.resident);
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.shared = row_product_shared_bytes(form_, config_);
    launch.static_shared = single_pass_static_bytes(rows_, 0, staging) + places_bytes();
    launch.grid[0] =
        pool_.mul(ceil_div(pool_, form_.count, config_.rows), pool_.integer(config_.blocks));
    return launch;
  }

 private:
  std::optional<TmaView> view(const BufferRef& buffer, ir::Expr offset, ir::Expr inner,
                              ir::Expr lines, ir::Expr line, int box_lines) {
    return matrix_view(pool_, buffer, form_.dtype, offset, inner, lines, line, pool_.integer(1),
                       pool_.integer(0), {TmaTile::kSlabColumns, box_lines, 1});
  }

  std::optional<TmaView> left_view() {
    const MatrixLayout& layout = form_.left_layout;
    return view(form_.left, layout.offset, form_.depth, form_.count, layout.row, config_.rows);
  }

  std::optional<TmaView> right_view() {
    const MatrixLayout& layout = form_.right_layout;
    ir::Expr columns = pool_.integer(form_.columns);
    return form_.by_rows() ? view(form_.right, layout.offset, form_.depth, columns, layout.column,
                                  form_.padded())
                           : view(form_.right, layout.offset, columns, form_.depth, layout.row,
                                  TmaTile::kSlabColumns);
  }

  std::string tile_text(std::string_view sums) const {
    return fmt::format("using Tile = RowProductTile<{}, {}, {}, {}, {}, {}, {}, {}>;\n",
                       storage_type(form_.dtype), sums, config_.rows, form_.padded(), form_.pitch,
                       config_.blocks, config_.resident, form_.by_rows());
  }

  std::string lists_text() const {
    std::vector<std::string> types;
    for (size_t i = 0; i < ranking_.ranked.size(); ++i) {
      const cascade::Accumulator& a = ranking_.accumulator(i);
      types.push_back(fmt::format("WarpList<{}, {}>", key_type(a), std::max<int64_t>(a.k, 1)));
    }
    return types.empty() ? ""
                         : fmt::format("using Lists = WarpLists<{}>;\n", fmt::join(types, ", "));
  }

  int places_bytes() const {
    int64_t places = 0;
    for (size_t i = 0; i < ranking_.ranked.size(); ++i) {
      places += std::max<int64_t>(ranking_.accumulator(i).k, 1) * 4 * (rows_.threads / rows_.lanes);
    }
    constexpr int64_t kAlignment = 128;
    return static_cast<int>((places + kAlignment - 1) / kAlignment * kAlignment);
  }

  static std::vector<std::string_view> headers(bool ranks) {
    std::vector<std::string_view> result = {
        ranks ? "device/ranking/ranking_rows.cuh" : "device/row_fold.cuh",
        "device/product/row_product.cuh"};
    return result;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const RowProductForm& form_;
  const RowProductConfig config_;
  const RankingForm ranking_;
  const SinglePassConfig rows_;
  KernelText kernel_;
};

}  // namespace

std::optional<KernelLaunch> row_product_kernel(StepBuilder& builder, const RowProductForm& form,
                                               const RowProductConfig& config) {
  return RowProductText(builder, form, config).launch();
}

bool add_row_product(StepBuilder& builder, const RowProductForm& form) {
  ir::ExprPool& pool = builder.pool();
  const int64_t depth = std::max<int64_t>(builder.sizes.of(form.depth), 0);
  const auto choose = [&](int64_t count) {
    return RowProductConfig::of(row_product_choices(builder, form, count, depth).front().choice);
  };
  if (form.count->is_constant()) {
    auto launch =
        row_product_kernel(builder, form, choose(std::max<int64_t>(form.count->integer, 1)));
    if (launch) builder.result.calls.push_back(std::move(*launch));
    return launch.has_value();
  }
  // Of open sizes: up to as many rows as clusters of so many blocks fill the machine, and more.
  ir::Expr more = pool.boolean(true);
  for (const int64_t blocks : {8, 4, 2, 0}) {
    constexpr int64_t kTileRows = 128, kMany = 1 << 20;
    const int64_t most = blocks == 0 ? kMany : builder.target.multiprocessors / blocks * kTileRows;
    auto launch = row_product_kernel(builder, form, choose(most));
    if (!launch) return false;
    ir::Expr below = pool.make(ir::ExprOp::LessEqual, {form.count, pool.integer(most)});
    ir::Expr when = blocks == 0 ? more : pool.make(ir::ExprOp::And, {more, below});
    launch->grid[0] = pool.select(when, launch->grid[0], pool.integer(0));
    builder.result.calls.push_back(std::move(*launch));
    more = pool.make(ir::ExprOp::And, {more, pool.make(ir::ExprOp::Not, {below})});
  }
  return true;
}

}  // namespace redfuser::codegen
