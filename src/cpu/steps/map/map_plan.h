// A pointwise step, or a section of one, as a tile program over blocks of rows and columns.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "cpu/estimate/program_time.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/growing_extents.h"
#include "cpu/steps/map/map_sections.h"
#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

class MapPlan final : public TilePlan {
 public:
  // Rows and columns of a tile.
  using Tile = std::pair<int64_t, int64_t>;

  // `section`: null for the whole step. With growing sizes, a step that appends writes only the new
  // positions.
  MapPlan(const StepForm& form, const MapSection* section = nullptr, SplitForm split = {});

  // Other forms of the whole step that may take less time.
  const std::vector<SplitForm>& others() const { return others_; }

  // The tiles that are worth comparing.
  std::vector<Tile> tiles() const;
  void set_tile(Tile tile);
  // The fastest by estimate.
  void set_best_tile(int threads);
  StepTime time(int threads) const;

  void run(RunContext& context) const override;
  bool is_exact() const override { return exact_; }
  // The same without allocating the outputs.
  void run_allocated(RunContext& context) const;

 private:
  void build(const StepForm& form, const MapSection* section, SplitForm split);
  void set_outer(TileContext& machine, int64_t number) const;
  int64_t tiles_of_task() const;

  std::vector<ir::ValueId> outputs_;
  std::vector<Dims> memory_;  // of the outputs
  std::vector<SplitForm> others_;
  struct Outer {
    int slot;
    int64_t extent;
  };
  std::vector<Outer> outer_;
  int64_t outers_ = 1;  // values of the outer axes together
  int64_t rows_ = 1, columns_ = 1, row_tile_ = 1, column_tile_ = 1;
  int scope_ = kNoScope;
  std::optional<GrowingExtents> growing_;
  bool exact_ = true;
};

// A pointwise step section by section.
class SectionedMapPlan final : public StepPlan {
 public:
  // Each section with its fastest tile.
  SectionedMapPlan(const StepForm& form, const std::vector<MapSection>& sections);

  double time(int threads) const;
  void run(RunContext& context) const override;

 private:
  std::vector<ir::ValueId> outputs_;
  std::vector<std::unique_ptr<MapPlan>> parts_;
};

}  // namespace redfuser::cpu
