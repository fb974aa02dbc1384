#include "cpu/steps/map/map_stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "cpu/steps/column_choice.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kMostOperations = 1024;  // of a step
constexpr size_t kMostFunctions = 4;      // of one division

// An axis of one element is the integer 0, on which nothing depends.
bool depends(ir::Expr expr, ir::Expr axis) {
  return axis->op == ir::ExprOp::Axis && expr->depends_on(axis);
}

// Reads of a step at positions that are functions of one axis, along dimensions of one size.
struct Positions {
  ir::Expr axis;
  int64_t size;
  std::set<ir::Expr> positions;
};

class Divider {
 public:
  Divider(StepForm form, MapStages& stages) : form_(std::move(form)), stages_(stages) {
    form_.inner = stages_.inner;
  }

  // Divides step `number`, and puts its new stages before it.
  bool divide(size_t number) {
    const auto step = std::get<fuse::MapStep>(stages_.steps[number]);
    for (const Positions& at : positions_of(step)) {
      auto divided = along(step, at);
      if (!divided) continue;
      stages_.steps[number] = std::move(*divided);
      stages_.steps.insert(stages_.steps.begin() + static_cast<int64_t>(number), new_.begin(),
                           new_.end());
      stages_.inner.insert(stages_.inner.end(), inner_.begin(), inner_.end());
      form_.inner = stages_.inner;
      return true;
    }
    return false;
  }

 private:
  // A function of the position `y`, and the positions at which the step needs it.
  struct Function {
    ir::ValueId value;
    std::vector<ir::Expr> axes;
    std::set<ir::Expr> positions;
  };

  std::vector<Positions> positions_of(const fuse::MapStep& step) const {
    std::vector<Positions> result;
    size_t operations = 0;
    bool reduces = false;
    for (const auto& output : step.outputs) {
      visit(output.body, [&](ir::Expr e) {
        ++operations;
        reduces = reduces || e->op == ir::ExprOp::Reduce;
        if (e->op != ir::ExprOp::Read || e->integer < 0) return;
        const Dims dims = memory_of(form_, static_cast<ir::ValueId>(e->integer));
        for (size_t i = 0; i < e->args.size(); ++i) add(step.axes, e->args[i], dims[i], result);
      });
    }
    if (reduces || operations > kMostOperations) result.clear();
    return result;
  }

  static void add(const std::vector<ir::Expr>& axes, ir::Expr position, int64_t size,
                  std::vector<Positions>& result) {
    if (position->free_axes.size() != 1 || is_affine(position)) return;
    const auto axis =
        std::find_if(axes.begin(), axes.end(), [&](ir::Expr a) { return depends(position, a); });
    if (axis == axes.end()) return;
    auto known = std::find_if(result.begin(), result.end(), [&](const Positions& p) {
      return p.axis == *axis && p.size == size;
    });
    if (known == result.end()) known = result.insert(result.end(), {*axis, size, {}});
    known->positions.insert(position);
  }

  std::optional<fuse::MapStep> along(const fuse::MapStep& step, const Positions& at) {
    ir::ExprPool& pool = stages_.pool;
    const ir::Expr y = pool.axis("y", pool.integer(at.size));
    std::vector<ir::Expr> axes = step.axes;
    std::replace(axes.begin(), axes.end(), at.axis, y);
    functions_.clear();
    fuse::MapStep divided = step;
    for (auto& output : divided.outputs) {
      output.body = pool.rewrite(output.body, [&](ir::Expr e) -> ir::Expr {
        const ir::Expr position = only_position(e, at);
        if (position == nullptr) return nullptr;
        const ir::Expr body = pool.substitute(e, {{position, y}});
        const bool function_of_y = body->depends_on(y) && !body->depends_on(at.axis);
        if (!function_of_y || !computes(body)) return nullptr;
        Function& function = function_of(body, axes);
        function.positions.insert(position);
        std::vector<ir::Expr> index = function.axes;
        std::replace(index.begin(), index.end(), y, position);
        return pool.read(function.value, e->dtype, std::move(index));
      });
    }
    return worth(at) ? std::optional(std::move(divided)) : std::nullopt;
  }

  // The position of all of the reads of `e` that are at one of `at`; null where there are several.
  static ir::Expr only_position(ir::Expr e, const Positions& at) {
    if (!e->has_read || e->dtype == DType::Int64 || !e->depends_on(at.axis)) return nullptr;
    std::set<ir::Expr> found;
    visit(e, [&](ir::Expr read) {
      if (read->op != ir::ExprOp::Read) return;
      for (ir::Expr arg : read->args) {
        if (at.positions.count(arg)) found.insert(arg);
      }
    });
    return found.size() == 1 ? *found.begin() : nullptr;
  }

  static bool computes(ir::Expr body) {
    while (body->op == ir::ExprOp::Cast) body = body->args[0];
    return body->op != ir::ExprOp::Read;
  }

  Function& function_of(ir::Expr body, const std::vector<ir::Expr>& axes) {
    const auto [found, added] = functions_.try_emplace(body);
    Function& function = found->second;
    if (!added) return function;
    function.value = static_cast<ir::ValueId>(form_.graph.values.size() + stages_.inner.size() +
                                              functions_.size() - 1);
    for (ir::Expr axis : axes) {
      if (depends(body, axis)) function.axes.push_back(axis);
    }
    return function;
  }

  // Whether each function is needed more often than it has values; then its stages are made.
  bool worth(const Positions& at) {
    new_.assign(functions_.size(), fuse::MapStep{});
    inner_.assign(functions_.size(), {});
    if (functions_.empty() || functions_.size() > kMostFunctions) return false;
    for (const auto& [body, function] : functions_) {
      const auto needs = static_cast<int64_t>(function.positions.size()) * extent_of(at.axis);
      if (needs <= at.size) return false;
      const size_t number =
          static_cast<size_t>(function.value) - form_.graph.values.size() - stages_.inner.size();
      for (ir::Expr axis : function.axes) inner_[number].dims.push_back(extent_of(axis));
      inner_[number].dtype = body->dtype;
      new_[number] = fuse::MapStep{function.axes, {{function.value, body}}};
    }
    return true;
  }

  StepForm form_;
  MapStages& stages_;
  std::map<ir::Expr, Function> functions_;
  std::vector<fuse::StepKind> new_;
  std::vector<InnerValue> inner_;
};

}  // namespace

std::unique_ptr<MapStages> map_stages(const StepForm& form, int most) {
  auto stages = std::make_unique<MapStages>();
  Specializer specializer(stages->pool, form.symbols);
  fuse::MapStep step = std::get<fuse::MapStep>(form.kind);
  for (ir::Expr& axis : step.axes) axis = specializer.copy(axis);
  for (auto& output : step.outputs) output.body = specializer.copy(output.body);
  stages->steps.push_back(std::move(step));
  for (int i = 0; i < most; ++i) {
    bool divided = false;
    for (size_t number = 0; number < stages->steps.size() && !divided; ++number) {
      divided = Divider(form, *stages).divide(number);
    }
    if (!divided) break;
  }
  return stages;
}

StagedMapPlan::StagedMapPlan(const StepForm& form, const MapStages& stages) : inner_(stages.inner) {
  for (const fuse::StepKind& step : stages.steps) {
    StepForm stage{form.graph, step, form.symbols, form.threads};
    stage.inner = stages.inner;
    parts_.push_back(std::make_unique<MapPlan>(stage));
    parts_.back()->set_best_tile(form.threads);
  }
}

double StagedMapPlan::time(int threads) const {
  double time = 0;
  for (const auto& part : parts_) time += part->time(threads).time;
  return time;
}

void StagedMapPlan::run(RunContext& context) const {
  std::vector<Tensor> inner;
  for (const InnerValue& value : inner_) inner.emplace_back(value.dtype, value.dims);
  RunContext own = context;
  own.inner = inner;
  for (const auto& part : parts_) part->run(own);
  context.inner_bytes = std::max(context.inner_bytes, inner_bytes());
}

int64_t StagedMapPlan::inner_bytes() const { return bytes_of(inner_); }

}  // namespace redfuser::cpu
