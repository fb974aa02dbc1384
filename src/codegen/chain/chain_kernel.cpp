#include "codegen/chain/chain_kernel.h"

#include <fmt/format.h>

#include "codegen/core/tma_tile.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/matrix/group_epilogue.h"
#include "codegen/matrix/matrix_layout.h"

namespace redfuser::codegen {
namespace {

constexpr int kLoadThreads = 32, kWidth = 4;

class ChainText {
 public:
  ChainText(StepBuilder& builder, const ChainForm& form, const ChainConfig& config,
            int64_t partials)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        config_(config),
        partials_(partials),
        stages_(chain_stages(form, config, builder.target)),
        kernel_(builder.kernel()),
        emitter_(kernel_) {}

  std::optional<KernelLaunch> launch() {
    kernel_.start_early();
    if (form_.given) kernel_.wait_in_body();
    const auto views = make_views();
    if (!views) return std::nullopt;
    multiply(*views);
    KernelLaunch launch = kernel_.launch(kChainFamily, form_.first.comment + form_.second.comment,
                                         {"device/product/chain.cuh"}, tile(), emitter_.close(),
                                         ChainConfig::kGroups * 128 + kLoadThreads, 1);
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.shared = chain_shared_bytes(form_, config_, stages_);
    launch.grid[0] = pool_.integer(int64_t{config_.blocks} * config_.clusters);
    launch.grid[1] = ceil_div(pool_, form_.rows, config_.rows);
    launch.grid[2] = pool_.integer(1);
    return launch;
  }

 private:
  std::optional<TmaView> weights(const ProductCall& call, bool by_rows) {
    const std::vector<int> box = {TmaTile::kSlabColumns, TmaTile::kSlabColumns, 1};
    return by_rows ? matrix_view(pool_, call.b, call.dtype, call.b_offset, call.k, call.n,
                                 call.b_column, call.batch, call.b_batch, box)
                   : matrix_view(pool_, call.b, call.dtype, call.b_offset, call.n, call.k,
                                 call.b_row, call.batch, call.b_batch, box);
  }

  // The rows, the second product's weights, those of the first ones.
  std::optional<std::vector<TmaView>> make_views() {
    std::vector<TmaView> views;
    const auto add = [&](std::optional<TmaView> view) {
      if (view) views.push_back(std::move(*view));
      return view.has_value();
    };
    const ProductCall& first = form_.first.calls[0];
    bool made =
        add(matrix_view(pool_, first.a, first.dtype, first.a_offset, first.k, first.m, first.a_row,
                        first.batch, first.a_batch, {TmaTile::kSlabColumns, config_.rows, 1})) &&
        add(weights(form_.second.calls[0], form_.second_by_rows));
    for (const ProductCall& call : form_.first.calls) {
      made = made && add(weights(call, form_.first_by_rows));
    }
    return made ? std::optional(std::move(views)) : std::nullopt;
  }

  std::string tile() const {
    return fmt::format(
        "struct Config {{\nusing T = {};\nstatic constexpr int kRows = {}, kDepth = {}, "
        "kInner = {}, kWidth = {}, kProducts = {};\nstatic constexpr int kChunks = {}, kBlocks = "
        "{}, kClusters = {}, kGroups = {}, kStages = {};\nstatic constexpr bool kFirstByRows = "
        "{}, kSecondByRows = {};\n}};\nusing Tile = ChainTile<Config>;\n",
        storage_type(form_.dtype()), config_.rows, form_.depth, form_.inner, form_.width,
        form_.products(), config_.chunks, config_.blocks, config_.clusters, ChainConfig::kGroups,
        stages_, form_.first_by_rows, form_.second_by_rows);
  }

  // Statements for four columns of a row of a product: its elements in `values`, or stored.
  std::string finish(const ProductParts& parts, const std::string& values) {
    GroupEpilogue group(emitter_, parts.step, parts.epilogue);
    group.merge_rows(form_.rows);
    emitter_.set_fast_math(size_of(group.dtype()) == 2);
    const std::string text = group.finish(true, values);
    const bool vector = !values.empty() || group.consecutive();
    return fmt::format("const auto group = group_from<{}>(first, {}, {});\n{}", kWidth,
                       kernel_.size(parts.calls[0].n), vector ? group.condition(kWidth) : "false",
                       text);
  }

  void multiply(const std::vector<TmaView>& views) {
    const std::string map = finish(form_.first, "values"), end = finish(form_.second, "");
    std::string maps;
    for (const TmaView& view : views) maps += ", " + kernel_.view(view);
    const bool exchange = partials_ >= 0;
    const std::string partials = exchange ? kernel_.buffer(partials_, true) : "nullptr";
    emitter_.line(fmt::format(
        "const ChainExchange exchange{{{}, {}}};\n"
        "multiply_chain<Tile, {}>({}, exchange, [&](long long row, long long first, "
        "const float (&sums)[{}][{}], float (&values)[{}]) {{\n{}}}, [&](long long row, "
        "long long first, const float (&sums)[1][{}]) {{\n{}}}{});",
        partials, exchange ? kernel_.counter() : "nullptr", form_.given,
        as_int(kernel_.size(form_.rows)), form_.products(), kWidth, kWidth, map, kWidth, end,
        maps));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ChainForm& form_;
  const ChainConfig& config_;
  const int64_t partials_;  // a scratch value, -1: none
  const int stages_;
  KernelText kernel_;
  Emitter emitter_;
};

}  // namespace

std::optional<KernelLaunch> chain_kernel(StepBuilder& builder, const ChainForm& form,
                                         const ChainConfig& config) {
  ir::ExprPool& pool = builder.pool();
  int64_t partials = -1;
  if (config.clusters > 1) {
    const int64_t groups = (form.width + kWidth - 1) / kWidth;
    const int64_t slab = int64_t{config.rows} * config.clusters * groups * kWidth;
    partials = builder.add_scratch(
        DType::Float32, pool.mul(ceil_div(pool, form.rows, config.rows), pool.integer(slab)));
  }
  return ChainText(builder, form, config, partials).launch();
}

}  // namespace redfuser::codegen
