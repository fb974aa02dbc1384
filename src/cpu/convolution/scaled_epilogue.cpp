#include "cpu/convolution/scaled_epilogue.h"

#include "cpu/convolution/sum_activation.h"
#include "cpu/machine/this_machine.h"
#include "cpu/opaque/opaque.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/steps/block_epilogue.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

bool is_sum_as_float(ir::Expr e) {
  return e->op == ir::ExprOp::Cast && e->dtype == DType::Float32 && is_product(e->args[0]) &&
         e->args[0]->dtype == DType::Int32;
}

}  // namespace

// Sums wait in memory of their worker until their block is whole.
class ScaledSums final : public SumsTarget {
 public:
  ScaledSums(const ScaledEpilogue& epilogue, RunContext& context)
      : epilogue_(epilogue), workers_(static_cast<size_t>(context.pool.size())) {
    const auto numbers = [&](const ScaledEpilogue::Numbers& from, const float*& first,
                             int64_t& step) {
      first = from.value == ir::kAbsent ? &from.number
                                        : context.value(from.value).as<float>() + from.offset;
      step = from.step;
    };
    numbers(epilogue.scale_, each_.scales, each_.scale_step);
    if (epilogue.offset_) numbers(*epilogue.offset_, each_.offsets, each_.offset_step);
    each_.each = epilogue.each_;
    each_.out_stride = epilogue.positions_;
    each_.out = static_cast<float*>(context.value(epilogue.value_).mutable_data());
    if (epilogue.residual_ != ir::kAbsent) {
      each_.residual = context.value(epilogue.residual_).as<float>();
    }
  }

  int64_t near_sums() const override { return 1 << 14; }
  Place place(int worker, const Block& block) override {
    return wide_place(worker, block, block.positions);
  }
  Place wide_place(int worker, const Block& block, int64_t stride) override {
    Sums& own = workers_[static_cast<size_t>(worker)];
    const int64_t count = block.filters * stride;
    if (count > own.count) own = {scratch<int32_t>(count), count};
    return {own.data.get(), stride};
  }
  void done(int, const Block& block, const Place& place) override {
    IntegerScaleArgs args = each_;
    args.rows = block.filters;
    args.count = block.positions;
    args.c = static_cast<const int32_t*>(place.data);
    args.c_stride = place.stride;
    args.scales += block.filter * args.scale_step;
    if (args.offsets != nullptr) args.offsets += block.filter * args.offset_step;
    const int64_t row = block.batch * epilogue_.filters_ + block.filter;
    const int64_t at = row * epilogue_.positions_ + block.position;
    args.out += at;
    if (args.residual != nullptr) args.residual += at;
    kernels().scale_integers(args);
  }

 private:
  struct Sums {
    ScratchArray<int32_t> data;
    int64_t count = 0;
  };

  const ScaledEpilogue& epilogue_;
  IntegerScaleArgs each_;  // of the first filter
  std::vector<Sums> workers_;
};

std::optional<ScaledEpilogue::Numbers> ScaledEpilogue::numbers_of(const StepForm& form, ir::Expr e,
                                                                  ir::Expr filter) {
  Numbers numbers;
  if (e->dtype != DType::Float32) return {};
  if (e->is_constant()) {
    numbers.number = static_cast<float>(e->number);
    return numbers;
  }
  if (e->op != ir::ExprOp::Read || e->integer < 0) return {};
  numbers.value = static_cast<ir::ValueId>(e->integer);
  const Dims dims = memory_of(form, numbers.value);
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    const ir::Expr index = e->args[d];
    if (index->is_constant()) {
      numbers.offset += stride * index->integer;
    } else if (index == filter) {
      numbers.step += stride;
    } else {
      return {};
    }
  }
  return numbers;
}

bool ScaledEpilogue::take_head(const StepForm& form, ir::Expr e, ir::Expr filter) {
  if (e->op == ir::ExprOp::Add) {
    for (const size_t i : {0, 1}) {
      ScaledEpilogue scaled;
      const auto offset = numbers_of(form, e->args[1 - i], filter);
      if (!offset || e->args[i]->op != ir::ExprOp::Mul) continue;
      if (!scaled.take_head(form, e->args[i], filter)) continue;
      scale_ = scaled.scale_;
      offset_ = offset;
      return true;
    }
    return false;
  }
  if (e->op != ir::ExprOp::Mul) return false;
  for (const size_t i : {0, 1}) {
    if (!is_sum_as_float(e->args[i])) continue;
    const auto scale = numbers_of(form, e->args[1 - i], filter);
    if (!scale) return false;
    scale_ = *scale;
    offset_.reset();
    return true;
  }
  return false;
}

std::optional<ScaledEpilogue> ScaledEpilogue::of(const StepForm& form) {
  const auto& step = *std::get<fuse::OpaqueStep>(form.kind).epilogue;
  if (form.growing != nullptr || dtype_of(form, step.value) != DType::Float32) return {};
  ir::ExprPool pool;
  Specializer specializer(pool, form.symbols);
  std::vector<ir::Expr> indices;
  for (const ir::Expr axis : step.axes) indices.push_back(specializer.copy(axis));
  const ir::Expr body = specializer.copy(step.body);
  const Dims dims = memory_of(form, step.value);
  ScaledEpilogue result;
  result.value_ = step.value;
  result.filters_ = dims[1];
  result.positions_ = element_count(Dims(dims.begin() + 2, dims.end()));
  // The larger heads first: those with an offset.
  std::vector<ir::Expr> heads;
  for (const ir::ExprOp op : {ir::ExprOp::Add, ir::ExprOp::Mul}) {
    visit(body, [&](ir::Expr e) {
      if (e->op == op && e->dtype == DType::Float32) heads.push_back(e);
    });
  }
  for (const ir::Expr head : heads) {
    if (!result.take_head(form, head, indices[1])) continue;
    const ir::Expr sum = pool.leaf(ir::LeafKind::Product, 0, DType::Float32);
    const auto activation =
        activation_of(pool.substitute(body, {{head, sum}}), indices,
                      [&](ir::ValueId value) { return memory_of(form, value) == dims; });
    if (!activation.each.any) continue;
    result.each_ = activation.each;
    result.residual_ = activation.residual;
    return result;
  }
  return {};
}

std::unique_ptr<SumsTarget> ScaledEpilogue::sums(RunContext& context) const {
  return std::make_unique<ScaledSums>(*this, context);
}

}  // namespace redfuser::cpu
