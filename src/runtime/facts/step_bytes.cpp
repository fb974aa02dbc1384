#include "runtime/facts/step_bytes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "ir/evaluate.h"

namespace redfuser::runtime {
namespace {

using Expressions = std::vector<ir::Expr>;

std::optional<Expressions> of(const fuse::MapStep& step) {
  Expressions result;
  for (const auto& output : step.outputs) result.push_back(output.body);
  return result;
}

std::optional<Expressions> of(const fuse::ReduceStep& step) { return Expressions{step.body}; }

std::optional<Expressions> of(const fuse::ProductStep& step) {
  Expressions result = step.b;
  result.push_back(step.a);
  result.push_back(step.epilogue);
  return result;
}

std::optional<Expressions> of(const fuse::CascadeStep& step) {
  Expressions result;
  for (const cascade::Stage& stage : step.streaming.cascade.stages) result.push_back(stage.body);
  for (const auto& output : step.streaming.cascade.outputs) result.push_back(output.body);
  return result;
}

std::optional<Expressions> of(const fuse::OpaqueStep&) { return std::nullopt; }
std::optional<Expressions> of(const fuse::AliasStep&) { return std::nullopt; }

int64_t product(int64_t a, int64_t b, int64_t limit) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? limit : std::min(result, limit);
}

class ByteCounter {
 public:
  ByteCounter(const CompiledProgram& program, std::span<const int64_t> symbols)
      : program_(program), symbols_(symbols) {}

  void read(ir::Expr expr) {
    ir::visit(expr, [&](ir::Expr e) {
      // Those of no value read the lists of ranked stages.
      if (e->op == ir::ExprOp::Read && e->integer >= 0 && seen_.insert(e).second) add(e);
    });
  }

  int64_t total(const std::vector<ir::ValueId>& writes) const {
    if (data_decides_) return 0;
    int64_t bytes = 0;
    for (const auto& [value, elements] : elements_) bytes += elements * width(value);
    for (const ir::ValueId value : writes) bytes += size(value) * width(value);
    return bytes;
  }

 private:
  const ir::Value& value_of(ir::ValueId id) const {
    return program_.graph().values[static_cast<size_t>(id)];
  }
  int64_t width(ir::ValueId id) const { return static_cast<int64_t>(size_of(value_of(id).dtype)); }
  int64_t size(ir::ValueId id) const {
    int64_t count = 1;
    for (const ir::Expr dim : value_of(id).shape) {
      count = product(count, evaluate_size(dim, symbols_), INT64_MAX / 16);
    }
    return count;
  }

  // An index takes no more values than the axes in it, and no more than its dimension has. Reads of
  // other elements of the same value add up, to the whole of it at most.
  void add(ir::Expr read) {
    const auto id = static_cast<ir::ValueId>(read->integer);
    int64_t count = 1;
    for (size_t i = 0; i < read->args.size(); ++i) {
      const ir::Expr index = read->args[i];
      data_decides_ = data_decides_ || index->has_read;
      const int64_t dim = evaluate_size(value_of(id).shape[i], symbols_);
      int64_t taken = 1;
      ir::visit(index, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Axis) {
          taken = product(taken, evaluate_size(e->extent(), symbols_), dim);
        }
      });
      count = product(count, std::min(taken, dim), INT64_MAX / 16);
    }
    int64_t& elements = elements_[program_.plan.root(id)];
    elements = std::min(elements + count, size(id));
  }

  const CompiledProgram& program_;
  std::span<const int64_t> symbols_;
  std::unordered_set<ir::Expr> seen_;
  std::map<ir::ValueId, int64_t> elements_;
  bool data_decides_ = false;
};

}  // namespace

int64_t step_bytes(const CompiledProgram& program, size_t step, std::span<const int64_t> symbols) {
  const fuse::Step& planned = program.plan.steps[step];
  const auto expressions = std::visit([](const auto& kind) { return of(kind); }, planned.kind);
  if (!expressions) return 0;
  ByteCounter counter(program, symbols);
  for (const ir::Expr expr : *expressions) counter.read(expr);
  return counter.total(planned.writes);
}

}  // namespace redfuser::runtime
