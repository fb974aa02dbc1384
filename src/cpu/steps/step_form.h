// A step at fixed sizes, as the families that may compute it see it.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cpu/growing/growing_sizes.h"
#include "cpu/step.h"
#include "cpu/steps/integer_product.h"
#include "cpu/tile/tile_program.h"
#include "select/offer.h"

namespace redfuser::cpu {

// A plan that runs a tile program.
class TilePlan : public StepPlan {
 public:
  ir::ExprPool pool;
  TileProgram program;
  double saved = HUGE_VAL;  // microseconds that several threads save by its estimate
};

// A value that a step writes and reads again, or the elements of another one under other sizes.
struct InnerValue {
  Dims dims;
  DType dtype = DType::Undefined;
  ir::ValueId source = ir::kAbsent;  // which these are of
};

// Of those that have memory of their own.
int64_t bytes_of(std::span<const InnerValue> values);

struct StepForm {
  const ir::Graph& graph;
  const fuse::StepKind& kind;
  std::span<const int64_t> symbols;
  int threads = 1;
  // Every family is asked for its time, also one that cannot be faster than those before it.
  bool thorough = false;
  // Where the plan is for growing sizes; then `symbols` are those of the greatest length.
  const GrowingSizes* growing = nullptr;
  // Of the families before: their least time, and a time that the same work cannot fall below.
  double least = HUGE_VAL, floor = 0;
  // Programs without tiles that an estimate needed, by family: `emit` takes them.
  std::map<std::string_view, std::shared_ptr<TilePlan>> made;
  // Of the step's constants, for the plans of all sizes.
  std::shared_ptr<PanelStore> panels = std::make_shared<PanelStore>();
  // Bytes that values within the step may take.
  int64_t room = INT64_MAX;
  // Numbered on from the values of the graph.
  std::span<const InnerValue> inner = {};

  template <typename Plan, typename Make>
  std::shared_ptr<Plan> program_of(std::string_view family, const Make& make) {
    std::shared_ptr<TilePlan>& plan = made[family];
    if (plan == nullptr) plan = make();
    return std::static_pointer_cast<Plan>(plan);
  }
  template <typename Plan, typename Make>
  std::shared_ptr<Plan> take(std::string_view family, const Make& make) {
    auto plan = program_of<Plan>(family, make);
    made.erase(family);
    return plan;
  }
};

// The sizes of a value's memory.
Dims memory_of(const StepForm& form, ir::ValueId value);
DType dtype_of(const StepForm& form, ir::ValueId value);

// A way to compute steps of a kind.
struct Family {
  std::string_view name;
  select::FamilyAnswer (*offer)(StepForm& form);
  // By one of the configurations that it offers for the form.
  std::shared_ptr<const StepPlan> (*emit)(StepForm& form, const select::KernelConfig& choice);
};

// Tiles of so many rows, in equal blocks: of 1, 2, 4, ... rows of `rows`, at most `most`.
std::vector<int64_t> row_tiles(int64_t rows, int64_t most);

}  // namespace redfuser::cpu
