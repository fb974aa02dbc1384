// Selects the configuration by the number and length of the rows, which may be known only at run
// time.
//
// Every configuration moves each byte once, so bytes in flight and synchronisation decide: the
// fewest threads that hold a row are best, and rows too few for all SMs are split into segments.
#include "codegen/rows/single_pass_select.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/rows/row_reads.h"

namespace redfuser::codegen {
namespace {

using Part = SinglePassConfig::Part;

constexpr const char* kRow = "row";
constexpr const char* kSegments = "row_segments";

// Words of its row in a thread's registers.
constexpr int kRegisterWords = 32;
constexpr int kMaxChunks = 4;
// Up to so many stay in registers, not in shared memory, until they are mapped back.
constexpr int kFewWords = 12;
// Bytes of a row in the shared memory of a block, so that several blocks of an SM overlap. Rows of
// a full cluster may have up to kMaxSharedBytes.
constexpr int kSharedBytes = 32 * 1024, kMaxSharedBytes = 96 * 1024;
constexpr int kMaxCluster = 8;
// Fewer rows per SM than this leave SMs idle for long.
constexpr double kRowsPerMultiprocessor = 1.5;
// Tiles per block from which segments outweigh the merge of their states.
constexpr int kTilesPerBlock = 4;
// At most one state per merging thread. Short tiles shorten the wait for the last block.
constexpr int kMaxSegments = 256, kSegmentChunks = 2;
// Rows up to so many elements have their groups' width by their length, and where their number is
// known at run time only, the configuration for many.
constexpr int64_t kShortRow = 128, kManyRows = int64_t{1} << 18;
// Positions in a row are 32-bit numbers.
constexpr int64_t kLongestRow = int64_t{1} << 28;

struct SizeClass {
  SinglePassConfig config;
  int64_t capacity;  // elements; 0: no limit
};

class Choice {
 public:
  Choice(StepBuilder& builder, const FlatStreaming& form)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        facts_(single_pass_facts(builder, form, row_width(builder, form))),
        rows_(product_of(pool_, extents_of(pool_, form.cascade.rows))) {
    const int narrow = width_of_whole_groups();
    if (narrow < facts_.width) narrow_ = single_pass_facts(builder, form, narrow);
  }

  void add() {
    if (const auto best = least(KnownSizes())) return add(best->choice);
    add_size_classes();
  }

  // Sizes known at run time only.
  void add_size_classes() {
    ir::Expr length = form_.length();
    ir::Expr segmented = needs_segments();
    int64_t below = -1;
    for (const SizeClass& rung : size_classes()) {
      const int64_t lower = below;
      below = rung.capacity;
      if (length->is_constant()) {
        if (length->integer <= lower) break;
        if (rung.capacity > 0 && length->integer > rung.capacity) continue;
      }
      ir::Expr fits = pool_.make(ir::ExprOp::Less, {pool_.integer(lower), length});
      if (rung.capacity > 0) {
        ir::Expr most = pool_.integer(rung.capacity);
        fits = both(pool_, fits, less_equal(pool_, length, most));
      } else {
        fits = both(pool_, fits, pool_.make(ir::ExprOp::Not, {segmented}));
      }
      add_call(rung.config, fits, -1);
    }
    add_segments(
        segment_config(),
        below == 0 ? segmented : pool_.make(ir::ExprOp::Less, {pool_.integer(below), length}));
  }

  void add(const KernelConfig& choice) {
    ir::Expr length = form_.length();
    int64_t most = kLongestRow;
    if (choice.family == kSegments) {
      // Rows of at most one tile have no segments.
      const SegmentConfig cut = segments_of_choice(choice);
      const int64_t tile = tile_elements(segment_config(cut));
      ir::Expr served = pool_.make(ir::ExprOp::Less, {pool_.integer(tile), length});
      if (!facts_.maps_back) {
        ir::Expr most_rows = pool_.integer(kLaunchCounters);
        served = both(pool_, served, less_equal(pool_, rows_, most_rows));
      }
      add_segments(cut, served);
      add_rest(served);
      return;
    }
    RF_CHECK(choice.family == kRow, "{} folds no row", to_string(choice));
    const SinglePassConfig config = config_of(choice);
    if (config.whole) most = tile_elements(config);
    ir::Expr fits = pool_.make(ir::ExprOp::LessEqual, {length, pool_.integer(most)});
    add_call(config, fits, -1);
    add_rest(fits);
  }

  std::vector<Candidate> choices(const KnownSizes& sizes) {
    std::optional<Candidate> first = least(KnownSizes());
    std::vector<Candidate> candidates = all(sizes);
    if (candidates.empty()) return {};
    if (!first) first = of_size_classes(sizes, candidates);
    return best_choices({std::move(*first)}, std::move(candidates));
  }

 private:
  // Empty where a size is not known, or nothing is to be computed.
  std::vector<Candidate> all(const KnownSizes& sizes) const {
    const int64_t rows = sizes.of(rows_), length = sizes.of(form_.length());
    if (rows <= 0 || length <= 0 || length > kLongestRow) return {};
    return candidates_of(rows, length);
  }

  std::vector<Candidate> candidates_of(int64_t rows, int64_t length) const {
    auto found = single_pass_candidates(builder_.target, facts_, rows, length);
    if (!narrow_) return found;
    auto narrow = single_pass_candidates(builder_.target, *narrow_, rows, length);
    found.insert(found.end(), narrow.begin(), narrow.end());
    return found;
  }

  // Groups that divide rows: each is whole, and starts at a multiple of its size.
  int width_of_whole_groups() const {
    ir::Expr length = form_.length();
    if (!length->is_constant()) return facts_.width;
    int width = facts_.width;
    while (width > 1 && length->integer % width != 0) width /= 2;
    return width;
  }

  std::optional<Candidate> least(const KnownSizes& sizes) const { return least(all(sizes)); }

  static std::optional<Candidate> least(const std::vector<Candidate>& candidates) {
    const auto best =
        std::min_element(candidates.begin(), candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
    if (best == candidates.end()) return std::nullopt;
    return *best;
  }

  // What add_size_classes() runs for these sizes; taken to be the best if it is not a candidate.
  Candidate of_size_classes(const KnownSizes& sizes, const std::vector<Candidate>& candidates) {
    Candidate result{size_class(sizes), HUGE_VAL};
    double best = HUGE_VAL;
    for (const Candidate& candidate : candidates) {
      best = std::min(best, candidate.time);
      if (candidate.choice == result.choice) result.time = candidate.time;
    }
    if (result.time == HUGE_VAL) result.time = best;
    return result;
  }

  KernelConfig size_class(const KnownSizes& sizes) {
    const int64_t length = sizes.of(form_.length());
    for (const SizeClass& rung : size_classes()) {
      const bool fits =
          rung.capacity > 0 ? length <= rung.capacity : sizes.of(needs_segments()) == 0;
      if (fits) return choice_of(rung.config);
    }
    return choice_of(segment_config());
  }

  SinglePassConfig config_of(const KernelConfig& choice) const {
    SinglePassConfig config;
    config.lanes = choice.at("lanes");
    config.threads = choice.at("threads");
    config.width = choice.at("width");
    config.chunks = choice.at("chunks");
    config.cluster = choice.at("cluster");
    config.shared = choice.at("shared") != 0;
    config.whole = choice.at("whole") != 0;
    return config;
  }

  static SegmentConfig segments_of_choice(const KernelConfig& choice) {
    return {choice.at("threads"), choice.at("chunks"), choice.at("most")};
  }

  // The default for sizes that a choice does not support.
  void add_rest(ir::Expr served) {
    if (served->is_constant(1)) return;
    allowed_ = pool_.make(ir::ExprOp::Not, {served});
    add_size_classes();
  }

  // If `condition` is constant, only one alternative is added.
  void add_call(const SinglePassConfig& config, ir::Expr condition, int64_t states) {
    condition = both(pool_, allowed_, condition);
    if (condition->is_constant(0)) return;
    KernelLaunch launch = single_pass_kernel(builder_, form_, config, states);
    if (!condition->is_constant()) {
      launch.grid[0] = pool_.select(condition, launch.grid[0], pool_.integer(0));
    }
    builder_.result.calls.push_back(std::move(launch));
  }

  SinglePassConfig config(int lanes, int threads) const {
    SinglePassConfig result;
    result.lanes = lanes;
    result.threads = threads;
    result.width = facts_.width;
    result.chunks = chunks();
    return no_longer_than_needed(result);
  }

  int chunks() const { return std::clamp(kRegisterWords / facts_.words, 1, kMaxChunks); }

  // From short rows to long ones. For sizes known only at run time there are fewer classes.
  std::vector<SizeClass> size_classes() const {
    std::vector<SizeClass> rungs;
    auto push = [&](SinglePassConfig c) {
      c.whole = true;
      if (rungs.empty() || tile_elements(c) > rungs.back().capacity)
        rungs.push_back({c, tile_elements(c)});
    };
    if (known() && (form_.length()->integer <= kShortRow || narrow_)) {
      const KernelConfig many = least(candidates_of(kManyRows, form_.length()->integer))->choice;
      if (many.family == kRow && config_of(many).whole) push(config_of(many));
    }
    for (const int lanes : {4, 8, 16}) {
      SinglePassConfig part = config(lanes, 128);
      part.chunks = 1;
      if (lanes != 8 || known()) push(part);
    }
    SinglePassConfig warp = config(32, 128);
    const bool few = known() && warp.chunks * facts_.words <= kFewWords;
    warp.shared = facts_.maps_back && facts_.shareable && !few;
    if (warp.shared) warp = no_longer_than_needed(with_chunks(warp, 2 * chunks()));
    push(warp);
    if (facts_.maps_back && facts_.shareable) {
      push_shared(push);
      return rungs;
    }
    if (facts_.maps_back) {
      push(config(256, 256));
    } else {
      SinglePassConfig walk = config(32, 128);
      walk.chunks = chunks();
      rungs.push_back({walk, kTilesPerBlock * tile_elements(walk)});
      if (known()) push(config(256, 256));
    }
    // If reads need few registers, rows of several tiles occupy more threads.
    const SinglePassConfig wide = config(512, 512);
    const bool several = known() && form_.length()->integer >= 2 * tile_elements(wide);
    rungs.push_back({several && chunks() == kMaxChunks ? wide : config(256, 256), 0});
    return rungs;
  }

  template <typename Push>
  void push_shared(const Push& push) const {
    const bool clusters = builder_.target.architecture >= 90;
    // If SMs are idle, more threads per row.
    ir::Expr few =
        pool_.make(ir::ExprOp::Less, {rows_, pool_.integer(builder_.target.multiprocessors)});
    if (facts_.loads_for_outputs) {
      // Data read by all rows is in the L1 cache, which shared memory would shrink.
      push(config(256, 256));
    } else if (!few->is_constant(1)) {
      push(shared(128, kSharedBytes / 2, 1));
    }
    if (known() && !few->is_constant(1)) push(shared(256, kSharedBytes, 1));
    push(shared(512, 2 * kSharedBytes, 1));
    if (clusters && known()) push(shared(128, kSharedBytes, kMaxCluster / 2));
    if (clusters) push(shared(256, kSharedBytes, kMaxCluster));
    push(shared(512, std::min(kMaxSharedBytes, builder_.target.shared_bytes / 2),
                clusters ? kMaxCluster : 1));
  }

  bool known() const { return form_.length()->is_constant(); }

  SinglePassConfig shared(int threads, int bytes, int cluster) const {
    SinglePassConfig result = config(threads, threads);
    result.shared = true;
    result.cluster = cluster;
    result.chunks = std::max(1, bytes / (threads * facts_.shared_words * 4));
    return no_longer_than_needed(result);
  }

  static SinglePassConfig with_chunks(SinglePassConfig c, int chunks) {
    c.chunks = chunks;
    return c;
  }

  SinglePassConfig no_longer_than_needed(SinglePassConfig c) const {
    if (!known()) return c;
    const int64_t step = int64_t{1} * c.lanes * c.width * c.cluster;
    const int64_t needed = (form_.length()->integer + step - 1) / step;
    c.chunks = static_cast<int>(std::clamp<int64_t>(needed, 1, c.chunks));
    return c;
  }

  SegmentConfig segment_config() const {
    const SinglePassConfig tile = config(256, 256);
    return {tile.threads, std::min(tile.chunks, kSegmentChunks), kMaxSegments};
  }

  // One tile per segment, more if a row would have too many segments to merge.
  SinglePassConfig segment_config(const SegmentConfig& c) const {
    SinglePassConfig result;
    result.lanes = result.threads = c.threads;
    result.width = facts_.width;
    result.chunks = c.chunks;
    result.part = Part::Segment;
    const int64_t tile = tile_elements(result);
    ir::Expr tiles = ceil_div(pool_, form_.length(), tile * c.most);
    result.segment = pool_.mul(pool_.integer(tile), tiles);
    return result;
  }

  // For a form without map-back: whether rows are too few or too long.
  ir::Expr needs_segments() {
    ir::Expr length = form_.length();
    const auto enough =
        static_cast<int64_t>(kRowsPerMultiprocessor * builder_.target.multiprocessors);
    ir::Expr few = pool_.make(ir::ExprOp::Less, {rows_, pool_.integer(enough)});
    ir::Expr most = pool_.integer(kTilesPerBlock * tile_elements(config(256, 256)));
    ir::Expr divisible = pool_.make(ir::ExprOp::Less, {most, length});
    ir::Expr endless = pool_.make(ir::ExprOp::Less, {pool_.integer(kLongestRow), length});
    ir::Expr cut = both(pool_, few, divisible);
    if (endless->is_constant(0) || cut->is_constant(1)) return cut;
    if (cut->is_constant(0)) return endless;
    return pool_.make(ir::ExprOp::Or, {cut, endless});
  }

  void add_segments(const SegmentConfig& segments, ir::Expr condition) {
    condition = both(pool_, allowed_, condition);
    if (condition->is_constant(0)) return;
    SinglePassConfig segment = segment_config(segments);
    ir::Expr count = pool_.mul(rows_, segments_of(pool_, form_, segment));
    ir::Expr bytes = pool_.mul(count, pool_.integer(state_bytes(form_)));
    if (!condition->is_constant()) {
      bytes = pool_.select(condition, bytes, pool_.integer(0));
    }
    const int64_t states = builder_.add_scratch(DType::UInt8, bytes);
    if (!facts_.maps_back) return add_call(segment, condition, states);
    for (const Part part : {Part::Partials, Part::Finish}) {
      segment.part = part;
      add_call(segment, condition, states);
    }
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const FlatStreaming& form_;
  const SinglePassFacts facts_;
  std::optional<SinglePassFacts> narrow_;
  const ir::Expr rows_;
  ir::Expr allowed_ = nullptr;  // a bool over sizes: nothing is added where it is false
};

}  // namespace

namespace {

bool divides_position(const FlatStreaming& form) {
  bool found = false;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      const bool divides = e->op == ir::ExprOp::FloorDiv || e->op == ir::ExprOp::FloorMod;
      found |= divides && e->depends_on(form.cascade.stream);
    });
  }
  return found;
}

// Of what rows do not share.
int64_t shortest_run(const StepBuilder& builder, const FlatStreaming& form) {
  int64_t shortest = 0;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const bool own = std::any_of(form.cascade.rows.begin(), form.cascade.rows.end(),
                                   [&](ir::Expr row) { return e->depends_on(row); });
      const int64_t digits = own ? last_digit(e->args[0], form.cascade.stream) : 0;
      const int64_t run = digits * static_cast<int64_t>(size_of(builder.dtype_of(e->integer)));
      if (run > 0 && (shortest == 0 || run < shortest)) shortest = run;
    });
  }
  return shortest;
}

}  // namespace

SinglePassFacts single_pass_facts(StepBuilder& builder, const FlatStreaming& form, int width) {
  SinglePassFacts facts;
  facts.width = width;
  facts.narrow = width < row_width(builder, form);
  SinglePassConfig config;
  config.width = facts.width;
  KernelText kernel = builder.kernel();
  const RowReads reads(kernel, form, config);
  facts.words = std::max(reads.group_words(), 1);
  facts.shared_words = std::max(reads.shared_words(), 4);
  facts.element_bytes = reads.element_bytes();
  facts.state_bytes = state_bytes(form);
  facts.max_staging_words = reads.max_staging_words();
  facts.shareable = reads.shareable();
  facts.loads_for_outputs = reads.loads_for_outputs();
  facts.maps_back = maps_back(form);
  facts.scattered = divides_position(form);
  facts.ragged = form.length()->is_constant() && form.length()->integer % facts.width != 0;
  facts.run_bytes = shortest_run(builder, form);
  return facts;
}

KernelConfig choice_of(const SinglePassConfig& config) { return {kRow, config.parameters()}; }

KernelConfig choice_of(const SegmentConfig& config) {
  return {kSegments,
          {{"threads", config.threads}, {"chunks", config.chunks}, {"most", config.most}}};
}

std::vector<Candidate> single_pass_configs(StepBuilder& builder, const FlatStreaming& form,
                                           const KnownSizes& sizes) {
  return Choice(builder, form).choices(sizes);
}

void add_fold(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice) {
  Choice(builder, form).add(choice);
}

void add_folds(StepBuilder& builder, const FlatStreaming& form) { Choice(builder, form).add(); }

}  // namespace redfuser::codegen
