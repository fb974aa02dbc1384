// Which ranking kernels compute a form: by the number and length of its rows, which may be known at
// run time only.
#include "codegen/ranking/ranking_select.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/ranking/ranking_kernel.h"

namespace redfuser::codegen {
namespace {

using Part = RankingConfig::Part;

constexpr const char* kWarp = "ranking_warp";
constexpr const char* kBlock = "ranking_block";
constexpr const char* kSegments = "ranking_segments";

// What open sizes are taken to be: of rows that a warp can hold, of longer ones; many and few.
constexpr int64_t kShortRow = 1024, kLongRow = 65536, kManyRows = 4096;
// Rows shorter than this are not cut where their number is open.
constexpr int64_t kWorthSegments = 8192;

class Selection {
 public:
  Selection(StepBuilder& builder, const FlatStreaming& form)
      : builder_(builder),
        pool_(builder.pool()),
        form_(ranking_form(builder.pool(), form)),
        facts_(ranking_facts(builder, form_)),
        rows_(product_of(pool_, extents_of(pool_, form.cascade.rows))),
        length_(form.length()) {}

  // add() finds a configuration for every class of sizes.
  bool serves() const {
    if (length_->is_constant()) return serves(length_->integer);
    return serves(kShortRow) && serves(-1);
  }

  // From short rows to long ones; of these, few are cut into segments.
  void add() {
    if (length_->is_constant()) return add_class(length_->integer, nullptr);
    ir::Expr fits = at_most(length_, kShortRow);
    add_class(kShortRow, fits);
    add_class(-1, pool_.make(ir::ExprOp::Not, {fits}));
  }

  void add(const KernelConfig& choice) {
    const RankingConfig config = config_of(choice);
    ir::Expr served = pool_.boolean(true);
    if (config.part == Part::Warp) served = at_most(length_, capacity(config));
    if (config.part == Part::Segments) served = at_most(rows_, kLaunchCounters);
    if (config.part == Part::Block && !length_->is_constant()) {
      ir::Expr fits = at_most(length_, kShortRow);
      add_call(config, fits, kShortRow);
      add_call(config, pool_.make(ir::ExprOp::Not, {fits}), -1);
    } else {
      add_call(config, served, known_length());
    }
    if (served->is_constant(1)) return;
    allowed_ = pool_.make(ir::ExprOp::Not, {served});
    add();
  }

  std::vector<Candidate> choices(const KnownSizes& sizes) {
    const int64_t rows = sizes.of(rows_), length = sizes.of(length_);
    if (rows <= 0 || length <= 0) return {};
    std::vector<Candidate> candidates;
    for (const auto& [config, time] : serving(rows, length, known_length())) {
      candidates.push_back({choice_of(config), time});
    }
    if (candidates.empty()) return {};
    Candidate first{choice_of(chosen(rows, length)), candidates.front().time};
    for (const Candidate& candidate : candidates) {
      // A default that is not among them is taken to be the best.
      if (candidate.choice == first.choice) first.time = candidate.time;
    }
    return best_choices({std::move(first)}, std::move(candidates));
  }

 private:
  int64_t known_length() const { return length_->is_constant() ? length_->integer : -1; }
  int64_t capacity(const RankingConfig& config) const {
    return int64_t{32} * facts_.width * config.chunks;
  }
  static RankingConfig config_of(const KernelConfig& choice) {
    const Part part = choice.family == kWarp    ? Part::Warp
                      : choice.family == kBlock ? Part::Block
                                                : Part::Segments;
    RF_CHECK(part != Part::Segments || choice.family == kSegments, "{} ranks no row",
             to_string(choice));
    return {part, choice.at("threads"), choice.at("chunks"), choice.at("most")};
  }

  ir::Expr at_most(ir::Expr size, int64_t most) {
    return less_equal(pool_, size, pool_.integer(most));
  }

  // Best first, those that serve rows of up to `longest` elements.
  std::vector<std::pair<RankingConfig, double>> serving(int64_t rows, int64_t length,
                                                        int64_t longest) const {
    auto candidates = ranking_candidates(builder_.target, facts_, rows, length);
    std::erase_if(candidates, [&](const auto& candidate) {
      const RankingConfig& c = candidate.first;
      if (c.part == Part::Warp) return longest > capacity(c);
      return ranking_shared_bytes(facts_, c, longest) > builder_.target.shared_bytes;
    });
    return candidates;
  }

  std::optional<RankingConfig> best(int64_t rows, int64_t length, int64_t longest, bool cut) const {
    if (cut && length < kWorthSegments) return std::nullopt;
    for (const auto& [config, time] : serving(rows, length, longest)) {
      if ((config.part == Part::Segments) == cut) return config;
    }
    return std::nullopt;
  }

  bool serves(int64_t longest) const {
    const int64_t nominal = longest < 0 ? kLongRow : longest;
    if (!rows_->is_constant()) return best(kManyRows, nominal, longest, false).has_value();
    return !serving(std::max<int64_t>(rows_->integer, 1), nominal, longest).empty();
  }

  // Fewer rows than multiprocessors leave some without work.
  int64_t few() const { return builder_.target.multiprocessors; }

  // What add() runs for these sizes.
  RankingConfig chosen(int64_t rows, int64_t length) const {
    const bool open = !length_->is_constant();
    const int64_t nominal = !open ? length : length <= kShortRow ? kShortRow : kLongRow;
    const int64_t longest = !open || length <= kShortRow ? nominal : -1;
    if (rows_->is_constant()) return serving(rows, nominal, longest)[0].first;
    const auto cut = best(1, nominal, longest, true);
    if (cut && rows < few()) return *cut;
    return *best(kManyRows, nominal, longest, false);
  }

  // `longest`: of the rows; -1 for any.
  void add_class(int64_t longest, ir::Expr condition) {
    const int64_t nominal = longest < 0 ? kLongRow : longest;
    if (rows_->is_constant()) {
      return add_call(chosen(std::max<int64_t>(rows_->integer, 1), nominal), condition, longest);
    }
    ir::Expr is_few = at_most(rows_, few() - 1);
    const auto cut = best(1, nominal, longest, true);
    if (cut) add_call(*cut, both(pool_, condition, is_few), longest);
    ir::Expr many = cut ? pool_.make(ir::ExprOp::Not, {is_few}) : nullptr;
    add_call(*best(kManyRows, nominal, longest, false), both(pool_, condition, many), longest);
  }

  void add_call(const RankingConfig& config, ir::Expr condition, int64_t longest) {
    condition = both(pool_, allowed_, condition);
    if (condition && condition->is_constant(0)) return;
    ir::Expr segment = nullptr;
    if (config.part == Part::Segments) {
      const int64_t tile = int64_t{config.threads} * facts_.width * config.chunks;
      segment = pool_.mul(pool_.integer(tile), ceil_div(pool_, length_, tile * config.most));
    }
    const size_t buffers = builder_.result.scratch.size();
    KernelLaunch launch = ranking_kernel(builder_, form_, config, segment, longest);
    if (condition && !condition->is_constant()) {
      launch.grid[0] = pool_.select(condition, launch.grid[0], pool_.integer(0));
      for (size_t i = buffers; i < builder_.result.scratch.size(); ++i) {
        ir::Expr& bytes = builder_.result.scratch[i].bytes;
        bytes = pool_.select(condition, bytes, pool_.integer(0));
      }
    }
    builder_.result.calls.push_back(std::move(launch));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const RankingForm form_;
  const RankingFacts facts_;
  const ir::Expr rows_, length_;
  ir::Expr allowed_ = nullptr;  // of sizes: nothing is added where it is false
};

}  // namespace

KernelConfig choice_of(const RankingConfig& config) {
  const char* family = config.part == Part::Warp    ? kWarp
                       : config.part == Part::Block ? kBlock
                                                    : kSegments;
  return {family, config.parameters()};
}

bool ranking_serves(StepBuilder& builder, const FlatStreaming& form) {
  return Selection(builder, form).serves();
}

std::vector<Candidate> ranking_configs(StepBuilder& builder, const FlatStreaming& form,
                                       const KnownSizes& sizes) {
  return Selection(builder, form).choices(sizes);
}

void add_ranking(StepBuilder& builder, const FlatStreaming& form) {
  Selection(builder, form).add();
}

void add_ranking(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice) {
  Selection(builder, form).add(choice);
}

}  // namespace redfuser::codegen
