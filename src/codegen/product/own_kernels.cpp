#include "codegen/product/own_kernels.h"

#include <algorithm>
#include <cmath>

#include "codegen/cluster_product/cluster_kernel.h"
#include "codegen/product/library_time.h"
#include "codegen/product/thin_kernel.h"

namespace redfuser::codegen {
namespace {

// An estimate must be less than that of the library by this factor. The estimates are of a cold
// cache, but in a model the map after the library finds the products in L2. On an H200 a ViT of
// 1576 rows takes 867 us by the library, and 924 us by tiles with the same estimate.
constexpr double kDoubt = 1.1;

class Kernels {
 public:
  Kernels(StepBuilder& builder, const fuse::ProductStep& step,
          const std::vector<ProductCall>& calls, const ProductEpilogue& epilogue,
          bool library_alone, const std::string& comment)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        calls_(calls),
        epilogue_(epilogue),
        work_(epilogue_work(epilogue, step)),
        library_alone_(library_alone),
        comment_(comment) {}

  std::vector<OwnKernel> make() {
    if (offers(ProductFamily::Thin, kThinProductFamily)) add_thin();
    if (offers(ProductFamily::Cluster, kClusterProductFamily)) add_cluster();
    if (offers(ProductFamily::Kernel, kProductKernelFamily)) add_tile();
    return std::move(kernels_);
  }

 private:
  bool by_estimate() const { return builder_.product_family == ProductFamily::ByEstimate; }

  bool offers(ProductFamily family, const char* name) const {
    if (builder_.product_family == family) return true;
    return by_estimate() && !builder_.leaves_out(name) && !builder_.leaves_out_offer(name);
  }

  void add(ir::Expr when, KernelLaunch launch) {
    taken_ = taken_ ? pool_.make(ir::ExprOp::Or, {taken_, when}) : when;
    kernels_.push_back({when, std::move(launch)});
  }

  void add_thin() {
    auto form = thin_form(builder_.graph, step_, calls_);
    if (!form || reads_result()) return;
    form->epilogue = work_;
    const KnownSizes& sizes = builder_.sizes;
    for (const ThinClass& each : thin_classes(pool_, *form)) {
      const double lines =
          form->lines->is_constant() ? static_cast<double>(form->lines->integer) : each.padded;
      const auto choices = thin_choices(*form, each.padded, lines, sizes, builder_.target);
      if (choices.empty()) continue;
      Candidate choice = choices.front();
      if (builder_.product_config) {
        if (builder_.product_config->at("lines") != each.padded) continue;
        choice.choice = *builder_.product_config;
        choice.time = thin_time(*form, thin_config(choice.choice), lines, sizes, builder_.target);
      }
      if (by_estimate()) {
        // Thin kernels gain more from an early start (H200: a layer of 768, 3072 and 768 columns
        // 11.7 us by them, 13.4 by clusters).
        constexpr double kEarly = 1.1;
        const double other = library_time(form->columns, each.padded);
        const double cluster = cluster_time(form->columns ? known_rows() : std::llround(lines));
        if (choice.time >= std::min(other, kEarly * cluster)) continue;
      }
      if (sizes.of(each.when) > 0) builder_.product_choices = choices;
      KernelLaunch launch =
          thin_kernel(builder_, step_, *form, thin_config(choice.choice), epilogue_, comment_);
      launch.time = choice.time;
      add(each.when, std::move(launch));
    }
  }

  std::optional<ClusterForm> cluster() const {
    auto form = cluster_form(builder_.graph, builder_.target, calls_);
    if (form) form->epilogue = work_;
    return form;
  }

  // 0 of an open number.
  int64_t known_rows() const { return calls_[0].m->is_constant() ? calls_[0].m->integer : 0; }

  // The least of so many rows; infinite where there is none, and for no row.
  double cluster_time(int64_t rows) const {
    const auto form = cluster();
    if (!form || reads_result() || !offers(ProductFamily::Cluster, kClusterProductFamily)) {
      return HUGE_VAL;
    }
    if (rows == 0 || cluster_classes(pool_, *form).empty()) return HUGE_VAL;
    const auto choices = cluster_choices(*form, rows, builder_.sizes, builder_.target);
    return choices.empty() ? HUGE_VAL : choices.front().time;
  }

  void add_cluster() {
    const auto form = cluster();
    if (!form || reads_result()) return;
    for (ClusterClass& each : cluster_classes(pool_, *form)) {
      const auto choices = cluster_choices(*form, each.most, builder_.sizes, builder_.target);
      if (choices.empty()) continue;
      Candidate choice = choices.front();
      if (builder_.product_config) choice.choice = *builder_.product_config;
      const ClusterConfig config = ClusterConfig::of(choice.choice);
      if (by_estimate()) {
        if (taken_) each.when = but(each.when, taken_);
        const double library = library_time(false, static_cast<int>(each.most)) / kDoubt;
        const double other = std::min(library, tile_time(each.most));
        if (each.when->is_constant(0) || choice.time >= other) continue;
      }
      auto launch = cluster_kernel(builder_, step_, *form, config, epilogue_, comment_);
      if (!launch) return;
      if (builder_.sizes.of(each.when) > 0) builder_.product_choices = choices;
      launch->time = choice.time;
      add(each.when, std::move(*launch));
    }
  }

  ir::Expr but(ir::Expr when, ir::Expr other) {
    return pool_.make(ir::ExprOp::And, {when, pool_.make(ir::ExprOp::Not, {other})});
  }

  // That of product_tile for so many rows; infinite where it has no kernel.
  double tile_time(int64_t rows) {
    ProductCall call = calls_[0];
    if (!call.m->is_constant()) call.m = pool_.integer(rows);
    return product_kernel_time(builder_, call, calls_.size(), work_);
  }

  // With `lines` rows, or columns, or as many as there are.
  double library_time(bool columns, int lines) const {
    ProductCall call = calls_[0];
    ir::Expr& few = columns ? call.n : call.m;
    if (!few->is_constant()) few = pool_.integer(lines);
    // The result has no room for more columns then.
    if (library_alone_) call.padded_n = nullptr;
    GpuStep products;
    products.calls.assign(calls_.size(), call);
    const double product = time_of(products, builder_.sizes, builder_.target);
    if (library_alone_) return product;
    // The map after the products, fitted to times on an H200.
    constexpr double kMapTime = 3.06, kMapShare = 0.9;
    const auto moved = static_cast<double>(2 + 2 * calls_.size());
    const auto elements =
        static_cast<double>(builder_.sizes.of(pool_.mul(call.batch, pool_.mul(call.m, call.n))));
    return product + kMapTime + moved * elements / (kMapShare * builder_.target.dram_rate);
  }

  // A bool over sizes.
  ir::Expr where_tiles_are_faster() {
    const ProductCall& call = calls_[0];
    if (!call.n->is_constant() || !call.k->is_constant()) return pool_.boolean(false);
    constexpr double kAlone = 1.25;
    const auto faster = [&](int64_t rows) {
      return tile_time(rows) * (library_alone_ ? kAlone : kDoubt) <
             library_time(false, static_cast<int>(rows));
    };
    if (call.m->is_constant()) return pool_.boolean(faster(call.m->integer));
    constexpr int64_t kFewest = 64, kMost = 1 << 17;
    ir::Expr when = pool_.boolean(false);
    for (int64_t rows = kFewest; rows <= kMost; rows *= 2) {
      if (!faster(rows)) continue;
      ir::Expr more = pool_.make(ir::ExprOp::Less, {pool_.integer(rows / 2), call.m});
      ir::Expr most = pool_.make(ir::ExprOp::LessEqual, {call.m, pool_.integer(rows)});
      if (rows == kFewest) more = pool_.boolean(true);
      if (rows == kMost) most = pool_.boolean(true);
      when = pool_.make(ir::ExprOp::Or, {when, pool_.make(ir::ExprOp::And, {more, most})});
    }
    return when;
  }

  void add_tile() {
    ir::Expr when = pool_.boolean(true);
    if (by_estimate()) {
      when = where_tiles_are_faster();
      if (taken_) when = but(when, taken_);
    }
    if (when->is_constant(0) || reads_result()) return;
    auto launch = product_kernel(builder_, step_, calls_, epilogue_, comment_);
    if (launch) add(when, std::move(*launch));
  }

  // Whether the epilogue reads what the kernel writes, or reduces.
  bool reads_result() const {
    bool reads = false;
    visit(epilogue_.body, [&](ir::Expr e) {
      reads |= e->op == ir::ExprOp::Reduce ||
               (e->op == ir::ExprOp::Read && e->integer == epilogue_.value);
    });
    return reads;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  const std::vector<ProductCall>& calls_;
  const ProductEpilogue& epilogue_;
  const EpilogueWork work_;
  bool library_alone_;
  const std::string& comment_;
  ir::Expr taken_ = nullptr;
  std::vector<OwnKernel> kernels_;
};

}  // namespace

std::vector<OwnKernel> own_kernels(StepBuilder& builder, const fuse::ProductStep& step,
                                   const std::vector<ProductCall>& calls,
                                   const ProductEpilogue& epilogue, bool library_alone,
                                   const std::string& comment) {
  return Kernels(builder, step, calls, epilogue, library_alone, comment).make();
}

}  // namespace redfuser::codegen
