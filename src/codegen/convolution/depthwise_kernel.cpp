#include "codegen/convolution/depthwise_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/convolution/channels_last.h"
#include "codegen/elementwise/group_text.h"
#include "codegen/maps/map_select.h"

namespace redfuser::codegen {
namespace {

constexpr int kThreads = 128;  // about, of a block

// Along y, then x.
std::string plane_text(const int64_t (&numbers)[3]) {
  return fmt::format("{}, {}", numbers[1], numbers[2]);
}

// The axes of the result with the channels last.
std::vector<ir::Expr> channels_last_axes(const ConvolutionStep& c) {
  std::vector<ir::Expr> axes = c.output;
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

ir::Expr channels_last_offset(const ConvolutionStep& c) {
  const std::vector<ir::Expr> axes = channels_last_axes(c);
  return row_major(c.pool(), axes, extents_of(c.pool(), axes));
}

// Whether results whose channels are apart in memory are written with their channels last, and
// turned by a map: else every element is a sector of its own.
bool turns_result(const ConvolutionStep& c) {
  constexpr double kSector = 32;
  const StepBuilder& builder = c.builder;
  if (channels_last(builder.target, c.value)) return false;
  const int64_t count = builder.sizes.of(product_of(c.pool(), extents_of(c.pool(), c.output)));
  if (count < 0) return true;
  const auto elements = static_cast<double>(count);
  const auto size = static_cast<double>(size_of(builder.dtype_of(c.value)));
  return elements * kSector / builder.target.l2_rate() >
         select::kLaunchTime + 2 * elements * size / builder.target.dram_rate;
}

class DepthwiseText {
 public:
  // `turned`: the buffer of results with their channels last; -1: the value's own.
  DepthwiseText(const ConvolutionStep& convolution, const ConvolutionForm& form,
                const DepthwiseConfig& config, int64_t input, int64_t filters, int64_t turned)
      : step_(convolution),
        builder_(convolution.builder),
        pool_(convolution.pool()),
        form_(form),
        config_(config),
        input_(input),
        filters_(filters),
        turned_(turned),
        kernel_(builder_.kernel()),
        emitter_(kernel_) {
    divide_block();
  }

  KernelLaunch launch() {
    const std::string body = text();
    constexpr int kWarp = 32;
    const int threads = (groups_ * columns_ * rows_ + kWarp - 1) / kWarp * kWarp;
    KernelLaunch launch =
        kernel_.launch(kDepthwiseFamily, comment(), {"device/convolution/depthwise.cuh"},
                       tile_text(), body, threads, 1);
    launch.config = config_.parameters();
    ir::Expr tiles = pool_.mul(ceil_div(pool_, form_.out_width, columns_ * config_.columns),
                               ceil_div(pool_, form_.out_height, rows_ * config_.rows));
    ir::Expr slabs = ceil_div(pool_, form_.pitch, groups_ * config_.width);
    launch.grid[0] = pool_.mul(pool_.mul(tiles, slabs), form_.batch);
    return launch;
  }

 private:
  // The channels, and then the tiles, that the threads of a block have.
  void divide_block() {
    const int most = config_.width == 8 ? 32 : 64;
    const auto groups = static_cast<int>(form_.pitch->integer / config_.width);
    const int slabs = (groups + most - 1) / most;
    groups_ = (groups + slabs - 1) / slabs;
    const auto tiles = [&](ir::Expr size, int tile, int room) {
      const int64_t known = builder_.sizes.of(size);
      const int64_t all = known < 0 ? room : (known + tile - 1) / tile;
      return static_cast<int>(std::clamp<int64_t>(all, 1, std::max(room, 1)));
    };
    columns_ = tiles(form_.out_width, config_.columns, kThreads / groups_);
    rows_ = tiles(form_.out_height, config_.rows, kThreads / (groups_ * columns_));
  }

  std::string comment() const {
    return fmt::format(
        "depthwise convolution\n%{} = {}\nproduct0 = sum of %{} * %{} over windows\n", step_.value,
        to_string(pool_, step_.element(step_.sum())), step_.input(), step_.weights());
  }

  std::string tile_text() const {
    return fmt::format("using Tile = DepthwiseTile<{}, {}, {}, {}, {}, {}>;\n",
                       storage_type(form_.dtype), config_.width, config_.rows, config_.columns,
                       plane_text(form_.kernel),
                       plane_text(form_.stride) + ", " + plane_text(form_.dilation));
  }

  std::string text() {
    std::vector<std::string> fields;
    for (ir::Expr size : {form_.batch, form_.pitch, form_.height, form_.width, form_.out_height,
                          form_.out_width, form_.pad[1], form_.pad[2], pool_.integer(groups_),
                          pool_.integer(columns_), pool_.integer(rows_)}) {
      fields.push_back(as_int(kernel_.size(size)));
    }
    emitter_.line(
        fmt::format("const DepthwiseSizes sizes{{{}}};\n"
                    "Depthwise<Tile> convolution({}, {}, sizes);",
                    fmt::join(fields, ", "), kernel_.buffer(input_), kernel_.buffer(filters_)));
    emitter_.set_fast_math(size_of(builder_.dtype_of(step_.value)) == 2);
    const bool turns = turned_ >= 0;
    const std::vector<Store> stores = {
        {turns ? turned_ : step_.value, builder_.flat.flat(step_.element(step_.sum())),
         turns ? channels_last_offset(step_) : builder_.offset_of(step_.value, step_.output)}};
    GroupText group(emitter_, {step_.output[1]});
    group.bind(step_.sum(), "sums[v]");
    emitter_.open();
    bind_place();
    group.compute(stores);
    const std::string body = emitter_.close();
    emitter_.line(
        fmt::format("convolution.run({0}, [&](long long image, const Group<{1}>& group, long long "
                    "y, long long x, "
                    "float (&sums)[{1}]) {{\n{2}}});",
                    group.condition(config_.width), config_.width, body));
    return emitter_.close();
  }

  void bind_place() {
    const auto bind = [&](ir::Expr axis, const char* name) {
      if (axis->op == ir::ExprOp::Axis) emitter_.bind(axis, name);
    };
    bind(step_.output[0], "image");
    bind(step_.output[2], "y");
    if (step_.output.size() == 4) bind(step_.output[3], "x");
  }

  const ConvolutionStep& step_;
  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ConvolutionForm& form_;
  const DepthwiseConfig config_;
  const int64_t input_, filters_, turned_;
  int groups_ = 1, columns_ = 1, rows_ = 1;
  KernelText kernel_;
  Emitter emitter_;
};

}  // namespace

void add_depthwise(const ConvolutionStep& convolution, const ConvolutionForm& form,
                   const DepthwiseConfig& config) {
  const ConvolutionStep& c = convolution;
  int64_t input = c.input(), filters = c.weights();
  if (form.copies_input) {
    input = copy_input(c, form.pitch);
  }
  if (form.copies_filters) {
    filters = copy_depthwise_filters(c);
  }
  StepBuilder& builder = c.builder;
  const DType dtype = builder.dtype_of(c.value);
  const int64_t turned =
      turns_result(c)
          ? builder.add_scratch(dtype, product_of(c.pool(), extents_of(c.pool(), c.output)))
          : -1;
  KernelLaunch launch = DepthwiseText(c, form, config, input, filters, turned).launch();
  for (const Candidate& choice : depthwise_choices(form, builder.sizes, builder.target)) {
    if (choice.choice.parameters == config.parameters()) launch.time = choice.time;
  }
  builder.result.calls.push_back(std::move(launch));
  if (turned < 0) return;
  ir::Expr result = c.pool().read(turned, dtype, {channels_last_offset(c)});
  add_least_map(builder, {{builder.memory_axes(c.value, c.output),
                           {{c.value, result, builder.offset_of(c.value, c.output)}}},
                          "a convolution's result with its channels first\n"});
}

}  // namespace redfuser::codegen
