#include "codegen/select/attention_select.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/attention/hopper/cost.h"
#include "codegen/attention/hopper/hopper_kernel.h"
#include "codegen/attention/hopper/select.h"
#include "codegen/attention/mma/flash_mma.h"
#include "codegen/attention/mma/flash_mma_cost.h"
#include "codegen/attention/mma/split_kv.h"
#include "codegen/attention/mma/split_kv_cost.h"
#include "codegen/attention/pack_gqa.h"
#include "codegen/elementwise/aligned_accesses.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kHopper = "attention_hopper";
constexpr const char* kSplit = kSplitKvFamily;
constexpr const char* kPortable = "attention";

KernelConfig choice_of(const HopperConfig& config) { return {kHopper, config.parameters()}; }

HopperConfig hopper_of(const KernelConfig& choice) {
  return {choice.at("groups"), choice.at("keys"), choice.at("stages"), choice.at("queries"),
          choice.at("strips") != 0};
}

KernelConfig choice_of(const SplitKvConfig& config) { return {kSplit, config.parameters()}; }

KernelConfig choice_of(const FlashMmaConfig& config) { return {kPortable, config.parameters()}; }

FlashMmaConfig flash_mma_of(const KernelConfig& choice) {
  return {choice.at("warps"), choice.at("keys"), choice.at("stages")};
}

// What the families take that are not left out.
std::optional<HopperOperands> operands_of(StepBuilder& builder, const AttentionSpec& form) {
  if (builder.leaves_out(kHopper)) return std::nullopt;
  return hopper_operands(builder, form);
}

std::optional<FlashMmaConfig> portable_config(const StepBuilder& builder,
                                              const AttentionSpec& form) {
  if (builder.leaves_out(kPortable)) return std::nullopt;
  return flash_mma_config(builder.target, form);
}

// Those that decide what serves a form.
std::vector<ir::Expr> sizes_of(const AttentionSpec& form) {
  std::vector<ir::Expr> axes = form.others, sizes;
  axes.push_back(form.rows.cascade.stream);
  if (form.row) axes.push_back(form.row);
  for (ir::Expr axis : axes) {
    if (axis->op == ir::ExprOp::Axis) sizes.push_back(axis->extent());
  }
  return sizes;
}

bool is_constant(const AttentionSpec& form) {
  const std::vector<ir::Expr> sizes = sizes_of(form);
  return std::all_of(sizes.begin(), sizes.end(), [](ir::Expr size) { return size->is_constant(); });
}

class Choices {
 public:
  Choices(StepBuilder& builder, const AttentionSpec& form)
      : builder_(builder),
        form_(form),
        packed_(packed_gqa_rows(builder.pool(), form)),
        sizes_(builder.sizes),
        operands_(operands_of(builder, form)),
        portable_(portable_config(builder, form)) {
    if (operands_) scores_ = hopper_scores(builder.pool(), form);
  }

  std::vector<Candidate> run() {
    if (unknown_or_empty()) return {};
    const int64_t size = std::max(form_.depth->extent()->integer, form_.column->extent()->integer);
    const bool split = size <= kLargestSplit && split_default();
    if (split) add_split();
    if (operands_) add_hopper();
    add_portable();
    if (defaults_.empty()) return {};
    Candidate first = is_constant(form_) ? least() : of_size_classes(split);
    drop_hopeless(first.time);
    return best_choices({std::move(first)}, std::move(candidates_));
  }

 private:
  bool unknown_or_empty() {
    const std::vector<ir::Expr> sizes = sizes_of(form_);
    return std::any_of(sizes.begin(), sizes.end(),
                       [&](ir::Expr size) { return sizes_.of(size) <= 0; });
  }

  // Tiles that the families take for any size are the least where estimates hardly differ. Those of
  // several families, and of the Hopper family, are less certain than those of one where they are
  // longer than most that they are fitted to: microseconds.
  Candidate least() const {
    constexpr double kDoubtOfFamily = 1.05, kDoubt = 1.2, kFitted = 30;
    const Candidate* best = least_of(defaults_);
    const auto take = [&](const Candidate* other, double doubt) {
      if (other != nullptr && best->time >= doubt * other->time) best = other;
    };
    const std::string family = best->choice.family;
    if (family != kHopper) take(least_of(candidates_, family), kDoubtOfFamily);
    take(least_of(candidates_), best->time < kFitted ? kDoubtOfFamily : kDoubt);
    return *best;
  }

  // Null: there is none. `family`: those of it alone, where it is given.
  static const Candidate* least_of(const std::vector<Candidate>& candidates,
                                   const std::string& family = "") {
    const Candidate* best = nullptr;
    for (const Candidate& each : candidates) {
      if (!family.empty() && each.choice.family != family) continue;
      if (best == nullptr || each.time < best->time) best = &each;
    }
    return best;
  }

  // What add_size_classes() runs for these sizes.
  Candidate of_size_classes(bool split) {
    if (split && sizes_.of(has_few_rows(builder_, form_)) == 1) {
      return split_candidate(*split_default());
    }
    if (operands_ && !(portable_ && is_short(builder_, form_))) {
      return hopper_candidate(default_hopper());
    }
    return portable_ ? portable_candidate(*portable_) : least();
  }

  Candidate split_candidate(const SplitKvConfig& config) {
    return {choice_of(config), split_kv_time(builder_, packed_, config, sizes_)};
  }
  Candidate hopper_candidate(const HopperConfig& config) {
    return {choice_of(config),
            hopper_time(builder_, form_, *scores_, config, sizes_) + strip_time(config)};
  }

  // What strips wait for whose rows start anywhere: they are copied element by element.
  double strip_time(const HopperConfig& config) {
    constexpr double kTileTime = 6.2, kKeys = 128;
    constexpr int kVectorBytes = 16;
    const bool aligned =
        std::all_of(scores_->strips.begin(), scores_->strips.end(), [&](const ScoreStrip& strip) {
          const std::vector<ir::Expr> units = offset_units(builder_.pool(), strip.offset);
          return std::all_of(units.begin(), units.end(), [&](ir::Expr unit) {
            return sizes_.of(unit) % (kVectorBytes / strip.bytes()) == 0;
          });
        });
    if (aligned) return 0;
    const int64_t rows = sizes_.of(form_.row->extent()), keys = sizes_.of(form_.rows.length());
    const auto ceiling = [](int64_t size, int64_t unit) { return (size + unit - 1) / unit; };
    const int64_t others =
        sizes_.of(product_of(builder_.pool(), extents_of(builder_.pool(), form_.others)));
    const int64_t blocks = others * ceiling(rows, Warpgroup::kRows * config.groups);
    const int64_t turns = ceiling(blocks, builder_.target.multiprocessors);
    const double lines =
        static_cast<double>(std::min<int64_t>(rows, Warpgroup::kRows)) / Warpgroup::kRows;
    return kTileTime * lines * static_cast<double>(keys) / kKeys * static_cast<double>(turns);
  }

  Candidate portable_candidate(const FlashMmaConfig& config) {
    return {choice_of(config), flash_mma_time(builder_, form_, config, sizes_)};
  }

  std::optional<SplitKvConfig> split_default() {
    if (builder_.leaves_out(kSplit)) return std::nullopt;
    return split_kv_config(builder_.target, packed_, tma_tiles(builder_, packed_).has_value());
  }
  HopperConfig default_hopper() const { return hopper_config(builder_, form_, *scores_); }

  void add_split() {
    struct Size {
      int warps, keys, stages, blocks;
    };
    // Those that differ most come first: estimates are often equal.
    constexpr Size kSizes[] = {{4, 32, 2, 2}, {8, 16, 3, 1}, {4, 16, 6, 1}, {2, 32, 3, 2},
                               {4, 16, 3, 2}, {4, 32, 2, 1}, {2, 32, 4, 1}, {8, 32, 2, 1},
                               {4, 16, 2, 2}, {4, 16, 4, 1}, {4, 32, 3, 1}};
    const bool boxed = split_default()->boxed;
    defaults_.push_back(split_candidate(*split_default()));
    // Threads that copy hide no more latency by more stages.
    constexpr int kMostCopied = 4;
    for (const Size& size : kSizes) {
      if (!boxed && size.stages > kMostCopied) continue;
      const SplitKvConfig config{size.warps, size.keys, size.stages, boxed, size.blocks};
      const int room =
          (builder_.target.shared_bytes + kBlockReserved) / size.blocks - kBlockReserved;
      if (split_shared_bytes(builder_.target, packed_, config) + SplitKvLayout::kStatic > room ||
          !split_fits_registers(builder_.target, packed_, config.keys))
        continue;
      candidates_.push_back(split_candidate(config));
    }
  }

  void add_portable() {
    if (portable_) defaults_.push_back(portable_candidate(*portable_));
    for (const FlashMmaConfig& config : flash_mma_configs(builder_.target, form_)) {
      candidates_.push_back(portable_candidate(config));
    }
  }

  void add_hopper() {
    defaults_.push_back(hopper_candidate(default_hopper()));
    constexpr size_t kMaxOfGroups = 3;
    for (int groups = 1; groups <= 3; ++groups) {
      std::vector<Candidate> some;
      for (int keys = 48; keys <= 192; keys += 16) {
        for (const HopperConfig& config :
             hopper_configs(builder_.target, form_, *scores_, groups, keys)) {
          some.push_back(hopper_candidate(config));
        }
      }
      some = select::by_time(std::move(some));
      some.resize(std::min(some.size(), kMaxOfGroups));
      candidates_.insert(candidates_.end(), some.begin(), some.end());
    }
  }

  // What is far slower by estimate is not worth its compilation.
  void drop_hopeless(double chosen) {
    constexpr double kMax = 2;
    std::erase_if(candidates_, [&](const Candidate& c) { return c.time > kMax * chosen; });
  }

  StepBuilder& builder_;
  const AttentionSpec& form_;
  const AttentionSpec packed_;
  const KnownSizes sizes_;
  const std::optional<HopperOperands> operands_;
  const std::optional<FlashMmaConfig> portable_;
  std::optional<HopperScores> scores_;
  std::vector<Candidate> candidates_, defaults_;
};

// `launch` where the condition (constant or of sizes) holds.
void add_where(StepBuilder& builder, ir::Expr condition, KernelLaunch launch) {
  ir::ExprPool& pool = builder.pool();
  if (condition->is_constant()) {
    if (condition->integer == 0) return;
  } else {
    launch.grid[0] = pool.select(condition, launch.grid[0], pool.integer(0));
  }
  builder.result.calls.push_back(std::move(launch));
}

KernelLaunch whole_kernel(StepBuilder& builder, const AttentionSpec& form,
                          const std::optional<HopperOperands>& operands) {
  const auto portable = portable_config(builder, form);
  if (portable && (!operands || is_short(builder, form))) {
    return flash_mma_kernel(builder, form, *portable);
  }
  const HopperScores scores = hopper_scores(builder.pool(), form);
  return hopper_attention_kernel(builder, form, scores, *operands,
                                 hopper_config(builder, form, scores));
}

// That of size classes.
std::optional<SplitShare> split_class(StepBuilder& builder, const AttentionSpec& form) {
  ir::Expr few = has_few_rows(builder, form);
  if (few->is_constant(0) || builder.leaves_out(kSplit)) return std::nullopt;
  const AttentionSpec packed = packed_gqa_rows(builder.pool(), form);
  const auto config =
      split_kv_config(builder.target, packed, tma_tiles(builder, packed).has_value());
  return config ? std::optional(SplitShare{few, *config}) : std::nullopt;
}

// Few rows are split along the keys; of many, the Hopper family takes what it can.
bool add_size_classes(StepBuilder& builder, const AttentionSpec& form) {
  ir::ExprPool& pool = builder.pool();
  const auto operands = operands_of(builder, form);
  const bool whole = operands || portable_config(builder, form);
  const auto split = split_class(builder, form);
  ir::Expr few = split ? split->when : pool.boolean(false);
  if (!whole && !few->is_constant(1)) return false;
  if (split) {
    add_where(builder, few, split_kv_kernel(builder, packed_gqa_rows(pool, form), split->config));
  }
  if (few->is_constant(1)) return true;
  ir::Expr many = few->is_constant() ? pool.boolean(true) : pool.make(ir::ExprOp::Not, {few});
  add_where(builder, many, whole_kernel(builder, form, operands));
  return true;
}

}  // namespace

bool add_attention(StepBuilder& builder, const AttentionSpec& form) {
  if (is_constant(form)) {
    const std::vector<Candidate> candidates = Choices(builder, form).run();
    if (!candidates.empty()) {
      add_attention(builder, form, candidates.front().choice);
      return true;
    }
  }
  return add_size_classes(builder, form);
}

bool is_short(const StepBuilder& builder, const AttentionSpec& form) {
  constexpr int64_t kRows = 64, kKeys = 128;
  ir::Expr length = form.rows.length(), rows = form.row ? form.row->extent() : nullptr;
  return length->is_constant() && length->integer <= kKeys &&
         (!rows || (rows->is_constant() && rows->integer < kRows)) &&
         portable_config(builder, form);
}

ir::Expr has_few_rows(StepBuilder& builder, const AttentionSpec& form) {
  constexpr int64_t kRows = 64, kShare = 8, kKeysOfRow = 16;
  if (is_short(builder, form)) return builder.pool().boolean(false);
  ir::ExprPool& pool = builder.pool();
  ir::Expr rows = form.row ? form.row->extent() : pool.integer(1);
  ir::Expr blocks =
      pool.mul(ceil_div(pool, rows, kRows), product_of(pool, extents_of(pool, form.others)));
  ir::Expr idle = pool.make(ir::ExprOp::Less, {pool.mul(blocks, pool.integer(kShare)),
                                               pool.integer(builder.target.multiprocessors)});
  ir::Expr wide = pool.make(ir::ExprOp::LessEqual,
                            {pool.mul(rows, pool.integer(kKeysOfRow)), form.rows.length()});
  return pool.make(ir::ExprOp::Or, {pool.make(ir::ExprOp::Less, {rows, pool.integer(kRows)}),
                                    pool.make(ir::ExprOp::And, {idle, wide})});
}

std::optional<SplitShare> split_share(StepBuilder& builder, const AttentionSpec& form) {
  if (!is_constant(form)) return split_class(builder, form);
  const std::vector<Candidate> candidates = Choices(builder, form).run();
  if (candidates.empty()) return split_class(builder, form);
  const KernelConfig& choice = candidates.front().choice;
  if (choice.family != kSplit) return std::nullopt;
  return SplitShare{builder.pool().boolean(true), SplitKvConfig::of(choice)};
}

std::vector<Candidate> attention_configs(StepBuilder& builder, const AttentionSpec& form) {
  return Choices(builder, form).run();
}

void add_attention(StepBuilder& builder, const AttentionSpec& form, const KernelConfig& choice) {
  std::vector<GpuCall>& calls = builder.result.calls;
  if (choice.family == kPortable) {
    calls.push_back(flash_mma_kernel(builder, form, flash_mma_of(choice)));
  } else if (choice.family == kSplit) {
    const AttentionSpec packed = packed_gqa_rows(builder.pool(), form);
    calls.push_back(split_kv_kernel(builder, packed, SplitKvConfig::of(choice)));
  } else {
    RF_CHECK(choice.family == kHopper, "{} computes no attention", to_string(choice));
    const auto operands = hopper_operands(builder, form);
    RF_CHECK(operands, "{} does not take the operands", to_string(choice));
    const HopperScores scores = hopper_scores(builder.pool(), form);
    calls.push_back(hopper_attention_kernel(builder, form, scores, *operands, hopper_of(choice)));
  }
}

}  // namespace redfuser::codegen
