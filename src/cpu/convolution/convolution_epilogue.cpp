#include "cpu/convolution/convolution_epilogue.h"

#include <algorithm>
#include <cstring>

#include "cpu/estimate/program_time.h"
#include "cpu/pointwise/merge_chains.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kMostColumns = 4096;  // of a tile
constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Its instructions read each product before they write the output's element, and not again.
bool is_one_pass(const TileProgram& program) {
  int passes = 0;
  for (const auto& each : program.block) {
    const Instruction* i = each.get();
    if (i->body() != nullptr || dynamic_cast<const Store*>(i) != nullptr) return false;
    const bool moves = dynamic_cast<const LoadView*>(i) != nullptr ||
                       dynamic_cast<const LoadCopy*>(i) != nullptr ||
                       dynamic_cast<const Fill*>(i) != nullptr ||
                       dynamic_cast<const BindOutput*>(i) != nullptr;
    if (!moves && !i->elementwise) return false;
    if (!moves) ++passes;
  }
  return passes == 1;
}

}  // namespace

ConvolutionEpilogue::ConvolutionEpilogue(const StepForm& form, DType sums, int64_t filters,
                                         int64_t positions, ir::Expr head)
    : width_(static_cast<int64_t>(size_of(sums))), columns_(std::min(positions, kMostColumns)) {
  const auto& step = *std::get<fuse::OpaqueStep>(form.kind).epilogue;
  value_ = step.value;
  Specializer specializer(pool_, form.symbols);
  const auto axes = [&](size_t begin, size_t end) {
    return specializer.copy_axes(std::span(step.axes).subspan(begin, end - begin));
  };
  const std::vector<ir::Expr> batch = axes(0, 1), m = axes(1, 2), n = axes(2, step.axes.size());
  std::vector<ir::Expr> indices;
  for (ir::Expr axis : step.axes) indices.push_back(specializer.copy(axis));
  TileBuilder builder(pool_, program_, [&](int64_t value) {
    return memory_of(form, static_cast<ir::ValueId>(value));
  });
  const DType dtype = form.graph.values[static_cast<size_t>(value_)].dtype;
  ir::Expr body = specializer.copy(step.body);
  if (head != nullptr) {
    const ir::Expr value = pool_.leaf(ir::LeafKind::Product, 0, head->dtype);
    body = pool_.substitute(body, {{specializer.copy(head), value}});
  }
  filters_ = extent_of(m);
  positions_ = extent_of(n);
  across_ = form.growing == nullptr && positions_ == 1;
  epilogue_.build(pool_, builder, {batch, across_ ? n : m, across_ ? m : n}, body, 1, sums,
                  {dtype, memory_of(form, value_), indices});
  merge_chains(program_);
  in_place_ = form.growing == nullptr && dtype == sums && is_one_pass(program_);
  if (in_place_ && head == nullptr && is_float(sums)) {
    const Dims dims = memory_of(form, value_);
    activation_ = activation_of(body, indices,
                                [&](ir::ValueId value) { return memory_of(form, value) == dims; });
  }
  if (across_) columns_ = std::min(filters, kMostColumns);
  epilogue_.set_block(program_, across_ ? 1 : filters, columns_);
}

double ConvolutionEpilogue::time() const {
  return task_time(program_).time / static_cast<double>(program_.row_tile * columns_);
}

EpilogueSums::EpilogueSums(const ConvolutionEpilogue& epilogue, RunContext& context)
    : epilogue_(epilogue),
      output_(
          static_cast<char*>(context.values[static_cast<size_t>(epilogue.value_)].mutable_data())),
      runner_(epilogue.program_, context, {&epilogue.value_, 1}),
      workers_(static_cast<size_t>(context.pool.size())) {
  const ir::ValueId residual = epilogue.activation_.residual;
  if (residual != ir::kAbsent) residual_ = static_cast<const char*>(context.value(residual).data());
}

void EpilogueSums::prepare(int worker, int64_t bytes) {
  Memory& memory = workers_[static_cast<size_t>(worker)];
  if (memory.owned && bytes <= memory.bytes) return;
  const int64_t own = aligned(epilogue_.program_.scratch_bytes());
  memory.owned = scratch<char>(own + bytes + kAlignment);
  const auto begin = reinterpret_cast<intptr_t>(memory.owned.get());
  char* first = memory.owned.get() + (aligned(begin) - begin);
  runner_.prepare(runner_.machine(worker), first, nullptr);
  memory.sums = first + own;
  memory.bytes = bytes;
}

SumsTarget::Place EpilogueSums::place(int worker, const Block& block) {
  if (epilogue_.in_place_) {
    prepare(worker, 0);
    const int64_t row = block.batch * epilogue_.filters_ + block.filter;
    const int64_t at = (row * epilogue_.positions_ + block.position) * epilogue_.width_;
    return {output_ + at, epilogue_.positions_, residual_ == nullptr ? nullptr : residual_ + at};
  }
  return wide_place(worker, block, block.positions);
}

SumsTarget::Place EpilogueSums::wide_place(int worker, const Block& block, int64_t stride) {
  if (epilogue_.in_place_) return {nullptr, 0};
  prepare(worker, block.filters * stride * epilogue_.width_);
  return {workers_[static_cast<size_t>(worker)].sums, stride};
}

void EpilogueSums::done(int worker, const Block& block, const Place& place) {
  if (place.activated) return;
  const bool across = epilogue_.across_;
  char* data = static_cast<char*>(place.data);
  if (across && place.stride != 1) {
    for (int64_t i = 1; i < block.filters; ++i) {
      std::memcpy(data + i * epilogue_.width_, data + i * place.stride * epilogue_.width_,
                  static_cast<size_t>(epilogue_.width_));
    }
  }
  const int64_t columns = across ? block.filters : block.positions;
  for (int64_t at = 0; at < columns; at += epilogue_.columns_) {
    const int64_t count = std::min(epilogue_.columns_, columns - at);
    const BlockEpilogue::Block tile =
        across ? BlockEpilogue::Block{block.batch, 0, block.filter + at, 1, count}
               : BlockEpilogue::Block{block.batch, block.filter, block.position + at, block.filters,
                                      count};
    epilogue_.epilogue_.run(epilogue_.program_, runner_.machine(worker), tile,
                            {data + at * epilogue_.width_, place.stride, 0});
  }
}

}  // namespace redfuser::cpu
