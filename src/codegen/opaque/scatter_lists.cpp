#include "codegen/opaque/scatter_lists.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/clear_kernel.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kFamily = "scatter_lists";

class Writer {
 public:
  Writer(StepBuilder& builder, const CombinedScatter& scatter)
      : builder_(builder), pool_(builder.pool()), scatter_(scatter) {
    updates_ = product_of(pool_, extents_of(pool_, scatter.updates));
    slots_ = product_of(pool_, extents_of(pool_, scatter.slots));
    columns_ = product_of(pool_, extents_of(pool_, scatter.columns));
  }

  void add() {
    ir::Expr places = pool_.add(slots_, pool_.integer(1));
    counts_ = builder_.add_scratch(DType::UInt32, places);
    first_ = builder_.add_scratch(DType::UInt32, slots_);
    end_ = builder_.add_scratch(DType::UInt32, slots_);
    list_ = builder_.add_scratch(DType::UInt32, updates_);
    if (!scatter_.any_order) ordered_ = builder_.add_scratch(DType::UInt32, updates_);
    builder_.result.calls.emplace_back(clear_kernel(builder_, kFamily, counts_, places));
    add_of_updates("scatter_count", {counts_}, {counts_}, {updates_});
    add_reserve();
    add_of_updates("scatter_place", {end_, list_}, {end_, list_}, {updates_});
    if (!scatter_.any_order) {
      add_of_updates("scatter_order", {first_, end_, list_, ordered_}, {ordered_},
                     {updates_, slots_});
    }
    add_fold();
  }

 private:
  using Buffers = std::vector<int64_t>;

  static std::string names(KernelText& kernel, const Buffers& buffers, const Buffers& written) {
    std::string text;
    for (const int64_t buffer : buffers) {
      const bool writes = std::find(written.begin(), written.end(), buffer) != written.end();
      text += kernel.buffer(buffer, writes) + ", ";
    }
    return text;
  }

  void launch(const KernelText& kernel, const std::string& equations, const std::string& body,
              ir::Expr threads) {
    constexpr int64_t kMostBlocks = int64_t{1} << 20;
    KernelLaunch launch =
        kernel.launch(kFamily, equations, {"device/scatter/lists.cuh"}, "", body, kScatterThreads);
    launch.grid[0] = pool_.make(
        ir::ExprOp::Min, {ceil_div(pool_, threads, kScatterThreads), pool_.integer(kMostBlocks)});
    builder_.result.calls.emplace_back(std::move(launch));
  }

  // A kernel that takes every update with its slot.
  void add_of_updates(const char* name, const Buffers& buffers, const Buffers& written,
                      const std::vector<ir::Expr>& sizes) {
    KernelText kernel = builder_.kernel();
    std::string arguments = names(kernel, buffers, written);
    for (ir::Expr size : sizes) arguments += kernel.size(size) + ", ";
    Emitter emitter(kernel);
    bind_coordinates(emitter, scatter_.updates, "update");
    ir::Expr slot = row_major(pool_, scatter_.target, extents_of(pool_, scatter_.slots));
    emitter.line(
        fmt::format("return {};", emitter.emit_whole(builder_.flat.flat(slot), DType::Int64)));
    const std::string text = emitter.close();
    launch(kernel, std::string(name) + "\n",
           fmt::format("{}({}[&](long long update) {{\n{}}});\n", name, arguments, text), updates_);
  }

  void add_reserve() {
    KernelText kernel = builder_.kernel();
    const std::string arguments = names(kernel, {counts_, first_, end_}, {counts_, first_, end_});
    launch(kernel, "scatter_reserve\n",
           fmt::format("scatter_reserve({}{});\n", arguments, kernel.size(slots_)), slots_);
  }

  void add_fold() {
    KernelText kernel = builder_.kernel();
    const std::string arguments =
        names(kernel, {first_, end_, scatter_.any_order ? list_ : ordered_}, {});
    ir::Expr sum = pool_.leaf(ir::LeafKind::Product, 0, scatter_.sum);
    Emitter fold(kernel), store(kernel), outer(kernel);
    bind_coordinates(fold, scatter_.updates, "update");
    bind_coordinates(fold, scatter_.columns, "column");
    fold.bind(sum, "sum");
    ir::Expr folded =
        pool_.make(scatter_.operation, {sum, pool_.cast(scatter_.sum, scatter_.update)});
    fold.line(fmt::format("return {};", fold.emit_whole(builder_.flat.flat(folded), scatter_.sum)));
    bind_coordinates(store, scatter_.slots, "slot");
    bind_coordinates(store, scatter_.columns, "column");
    store.bind(sum, "sum");
    std::vector<ir::Expr> point = scatter_.slots;
    point.insert(point.end(), scatter_.columns.begin(), scatter_.columns.end());
    ir::Expr body = pool_.make(scatter_.operation, {pool_.cast(scatter_.sum, scatter_.data), sum});
    const std::string value =
        store.emit_as(builder_.flat.flat(pool_.cast(scatter_.dtype, body)), scatter_.dtype);
    store.line(fmt::format("store({}, {}, {});", kernel.buffer(scatter_.value, true),
                           store.emit(builder_.offset_of(scatter_.value, point)), value));
    ir::Expr part = pool_.leaf(ir::LeafKind::Product, 1, scatter_.sum);
    Emitter join(kernel);
    join.bind(sum, "sum");
    join.bind(part, "part");
    ir::Expr joined = pool_.make(scatter_.operation, {sum, part});
    join.line(fmt::format("return {};", join.emit_whole(joined, scatter_.sum)));
    const std::string text = fmt::format(
        "scatter_fold<{0}>({1}{2}, {3}, {4}, [&]({0} sum, long long update, long long column) "
        "{{\n{5}}}, [&]({0} sum, {0} part) {{\n{6}}}, [&]({0} sum, long long slot, long long "
        "column) {{\n{7}}});\n",
        value_type(scatter_.sum), arguments, kernel.size(slots_), kernel.size(columns_),
        outer.emit_as(scatter_.identity, scatter_.sum), fold.close(), join.close(), store.close());
    launch(kernel, "scatter\n", text, pool_.mul(slots_, columns_));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const CombinedScatter& scatter_;
  ir::Expr updates_, slots_, columns_;
  int64_t counts_ = 0, first_ = 0, end_ = 0, list_ = 0, ordered_ = 0;
};

}  // namespace

void add_scatter_lists(StepBuilder& builder, const CombinedScatter& scatter) {
  const size_t before = builder.result.calls.size();
  Writer(builder, scatter).add();
  auto& first = std::get<KernelLaunch>(builder.result.calls[before]);
  first.time = scatter_lists_time(builder, scatter, builder.sizes);
}

double scatter_lists_time(const StepBuilder& builder, const CombinedScatter& scatter,
                          const KnownSizes& sizes) {
  // Microseconds of an update after the one before it; comparisons of updates in a microsecond.
  constexpr double kFold = 0.02, kComparisons = 2e6;
  const auto count = [&](const std::vector<ir::Expr>& axes) {
    double result = 1;
    for (ir::Expr extent : extents_of(builder.pool(), axes)) {
      result *= static_cast<double>(std::max<int64_t>(sizes.of(extent), 1));
    }
    return result;
  };
  const double updates = count(scatter.updates), slots = count(scatter.slots),
               columns = count(scatter.columns), length = updates / slots;
  const double kernels = scatter.any_order ? 5 : 6;
  constexpr double kLong = kScatterLong;
  const double order = scatter.any_order ? 0 : updates * std::min(length, kLong) / kComparisons;
  const auto bytes = static_cast<double>(size_of(scatter.dtype));
  const double moved = 24 * updates + 12 * slots + (updates + 2 * slots) * columns * bytes;
  return kernels * select::kLaunchTime + order + std::min(length, kLong) * kFold +
         moved / builder.target.dram_rate;
}

}  // namespace redfuser::codegen
