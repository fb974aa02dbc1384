// The text of a ranking kernel: the row's functors around the main loops of src/device.
#include "codegen/ranking/ranking_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/ranking/ranking_select.h"
#include "codegen/rows/single_pass_body.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

using Part = RankingConfig::Part;

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
        length_(length),
        folds_(!form.rest.accumulators.empty()) {
    if (config.part == Part::Segments) add_scratch();
    kernel_.emplace(builder.kernel());
    emitter_.emplace(*kernel_);
    emitter_->set_ranked_reads(
        [this](ir::Expr read, const std::string& rank) { return ranked_result(read, rank); });
    reads_.emplace(*kernel_, form.whole, loads_);
    state_.emplace(*emitter_, form.rest, loads_);
    body_.emplace(*kernel_, *emitter_, form.rest, loads_, *reads_, *state_);
  }

  KernelLaunch launch() {
    extent_ = kernel_->size(form_.whole.length());
    place();
    reads_->declare(*emitter_);
    if (folds_) {
      state_->define();
      emitter_->line("State s = identity();");
      if (config_.part != Part::Warp) state_->declare_old_references();
    }
    if (counts(form_.rest)) emitter_->line("int added = 0;");
    reads_->declare_tile(*emitter_);
    config_.part == Part::Warp ? rank_in_warp() : rank_in_block();
    if (folds_) state_->merge_block();
    if (config_.part == Part::Segments) merge_segments();
    for (size_t i = 0; i < form_.ranked.size(); ++i) define_value(i);
    finish();
    write_row_outputs(*emitter_, *kernel_, form_.whole, loads_.lanes);
    body_->write_outputs();
    return launch_of(emitter_->close());
  }

 private:
  static int64_t count(const cascade::Accumulator& a) { return std::max<int64_t>(a.k, 1); }
  int elements() const { return loads_.width * loads_.chunks; }

  RankingFacts facts_of(const cascade::Accumulator& a) const {
    RankingFacts facts;
    facts.width = loads_.width;
    facts.k = count(a);
    facts.key_bytes = size_of(a.lift->dtype) == 8 ? 8 : 4;
    return facts;
  }

  void add_scratch() {
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.whole.cascade.rows));
    ir::Expr parts = pool_.mul(rows, segments_of(pool_, form_.whole, loads_));
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const cascade::Accumulator& a = form_.accumulator(i);
      const int64_t entry = size_of(a.lift->dtype) == 8 ? 16 : 8;
      lists_.push_back(
          builder_.add_scratch(DType::UInt8, pool_.mul(parts, pool_.integer(entry * count(a)))));
    }
    if (!folds_) return;
    states_ = builder_.add_scratch(DType::UInt8,
                                   pool_.mul(parts, pool_.integer(state_bytes(form_.rest))));
  }

  // Which row and segment, and which lane of it, this thread is.
  void place() {
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.whole.cascade.rows));
    std::string begin = "0", extent = fmt::format("static_cast<int>({})", extent_);
    if (config_.part == Part::Warp) {
      // Warps behind the last row compute it again: they take part in reductions of a warp.
      emitter_->line(
          fmt::format("const long long row = min_of(blockIdx.x * {}ll + (threadIdx.x >> 5), {} - "
                      "1);\nconst int lane = threadIdx.x & 31;",
                      config_.threads / 32, kernel_->size(rows)));
    } else if (config_.part == Part::Block) {
      emitter_->line("const long long row = blockIdx.x;\nconst int lane = threadIdx.x;");
    } else {
      const std::string segment = kernel_->size(loads_.segment);
      emitter_->line(fmt::format(
          "const unsigned size = {1}, segments = (static_cast<unsigned>({0}) + size - 1) / size;\n"
          "const unsigned row_number = blockIdx.x / segments, part = blockIdx.x - row_number * "
          "segments;\nconst long long row = row_number;\nconst int lane = threadIdx.x;",
          extent_, segment));
      begin = fmt::format("part * {}", segment);
      extent = fmt::format("static_cast<int>(min_of({} - begin, {}))", extent_, segment);
    }
    emitter_->line(
        fmt::format("const long long begin = {};\nconst int extent = {};", begin, extent));
    bind_coordinates(*emitter_, form_.whole.cascade.rows, "row");
  }

  template <typename Body>
  std::string scoped(Body body) {
    emitter_->open();
    body();
    return emitter_->close();
  }

  void rank_in_warp() {
    emitter_->line("constexpr int tile = 0;");
    body_->load_tile();
    if (folds_) {
      emitter_->line("State t;");
      body_->fold_tile();
    }
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const cascade::Accumulator& a = form_.accumulator(i);
      const std::string rank = scoped([&] { make_keys(a); });
      emitter_->line(fmt::format(
          "{{\n{1} keys[{2}];\nunsigned there = 0;\n{3}"
          "rank_in_warp(keys, there, [&](int i) {{ return static_cast<unsigned>(i / {4} * {5} + "
          "lane * {4} + i % {4} - shift); }}, {6}, places{0}[threadIdx.x >> 5]);\n}}\n"
          "const auto place{0} = [&](long long rank) {{ return places{0}[threadIdx.x >> 5][rank]; "
          "}};",
          i, key_type(a), elements(), rank, loads_.width, 32 * loads_.width, count(a)));
    }
    emitter_->line("__syncwarp();");
  }

  void rank_in_block() {
    const std::string load = scoped([&] {
      if (counts(form_.rest)) emitter_->line("added = 0;");
      body_->load_tile();
    });
    const int step = config_.threads * loads_.width;
    emitter_->line(fmt::format(
        "const auto load_tile = [&](int tile) {{\n{0}}};\nconst auto position = [&](int tile, int "
        "i) {{ return static_cast<unsigned>(begin + tile + i / {1} * {2} + lane * {1} + i % {1} - "
        "shift); }};",
        load, loads_.width, step));
    for (size_t i = 0; i < form_.ranked.size(); ++i) rank_in_block(i);
  }

  void rank_in_block(size_t i) {
    const cascade::Accumulator& a = form_.accumulator(i);
    const std::string fold = scoped([&] {
      if (!folds_ || i > 0) return;
      emitter_->line("State t;");
      body_->fold_tile();
    });
    const std::string rank = scoped([&] { make_keys(a); });
    emitter_->line(fmt::format(
        "const auto fold{0} = [&](int tile) {{\n{1}}};\n"
        "const auto rank{0} = [&](int tile, {4} (&keys)[{5}], unsigned& there) {{\n{2}}};\n"
        "Ranking{0} ranking{0}(*reinterpret_cast<Ranking{0}::Shared*>(lists + {3}));\n"
        "ranking{0}.run(extent, shift, load_tile, fold{0}, rank{0}, position);\n"
        "ranking{0}.finish();\n"
        "const auto place{0} = [&](long long rank) {{ return "
        "ranking{0}.shared.list[rank].position(); }};",
        i, fold, rank, list_offset(i), key_type(a), elements()));
  }

  // The keys of a tile's elements, and which of them exist.
  void make_keys(const cascade::Accumulator& a) {
    emitter_->line(
        fmt::format("#pragma unroll\nfor (int i = 0; i < {}; ++i) keys[i] = 0;", elements()));
    body_->for_tile([&] {
      emitter_->line(fmt::format("keys[c * {0} + v] = {1};\nthere |= 1u << (c * {0} + v);",
                                 loads_.width, key_text(*emitter_, a)));
    });
  }

  int64_t list_offset(size_t list) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < list; ++i) {
      bytes += ranking_shared_bytes(facts_of(form_.accumulator(i)), config_, length_);
    }
    return bytes;
  }

  std::string declarations() const {
    std::string text = folds_ ? state_->declaration() : "";
    if (config_.part == Part::Warp) return text;
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const cascade::Accumulator& a = form_.accumulator(i);
      text += fmt::format("using Ranking{} = BlockRanking<{}, {}, {}, {}, {}>;\n", i, key_type(a),
                          count(a), config_.threads, elements(),
                          ranking_capacity(facts_of(a), config_, length_));
    }
    return text;
  }

  // The block that counts last has the lists and states that the others stored.
  void merge_segments() {
    std::string store, merge;
    for (size_t i = 0; i < form_.ranked.size(); ++i) {
      const int64_t k = count(form_.accumulator(i));
      const std::string entries =
          fmt::format("reinterpret_cast<Ranking{}::Entry*>({}) + row * segments * {}", i,
                      kernel_->buffer(lists_[i], true), k);
      store += fmt::format(
          "for (int i = threadIdx.x; i < {1}; i += {2}) ({3} + part * {1})[i] = "
          "ranking{0}.shared.list[i];\n",
          i, k, config_.threads, entries);
      merge += fmt::format("ranking{0}.merge({1}, segments * {2});\nranking{0}.finish();\n", i,
                           entries, k);
    }
    if (folds_) {
      store += fmt::format(
          "if (threadIdx.x == 0) reinterpret_cast<State*>({})[row * segments + part] = s;\n",
          kernel_->buffer(states_, true));
      merge += scoped([&] { state_->merge_segments(kernel_->buffer(states_)); });
    }
    emitter_->line(
        fmt::format("if (segments > 1) {{\n{}__shared__ unsigned before;\n__syncthreads();\n"
                    "if (threadIdx.x == 0) before = ptx_count({} + row, segments - 1);\n"
                    "__syncthreads();\nif (before != segments - 1) return;\n{}}}",
                    store, kernel_->counter(), merge));
  }

  // The value at a position, as the row has it.
  void define_value(size_t i) {
    const cascade::Accumulator& a = form_.accumulator(i);
    const std::string text = scoped([&] {
      emitter_->line("const long long at = place;");
      emitter_->bind(form_.whole.cascade.stream, "at");
      emitter_->line(fmt::format("return {};", emitter_->emit(a.lift)));
    });
    emitter_->line(fmt::format(
        "const auto value{0} = [&](unsigned place) -> {1} {{\nif (place == kNowhere) return 0;\n"
        "{2}}};",
        i, value_type(a.lift->dtype), text));
  }

  std::string ranked_result(ir::Expr read, const std::string& rank) {
    const int64_t code = -read->integer - 2;
    ir::Expr finish = form_.whole.finish[static_cast<size_t>(code / 2)];
    RF_CHECK(finish->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
    const auto found =
        std::find(form_.ranked.begin(), form_.ranked.end(), static_cast<size_t>(finish->integer));
    const auto i = found - form_.ranked.begin();
    if (code % 2 == 0) return fmt::format("value{0}(place{0}({1}))", i, rank);
    return fmt::format("place{0}({1}) == kNowhere ? 0ll : static_cast<long long>(place{0}({1}))", i,
                       rank);
  }

  void finish() {
    if (folds_) state_->bind_state("s");
    state_->bind(ir::LeafKind::Count, 0, extent_, DType::Int64);
    for (size_t i = 0; i < form_.rest.finish.size(); ++i) {
      const cascade::Stage& stage = form_.rest.cascade.stages[i];
      if (is_ranked(stage.reduction)) continue;
      const auto number = static_cast<int64_t>(i);
      const std::string value = emitter_->emit(form_.rest.finish[i]);
      const DType dtype = form_.rest.finish[i]->dtype;
      if (form_.rest.length()->is_constant() || is_arg(stage.reduction)) {
        state_->bind(ir::LeafKind::Result, number, value, dtype);
        continue;
      }
      emitter_->line(fmt::format("const {} d{} = {} == 0 ? {} : {};", value_type(dtype), i, extent_,
                                 identity_of(stage.reduction, dtype), value));
      state_->bind(ir::LeafKind::Result, number, fmt::format("d{}", i), dtype);
    }
  }

  int static_bytes() const {
    int64_t places = 0;
    if (config_.part == Part::Warp) {
      for (size_t i = 0; i < form_.ranked.size(); ++i) {
        places += count(form_.accumulator(i)) * 4 * (config_.threads / 32);
      }
    }
    return single_pass_static_bytes(loads_, folds_ ? state_bytes(form_.rest) : 0,
                                    reads_->staging_words()) +
           static_cast<int>((places + 127) / 128 * 128);
  }

  KernelLaunch launch_of(const std::string& body) {
    const std::string vector = reads_->vector_condition();
    std::string text = fmt::format("constexpr bool kVector = false;\n{}", body);
    if (!vector.starts_with("false")) {
      text = fmt::format("if ({}) {{\nconstexpr bool kVector = true;\n{}}} else {{\n{}}}\n", vector,
                         body, text);
    }
    const bool warp = config_.part == Part::Warp;
    std::string before = reads_->declare_staging();
    if (folds_ && loads_.lanes > 32) {
      before += fmt::format("__shared__ State slots[{}];\n", std::max(config_.threads / 32, 1));
    }
    if (!warp) before += "extern __shared__ __align__(16) char lists[];\n";
    for (size_t i = 0; warp && i < form_.ranked.size(); ++i) {
      before += fmt::format("__shared__ unsigned places{}[{}][{}];\n", i, config_.threads / 32,
                            count(form_.accumulator(i)));
    }
    std::vector<std::string_view> headers = {"ptx", "math", "types", "reduce", "rows", "ranking"};
    if (!warp) headers.insert(headers.end(), {"ranking_sort", "ranking_block"});
    if (config_.part == Part::Segments) headers.insert(headers.begin() + 1, "ptx_split");
    KernelLaunch launch = kernel_->launch(name(), form_.whole.comment, headers, declarations(),
                                          before + text, config_.threads);
    launch.config = config_.parameters();
    launch.static_shared = static_bytes();
    if (!warp) launch.shared = static_cast<int>(list_offset(form_.ranked.size()));
    set_grid(launch);
    return launch;
  }

  void set_grid(KernelLaunch& launch) {
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.whole.cascade.rows));
    if (config_.part == Part::Warp) {
      launch.grid[0] = ceil_div(pool_, rows, config_.threads / 32);
    } else if (config_.part == Part::Block) {
      launch.grid[0] = rows;
    } else {
      launch.grid[0] = pool_.mul(rows, segments_of(pool_, form_.whole, loads_));
    }
  }

  std::string name() const { return choice_of(config_).family; }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const RankingForm& form_;
  const RankingConfig config_;
  const SinglePassConfig loads_;
  const int64_t length_;
  const bool folds_;
  std::vector<int64_t> lists_;
  int64_t states_ = -1;
  std::optional<KernelText> kernel_;
  std::optional<Emitter> emitter_;
  std::optional<VectorLoads> reads_;
  std::optional<StateStruct> state_;
  std::optional<SinglePassBody> body_;
  std::string extent_;
};

}  // namespace

KernelLaunch ranking_kernel(StepBuilder& builder, const RankingForm& form,
                            const RankingConfig& config, ir::Expr segment, int64_t length) {
  return RankingText(builder, form, config, segment, length).launch();
}

}  // namespace redfuser::codegen
