// NonMaxSuppression: scores sorted, then chunks of candidates, each by two kernels that know the
// chunk by what the ones before have left. So all chunks have the same kernels.
#include "codegen/opaque/suppression.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/elementwise/clear_kernel.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "codegen/opaque/selection.h"
#include "codegen/ranking/radix_select.h"
#include "ops/lowering.h"
#include "ops/sizes.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kHeader = "device/selection/suppression.cuh";
// Candidates of a chunk at least, and chunks of a segment at most: a chunk has a bit for each pair.
constexpr int64_t kLeastChunk = 2048;
constexpr int kMostChunks = 32;
// Blocks that share a tile's comparisons where there is one segment.
constexpr int64_t kMostShares = 32;

class Suppression {
 public:
  Suppression(StepBuilder& builder, const ops::NodeView& view)
      : builder_(builder), pool_(builder.pool()), view_(view) {
    const std::vector<ir::Expr>&boxes = view.shape(0), &scores = view.shape(1);
    if (view.dtype(0) != DType::Float32 || view.dtype(1) != DType::Float32) {
      builder.fail("boxes and scores of other types than float32 have no kernel on a GPU");
    }
    if (!boxes[2]->is_constant(4)) builder.fail("boxes may have other than four coordinates");
    batch_ = pool_.axis("b", scores[0]);
    class_ = pool_.axis("c", scores[1]);
    box_ = pool_.axis("i", scores[2]);
    segments_ = pool_.mul(scores[0], scores[1]);
    length_ = scores[2];
    elements_ = pool_.mul(segments_, length_);
    chunk_ = chunk();
    tiles_ = pool_.floordiv(chunk_, pool_.integer(kSuppressionTile));
  }

  void add() {
    ir::Expr most = pool_.mul(segments_, most_of_segment());
    const int64_t found = add_found_size(builder_, view_, 0, most);
    const int64_t positions = add_sorted_positions(builder_, sorted_scores());
    boxes_ = builder_.add_scratch(DType::Float32, pool_.mul(elements_, pool_.integer(4)));
    kept_ = builder_.add_scratch(DType::UInt32, elements_);
    add_boxes(positions);
    words_ = builder_.add_scratch(DType::UInt64, pool_.mul(segments_, pool_.mul(chunk_, tiles_)));
    for (int i = 0; i < kMostChunks; ++i) {
      ir::Expr first = pool_.mul(pool_.integer(i), chunk_);
      if (i > 0 && ops::constant_of(length_) && ops::constant_of(first) &&
          first->integer >= length_->integer) {
        break;
      }
      add_chunk(pool_.make(ir::ExprOp::Less, {first, length_}));
    }
    add_write(positions, found);
  }

 private:
  ir::Expr scalar(int input) const {
    for (const ir::Expr size : view_.shape(input)) {
      if (!size->is_constant(1)) builder_.fail("a limit may have other than one element");
    }
    return pool_.read(
        view_.node().inputs[static_cast<size_t>(input)], view_.dtype(input),
        std::vector<ir::Expr>(static_cast<size_t>(view_.rank(input)), pool_.integer(0)));
  }

  // A scalar input; `otherwise` where there is none.
  std::string scalar_text(Emitter& emitter, int input, DType dtype, const char* otherwise) const {
    if (!view_.has_input(input)) return otherwise;
    return emitter.emit_whole(builder_.flat.flat(scalar(input)), dtype);
  }

  ir::Expr most_of_segment() const {
    const auto known = view_.has_input(2) ? view_.constant_integers(2) : std::nullopt;
    if (!known || known->size() != 1) return length_;
    ir::Expr limit = pool_.integer(std::max<int64_t>(known->front(), 0));
    return ops::min_of(pool_, limit, length_);
  }

  ir::Expr score() const {
    return pool_.read(view_.node().inputs[1], DType::Float32, {batch_, class_, box_});
  }
  ir::Expr is_candidate() const {
    ir::Expr threshold =
        view_.has_input(4) ? pool_.cast(DType::Float32, scalar(4))
                           : pool_.number(-std::numeric_limits<double>::infinity(), DType::Float32);
    return pool_.make(ir::ExprOp::Less, {threshold, score()});
  }

  // Candidates first, best scores first; equal scores keep their order.
  FlatStreaming sorted_scores() {
    FlatStreaming form;
    form.cascade.rows = {batch_, class_};
    form.cascade.stream = box_;
    form.comment = "scores above the threshold, sorted\n";
    cascade::Accumulator& ranked = form.accumulators.emplace_back();
    ranked.reduction = ir::Reduction::TopK;
    ranked.lift = builder_.flat.flat(
        pool_.select(is_candidate(), score(),
                     pool_.number(-std::numeric_limits<double>::infinity(), DType::Float32)));
    return form;
  }

  // A chunk grows with the segment, so that a few suffice for any length.
  ir::Expr chunk() const {
    ir::Expr tiles = ceil_div(pool_, length_, int64_t{kMostChunks} * kSuppressionTile);
    return ops::max_of(pool_, pool_.mul(tiles, pool_.integer(kSuppressionTile)),
                       pool_.integer(kLeastChunk));
  }

  void launch(const KernelText& kernel, const std::string& name, const std::string& body,
              int threads, ir::Expr x, ir::Expr y = nullptr) {
    KernelLaunch launch = kernel.launch(name, name + "\n", {kHeader}, "", body, threads);
    launch.grid[0] = x;
    launch.grid[1] = y;
    builder_.result.calls.emplace_back(std::move(launch));
  }

  static std::string states(const std::string& buffer, const char* constant) {
    return fmt::format("reinterpret_cast<{}SuppressionState*>({})", constant, buffer);
  }

  // The candidates' boxes in their order, behind kernels that clear states and struck bits.
  void add_boxes(int64_t positions) {
    ir::Expr numbers = pool_.mul(segments_, pool_.integer(4));
    states_ = builder_.add_scratch(DType::UInt32, numbers);
    ir::Expr words = pool_.mul(segments_, pool_.mul(pool_.integer(2), tiles_));
    struck_ = builder_.add_scratch(DType::UInt32, words);
    builder_.result.calls.emplace_back(
        clear_kernel(builder_, "suppression_clear", states_, numbers));
    builder_.result.calls.emplace_back(clear_kernel(builder_, "suppression_clear", struck_, words));
    KernelText kernel = builder_.kernel();
    const std::string own =
        fmt::format("{}, reinterpret_cast<float4*>({}), {}, {}, {}", kernel.buffer(positions),
                    kernel.buffer(boxes_, true), states(kernel.buffer(states_, true), ""),
                    kernel.size(segments_), kernel.size(length_));
    const auto bind = [&](Emitter& emitter) {
      bind_coordinates(emitter, {batch_, class_}, "segment");
      emitter.bind(box_, "box");
    };
    Emitter test(kernel), read(kernel);
    bind(test);
    test.line(fmt::format("return {};",
                          test.emit_whole(builder_.flat.flat(is_candidate()), DType::Bool)));
    bind(read);
    for (int k = 0; k < 4; ++k) {
      ir::Expr coordinate =
          pool_.read(view_.node().inputs[0], DType::Float32, {batch_, box_, pool_.integer(k)});
      read.line(fmt::format("coordinates[{}] = {};", k,
                            read.emit_whole(builder_.flat.flat(coordinate), DType::Float32)));
    }
    const bool centered = view_.integer("center_point_box", 0) != 0;
    const std::string body = fmt::format(
        "suppression_boxes<{}>({}, [&](long long segment, long long box) {{\n{}}}, "
        "[&](long long segment, long long box, float (&coordinates)[4]) {{\n{}}});\n",
        centered, own, test.close(), read.close());
    launch(kernel, "suppression_boxes", body, kSuppressionThreads,
           pool_.make(ir::ExprOp::Min, {ceil_div(pool_, elements_, kSuppressionThreads),
                                        pool_.integer(int64_t{1} << 20)}));
  }

  void add_chunk(ir::Expr when) {
    ir::Expr none = pool_.integer(0);
    for (const bool keeps : {false, true}) {
      KernelText kernel = builder_.kernel();
      const auto words = [&](int64_t buffer, bool written) {
        return fmt::format("reinterpret_cast<unsigned long long*>({})",
                           kernel.buffer(buffer, written));
      };
      const std::string name = keeps ? "suppression_keep" : "suppression_overlaps";
      Emitter scalars(kernel);
      const std::string threshold = scalar_text(scalars, 3, DType::Float32, "0.0f"),
                        limit = scalar_text(scalars, 2, DType::Int64, "0ll");
      const std::string arguments =
          fmt::format("reinterpret_cast<const float4*>({}), {}, {}, {}, {}, {}, {}, {}",
                      kernel.buffer(boxes_), states(kernel.buffer(states_, true), ""),
                      kernel.buffer(kept_, true), words(struck_, true), kernel.buffer(words_, true),
                      kernel.size(length_), kernel.size(chunk_), threshold);
      const std::string body =
          scalars.close() +
          fmt::format("const Suppression suppression{{{}}};\n{}(suppression, {});\n", arguments,
                      name, limit);
      ir::Expr blocks = keeps ? segments_ : pool_.mul(segments_, tiles_);
      ir::Expr shares = pool_.add(pool_.integer(1),
                                  pool_.floordiv(pool_.integer(kMostShares - 1),
                                                 ops::max_of(pool_, segments_, pool_.integer(1))));
      launch(kernel, name, body, keeps ? kSuppressionThreads : kSuppressionTile,
             pool_.select(when, blocks, none), keeps ? nullptr : shares);
    }
  }

  void add_write(int64_t positions, int64_t found) {
    KernelText kernel = builder_.kernel();
    const std::string own =
        fmt::format("{}, {}, {}, {}, {}, {}", kernel.buffer(positions), kernel.buffer(kept_),
                    states(kernel.buffer(states_), "const "), kernel.buffer(found, true),
                    kernel.size(segments_), kernel.size(length_));
    const std::string result = kernel.buffer(view_.node().outputs[0], true);
    Emitter emitter(kernel);
    bind_coordinates(emitter, {batch_, class_}, "segment");
    const std::string places[] = {emitter.emit_as(batch_, DType::Int64),
                                  emitter.emit_as(class_, DType::Int64), "box"};
    for (int k = 0; k < 3; ++k) {
      emitter.line(fmt::format("store({}, 3 * number + {}, {});", result, k, places[k]));
    }
    launch(kernel, "suppression_write",
           fmt::format("suppression_write({}, [&](long long segment, long long box, long long "
                       "number) {{\n{}}});\n",
                       own, emitter.close()),
           kSuppressionThreads, ops::max_of(pool_, segments_, pool_.integer(1)));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ops::NodeView& view_;
  ir::Expr batch_, class_, box_;
  ir::Expr segments_, length_, elements_;
  ir::Expr chunk_, tiles_;  // of a segment: candidates of a chunk, and their tiles
  int64_t boxes_ = 0, kept_ = 0, states_ = 0, struck_ = 0, words_ = 0;
};

}  // namespace

void generate_non_max_suppression(StepBuilder& builder, const ops::NodeView& view) {
  Suppression(builder, view).add();
}

}  // namespace redfuser::codegen
