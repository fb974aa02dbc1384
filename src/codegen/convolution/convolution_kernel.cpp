#include "codegen/convolution/convolution_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/convolution/channels_last.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/group_text.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

// Adjacent filters that a thread finishes together: Convolution<Tile>::kTogether.
constexpr int kTogether = 8;

class ConvolutionText {
 public:
  ConvolutionText(const ConvolutionStep& convolution, const ConvolutionForm& form,
                  const ConvolutionConfig& config, int64_t input, int64_t filters)
      : step_(convolution),
        builder_(convolution.builder),
        pool_(convolution.pool()),
        form_(form),
        config_(config),
        input_(input),
        filters_(filters),
        kernel_(builder_.kernel()),
        emitter_(kernel_) {}

  KernelLaunch launch() {
    const ConvolutionShape& shape = config_.shape();
    const std::string body = text();
    KernelLaunch launch = kernel_.launch(
        kConvolutionFamily, comment(), {"device/convolution/convolution.cuh"}, tile_text(), body,
        shape.threads(), shape.resident(builder_.target, form_.parts, form_.spatial));
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.shared = shape.shared_bytes();
    ir::Expr tiles = pool_.mul(ceil_div(pool_, form_.positions(pool_), shape.positions),
                               ceil_div(pool_, form_.filters, shape.filters));
    launch.grid[0] = pool_.mul(tiles, pool_.integer(form_.groups * config_.blocks));
    return launch;
  }

 private:
  std::string comment() const {
    return fmt::format("convolution\n%{} = {}\nproduct0 = sum of %{} * %{} over windows\n",
                       step_.value, to_string(pool_, step_.element(step_.sum())), step_.input(),
                       step_.weights());
  }

  std::string tile_text() const {
    const ConvolutionShape& s = config_.shape();
    return fmt::format("using Tile = ConvolutionTile<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;\n",
                       storage_type(form_.dtype), s.positions, s.filters, s.position_warps,
                       s.filter_warps, s.depth(form_.dtype), s.stages, config_.blocks,
                       form_.spatial, form_.parts);
  }

  std::string sizes_text() {
    std::vector<std::string> fields;
    const auto add = [&](ir::Expr size) { fields.push_back(as_int(kernel_.size(size))); };
    for (ir::Expr size : {form_.batch, form_.planes, form_.height, form_.width, form_.channels,
                          form_.pitch, pool_.integer(form_.groups), form_.filters, form_.out_planes,
                          form_.out_height, form_.out_width}) {
      add(size);
    }
    for (const auto* each : {&form_.kernel, &form_.stride, &form_.dilation}) {
      for (const int64_t number : *each) add(pool_.integer(number));
    }
    for (ir::Expr pad : form_.pad) add(pad);
    return fmt::format("const ConvolutionSizes sizes{{{}}};\n", fmt::join(fields, ", "));
  }

  std::string text() {
    emitter_.line("extern __shared__ __align__(128) char memory[];\n" + sizes_text() +
                  fmt::format("Convolution<Tile> convolution(memory, {}, {}, sizes);\n"
                              "convolution.multiply();",
                              kernel_.buffer(input_), kernel_.buffer(filters_)));
    const DType out = builder_.dtype_of(step_.value);
    emitter_.set_fast_math(size_of(out) == 2);
    stores_ = {{step_.value, builder_.flat.flat(step_.element(step_.sum())),
                builder_.offset_of(step_.value, step_.output)}};
    rows_ = step_.positions();
    if (channels_last(builder_.target, step_.value)) {
      finish_filters();
    } else {
      finish_positions();
    }
    return emitter_.close();
  }

  // Makes one axis of those of a position, as far as memory allows.
  void merge_rows() {
    const auto is_axis = [](ir::Expr axis) { return axis->op == ir::ExprOp::Axis; };
    std::erase_if(rows_, [&](ir::Expr axis) { return !is_axis(axis); });
    for (size_t i = rows_.size(); i-- > 1;) merge_pair(pool_, rows_, stores_, i - 1);
  }

  // Threads have groups of filters.
  void finish_filters() {
    merge_rows();
    ir::Expr sum = step_.sum();
    if (step_.output[1]->op != ir::ExprOp::Axis) return finish_positions();
    GroupText group(emitter_, {step_.output[1]});
    group.bind(sum, "sums[v]");
    emitter_.open();
    bind_coordinates(emitter_, rows_, "position");
    group.compute(stores_);
    const std::string body = emitter_.close();
    emitter_.line(
        fmt::format("convolution.finish({0}, [&](long long position, const Group<{1}>& group, "
                    "float (&sums)[{1}]) "
                    "{{\n{2}}});",
                    group.condition(kTogether), kTogether, body));
  }

  // Threads have adjacent positions of a filter.
  void finish_positions() {
    emitter_.open();
    bind_coordinates(emitter_, rows_, "position");
    if (step_.output[1]->op == ir::ExprOp::Axis) emitter_.bind(step_.output[1], "filter");
    emitter_.bind(step_.sum(), "sum");
    const Store& store = stores_[0];
    const std::string value = emitter_.emit_as(store.body, builder_.dtype_of(store.value));
    emitter_.line(fmt::format("store({}, {}, {});", kernel_.buffer(store.value, true),
                              emitter_.emit(store.offset), value));
    const std::string body = emitter_.close();
    emitter_.line(fmt::format(
        "convolution.finish_positions([&](long long position, long long filter, float sum) "
        "{{\n{}}});",
        body));
  }

  const ConvolutionStep& step_;
  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ConvolutionForm& form_;
  const ConvolutionConfig config_;
  const int64_t input_, filters_;
  KernelText kernel_;
  Emitter emitter_;
  std::vector<Store> stores_;
  Axes rows_;
};

// Up to as many positions a kernel is chosen for that number.
constexpr int64_t kPositionClasses[] = {256, 1024, 4096, 16384};
constexpr double kMany = 65536;

// The operands in memory as the kernel takes them, and its launches.
class Launches {
 public:
  Launches(const ConvolutionStep& convolution, const ConvolutionForm& form)
      : step_(convolution),
        form_(form),
        input_(convolution.input()),
        filters_(convolution.weights()) {
    if (form.copies_input) {
      input_ = copy_input(step_, form.pitch);
    }
    if (form.copies_filters) {
      filters_ = copy_filters(step_, form.channels, form.merged);
    }
  }

  // `when`: a bool over sizes; null for all.
  void add(const ConvolutionConfig& config, ir::Expr when) {
    StepBuilder& builder = step_.builder;
    ir::ExprPool& pool = builder.pool();
    KernelLaunch launch = ConvolutionText(step_, form_, config, input_, filters_).launch();
    const ConvolutionCounts counts = convolution_counts(pool, form_, builder.sizes);
    launch.time = convolution_time(config, counts, builder.target);
    if (when) launch.grid[0] = pool.select(when, launch.grid[0], pool.integer(0));
    builder.result.calls.push_back(std::move(launch));
  }

 private:
  const ConvolutionStep& step_;
  const ConvolutionForm& form_;
  int64_t input_, filters_;
};

}  // namespace

void add_convolution(const ConvolutionStep& convolution, const ConvolutionForm& form) {
  const StepBuilder& builder = convolution.builder;
  ir::ExprPool& pool = convolution.pool();
  const ConvolutionCounts counts = convolution_counts(pool, form, builder.sizes);
  const auto best = [&](double positions) {
    return convolution_choices(counts.with_positions(positions), builder.target).front().choice;
  };
  Launches launches(convolution, form);
  ir::Expr positions = form.positions(pool);
  if (builder.sizes.of(positions) >= 0) {
    return launches.add(ConvolutionConfig::of(best(counts.positions)), nullptr);
  }
  each_size_class(pool, positions, kPositionClasses, kMany, best,
                  [&](const KernelConfig& choice, ir::Expr when) {
                    launches.add(ConvolutionConfig::of(choice), when);
                  });
}

void add_convolution(const ConvolutionStep& convolution, const ConvolutionForm& form,
                     const ConvolutionConfig& config) {
  Launches(convolution, form).add(config, nullptr);
}

}  // namespace redfuser::codegen
