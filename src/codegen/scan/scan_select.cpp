#include "codegen/scan/scan_select.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/clear_kernel.h"
#include "codegen/scan/scan_kernel.h"

namespace redfuser::codegen {
namespace {

class Choice {
 public:
  Choice(StepBuilder& builder, const ScanForm& form)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        facts_(scan_facts(builder, form)),
        lines_(product_of(pool_, extents_of(pool_, form.lines))),
        beside_(form.across ? form.across->extent() : pool_.integer(1)) {}

  void add() {
    const auto sizes = known(KnownSizes());
    if (sizes) {
      const auto all = choices(*sizes);
      RF_CHECK(!all.empty(), "no configuration scans {} elements", sizes->length);
      return add_config(config_of(all.front().choice), nullptr);
    }
    // Sizes known at run time only: short lines, few long ones, the rest.
    ir::Expr is_short = less_equal(pool_, form_.length(), pool_.integer(kShort));
    ir::Expr strips = ceil_div(pool_, pool_.mul(lines_, beside_), kNominalColumns);
    ir::Expr few = less_equal(pool_, form_.across ? strips : lines_,
                              pool_.integer(2 * builder_.target.multiprocessors));
    ir::Expr is_long = less_equal(pool_, pool_.integer(kLong + 1), form_.length());
    ir::Expr cut = both(pool_, few, is_long);
    const int width = form_.across ? 1 : std::min(8, 16 / facts_.smallest);
    const int chunks = width * facts_.state_bytes > 32 ? 2 : 4;
    if (form_.across) {
      add_config({32, 256, 8, width, false}, negated(pool_, cut));
      return add_config({32, 256, 8, width, true}, cut);
    }
    add_config({32, 128, chunks, width, false}, is_short);
    add_config({256, 256, chunks, width, false},
               both(pool_, negated(pool_, is_short), negated(pool_, cut)));
    add_config({256, 256, chunks, width, true}, both(pool_, negated(pool_, is_short), cut));
  }

  void add(const KernelConfig& choice) { add_config(config_of(choice), nullptr); }

  std::vector<Candidate> choices(const KnownSizes& given) {
    const auto sizes = known(given);
    return sizes ? choices(*sizes) : std::vector<Candidate>();
  }

 private:
  static constexpr int64_t kShort = 512, kLong = 4096, kNominalColumns = 32;

  static ScanConfig config_of(const KernelConfig& choice) {
    RF_CHECK(choice.family == kScanFamily, "{} scans no lines", to_string(choice));
    return {choice.at("team"), choice.at("threads"), choice.at("chunks"), choice.at("width"),
            choice.at("shared") != 0};
  }

  std::optional<ScanSizes> known(const KnownSizes& sizes) const {
    const ScanSizes found{sizes.of(lines_), sizes.of(beside_), sizes.of(form_.length())};
    if (found.lines <= 0 || found.beside <= 0 || found.length <= 0) return std::nullopt;
    return found;
  }

  std::vector<Candidate> choices(const ScanSizes& sizes) {
    std::vector<Candidate> all;
    for (const ScanConfig& c : scan_configs(facts_, sizes)) {
      all.push_back({{kScanFamily, c.parameters()}, scan_time(builder_.target, facts_, c, sizes)});
    }
    return best_choices({}, std::move(all));
  }

  ir::Expr where(ir::Expr condition, ir::Expr size) {
    return !condition || condition->is_constant() ? size
                                                  : pool_.select(condition, size, pool_.integer(0));
  }

  // `condition`: of sizes; null for all.
  void add_config(const ScanConfig& config, ir::Expr condition) {
    if (condition && condition->is_constant(0)) return;
    int64_t words = -1;
    if (config.shared) {
      ir::Expr count = scan_words(pool_, form_, facts_, config);
      words = builder_.add_scratch(DType::UInt64, where(condition, count));
      push(clear_kernel(builder_, "scan_clear", words, count), condition);
    }
    KernelLaunch launch = scan_kernel(builder_, form_, facts_, config, words);
    const auto sizes = known(builder_.sizes);
    if (sizes) launch.time = scan_time(builder_.target, facts_, config, *sizes);
    push(std::move(launch), condition);
  }

  void push(KernelLaunch launch, ir::Expr condition) {
    launch.grid[0] = where(condition, launch.grid[0]);
    builder_.result.calls.push_back(std::move(launch));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ScanForm& form_;
  const ScanFacts facts_;
  const ir::Expr lines_, beside_;
};

}  // namespace

std::vector<Candidate> scan_choices(StepBuilder& builder, const ScanForm& form,
                                    const KnownSizes& sizes) {
  return Choice(builder, form).choices(sizes);
}

void add_scan(StepBuilder& builder, const ScanForm& form) { Choice(builder, form).add(); }

void add_scan(StepBuilder& builder, const ScanForm& form, const KernelConfig& choice) {
  Choice(builder, form).add(choice);
}

}  // namespace redfuser::codegen
