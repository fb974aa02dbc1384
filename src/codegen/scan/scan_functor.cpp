#include "codegen/scan/scan_functor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/integer_text.h"
#include "codegen/text/operation_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kArguments =
    "long long line, long long position, long long column, long long valid";

}  // namespace

std::string ScanFunctor::text() {
  const std::string functions = fetch() + finish();
  const DType state = form_.state();
  return fmt::format(
      "struct Scan {{\nusing State = {};\nusing Op = {};\nstatic constexpr int kWidth = {};\n"
      "static constexpr bool kReverse = {}, kExclusive = {};\n{}bool vector;\n"
      "static __device__ __forceinline__ State identity() {{\nreturn {};\n}}\n{}}};\n",
      value_type(state), combiner_of(form_.reduction), width_, form_.reverse, form_.exclusive,
      kernel_.members(), identity_of(form_.reduction, state), functions);
}

std::string ScanFunctor::vector_condition() {
  return all_aligned(kernel_.multiples(units_, width_), aligned_);
}

// Offset of a group's first element, if adjacent elements of the group are adjacent there.
ir::Expr ScanFunctor::first_of(ir::Expr offset) const {
  const auto affine = affine_in(pool_, offset, form_.inner());
  const bool adjacent =
      affine && affine->stride->is_constant(1) && !affine->base->depends_on(form_.inner());
  return adjacent ? affine->base : nullptr;
}

void ScanFunctor::require(const std::string& buffer, ir::Expr base) {
  if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
    aligned_.push_back(buffer);
  }
  for (ir::Expr unit : offset_units(pool_, base)) units_.push_back(unit);
}

void ScanFunctor::open(Emitter& emitter) {
  emitter.open();
  bind_coordinates(emitter, form_.lines, "line");
  if (form_.across) emitter.bind(form_.axis, "position");
  emitter.line(fmt::format("const long long first = {};", form_.across ? "column" : "position"));
  emitter.line(fmt::format("const bool whole = vector && valid >= {};", width_));
}

void ScanFunctor::open_elements(Emitter& emitter, ir::Expr root) {
  Names loaded;
  visit(root, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || e->integer < 0) return;
    ir::Expr base = first_of(e->args[0]);
    if (!base) return;
    const std::string buffer = kernel_.buffer(e->integer), name = emitter.fresh("g");
    require(buffer, base);
    emitter.line(fmt::format("{0} {1}[{2}];\nload_group<{2}>({1}, {3}, {4} + first, valid, whole);",
                             value_type(e->dtype), name, width_, buffer, emitter.emit(base)));
    loaded.emplace_back(e, name);
  });
  emitter.open();
  emitter.line(fmt::format("const long long at = min_of(first + v, {} - 1);",
                           kernel_.size(form_.inner()->extent())));
  emitter.bind(form_.inner(), "at");
  for (const auto& [read, name] : loaded) emitter.bind(read, name + "[v]");
}

std::string ScanFunctor::fetch() {
  Emitter emitter(kernel_);
  open(emitter);
  open_elements(emitter, form_.element);
  const std::string value = emitter.emit_as(form_.element, form_.state());
  emitter.line(fmt::format("x[v] = v < valid ? {} : identity();", value));
  const std::string elements = emitter.close();
  emitter.line(
      fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}", width_, elements));
  return fmt::format(
      "__device__ __forceinline__ void fetch({}, State (&x)[kWidth]) const {{\n{}}}\n", kArguments,
      emitter.close());
}

std::string ScanFunctor::finish() {
  const DType dtype = kernel_.dtype_of(form_.value);
  const std::string buffer = kernel_.buffer(form_.value, true);
  Emitter emitter(kernel_);
  open(emitter);
  ir::Expr base = first_of(form_.offset);
  if (base) require(buffer, base);
  const std::string start = base ? emitter.emit(base) : "";
  emitter.line(fmt::format("{} result[{}];", value_type(dtype), width_));
  open_elements(emitter, form_.body);
  const DType state = form_.state();
  const bool words = is_integer(state);
  emitter.bind(form_.running, words ? integer_cast_text(state, DType::Int64, "y[v]") : "y[v]");
  emitter.line(fmt::format("result[v] = {};", emitter.emit_as(form_.body, dtype)));
  if (!base) {
    emitter.line(fmt::format("if (v < valid) store({}, {}, result[v]);", buffer,
                             emitter.emit(form_.offset)));
  }
  const std::string elements = emitter.close();
  emitter.line(
      fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}", width_, elements));
  if (base) {
    emitter.line(fmt::format("store_group<{}>({}, {} + first, result, valid, whole);", width_,
                             buffer, start));
  }
  return fmt::format(
      "__device__ __forceinline__ void finish({}, const State (&y)[kWidth]) const {{\n{}}}\n",
      kArguments, emitter.close());
}

}  // namespace redfuser::codegen
