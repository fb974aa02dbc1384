// Which fold computes a cascade: by the number and length of its rows, which may be known at run
// time only.
//
// Every strategy that fits moves each byte once, so what ranks them is how many bytes are in flight
// and how often threads wait for each other: the fewest threads that hold a row win, and rows of
// which there are too few for all multiprocessors are cut into segments.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "codegen/fold_reads.h"
#include "codegen/rows.h"

namespace redfuser {
namespace {

using Part = FoldConfig::Part;

// Words that a thread keeps of its row in registers.
constexpr int kRegisterWords = 32;
constexpr int kMostChunks = 4;
// Bytes of a row in the shared memory of a block: several blocks of a multiprocessor hide each
// other's waits. Rows that need more in a full cluster may take more.
constexpr int kSharedBytes = 32 * 1024, kMostSharedBytes = 96 * 1024;
constexpr int kMostCluster = 8;
// Fewer blocks than this per multiprocessor leave it waiting.
constexpr int kBlocksPerMultiprocessor = 4;
// Tiles that a block folds before cutting its row pays for a second kernel.
constexpr int kTilesPerBlock = 4;
constexpr int64_t kMostSegments = 496;
// Positions in a row are 32-bit numbers.
constexpr int64_t kLongestRow = int64_t{1} << 28;

struct Rung {
  FoldConfig config;
  int64_t capacity;  // elements; 0: no limit
};

class Choice {
 public:
  Choice(StepBuilder& builder, const RowForm& form)
      : builder_(builder), pool_(builder.pool()), form_(form), width_(row_width(builder, form)) {
    FoldConfig config;
    config.width = width_;
    KernelText kernel = builder.kernel();
    const FoldReads reads(kernel, form, config);
    words_ = std::max(reads.group_words(), 1);
    shareable_ = reads.shareable();
    fetches_ = reads.fetches();
    maps_back_ = std::any_of(form.outputs.begin(), form.outputs.end(),
                             [](const RowForm::Output& output) { return output.maps_back; });
    rows_ = product_of(pool_, extents_of(pool_, form.rows));
  }

  void add() {
    Expr length = form_.length();
    Expr segmented = needs_segments();
    int64_t below = -1;
    for (const Rung& rung : ladder()) {
      const int64_t lower = below;
      below = rung.capacity;
      if (length->is_constant()) {
        if (length->integer <= lower) break;
        if (rung.capacity > 0 && length->integer > rung.capacity) continue;
      }
      Expr fits = pool_.make(ExprOp::Less, {pool_.integer(lower), length});
      if (rung.capacity > 0) {
        Expr most = pool_.integer(rung.capacity);
        fits = both(fits, pool_.make(ExprOp::LessEqual, {length, most}));
      } else {
        fits = both(fits, pool_.make(ExprOp::Not, {segmented}));
      }
      add_call(rung.config, fits, -1);
    }
    add_segments(below == 0 ? segmented : pool_.make(ExprOp::Less, {pool_.integer(below), length}));
  }

 private:
  Expr both(Expr a, Expr b) {
    if (a->is_constant()) return a->is_constant(1) ? b : a;
    if (b->is_constant()) return b->is_constant(1) ? a : b;
    return pool_.make(ExprOp::And, {a, b});
  }

  // `condition` may be known now: then there is one kernel, or none.
  void add_call(const FoldConfig& config, Expr condition, int64_t states) {
    if (condition->is_constant(0)) return;
    KernelLaunch launch = fold_kernel(builder_, form_, config, states);
    if (!condition->is_constant()) {
      launch.grid[0] = pool_.select(condition, launch.grid[0], pool_.integer(0));
    }
    builder_.result.calls.push_back(std::move(launch));
  }

  FoldConfig config(int lanes, int threads) const {
    FoldConfig result;
    result.lanes = lanes;
    result.threads = threads;
    result.width = width_;
    result.chunks = chunks();
    return no_longer_than_needed(result);
  }

  int chunks() const { return std::clamp(kRegisterWords / words_, 1, kMostChunks); }

  static int64_t capacity(const FoldConfig& c) {
    return int64_t{1} * c.lanes * c.width * c.chunks * c.cluster;
  }

  // From short rows to long ones. Sizes known at run time only are served by fewer kernels.
  std::vector<Rung> ladder() const {
    std::vector<Rung> rungs;
    auto push = [&](FoldConfig c) {
      c.whole = true;
      if (rungs.empty() || capacity(c) > rungs.back().capacity) rungs.push_back({c, capacity(c)});
    };
    for (const int lanes : {4, 8, 16}) {
      FoldConfig part = config(lanes, 128);
      part.chunks = 1;
      if (lanes != 8 || known()) push(part);
    }
    FoldConfig warp = config(32, 128);
    warp.shared = maps_back_ && shareable_;
    if (warp.shared) warp = no_longer_than_needed(with_chunks(warp, 2 * chunks()));
    push(warp);
    if (maps_back_ && shareable_) {
      push_shared(push);
      return rungs;
    }
    if (maps_back_) {
      push(config(256, 256));
    } else {
      FoldConfig walk = config(32, 128);
      walk.chunks = chunks();
      rungs.push_back({walk, kTilesPerBlock * capacity(walk)});
      if (known()) push(config(256, 256));
    }
    rungs.push_back({config(256, 256), 0});
    return rungs;
  }

  template <typename Push>
  void push_shared(const Push& push) const {
    const bool clusters = builder_.target.architecture >= 90;
    // Where multiprocessors are free, more threads for each row.
    Expr few = pool_.make(ExprOp::Less, {rows_, pool_.integer(builder_.target.multiprocessors)});
    if (fetches_) {
      // What all rows read lies in the first-level cache, which shared memory leaves no room.
      push(config(256, 256));
    } else if (!few->is_constant(1)) {
      push(shared(128, kSharedBytes / 2, 1));
    }
    if (known() && !few->is_constant(1)) push(shared(256, kSharedBytes, 1));
    push(shared(512, 2 * kSharedBytes, 1));
    if (clusters && known()) push(shared(256, kSharedBytes, kMostCluster / 2));
    if (clusters) push(shared(256, kSharedBytes, kMostCluster));
    push(shared(512, std::min(kMostSharedBytes, builder_.target.shared_bytes / 2),
                clusters ? kMostCluster : 1));
  }

  bool known() const { return form_.length()->is_constant(); }

  FoldConfig shared(int threads, int bytes, int cluster) const {
    FoldConfig result = config(threads, threads);
    result.shared = true;
    result.cluster = cluster;
    result.chunks = std::max(1, bytes / (threads * words_ * 4));
    return no_longer_than_needed(result);
  }

  static FoldConfig with_chunks(FoldConfig c, int chunks) {
    c.chunks = chunks;
    return c;
  }

  FoldConfig no_longer_than_needed(FoldConfig c) const {
    if (!known()) return c;
    const int64_t step = int64_t{1} * c.lanes * c.width * c.cluster;
    const int64_t needed = (form_.length()->integer + step - 1) / step;
    c.chunks = static_cast<int>(std::clamp<int64_t>(needed, 1, c.chunks));
    return c;
  }

  // One tile, or more where a row would have too many segments to merge.
  FoldConfig segment_config() const {
    FoldConfig result = config(256, 256);
    const int64_t tile = capacity(result);
    Expr tiles = ceil_div(pool_, form_.length(), tile * kMostSegments);
    result.segment = pool_.mul(pool_.integer(tile), tiles);
    return result;
  }

  // Of a form without map-back: rows too few, or too long.
  Expr needs_segments() {
    Expr length = form_.length();
    const int64_t blocks = int64_t{1} * kBlocksPerMultiprocessor * builder_.target.multiprocessors;
    Expr few = pool_.make(ExprOp::Less, {rows_, pool_.integer(blocks)});
    Expr most = pool_.integer(kTilesPerBlock * capacity(config(256, 256)));
    Expr divisible = pool_.make(ExprOp::Less, {most, length});
    Expr endless = pool_.make(ExprOp::Less, {pool_.integer(kLongestRow), length});
    Expr cut = both(few, divisible);
    if (endless->is_constant(0) || cut->is_constant(1)) return cut;
    if (cut->is_constant(0)) return endless;
    return pool_.make(ExprOp::Or, {cut, endless});
  }

  void add_segments(Expr condition) {
    if (condition->is_constant(0)) return;
    FoldConfig partials = segment_config(), finish = partials;
    partials.part = Part::Partials;
    finish.part = Part::Finish;
    if (!maps_back_) {
      // A warp merges 31 states at once.
      Expr segments = segments_of(pool_, form_, partials);
      const bool short_list = segments->is_constant() && segments->integer <= 4 * 31;
      finish.lanes = finish.threads = short_list ? 128 : 512;
    }
    Expr count = pool_.mul(rows_, segments_of(pool_, form_, partials));
    Expr bytes = pool_.mul(count, pool_.integer(state_bytes(form_)));
    if (!condition->is_constant()) {
      bytes = pool_.select(condition, bytes, pool_.integer(0));
    }
    const int64_t states = builder_.add_scratch(DType::UInt8, bytes);
    add_call(partials, condition, states);
    add_call(finish, condition, states);
  }

  StepBuilder& builder_;
  ExprPool& pool_;
  const RowForm& form_;
  int width_, words_ = 1;
  bool shareable_ = false, fetches_ = false, maps_back_ = false;
  Expr rows_ = nullptr;
};

}  // namespace

void add_folds(StepBuilder& builder, const RowForm& form) { Choice(builder, form).add(); }

}  // namespace redfuser
