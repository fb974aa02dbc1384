// The launch of a ranking kernel.
#include "codegen/ranking/ranking_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/rank_key.h"
#include "codegen/ranking/ranking_select.h"
#include "codegen/rows/row_functor.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

using Part = RankingConfig::Part;

// Registers of a thread of a block that merges lists of keys of 4 bytes, up to sm_90 and later; of
// 8 bytes. With fewer, which ptxas would take for more blocks at once, it spills.
constexpr int kBlockRegisters = 80, kLaterRegisters = 104, kWideRegisters = 168;

SinglePassConfig loads_of(const RankingConfig& config, int width, ir::Expr segment) {
  SinglePassConfig result;
  result.lanes = config.part == Part::Warp ? 32 : config.threads;
  result.threads = config.threads;
  result.width = width;
  result.chunks = config.chunks;
  result.whole = config.part == Part::Warp;
  result.part =
      config.part == Part::Segments ? SinglePassConfig::Part::Segment : SinglePassConfig::Part::Row;
  result.segment = segment;
  return result;
}

class RankingText {
 public:
  RankingText(StepBuilder& builder, const RankingForm& form, const RankingConfig& config,
              ir::Expr segment, int64_t length)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        config_(config),
        loads_(loads_of(config, row_width(builder, form.whole), segment)),
        length_(length) {}

  KernelLaunch launch() {
    if (segments()) add_scratch();
    KernelText kernel = builder_.kernel();
    RowFunctor functor(kernel, form_.whole, form_.rest, loads_, false, form_.ranked);
    const std::string text = functor.text();
    const std::string values = kernel.member_values(), vector = functor.vector_condition();
    const int staging = functor.reads().staging_words();
    const std::string body =
        row_memory(loads_, folds() ? state_bytes(form_.rest) : 0, staging) +
        (warp() ? "__shared__ unsigned places[Config::kThreads / 32][Lists::kCount];\n" : "") +
        entries_text(kernel) +
        fmt::format(
            "const Form form{{{}}};\n"
            "rank_rows<Config>(form, memory, Lists({}), {}, {}, {}, {}, {}, {}, {});\n",
            values, warp() ? "places[threadIdx.x >> 5]" : "list_smem", kernel.size(rows()),
            kernel.size(form_.whole.length()), segments() ? kernel.size(loads_.segment) : "0",
            segments() ? "entries" : "nullptr",
            states_ < 0 ? "nullptr"
                        : fmt::format("reinterpret_cast<State*>({})", kernel.buffer(states_, true)),
            segments() ? kernel.counter() : "nullptr", vector);
    KernelLaunch launch = kernel.launch(
        choice_of(config_).family, form_.whole.comment, {"device/ranking/ranking_rows.cuh"},
        row_config(form_.whole, loads_, vector != "false") + lists_text() + text, body,
        config_.threads, min_blocks());
    launch.config = config_.parameters();
    launch.static_shared = static_bytes(staging);
    if (!warp()) launch.shared = static_cast<int>(list_bytes());
    launch.grid[0] = grid();
    return launch;
  }

 private:
  static int64_t count(const cascade::Accumulator& a) { return std::max<int64_t>(a.k, 1); }
  bool warp() const { return config_.part == Part::Warp; }
  bool segments() const { return config_.part == Part::Segments; }
  bool folds() const { return !form_.rest.accumulators.empty(); }
  ir::Expr rows() const { return product_of(pool_, extents_of(pool_, form_.whole.cascade.rows)); }

  RankingFacts facts_of(const cascade::Accumulator& a) const {
    RankingFacts facts;
    facts.width = loads_.width;
    facts.k = count(a);
    facts.key_bytes = size_of(a.lift->dtype) == 8 ? 8 : 4;
    return facts;
  }

  void add_scratch() {
    ir::Expr parts = pool_.mul(rows(), segments_of(pool_, form_.whole, loads_));
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const cascade::Accumulator& a = form_.accumulator(i);
      const int64_t entry = size_of(a.lift->dtype) == 8 ? 16 : 8;
      lists_.push_back(
          builder_.add_scratch(DType::UInt8, pool_.mul(parts, pool_.integer(entry * count(a)))));
    }
    if (!folds()) return;
    states_ = builder_.add_scratch(DType::UInt8,
                                   pool_.mul(parts, pool_.integer(state_bytes(form_.rest))));
  }

  std::string entries_text(KernelText& kernel) const {
    if (!segments()) return "";
    std::vector<std::string> names;
    for (const int64_t list : lists_) names.push_back(kernel.buffer(list, true));
    return fmt::format("unsigned char* const entries[] = {{{}}};\n", fmt::join(names, ", "));
  }

  std::string lists_text() const {
    std::vector<std::string> types;
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const cascade::Accumulator& a = form_.accumulator(i);
      types.push_back(warp() ? fmt::format("WarpList<{}, {}>", key_type(a), count(a))
                             : fmt::format("BlockRanking<{}, {}, {}, {}, {}>", key_type(a),
                                           count(a), config_.threads, loads_.width * loads_.chunks,
                                           ranking_capacity(facts_of(a), config_, length_)));
    }
    return fmt::format("using Lists = {}<{}>;\n", warp() ? "WarpLists" : "BlockLists",
                       fmt::join(types, ", "));
  }

  int64_t list_bytes() const {
    int64_t bytes = 0;
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      bytes += ranking_shared_bytes(facts_of(form_.accumulator(i)), config_, length_);
    }
    return bytes;
  }

  int static_bytes(int staging) const {
    int64_t places = 0;
    if (warp()) {
      for (size_t i = 0; i < form_.ranked.size(); ++i) {
        places += count(form_.accumulator(i)) * 4 * (config_.threads / 32);
      }
    }
    return single_pass_static_bytes(loads_, folds() ? state_bytes(form_.rest) : 0, staging) +
           static_cast<int>((places + 127) / 128 * 128);
  }

  int min_blocks() const {
    if (warp()) return 0;
    bool wide = false;
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      wide |= facts_of(form_.accumulator(i)).key_bytes == 8;
    }
    const int narrow = builder_.target.architecture > 90 ? kLaterRegisters : kBlockRegisters;
    const int registers = wide ? kWideRegisters : narrow;
    return std::max(1, select::kRegistersOfMultiprocessor / (registers * config_.threads));
  }

  ir::Expr grid() const {
    if (warp()) return ceil_div(pool_, rows(), config_.threads / 32);
    if (!segments()) return rows();
    return pool_.mul(rows(), segments_of(pool_, form_.whole, loads_));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const RankingForm& form_;
  const RankingConfig config_;
  const SinglePassConfig loads_;
  const int64_t length_;
  std::vector<int64_t> lists_;
  int64_t states_ = -1;
};

}  // namespace

KernelLaunch ranking_kernel(StepBuilder& builder, const RankingForm& form,
                            const RankingConfig& config, ir::Expr segment, int64_t length) {
  return RankingText(builder, form, config, segment, length).launch();
}

}  // namespace redfuser::codegen
