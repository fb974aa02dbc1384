// Matrix products: blocks of the result in parallel, each with its epilogue while it is in cache.
#include "cpu/steps/product_kernel.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "cpu/steps/reduce_plan.h"
#include "cpu/tile/interval.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

// Columns are cut finer than rows: every block of rows packs B again, but reads A in place.
constexpr int64_t kBlockRows = 512, kBlockColumns = 256;
constexpr int64_t kEpilogueElements = 4096;
constexpr int64_t kSmallTask = 1 << 20;  // multiplications below which splitting does not pay

struct ProductPlan {
  ir::ExprPool pool;
  // Set if a product kernel does not apply (integers, operands that are not matrices).
  std::shared_ptr<ReducePlan> general;
  DType dtype = DType::Float32;
  int64_t batches = 1, m = 1, n = 1, k = 1;
  // Parts: batch, m or n, k.
  SeparatedOffset a;
  std::vector<SeparatedOffset> b;
  DType a_dtype = DType::Float32;
  std::vector<DType> b_dtypes;
  // The result is written in place when there is nothing to do after it.
  std::optional<SeparatedOffset> in_place;  // parts: batch, m, n
  std::vector<std::vector<int64_t>> batch_points;
  TileProgram epilogue;
  std::vector<RegisterId> products;  // by their leaf's number
  int scope = kNoScope;
};

MatrixView view(const SeparatedOffset& s, const char* data, DType dtype, int64_t batch, int rows,
                int64_t row, int columns, int64_t column) {
  const OffsetPart& r = s.parts[static_cast<size_t>(rows)];
  const OffsetPart& c = s.parts[static_cast<size_t>(columns)];
  int64_t offset = s.constant + s.parts[0].at(batch);
  MatrixView v;
  v.storage = static_cast<uint8_t>(dtype);
  v.row_stride = r.stride;
  v.column_stride = c.stride;
  if (r.table.empty()) {
    offset += row * r.stride;
  } else {
    v.row_offsets = r.table.data() + row;
  }
  if (c.table.empty()) {
    offset += column * c.stride;
  } else {
    v.column_offsets = c.table.data() + column;
  }
  v.data = data + offset * static_cast<int64_t>(size_of(dtype));
  return v;
}

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const ir::Graph& graph, fuse::ProductStep step)
      : step_(std::move(step)), cache_(graph, symbols(graph, step_)) {}

  KernelForm form(std::span<const int64_t> symbols) const override {
    const auto plan = cache_.find(symbols);
    return {plan != nullptr && plan->general ? kTileProgramFamily : "matrix_product", ""};
  }

  void run(RunContext& context) const override {
    auto plan = cache_.get(context, [&](auto symbols) { return make(context.graph, symbols); });
    if (plan->general) return plan->general->run(context, step_.value);
    allocate(context, step_.value);
    if (plan->batches * plan->m * plan->n == 0) return;
    const Blocks blocks = choose_blocks(*plan, context.pool.size());
    TileRunner runner(plan->epilogue, context, {&step_.value, 1});
    const int64_t stride = padded(blocks.columns) + 16;
    const int64_t bytes = static_cast<int64_t>(size_of(plan->dtype));
    const auto count = static_cast<int64_t>(step_.b.size());
    const int64_t extra = plan->in_place ? 0 : count * blocks.rows * stride * bytes;
    runner.run(
        plan->batches * blocks.down * blocks.across,
        [&](TileContext& machine, int64_t task) {
          const int64_t block = task % (blocks.down * blocks.across);
          Region region;
          region.batch = task / (blocks.down * blocks.across);
          region.row = block % blocks.down * blocks.rows;
          region.column = block / blocks.down * blocks.columns;
          region.rows = std::min(blocks.rows, plan->m - region.row);
          region.columns = std::min(blocks.columns, plan->n - region.column);
          multiply(context, *plan, machine, region, stride);
        },
        extra);
  }

 private:
  struct Blocks {
    int64_t rows, columns, down, across;
  };
  struct Region {
    int64_t batch, row, column, rows, columns;
  };

  // Blocks as large as the cache allows, yet several for every thread.
  static Blocks choose_blocks(const ProductPlan& plan, int threads) {
    Blocks b;
    auto cut = [](int64_t size, int64_t pieces, int64_t multiple) {
      return ceil_div(ceil_div(size, pieces), multiple) * multiple;
    };
    int64_t down = ceil_div(plan.m, kBlockRows), across = ceil_div(plan.n, kBlockColumns);
    auto enough = [&] { return plan.batches * down * across >= 4 * threads; };
    auto work = [&] { return plan.m * plan.n * plan.k / (down * across); };
    while (threads > 1 && !enough() && work() > kSmallTask) {
      if (plan.n / across > 2 * 64) {
        ++across;
      } else if (plan.m / down > 2 * 24) {
        ++down;
      } else {
        break;
      }
    }
    b.rows = std::min(plan.m, cut(plan.m, down, 12));
    b.columns = std::min(plan.n, cut(plan.n, across, 32));
    b.down = ceil_div(plan.m, b.rows);
    b.across = ceil_div(plan.n, b.columns);
    return b;
  }

  void multiply(const RunContext& context, const ProductPlan& plan, TileContext& machine,
                const Region& region, int64_t stride) const {
    const auto& values = context.values;
    GemmArgs g;
    g.m = region.rows;
    g.n = region.columns;
    g.k = plan.k;
    g.a =
        view(plan.a, static_cast<const char*>(values[static_cast<size_t>(step_.a->integer)].data()),
             plan.a_dtype, region.batch, 1, region.row, 2, 0);
    const auto set_b = [&](size_t i) {
      const auto value = static_cast<size_t>(step_.b[i]->integer);
      g.b = view(plan.b[i], static_cast<const char*>(values[value].data()), plan.b_dtypes[i],
                 region.batch, 2, 0, 1, region.column);
    };
    g.scratch = machine.gemm_scratch;
    const GemmFn gemm = plan.dtype == DType::Float64 ? kernels().gemm_f64 : kernels().gemm_f32;
    const auto bytes = static_cast<int64_t>(size_of(plan.dtype));
    if (plan.in_place) {
      set_b(0);
      const SeparatedOffset& c = *plan.in_place;
      g.c_stride = c.parts[1].stride;
      g.c = machine.outputs[0] +
            (c.constant + c.parts[0].at(region.batch) + region.row * g.c_stride + region.column) *
                bytes;
      gemm(g);
      return;
    }
    char* blocks = static_cast<char*>(machine.gemm_scratch) + kGemmScratchBytes;
    const int64_t block_bytes = region.rows * stride * bytes;
    g.c_stride = stride;
    g.c_padded = true;
    for (size_t i = 0; i < step_.b.size(); ++i) {
      set_b(i);
      g.c = blocks + static_cast<int64_t>(i) * block_bytes;
      gemm(g);
    }
    for (size_t i = 0; i < plan.batch_points[static_cast<size_t>(region.batch)].size(); ++i) {
      machine.axes[i] = plan.batch_points[static_cast<size_t>(region.batch)][i];
    }
    if (plan.scope != kNoScope) {
      machine.columns[static_cast<size_t>(plan.scope)] = {region.column, region.columns};
    }
    const int64_t step = plan.epilogue.row_tile;
    for (int64_t row = 0; row < region.rows; row += step) {
      for (size_t i = 0; i < plan.products.size(); ++i) {
        char* block = blocks + static_cast<int64_t>(i) * block_bytes;
        machine.slots[static_cast<size_t>(plan.products[i])] = {block + row * stride * bytes,
                                                                stride, nullptr};
      }
      plan.epilogue.run(machine, region.row + row, std::min(step, region.rows - row));
    }
  }

  static std::vector<ir::Expr> expressions(const fuse::ProductStep& step) {
    std::vector<ir::Expr> result = step.axes;
    for (const auto* list : {&step.batch, &step.m, &step.n}) {
      result.insert(result.end(), list->begin(), list->end());
    }
    for (ir::Expr e : {step.k, step.a, step.epilogue}) result.push_back(e);
    result.insert(result.end(), step.b.begin(), step.b.end());
    return result;
  }

  static std::vector<int64_t> symbols(const ir::Graph& graph, const fuse::ProductStep& step) {
    return symbols_of(graph, expressions(step), {&step.value, 1});
  }

  // The same meaning as a reduction.
  std::shared_ptr<ReducePlan> make_general(const ir::Graph& graph,
                                           std::span<const int64_t> symbols) const {
    auto plan = std::make_shared<ReducePlan>();
    ir::ExprPool& pool = plan->pool;
    Specializer specializer(pool, symbols);
    ir::Expr a = specializer.copy(step_.a), k = specializer.copy(step_.k);
    const auto product = [&](ir::Expr b) {
      ir::Expr term = pool.mul(a, pool.cast(a->dtype, specializer.copy(b)));
      return k->op == ir::ExprOp::Axis ? pool.reduce(ir::Reduction::Sum, k, term) : term;
    };
    ir::Expr epilogue = pool.rewrite(specializer.copy(step_.epilogue), [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Product) return nullptr;
      return pool.cast(e->dtype, product(step_.b.at(static_cast<size_t>(e->integer))));
    });
    std::vector<ir::Expr> indices;
    for (ir::Expr axis : step_.axes) indices.push_back(specializer.copy(axis));
    plan->build(graph, symbols, step_.value, indices, epilogue);
    return plan;
  }

  std::shared_ptr<const ProductPlan> make(const ir::Graph& graph,
                                          std::span<const int64_t> symbols) const {
    auto plan = std::make_shared<ProductPlan>();
    ir::ExprPool& pool = plan->pool;
    Specializer specializer(pool, symbols);
    const std::vector<ir::Expr> batch = specializer.copy_axes(step_.batch),
                                m = specializer.copy_axes(step_.m),
                                n = specializer.copy_axes(step_.n),
                                k = specializer.copy_axes({&step_.k, 1});
    ir::Expr a = specializer.copy(step_.a);
    const TileBuilder::DimsOf dims = [&](int64_t value) {
      return dims_of(graph, static_cast<ir::ValueId>(value), symbols);
    };
    plan->batches = extent_of(batch);
    plan->m = extent_of(m);
    plan->n = extent_of(n);
    plan->k = extent_of(k);
    bool separated = separate_operand(pool, a, dims, {batch, m, k}, plan->a);
    bool f64 = a->dtype == DType::Float64;
    plan->a_dtype = a->dtype;
    for (ir::Expr operand : step_.b) {
      ir::Expr b = specializer.copy(operand);
      separated =
          separated && separate_operand(pool, b, dims, {batch, n, k}, plan->b.emplace_back());
      f64 |= b->dtype == DType::Float64;
      plan->b_dtypes.push_back(b->dtype);
    }
    if (!separated) {
      plan->general = make_general(graph, symbols);
      return plan;
    }
    plan->dtype = f64 ? DType::Float64 : DType::Float32;
    plan_result(graph, symbols, specializer, *plan, batch, m, n, dims);
    return plan;
  }

  static bool separate_operand(ir::ExprPool& pool, ir::Expr read, const TileBuilder::DimsOf& dims,
                               const std::vector<std::vector<ir::Expr>>& lists,
                               SeparatedOffset& to) {
    if (read->op != ir::ExprOp::Read || !is_float(read->dtype)) return false;
    const Dims sizes = dims(read->integer);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Interval range = interval_of(read->args[i]);
      if (range.low < 0 || range.high >= sizes[i]) return false;
    }
    auto separated = separate(pool, flat_offset(pool, read->args, sizes), lists);
    if (separated) to = std::move(*separated);
    return separated.has_value();
  }

  void plan_result(const ir::Graph& graph, std::span<const int64_t> symbols,
                   Specializer& specializer, ProductPlan& plan, const std::vector<ir::Expr>& batch,
                   const std::vector<ir::Expr>& m, const std::vector<ir::Expr>& n,
                   const TileBuilder::DimsOf& dims) const {
    ir::ExprPool& pool = plan.pool;
    const DType out = graph.values[static_cast<size_t>(step_.value)].dtype;
    const Dims out_dims = dims_of(graph, step_.value, symbols);
    std::vector<ir::Expr> indices;
    for (ir::Expr axis : step_.axes) indices.push_back(specializer.copy(axis));
    ir::Expr epilogue = specializer.copy(step_.epilogue);
    if (epilogue->op == ir::ExprOp::Leaf && out == plan.dtype) {
      auto place = separate(pool, flat_offset(pool, indices, out_dims), {batch, m, n});
      if (place && place->parts[1].table.empty() && place->parts[2].table.empty() &&
          (place->parts[2].stride == 1 || plan.n == 1)) {
        plan.in_place = std::move(place);
        plan.epilogue.layout();
        return;
      }
    }
    TileBuilder builder(pool, plan.epilogue, dims);
    for (ir::Expr axis : batch) builder.set_outer(axis);
    plan.batch_points.assign(static_cast<size_t>(plan.batches), {});
    std::vector<int64_t> point(batch.size());
    for (auto& target : plan.batch_points) {
      target = point;
      for (size_t d = batch.size(); d-- > 0;) {
        if (++point[d] < extent_of(batch[d])) break;
        point[d] = 0;
      }
    }
    builder.set_rows(m);
    if (!n.empty()) plan.scope = builder.fixed_scope(n);
    const Shape shape = Shape::Rows | (n.empty() ? Shape::Scalar : Shape::Columns);
    bind_product(builder, plan, epilogue, shape);
    builder.store(0, out, out_dims, indices, builder.compile_to_store(epilogue), plan.scope);
    const int64_t columns = std::min(padded(plan.n), kBlockColumns + 32);
    if (plan.scope != kNoScope)
      plan.epilogue.scopes[static_cast<size_t>(plan.scope)].tile = columns;
    plan.epilogue.row_tile = std::clamp<int64_t>(kEpilogueElements / columns, 1, plan.m);
    plan.epilogue.layout();
  }

  // Without columns the product is a column of the block: its rows lie `stride` apart, so such a
  // product is spread over one column.
  static void bind_product(TileBuilder& builder, ProductPlan& plan, ir::Expr epilogue,
                           Shape shape) {
    if (plan.scope == kNoScope) {
      plan.scope = builder.fixed_scope({plan.pool.axis("n", plan.pool.integer(1))});
      shape = Shape::Tile;
    }
    for (size_t i = 0; i < plan.b.size(); ++i) {
      plan.products.push_back(builder.make_view(elem_of(plan.dtype), shape, plan.scope));
    }
    visit(epilogue, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Product) return;
      const RegisterId product = plan.products.at(static_cast<size_t>(e->integer));
      builder.bind(e, builder.converted(product, elem_of(e->dtype)));
    });
  }

  fuse::ProductStep step_;
  PlanCache<ProductPlan> cache_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::ProductStep& step) {
  return std::make_unique<cpu::ProductKernel>(graph, step);
}

}  // namespace redfuser::cpu
