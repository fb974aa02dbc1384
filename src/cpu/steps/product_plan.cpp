#include "cpu/steps/product_plan.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/interval.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kEpilogueElements = 4096;

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

bool separate_operand(ir::ExprPool& pool, ir::Expr read, const TileBuilder::DimsOf& dims,
                      const std::vector<std::vector<ir::Expr>>& lists, SeparatedOffset& to) {
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

}  // namespace

std::string ProductPlan::build(const ir::Graph& graph) {
  Specializer specializer(pool, symbols_);
  const std::vector<ir::Expr> batch = specializer.copy_axes(step_.batch),
                              m = specializer.copy_axes(step_.m),
                              n = specializer.copy_axes(step_.n),
                              k = specializer.copy_axes({&step_.k, 1});
  ir::Expr a = specializer.copy(step_.a);
  const TileBuilder::DimsOf dims = [&](int64_t value) {
    return dims_of(graph, static_cast<ir::ValueId>(value), symbols_);
  };
  batches_ = extent_of(batch);
  m_ = extent_of(m);
  n_ = extent_of(n);
  k_ = extent_of(k);
  bool separated = separate_operand(pool, a, dims, {batch, m, k}, a_);
  bool f64 = a->dtype == DType::Float64;
  a_dtype_ = a->dtype;
  for (ir::Expr operand : step_.b) {
    ir::Expr b = specializer.copy(operand);
    separated = separated && separate_operand(pool, b, dims, {batch, n, k}, b_.emplace_back());
    f64 |= b->dtype == DType::Float64;
    b_dtypes_.push_back(b->dtype);
  }
  if (!separated) {
    return "the operands are not matrices of floats in memory";
  }
  dtype_ = f64 ? DType::Float64 : DType::Float32;
  plan_result(graph, specializer, batch, m, n, dims);
  return "";
}

void ProductPlan::plan_result(const ir::Graph& graph, Specializer& specializer,
                              const std::vector<ir::Expr>& batch, const std::vector<ir::Expr>& m,
                              const std::vector<ir::Expr>& n, const TileBuilder::DimsOf& dims) {
  const DType out = graph.values[static_cast<size_t>(step_.value)].dtype;
  const Dims out_dims = dims_of(graph, step_.value, symbols_);
  std::vector<ir::Expr> indices;
  for (ir::Expr axis : step_.axes) indices.push_back(specializer.copy(axis));
  ir::Expr epilogue = specializer.copy(step_.epilogue);
  if (epilogue->op == ir::ExprOp::Leaf && out == dtype_) {
    auto place = separate(pool, flat_offset(pool, indices, out_dims), {batch, m, n});
    if (place && place->parts[1].table.empty() && place->parts[2].table.empty() &&
        (place->parts[2].stride == 1 || n_ == 1)) {
      in_place_ = std::move(place);
      return;
    }
  }
  TileBuilder builder(pool, program, dims);
  for (ir::Expr axis : batch) builder.set_outer(axis);
  batch_points_.assign(static_cast<size_t>(batches_), {});
  std::vector<int64_t> point(batch.size());
  for (auto& target : batch_points_) {
    target = point;
    for (size_t d = batch.size(); d-- > 0;) {
      if (++point[d] < extent_of(batch[d])) break;
      point[d] = 0;
    }
  }
  builder.set_rows(m);
  if (!n.empty()) scope_ = builder.fixed_scope(n);
  const Shape shape = Shape::Rows | (n.empty() ? Shape::Scalar : Shape::Columns);
  bind_product(builder, epilogue, shape);
  builder.store(0, out, out_dims, indices, builder.compile_to_store(epilogue), scope_);
}

// Without columns the product is a column of the block: its rows lie `stride` apart, so such a
// product is spread over one column.
void ProductPlan::bind_product(TileBuilder& builder, ir::Expr epilogue, Shape shape) {
  if (scope_ == kNoScope) {
    scope_ = builder.fixed_scope({pool.axis("n", pool.integer(1))});
    shape = Shape::Tile;
  }
  for (size_t i = 0; i < b_.size(); ++i) {
    products_.push_back(builder.make_view(elem_of(dtype_), shape, scope_));
  }
  visit(epilogue, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Product) return;
    const RegisterId product = products_.at(static_cast<size_t>(e->integer));
    builder.bind(e, builder.converted(product, elem_of(e->dtype)));
  });
}

void ProductPlan::multiply(const RunContext& context, TileContext& machine, const Region& region,
                           int64_t stride) const {
  const auto& values = context.values;
  GemmArgs g;
  g.m = region.rows;
  g.n = region.columns;
  g.k = k_;
  g.a = view(a_, static_cast<const char*>(values[static_cast<size_t>(step_.a->integer)].data()),
             a_dtype_, region.batch, 1, region.row, 2, 0);
  const auto set_b = [&](size_t i) {
    const auto value = static_cast<size_t>(step_.b[i]->integer);
    g.b = view(b_[i], static_cast<const char*>(values[value].data()), b_dtypes_[i], region.batch, 2,
               0, 1, region.column);
  };
  g.scratch = machine.gemm_scratch;
  const GemmFn gemm = dtype_ == DType::Float64 ? kernels().gemm_f64 : kernels().gemm_f32;
  const auto bytes = static_cast<int64_t>(size_of(dtype_));
  if (in_place_) {
    set_b(0);
    const SeparatedOffset& c = *in_place_;
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
  for (size_t i = 0; i < batch_points_[static_cast<size_t>(region.batch)].size(); ++i) {
    machine.axes[i] = batch_points_[static_cast<size_t>(region.batch)][i];
  }
  if (scope_ != kNoScope) {
    machine.columns[static_cast<size_t>(scope_)] = {region.column, region.columns};
  }
  const int64_t step = program.row_tile;
  for (int64_t row = 0; row < region.rows; row += step) {
    for (size_t i = 0; i < products_.size(); ++i) {
      char* block = blocks + static_cast<int64_t>(i) * block_bytes;
      machine.slots[static_cast<size_t>(products_[i])] = {block + row * stride * bytes, stride,
                                                          nullptr};
    }
    program.run(machine, region.row + row, std::min(step, region.rows - row));
  }
}

void ProductPlan::set_blocks(int64_t rows, int64_t columns) {
  if (empty()) return;
  block_rows_ = std::clamp<int64_t>(rows, 1, m_);
  block_columns_ = std::clamp<int64_t>(columns, 1, n_);
  if (scope_ != kNoScope) {
    program.scopes[static_cast<size_t>(scope_)].tile = padded(block_columns_);
  }
  program.row_tile =
      std::clamp<int64_t>(kEpilogueElements / padded(block_columns_), 1, block_rows_);
  program.layout();
}

double ProductPlan::bytes_of_a() const {
  return static_cast<double>(m_ * k_) * static_cast<double>(size_of(a_dtype_));
}

double ProductPlan::bytes_of_b() const {
  double bytes = 0;
  for (const DType dtype : b_dtypes_) {
    bytes += static_cast<double>(n_ * k_) * static_cast<double>(size_of(dtype));
  }
  return bytes;
}

StepTime ProductPlan::time(int threads) const {
  if (empty()) return {};
  const select::CpuMachine& machine = select::kCpu;
  const int64_t down = ceil_div(m_, block_rows_), across = ceil_div(n_, block_columns_);
  const auto rows = static_cast<double>(block_rows_), columns = static_cast<double>(block_columns_);
  const auto k = static_cast<double>(k_);
  const auto rate = [&](double bytes) {
    return bytes <= static_cast<double>(machine.l2_bytes) / 2 ? machine.l2_rate
                                                              : machine.memory_rate;
  };
  const double elements = rows * columns * k * static_cast<double>(b_.size());
  const double wide = dtype_ == DType::Float64 ? 2 : 1;
  TaskTime task;
  task.floor = wide * elements / machine.product_rate;
  for (size_t i = 0; i < b_.size(); ++i) {
    // Parts: batch, n, k.
    task.time += wide * product_time({rows, columns, k, size_of(b_dtypes_[i]) == 2,
                                      b_[i].parts[1].stride == 1});
  }
  // Every block of rows reads B again, but A in place.
  task.time += bytes_of_b() / static_cast<double>(across) / rate(bytes_of_b()) +
               bytes_of_a() / static_cast<double>(down) / rate(bytes_of_a());
  if (a_dtype_ != dtype_) task.time += rows * k / machine.convert_rate;
  if (in_place_) {
    task.time += rows * columns * static_cast<double>(size_of(dtype_)) / machine.memory_rate;
  } else {
    const TaskTime epilogue = task_time(program);
    const double times = std::ceil(rows / static_cast<double>(program.row_tile));
    task.time += times * epilogue.time;
    task.floor += times * epilogue.floor;
  }
  const double bytes =
      in_place_ ? static_cast<double>(batches_ * m_ * n_) * static_cast<double>(size_of(dtype_))
                : output_bytes(program);
  return step_time(task, static_cast<double>(batches_ * down * across), threads, bytes);
}

void ProductPlan::run(RunContext& context) const {
  allocate(context, step_.value);
  if (empty()) return;
  const int64_t down = ceil_div(m_, block_rows_), across = ceil_div(n_, block_columns_);
  TileRunner runner(program, context, {&step_.value, 1});
  const int64_t stride = padded(block_columns_) + 16;
  const int64_t bytes = static_cast<int64_t>(size_of(dtype_));
  const auto count = static_cast<int64_t>(step_.b.size());
  const int64_t extra = in_place_ ? 0 : count * block_rows_ * stride * bytes;
  runner.run(
      batches_ * down * across, alone,
      [&](TileContext& machine, int64_t task) {
        const int64_t block = task % (down * across);
        Region region;
        region.batch = task / (down * across);
        region.row = block % down * block_rows_;
        region.column = block / down * block_columns_;
        region.rows = std::min(block_rows_, m_ - region.row);
        region.columns = std::min(block_columns_, n_ - region.column);
        multiply(context, machine, region, stride);
      },
      extra);
}

}  // namespace redfuser::cpu
