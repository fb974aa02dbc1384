#include "codegen/columns/column_select.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "codegen/core/size_classes.h"

namespace redfuser::codegen {
namespace {

using Part = ColumnConfig::Part;

KernelConfig choice_of(const ColumnConfig& config) { return {kColumnFamily, config.parameters()}; }

ColumnConfig config_of(const KernelConfig& choice) {
  RF_CHECK(choice.family == kColumnFamily, "{} folds no columns", to_string(choice));
  return {
      Part::Row,           choice.at("across"),     choice.at("along"),    choice.at("width"),
      choice.at("chunks"), choice.at("whole") != 0, choice.at("segments"), choice.at("cluster")};
}

class Choice {
 public:
  Choice(StepBuilder& builder, const ColumnForm& form)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        facts_(column_facts(builder, form)),
        outers_(product_of(pool_, extents_of(pool_, form.outer))) {}

  void add() {
    if (auto best = least(KnownSizes())) return add_config(*best, pool_.boolean(true));
    // Sizes known at run time only: rows that a tile holds, rows cut for want of others, the rest.
    const ColumnConfig whole = resident(), walk = streaming(), cut = segmented();
    ir::Expr length = form_.rows.length();
    ir::Expr held = less_equal(pool_, length, pool_.integer(whole.tile()));
    add_config(whole, held);
    ir::Expr few = few_and_long(cut);
    add_config(cut, both(pool_, negated(pool_, held), few));
    add_config(walk, both(pool_, negated(pool_, held), negated(pool_, few)));
  }

  void add(const KernelConfig& choice) {
    const ColumnConfig config = config_of(choice);
    ir::Expr length = form_.rows.length(), fits = pool_.boolean(true);
    if (config.whole) fits = less_equal(pool_, length, pool_.integer(config.capacity()));
    if (config.segments > 1) {
      fits = less_equal(pool_, column_groups(pool_, form_, config), pool_.integer(kLaunchCounters));
      fits = both(pool_, fits, less_equal(pool_, pool_.integer(1), length));
    }
    add_config(config, fits);
    if (fits->is_constant(1)) return;
    allowed_ = negated(pool_, fits);
    add();
  }

  std::vector<Candidate> choices(const KnownSizes& sizes) {
    std::optional<ColumnConfig> chosen = least(KnownSizes());
    if (!chosen) chosen = of_sizes(sizes);
    std::vector<Candidate> candidates;
    for (const ColumnConfig& c : tiles(sizes)) candidates.push_back({choice_of(c), time(c, sizes)});
    if (candidates.empty()) return {};
    return best_choices({{choice_of(*chosen), time(*chosen, sizes)}}, std::move(candidates));
  }

 private:
  int64_t outers(const KnownSizes& sizes) const { return sizes.of(outers_); }
  int64_t columns(const KnownSizes& sizes) const { return sizes.of(form_.columns()); }
  int64_t length(const KnownSizes& sizes) const { return sizes.of(form_.rows.length()); }

  // Empty where a size is not known, or nothing is to be computed.
  std::vector<ColumnConfig> tiles(const KnownSizes& sizes) const {
    if (outers(sizes) <= 0 || columns(sizes) <= 0 || length(sizes) < 0) return {};
    return column_tiles(builder_.target, facts_, outers(sizes), columns(sizes), length(sizes));
  }
  double time(const ColumnConfig& c, const KnownSizes& sizes) const {
    return column_time(builder_.target, facts_, c, outers(sizes), columns(sizes), length(sizes));
  }

  std::optional<ColumnConfig> least(const KnownSizes& sizes) const {
    std::optional<ColumnConfig> best;
    double least = std::numeric_limits<double>::infinity();
    for (const ColumnConfig& c : tiles(sizes)) {
      const double own = time(c, sizes);
      if (own >= least) continue;
      least = own;
      best = c;
    }
    return best;
  }

  int width() const { return std::max(1, 16 / std::max(facts_.smallest, 2) / 2); }
  int across() const { return std::max(8, form_.beside / width()); }
  ColumnConfig resident() const { return {Part::Row, across(), 32, width(), 8, true}; }
  ColumnConfig streaming() const { return {Part::Row, across(), 32, width(), 4, false}; }
  ColumnConfig segmented() const { return {Part::Row, across(), 32, width(), 4, false, 64}; }

  // What add() runs for these sizes.
  ColumnConfig of_sizes(const KnownSizes& sizes) {
    if (length(sizes) <= resident().tile()) return resident();
    return sizes.of(few_and_long(segmented())) == 1 ? segmented() : streaming();
  }

  // Fewer tiles of rows than multiprocessors, and several tiles of elements for a segment.
  ir::Expr few_and_long(const ColumnConfig& config) {
    constexpr int kTiles = 4;
    ir::Expr most = pool_.integer(std::min(builder_.target.multiprocessors, kLaunchCounters));
    return both(
        pool_, less_equal(pool_, column_groups(pool_, form_, config), most),
        less_equal(pool_, pool_.integer(int64_t{kTiles} * config.tile()), form_.rows.length()));
  }

  void add_config(ColumnConfig config, ir::Expr condition) {
    condition = both(pool_, allowed_, condition);
    if (condition->is_constant(0)) return;
    if (config.segments == 1) return add_call(config, condition, -1);
    config.part = Part::Segment;
    ir::Expr states =
        pool_.mul(pool_.mul(column_groups(pool_, form_, config), pool_.integer(config.rows())),
                  column_segments(pool_, form_.rows, config));
    ir::Expr bytes = pool_.mul(states, pool_.integer(facts_.state_bytes));
    if (!condition->is_constant()) bytes = pool_.select(condition, bytes, pool_.integer(0));
    const int64_t scratch = builder_.add_scratch(DType::UInt8, bytes);
    if (!facts_.maps_back) return add_call(config, condition, scratch);
    for (const Part part : {Part::Partials, Part::Finish}) {
      config.part = part;
      add_call(config, condition, scratch);
    }
  }

  void add_call(const ColumnConfig& config, ir::Expr condition, int64_t states) {
    KernelLaunch launch = column_kernel(builder_, form_, config, states);
    if (!condition->is_constant()) {
      launch.grid[0] = pool_.select(condition, launch.grid[0], pool_.integer(0));
    }
    builder_.result.calls.push_back(std::move(launch));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ColumnForm& form_;
  const ColumnFacts facts_;
  const ir::Expr outers_;
  ir::Expr allowed_ = pool_.boolean(true);  // of sizes: nothing is added where it is false
};

}  // namespace

std::vector<Candidate> column_configs(StepBuilder& builder, const ColumnForm& form,
                                      const KnownSizes& sizes) {
  return Choice(builder, form).choices(sizes);
}

void add_columns(StepBuilder& builder, const ColumnForm& form, const KernelConfig& choice) {
  Choice(builder, form).add(choice);
}

void add_columns(StepBuilder& builder, const ColumnForm& form) { Choice(builder, form).add(); }

}  // namespace redfuser::codegen
