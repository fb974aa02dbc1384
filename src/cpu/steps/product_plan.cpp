#include "cpu/steps/product_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cpu/pointwise/merge_chains.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {
namespace {

constexpr const char* kPanels = "panels";
constexpr int64_t kPanelColumns = 16;  // packed columns are a multiple of it

// The epilogue over products that are float32, where it uses the integers in no other form.
ir::Expr over_floats(ir::ExprPool& pool, ir::Expr epilogue) {
  ir::Expr result = pool.rewrite(epilogue, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Cast || e->dtype != DType::Float32) return nullptr;
    ir::Expr arg = e->args[0];
    return is_product(arg) ? pool.leaf(arg->leaf_kind, arg->integer, e->dtype) : nullptr;
  });
  bool floats = true;
  visit(result, [&](ir::Expr e) { floats &= !is_product(e) || e->dtype == DType::Float32; });
  return floats ? result : nullptr;
}

}  // namespace

std::string ProductPlan::build(const StepForm& form) {
  if (form.growing != nullptr) {
    if (step_.of_integers()) return "integers are packed for fixed sizes";
    growing_.emplace(Growing{GrowingExtents(pool, *form.growing)});
  }
  Specializer specializer(pool, form.symbols, form.growing);
  std::vector<ir::Expr> batch = specializer.copy_axes(step_.batch),
                        m = specializer.copy_axes(step_.m), n = specializer.copy_axes(step_.n),
                        k = specializer.copy_axes({&step_.k, 1});
  if (growing_) {
    growing_->extents.place({&batch, &m, &n, &k});
    const auto count = [&](const auto& axes) { return growing_->extents.count(axes); };
    growing_->batches = count(batch), growing_->m = count(m);
    growing_->n = count(n), growing_->k = count(k);
    growing_->exact = growing_->extents.is_exact({&batch, &m, &n, &k});
    if (growing_->extents.grows_inside(k)) return "the sums' inner positions grow";
  }
  const TileBuilder::DimsOf dims = [&](int64_t value) {
    return memory_of(form, static_cast<ir::ValueId>(value));
  };
  batches_ = extent_of(batch);
  m_ = extent_of(m);
  n_ = extent_of(n);
  k_ = extent_of(k);
  const OperandAxes axes{batch, m, n, k};
  if (step_.of_integers()) {
    integers_ = separate_integers(form.graph, pool, specializer, step_, axes, dims);
    if (!integers_) return "the operands are not matrices of integers in memory";
    integers_->k = k_;
    dtype_ = DType::Int32;
  } else if (!separate_floats(form.graph, specializer, axes, dims)) {
    return "the operands are not matrices of floats in memory";
  }
  plan_result(form.graph, specializer, axes, dims);
  return "";
}

ir::Expr ProductPlan::copied(Specializer& specializer, ir::Expr expr) {
  const ir::Expr copy = specializer.copy(expr);
  return growing_ ? growing_->extents.placed(copy) : copy;
}

bool ProductPlan::separate_floats(const ir::Graph& graph, Specializer& specializer,
                                  const OperandAxes& axes, const TileBuilder::DimsOf& dims) {
  bool f64 = false;
  const auto operand = [&](ir::Expr read, const std::vector<ir::Expr>& rows, DType& dtype,
                           SeparatedOffset& to) {
    read = copied(specializer, read);
    dtype = read->dtype;
    f64 |= dtype == DType::Float64;
    const bool number = is_float(dtype) || (is_low_bit_float(dtype) && bits_of(dtype) == 8);
    std::vector<std::vector<ir::Expr>> lists{axes.batch, rows, axes.k};
    if (growing_) lists.push_back({growing_->extents.axis()});
    return number && separate_read(pool, read, dims, lists, to);
  };
  if (!operand(step_.a, axes.m, a_dtype_, a_)) return false;
  for (ir::Expr b : step_.b) {
    if (!operand(b, axes.n, b_dtypes_.emplace_back(), b_.emplace_back())) return false;
    b_constants_.push_back(graph.values[static_cast<size_t>(b->integer)].is_constant());
  }
  panels_.resize(b_.size());
  dtype_ = f64 ? DType::Float64 : DType::Float32;
  return true;
}

bool ProductPlan::packs(size_t i) const {
  if (integers_ || growing_ || !b_constants_[i] || b_dtypes_[i] != dtype_) return false;
  const auto& parts = b_[i].parts;
  const bool is_matrix = std::all_of(parts.begin(), parts.end(),
                                     [](const OffsetPart& part) { return part.table.empty(); });
  return m_ > kRowsInPlace && k_ > 0 && is_matrix && (batches_ == 1 || parts[0].stride == 0);
}

void ProductPlan::pack_constants(const ir::Graph& graph, PanelStore& store) {
  if (empty()) return;
  if (integers_) return integers_->pack_constants(graph, store, batches_, n_);
  for (size_t i = 0; i < b_.size(); ++i) {
    if (!packs(i)) continue;
    const SeparatedOffset& b = b_[i];
    const auto name = fmt::format("{} {}: {}x{} at {} by {} and {}", kPanels, i, k_, n_, b.constant,
                                  b.parts[2].stride, b.parts[1].stride);
    panels_[i] = store.filters(name, [&] {
      const auto value = static_cast<size_t>(step_.b[i]->integer);
      const auto* data = static_cast<const char*>(graph.values[value].constant.data());
      Tensor panels(dtype_, {k_ * ceil_div(n_, kPanelColumns) * kPanelColumns});
      const MatrixView view = view_of(b, data, dtype_, 0, 2, 0, 1, 0);
      const PackFn pack = dtype_ == DType::Float64 ? kernels().pack_f64 : kernels().pack_f32;
      pack(view, k_, n_, panels.mutable_data());
      return panels;
    });
  }
}

void ProductPlan::plan_result(const ir::Graph& graph, Specializer& specializer,
                              const OperandAxes& axes, const TileBuilder::DimsOf& dims) {
  const DType out = graph.values[static_cast<size_t>(step_.value)].dtype;
  std::vector<ir::Expr> indices;
  for (ir::Expr axis : step_.axes) indices.push_back(copied(specializer, axis));
  ir::Expr epilogue = copied(specializer, step_.epilogue);
  if (epilogue->op == ir::ExprOp::Leaf && out == dtype_) {
    std::vector<std::vector<ir::Expr>> lists{axes.batch, axes.m, axes.n};
    if (growing_) lists.push_back({growing_->extents.axis()});
    auto place = separate(pool, flat_offset(pool, indices, result_), lists);
    if (place && place->parts[1].table.empty() && place->parts[2].table.empty() &&
        (place->parts[2].stride == 1 || n_ == 1)) {
      in_place_ = std::move(place);
      return;
    }
  }
  if (integers_) {
    ir::Expr floats = over_floats(pool, epilogue);
    dtype_ = floats ? DType::Float32 : DType::Int32;
    if (floats) epilogue = floats;
  }
  TileBuilder builder(pool, program, dims);
  epilogue_.build(pool, builder, {axes.batch, axes.m, axes.n}, epilogue,
                  static_cast<int>(step_.b.size()), dtype_, {out, result_, indices},
                  growing_ ? &growing_->extents : nullptr);
  merge_chains(program);
}

ProductPlan::Extents ProductPlan::extents_of(const RunContext& context) const {
  if (!growing_) return {0, batches_, m_, n_, k_};
  const int64_t length = growing_->extents.length(context.symbols);
  return {length, growing_->batches.at(length), growing_->m.at(length), growing_->n.at(length),
          growing_->k.at(length)};
}

int64_t ProductPlan::of_length(const SeparatedOffset& offset, const Extents& extents) const {
  return growing_ ? offset.parts.back().at(growing_->extents.position(extents.length)) : 0;
}

void ProductPlan::multiply(const RunContext& context, const Extents& extents, TileContext& machine,
                           const Region& region, int64_t stride) const {
  const auto bytes = static_cast<int64_t>(size_of(dtype_));
  if (in_place_) {
    const SeparatedOffset& c = *in_place_;
    const int64_t at = c.constant + of_length(c, extents) + c.parts[0].at(region.batch) +
                       region.row * c.parts[1].stride + region.column;
    return multiply_into(context, extents, machine, region, 0, machine.outputs[0] + at * bytes,
                         c.parts[1].stride, false);
  }
  // The integers' own scratch memory lies before the blocks.
  char* blocks = static_cast<char*>(machine.gemm_scratch) + kGemmScratchBytes;
  if (integers_) blocks += integers_->scratch_bytes(region.rows, region.columns);
  const BlockEpilogue::Results results{blocks, stride, region.rows * stride * bytes};
  for (size_t i = 0; i < step_.b.size(); ++i) {
    multiply_into(context, extents, machine, region, i,
                  blocks + static_cast<int64_t>(i) * results.bytes, stride, true);
  }
  epilogue_.run(program, machine, region, results);
}

void ProductPlan::multiply_into(const RunContext& context, const Extents& extents,
                                TileContext& machine, const Region& region, size_t i, char* c,
                                int64_t c_stride, bool padded) const {
  char* scratch = static_cast<char*>(machine.gemm_scratch);
  if (integers_) {
    return integers_->run(context, i,
                          {region.batch, region.row, region.column, region.rows, region.columns, c,
                           c_stride, dtype_, scratch + kGemmScratchBytes});
  }
  const auto data = [&](ir::Expr read, const SeparatedOffset& offset) {
    const Tensor& tensor = context.values[static_cast<size_t>(read->integer)];
    const auto width = static_cast<int64_t>(size_of(read->dtype));
    return static_cast<const char*>(tensor.data()) + of_length(offset, extents) * width;
  };
  GemmArgs g;
  g.m = region.rows;
  g.n = region.columns;
  g.k = extents.k;
  g.a = view_of(a_, data(step_.a, a_), a_dtype_, region.batch, 1, region.row, 2, 0);
  if (panels_[i]) {
    g.panels = static_cast<const char*>(panels_[i]->data()) +
               region.column * extents.k * static_cast<int64_t>(size_of(dtype_));
  } else {
    g.b =
        view_of(b_[i], data(step_.b[i], b_[i]), b_dtypes_[i], region.batch, 2, 0, 1, region.column);
  }
  g.c = c;
  g.c_stride = c_stride;
  g.c_padded = padded;
  g.scratch = scratch;
  (dtype_ == DType::Float64 ? kernels().gemm_f64 : kernels().gemm_f32)(g);
}

void ProductPlan::set_blocks(int64_t rows, int64_t columns) {
  if (empty()) return;
  block_rows_ = std::clamp<int64_t>(rows, 1, m_);
  block_columns_ = std::clamp<int64_t>(columns, 1, n_);
  if (!in_place_) epilogue_.set_block(program, block_rows_, block_columns_);
}

double ProductPlan::bytes_of_a() const {
  return static_cast<double>(m_ * k_) * static_cast<double>(size_of(step_.a->dtype));
}

double ProductPlan::bytes_of_b() const {
  double bytes = 0;
  for (ir::Expr b : step_.b) {
    bytes += static_cast<double>(n_ * k_) * static_cast<double>(size_of(b->dtype));
  }
  return bytes;
}

// Of one block, besides the bytes of the operands.
double ProductPlan::products_time(double rows, double columns) const {
  const select::CpuMachine& machine = this_machine();
  const auto k = static_cast<double>(k_);
  if (integers_) return integers_->time(rows, columns);
  const double wide = dtype_ == DType::Float64 ? 2 : 1;
  double time = a_dtype_ != dtype_ ? rows * k / machine.convert_rate : 0;
  for (size_t i = 0; i < b_.size(); ++i) {
    // Parts: batch, n, k.
    time += wide * product_time({rows, columns, k, size_of(b_dtypes_[i]) <= 2,
                                 b_[i].parts[1].stride == 1, packs(i)});
  }
  return time;
}

StepTime ProductPlan::time(int threads) const {
  if (empty()) return {};
  const select::CpuMachine& machine = this_machine();
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
  task.floor = wide * elements / (integers_ ? machine.dot_rate : machine.product_rate);
  task.time = products_time(rows, columns);
  // Every block of rows reads B again, but A in place.
  task.time += bytes_of_b() / static_cast<double>(across) / rate(bytes_of_b()) +
               bytes_of_a() / static_cast<double>(down) / rate(bytes_of_a());
  // A block of few rows reads a part of each row of B, which lies far from the one before.
  if (m_ <= kRowsInPlace && !integers_ && bytes_of_b() > static_cast<double>(machine.l2_bytes)) {
    task.time += k * static_cast<double>(b_.size()) / machine.line_rate;
  }
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
  place(context, step_.value, result_);
  const Extents extents = extents_of(context);
  if (extents.batches * extents.m * extents.n == 0) return;
  const int64_t down = ceil_div(extents.m, block_rows_);
  const int64_t across = ceil_div(extents.n, block_columns_);
  TileRunner runner(program, context, {&step_.value, 1});
  const int64_t stride = padded(block_columns_) + 16;
  const int64_t bytes = static_cast<int64_t>(size_of(dtype_));
  const auto count = static_cast<int64_t>(step_.b.size());
  const int64_t products = in_place_ ? 0 : count * block_rows_ * stride * bytes;
  const int64_t integers = integers_ ? integers_->scratch_bytes(block_rows_, block_columns_) : 0;
  runner.run(
      extents.batches * down * across, saved,
      [&](TileContext& machine, int64_t task) {
        const int64_t block = task % (down * across);
        Region region;
        region.batch = task / (down * across);
        region.row = block % down * block_rows_;
        region.column = block / down * block_columns_;
        region.rows = std::min(block_rows_, extents.m - region.row);
        region.columns = std::min(block_columns_, extents.n - region.column);
        if (growing_ && !in_place_) growing_->extents.set(machine, extents.length);
        multiply(context, extents, machine, region, stride);
      },
      products + integers);
}

}  // namespace redfuser::cpu
