#include "codegen/cluster_product/cluster_kernel.h"

#include <fmt/format.h>

#include "codegen/cluster_product/cluster_shape.h"
#include "codegen/core/tma_tile.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/matrix/group_epilogue.h"
#include "codegen/matrix/matrix_layout.h"

namespace redfuser::codegen {
namespace {

class ClusterText {
 public:
  ClusterText(StepBuilder& builder, const fuse::ProductStep& step, const ClusterForm& form,
              const ClusterConfig& config, const ProductEpilogue& epilogue)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        form_(form),
        config_(config),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        group_(emitter_, step, epilogue) {}

  std::optional<KernelLaunch> launch(const std::string& comment) {
    const ProductCall& call = form_.call();
    group_.merge_rows(call.m);
    kernel_.start_early();
    if (form_.given) kernel_.wait_in_body();
    std::vector<TmaView> views;
    if (!add_views(views)) return std::nullopt;
    multiply(views);
    const int threads = cluster_threads(form_, config_);
    KernelLaunch launch = kernel_.launch(kClusterProductFamily, comment, headers(), tile(),
                                         emitter_.close(), threads, config_.resident);
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.shared = cluster_shared_bytes(form_, config_);
    launch.grid[0] =
        pool_.mul(ceil_div(pool_, call.n, config_.columns), pool_.integer(config_.blocks));
    launch.grid[1] = ceil_div(pool_, call.m, config_.lines);
    launch.grid[2] = call.batch;
    return launch;
  }

 private:
  // The rows' view, then those of the columns of each product.
  bool add_views(std::vector<TmaView>& views) {
    const auto add = [&](std::optional<TmaView> view) {
      if (view) views.push_back(std::move(*view));
      return view.has_value();
    };
    const ProductCall& first = form_.call();
    const bool other = form_.has_codes() || form_.has_parts();
    const DType dtype = other ? DType::UInt16 : first.dtype;
    const int terms = form_.has_parts() ? TmaTile::kSlabColumns / 2 : TmaTile::kSlabColumns;
    const auto rows =
        form_.rows_by_terms
            ? matrix_view(pool_, first.a, dtype, units(first.a_offset), units(first.m), first.k,
                          units(first.a_column), first.batch, units(first.a_batch),
                          {TmaTile::kSlabColumns, terms, 1})
            : matrix_view(pool_, first.a, dtype, units(first.a_offset), units(first.k), first.m,
                          units(first.a_row), first.batch, units(first.a_batch),
                          {TmaTile::kSlabColumns, config_.lines, 1});
    if (!add(rows)) return false;
    for (const ProductCall& call : *form_.calls) {
      const auto view =
          form_.by_rows ? matrix_view(pool_, call.b, dtype, units(call.b_offset), units(call.k),
                                      call.n, units(call.b_column), call.batch, units(call.b_batch),
                                      {TmaTile::kSlabColumns, config_.columns, 1})
                        : matrix_view(pool_, call.b, dtype, units(call.b_offset), units(call.n),
                                      call.k, units(call.b_row), call.batch, units(call.b_batch),
                                      {TmaTile::kSlabColumns, terms, 1});
      if (!add(view) || views.back().dims[2] != views[1].dims[2]) return false;
    }
    depth_ = units(first.k);
    return true;
  }

  // A number of elements, in those of the views: TMA copies 8-bit floats in pairs, and floats as
  // pairs.
  ir::Expr units(ir::Expr elements) {
    if (form_.has_parts()) return pool_.mul(elements, pool_.integer(2));
    return form_.has_codes() ? ceil_div(pool_, elements, 2) : elements;
  }

  std::vector<std::string_view> headers() const {
    std::vector<std::string_view> result = {"device/product/cluster_product.cuh"};
    if (form_.has_codes()) result.push_back("device/product/ptx_code_product.cuh");
    if (form_.has_parts()) result.push_back("device/product/ptx_part_product.cuh");
    return result;
  }

  std::string tile() const {
    return fmt::format("using Tile = ClusterTile<{}, {}, {}, {}, {}, {}, {}, {}{}>;\n",
                       storage_type(form_.call().dtype), config_.rows, config_.lines,
                       config_.columns, form_.products(), config_.blocks, config_.resident,
                       form_.by_rows, form_.rows_by_terms ? ", true" : "");
  }

  void multiply(const std::vector<TmaView>& views) {
    const ProductCall& call = form_.call();
    emitter_.set_fast_math(size_of(group_.dtype()) == 2);
    emitter_.open();
    bind_coordinates(emitter_, step_.batch, "batch");
    emitter_.line(group_.finish(true));
    const std::string text = emitter_.close();
    const int width = form_.has_parts() ? 4 : 8;  // columns of a group
    std::string maps;
    for (const TmaView& view : views) maps += ", " + kernel_.view(view);
    const std::string columns = kernel_.size(call.n);
    const auto batches = [](const TmaView& view) { return !view.dims[2]->is_constant(1); };
    emitter_.line(fmt::format(
        "const ClusterSizes sizes{{{0}, {1}, {2}}};\nconst bool vector = {3};\n"
        "const long long batch = blockIdx.z;\n"
        "multiply_cluster<Tile, {4}>(sizes, {5}, {6}, [&](long long row, long long first, "
        "const float (&sums)[{7}][{8}]) {{\nconst auto group = group_from<{8}>(first, {9}, vector);"
        "\n{10}}}{11});",
        as_int(kernel_.size(call.m)), as_int(columns), as_int(kernel_.size(depth_)),
        group_.consecutive() ? group_.condition(width) : "false", form_.given, batches(views[0]),
        batches(views[1]), form_.products(), width, columns, text, maps));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  const ClusterForm& form_;
  const ClusterConfig& config_;
  KernelText kernel_;
  Emitter emitter_;
  GroupEpilogue group_;
  ir::Expr depth_ = nullptr;  // in elements of the views
};

}  // namespace

std::optional<KernelLaunch> cluster_kernel(StepBuilder& builder, const fuse::ProductStep& step,
                                           const ClusterForm& form, const ClusterConfig& config,
                                           const ProductEpilogue& epilogue,
                                           const std::string& comment) {
  return ClusterText(builder, step, form, config, epilogue).launch(comment);
}

}  // namespace redfuser::codegen
