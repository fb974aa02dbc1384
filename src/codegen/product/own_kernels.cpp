#include "codegen/product/own_kernels.h"

#include <algorithm>
#include <cmath>

#include "codegen/cluster_product/cluster_kernel.h"
#include "codegen/product/library_time.h"
#include "codegen/product/thin_kernel.h"

namespace redfuser::codegen {
namespace {

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
    const auto form = thin_form(builder_.graph, step_, calls_);
    if (!form || reads_result()) return;
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
      if (by_estimate() && choice.time >= library_time(form->columns, each.padded)) continue;
      if (sizes.of(each.when) > 0) builder_.product_choices = choices;
      KernelLaunch launch =
          thin_kernel(builder_, step_, *form, thin_config(choice.choice), epilogue_, comment_);
      launch.time = choice.time;
      add(each.when, std::move(launch));
    }
  }

  void add_cluster() {
    const auto form = cluster_form(builder_.graph, builder_.target, calls_);
    if (!form || reads_result()) return;
    for (ClusterClass& each : cluster_classes(pool_, *form)) {
      const auto choices = cluster_choices(*form, each.most, builder_.sizes, builder_.target);
      if (choices.empty()) continue;
      Candidate choice = choices.front();
      if (builder_.product_config) choice.choice = *builder_.product_config;
      const ClusterConfig config = ClusterConfig::of(choice.choice);
      if (by_estimate()) {
        if (taken_) each.when = but(each.when, taken_);
        const double doubt = doubt_of(each.most, form->given);
        const double other =
            std::min(library_time(false, static_cast<int>(each.most)), tile_time(each.most));
        const bool slower = doubt * choice.time >= other;
        if (each.when->is_constant(0) || slower) continue;
      }
      auto launch = cluster_kernel(builder_, step_, *form, config, epilogue_, comment_);
      if (!launch) return;
      if (builder_.sizes.of(each.when) > 0) builder_.product_choices = choices;
      launch->time = choice.time;
      add(each.when, std::move(*launch));
    }
  }

  // By what the estimate must be less than others: it is not fitted to more rows, and the library's
  // is up to a fifth too high for products alone, which matters where nothing is loaded early. Of
  // few columns that the library pads, and a kernel takes apart, its estimate is right (H200:
  // 215x2944x27 16.1 us, 16.0 measured, where clusters take 8.8; 535x6656x63 14.9, 14.3 and 11.2).
  double doubt_of(int64_t rows, bool given) const {
    constexpr int64_t kFittedRows = 128;
    constexpr double kManyRows = 1.5, kAlone = 1.15;
    const ProductCall& call = calls_.front();
    constexpr int64_t kFewColumns = 64;
    const bool pads = call.padded_n != nullptr && call.padded_n != call.n &&
                      call.n->is_constant() && call.n->integer <= kFewColumns;
    if (rows > kFittedRows) return pads ? 1 : kManyRows;
    return library_alone_ && !given ? kAlone : 1;
  }

  ir::Expr but(ir::Expr when, ir::Expr other) {
    return pool_.make(ir::ExprOp::And, {when, pool_.make(ir::ExprOp::Not, {other})});
  }

  // That of product_tile for so many rows; infinite where it has no kernel.
  double tile_time(int64_t rows) {
    ProductCall call = calls_[0];
    if (!call.m->is_constant()) call.m = pool_.integer(rows);
    return product_kernel_time(builder_, call, calls_.size());
  }

  // With `lines` rows, or columns, or as many as there are.
  double library_time(bool columns, int lines) const {
    ProductCall call = calls_[0];
    ir::Expr& few = columns ? call.n : call.m;
    if (!few->is_constant()) few = pool_.integer(lines);
    // The result has no room for more columns then.
    if (library_alone_) call.padded_n = nullptr;
    const auto count = static_cast<double>(calls_.size());
    const double product = count * time_of(GpuCall(call), builder_.sizes, builder_.target);
    if (library_alone_) return product;
    const auto elements =
        static_cast<double>(builder_.sizes.of(pool_.mul(call.batch, pool_.mul(call.m, call.n))));
    return product + select::kLaunchTime + (2 + 2 * count) * elements / builder_.target.dram_rate;
  }

  void add_tile() {
    ir::Expr when = pool_.boolean(true);
    if (by_estimate()) {
      if (library_alone_) return;
      when = is_product_kernel_profitable(pool_, calls_[0], calls_.size(), builder_.target);
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
