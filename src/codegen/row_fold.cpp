// The text of a kernel that folds rows into states and merges them.
#include <algorithm>

#include "base/error.h"
#include "codegen/fold_reads.h"
#include "codegen/rows.h"

namespace redfuser {
namespace {

using Part = FoldConfig::Part;

class FoldText {
 public:
  FoldText(StepBuilder& builder, const RowForm& form, const FoldConfig& config, int64_t states)
      : pool_(builder.pool()),
        form_(form),
        config_(config),
        states_(states),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        phases_(phases_of(form)),
        reads_(kernel_, form, config) {
    collect_leaves();
    emitter_.set_fast_math(rounds_smoothly(builder, form));
  }

  KernelLaunch launch() {
    length_ = kernel_.size(form_.length());
    place();
    reads_.declare(emitter_);
    emitter_.line(identity_text());
    merge_text();
    emitter_.line("State s = identity();");
    if (config_.part == Part::Finish) {
      merge_segments();
    } else {
      fold();
      merge_rest();
    }
    if (config_.part == Part::Partials) {
      emitter_.line(
          fmt::format("if (threadIdx.x == 0) reinterpret_cast<State*>({})[row * segments + part] "
                      "= s;",
                      kernel_.buffer(states_, true)));
    } else {
      if (config_.cluster > 1) emitter_.line("ptx_cluster_arrive();");
      finish();
      write_row_outputs();
      write_streamed_outputs();
      if (config_.cluster > 1) emitter_.line("ptx_cluster_wait();");
    }
    return launch_of(emitter_.close());
  }

 private:
  int warps() const { return config_.threads / 32; }
  bool by_block() const { return config_.lanes > 32; }
  int step() const { return config_.lanes * config_.width * config_.cluster; }
  int tile() const { return step() * config_.chunks; }

  KernelLaunch launch_of(const std::string& body) {
    const std::string text = fmt::format(
        "if ({0}) {{\nconstexpr bool kVector = true;\n{1}}} else {{\nconstexpr bool kVector = "
        "false;\n{1}}}\n",
        reads_.vector_condition(), body);
    std::string before;
    if (by_block()) before += fmt::format("__shared__ State slots[{}];\n", warps() + 1);
    if (config_.shared) before += "extern __shared__ uint4 homes[];\n";
    KernelLaunch launch = kernel_.launch(name(), comment_of(form_.comment),
                                         {"ptx", "math", "types", "reduce", "rows"}, state_text(),
                                         before + text, config_.threads);
    launch.cluster = config_.cluster;
    launch.shared = config_.shared ? reads_.shared_bytes() : 0;
    Expr rows = product_of(pool_, extents_of(pool_, form_.rows));
    if (!by_block()) {
      launch.grid[0] = ceil_div(pool_, rows, config_.threads / config_.lanes);
    } else if (config_.part == Part::Row) {
      launch.grid[0] = pool_.mul(rows, pool_.integer(config_.cluster));
    } else if (config_.part == Part::Partials || maps_back()) {
      launch.grid[0] = pool_.mul(rows, ceil_div(pool_, form_.length(), config_.segment));
    } else {
      launch.grid[0] = rows;
    }
    return launch;
  }

  std::string name() const {
    if (config_.part == Part::Partials) return "row_partials";
    if (config_.part == Part::Finish) return "row_finish";
    if (config_.cluster > 1) return "row_cluster";
    return config_.whole ? "row_resident" : "row_streaming";
  }

  bool maps_back() const {
    return std::any_of(form_.outputs.begin(), form_.outputs.end(),
                       [](const RowForm::Output& output) { return output.maps_back; });
  }

  void collect_leaves() {
    auto note = [&](Expr root) {
      if (!root) return;
      visit(root, [&](Expr e) {
        if (e->op != ExprOp::Leaf) return;
        if (std::find(leaves_.begin(), leaves_.end(), e) == leaves_.end()) leaves_.push_back(e);
      });
    };
    for (const Accumulator& a : form_.accumulators) {
      note(a.lift);
      note(a.transport);
    }
    for (const Reference& reference : form_.references) note(reference.value);
    for (Expr e : form_.finish) note(e);
    for (const auto& output : form_.outputs) note(output.body);
  }

  void bind_all(LeafKind kind, int64_t index, const std::string& text, DType dtype) {
    for (Expr leaf : leaves_) {
      if (leaf->leaf_kind != kind || (kind != LeafKind::Count && leaf->integer != index)) continue;
      const bool same = value_type(leaf->dtype) == value_type(dtype);
      emitter_.bind(
          leaf, same ? text : fmt::format("static_cast<{}>({})", value_type(leaf->dtype), text));
    }
  }

  std::string type_of(const Accumulator& a) const {
    if (is_arg(a.reduction)) return fmt::format("Ranked<{}>", value_type(a.lift->dtype));
    return std::string(value_type(a.dtype));
  }
  std::string identity_of_accumulator(const Accumulator& a) const {
    if (is_arg(a.reduction)) return fmt::format("{}{{0, -1}}", type_of(a));
    return identity_of(a.reduction, a.dtype);
  }

  std::string state_text() const {
    std::string text = "struct State {\n";
    for (size_t k = 0; k < form_.accumulators.size(); ++k) {
      text += fmt::format("  alignas(8) {} a{};\n", type_of(form_.accumulators[k]), k);
    }
    return text + "  alignas(8) int count;\n};\n";
  }
  std::string identity_text() const {
    std::string text = "auto identity = [] {\nState s;\n";
    for (size_t k = 0; k < form_.accumulators.size(); ++k) {
      text += fmt::format("s.a{} = {};\n", k, identity_of_accumulator(form_.accumulators[k]));
    }
    return text + "s.count = 0;\nreturn s;\n};";
  }

  // Which row and segment, and which lane of it, this thread is.
  void place() {
    Expr rows = product_of(pool_, extents_of(pool_, form_.rows));
    std::string begin = "0", extent = fmt::format("static_cast<int>({})", length_);
    if (!by_block()) {
      // Threads behind the last row compute it again: they take part in the warp's shuffles.
      emitter_.line(
          fmt::format("const long long row = min_of(blockIdx.x * {0}ll + threadIdx.x / "
                      "{1}, {2} - 1);\nconst int lane = threadIdx.x % {1};",
                      config_.threads / config_.lanes, config_.lanes, kernel_.size(rows)));
    } else if (config_.cluster > 1) {
      emitter_.line(
          fmt::format("const long long row = blockIdx.x / {};\nconst int lane = "
                      "ptx_cluster_rank() * {} + threadIdx.x;",
                      config_.cluster, config_.threads));
    } else if (config_.part == Part::Row) {
      emitter_.line("const long long row = blockIdx.x;\nconst int lane = threadIdx.x;");
    } else {
      emitter_.line(fmt::format("const unsigned segments = ({} + {}) / {};", length_,
                                config_.segment - 1, config_.segment));
      const bool whole_rows = config_.part == Part::Finish && !maps_back();
      emitter_.line(whole_rows
                        ? "const unsigned row_number = blockIdx.x, part = 0;"
                        : "const unsigned row_number = blockIdx.x / segments, part = blockIdx.x - "
                          "row_number * segments;");
      emitter_.line("const long long row = row_number;\nconst int lane = threadIdx.x;");
      begin = fmt::format("part * {}ll", config_.segment);
      extent = fmt::format("static_cast<int>(min_of({} - begin, {}ll))", length_, config_.segment);
    }
    emitter_.line(
        fmt::format("const long long begin = {};\nconst int extent = {};", begin, extent));
    bind_coordinates(emitter_, form_.rows, "row");
  }

  bool uses(LeafKind kind, size_t reference) const {
    for (const Accumulator& a : form_.accumulators) {
      for (Expr root : {a.lift, a.transport}) {
        if (!root) continue;
        bool found = false;
        visit(root, [&](Expr e) {
          found |= e->op == ExprOp::Leaf && e->leaf_kind == kind &&
                   e->integer == static_cast<int64_t>(reference);
        });
        if (found) return true;
      }
    }
    return false;
  }

  void bind_state(const std::string& state) {
    for (size_t k = 0; k < form_.accumulators.size(); ++k) {
      const Accumulator& a = form_.accumulators[k];
      const auto number = static_cast<int64_t>(k);
      if (is_arg(a.reduction)) {
        bind_all(LeafKind::State, number, fmt::format("max_of({}.a{}.index, 0ll)", state, k),
                 DType::Int64);
      } else {
        bind_all(LeafKind::State, number, fmt::format("{}.a{}", state, k), a.dtype);
      }
    }
    bind_all(LeafKind::Count, 0, fmt::format("static_cast<long long>({}.count)", state),
             DType::Int64);
  }

  // target = expr over a state, in a block of its own: the same expression over another state must
  // not be taken for it.
  void assign(const std::string& target, Expr expr, DType dtype, const std::string& state,
              bool with_references) {
    emitter_.open();
    bind_state(state);
    if (with_references) {
      for (size_t r = 0; r < form_.references.size(); ++r) {
        const DType type = form_.references[r].value->dtype;
        bind_all(LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("old{}", r), type);
        bind_all(LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("new{}", r), type);
      }
    }
    emitter_.line(fmt::format("{} = {};", target, emitter_.emit_as(expr, dtype)));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("{{\n{}}}", text));
  }

  void declare_references(const std::string& old_state) {
    for (size_t r = 0; r < form_.references.size(); ++r) {
      const Reference& reference = form_.references[r];
      emitter_.line(fmt::format("{} old{}, new{};", value_type(reference.value->dtype), r, r));
      if (uses(LeafKind::OldResult, r)) {
        assign(fmt::format("old{}", r), reference.value, reference.value->dtype, old_state, false);
      }
    }
  }
  // Those that accumulators [0, done) of `state` settle and [0, done - 1) do not.
  void update_references(size_t done, const std::string& state) {
    for (size_t r = 0; r < form_.references.size(); ++r) {
      const Reference& reference = form_.references[r];
      if (static_cast<size_t>(reference.ready_after) != done) continue;
      if (!uses(LeafKind::NewResult, r)) continue;
      assign(fmt::format("new{}", r), reference.value, reference.value->dtype, state, false);
    }
  }

  // The state of the lanes that share it, from one of each.
  void merge_text() {
    emitter_.open();
    emitter_.line("State t;");
    const int lanes = std::min(config_.lanes, 32);
    emitter_.line(fmt::format("t.count = lanes_reduce<SumOp, {}>(s.count);", lanes));
    declare_references("s");
    update_references(0, "t");
    for (size_t k = 0; k < form_.accumulators.size(); ++k) {
      const Accumulator& a = form_.accumulators[k];
      if (a.transport) {
        assign(fmt::format("s.a{}", k), a.transport, a.dtype, "u", true);
      }
      emitter_.line(fmt::format("t.a{0} = lanes_reduce<{1}, {2}>(s.a{0});", k,
                                combiner_of(a.reduction), lanes));
      update_references(k + 1, "t");
    }
    const std::string text = emitter_.close();
    // Transports see the state as it was, whatever has been moved since.
    emitter_.line(
        fmt::format("auto merged = [&](State s) {{\nconst State u = s;\n{}return t;\n}};", text));
  }

  void merge_rest() {
    emitter_.line("s = merged(s);");
    if (!by_block()) return;
    emitter_.line(fmt::format(
        "if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = s;\n__syncthreads();\n"
        "s = (threadIdx.x & 31) < {} ? slots[threadIdx.x & 31] : identity();\ns = merged(s);",
        warps()));
    if (config_.cluster > 1) {
      emitter_.line(fmt::format(
          "if (threadIdx.x == 0) slots[{0}] = s;\nptx_cluster_arrive();\nptx_cluster_wait();\n"
          "s = (threadIdx.x & 31) < {1} ? remote(&slots[{0}], threadIdx.x & 31) : identity();\n"
          "s = merged(s);",
          warps(), config_.cluster));
    }
  }

  void merge_segments() {
    emitter_.line(fmt::format(
        "const State* states = reinterpret_cast<const State*>({0}) + row * segments;\n"
        "for (unsigned first = (threadIdx.x >> 5) * 31; first < segments; first += {1}) {{\n"
        "const unsigned one = first + (threadIdx.x & 31) - 1;\n"
        "if ((threadIdx.x & 31) != 0) s = one < segments ? states[one] : identity();\n"
        "s = merged(s);\n}}\nif ((threadIdx.x & 31) != 0) s = identity();",
        kernel_.buffer(states_), warps() * 31));
    merge_rest();
  }

  // Every group of `width` elements in a tile. `body` fills the text of a group.
  template <typename Body>
  void for_groups(bool keep, Body body) {
    emitter_.open();
    body();
    const std::string text = emitter_.close();
    const bool full = fills();
    emitter_.line(fmt::format(
        "#pragma unroll{}\nfor (int c = 0; c < {}; ++c) {{\nconst int first = tile + c * {} + "
        "lane * {};\n{}{}}}",
        config_.shared && !keep ? " 2" : "", config_.chunks, step(), config_.width,
        full             ? ""
        : config_.shared ? "if (first >= extent) break;\n"
                         : "if (first < extent) {\n",
        text + (full || config_.shared ? "" : "}\n")));
  }

  // Every tile is full, whatever the lane.
  bool fills() const {
    Expr length = form_.length();
    return config_.part == Part::Row && length->is_constant() && length->integer % tile() == 0;
  }

  // Every element of a group, with its reads bound.
  template <typename Body>
  void for_elements(bool output, Body body) {
    reads_.open_group(emitter_, output);
    emitter_.open();
    emitter_.line("const long long at = begin + first + v;");
    emitter_.bind(form_.stream, "at");
    reads_.bind_element(emitter_, output);
    body();
    const std::string text = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\nif (kVector || first + v < "
                    "extent) {{\n{}}}\n}}",
                    config_.width, text));
  }

  void fold() {
    emitter_.open();
    reads_.declare_tile(emitter_);
    emitter_.line("State t;\nint added = 0;");
    for_groups(true, [&] {
      reads_.load_group(emitter_);
      emitter_.line(
          fmt::format("added += kVector ? {0} : min(extent - first, {0});", config_.width));
    });
    reads_.await(emitter_);
    emitter_.line("t.count = s.count + added;");
    if (!config_.whole) {
      declare_references("s");
    } else {
      for (size_t r = 0; r < form_.references.size(); ++r) {
        emitter_.line(fmt::format("{} new{};", value_type(form_.references[r].value->dtype), r));
      }
    }
    update_references(0, "t");
    for (const Phase& phase : phases_) fold_phase(phase);
    emitter_.line("s = t;");
    const std::string text = emitter_.close();
    emit_tiles(text);
  }

  void emit_tiles(const std::string& text) {
    if (config_.whole) {
      emitter_.line("constexpr int tile = 0;\n" + text);
    } else {
      emitter_.line(
          fmt::format("#pragma unroll 1\nfor (int tile = 0; tile < extent; tile += {}) "
                      "{{\n{}}}",
                      tile(), text));
    }
  }

  void fold_phase(const Phase& phase) {
    for (size_t k = phase.begin; k < phase.end; ++k) {
      const Accumulator& a = form_.accumulators[k];
      emitter_.line(fmt::format("{} part{} = {};", type_of(a), k, identity_of_accumulator(a)));
    }
    for (size_t r = 0; r < form_.references.size(); ++r) {
      if (static_cast<size_t>(form_.references[r].ready_after) > phase.begin) continue;
      bind_all(LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("new{}", r),
               form_.references[r].value->dtype);
    }
    for_groups(false, [&] {
      for_elements(false, [&] {
        for (size_t k = phase.begin; k < phase.end; ++k) fold_element(k);
      });
    });
    for (size_t k = phase.begin; k < phase.end; ++k) {
      const Accumulator& a = form_.accumulators[k];
      std::string before = fmt::format("s.a{}", k);
      if (a.transport && !config_.whole) {
        before = fmt::format("moved{}", k);
        emitter_.line(fmt::format("{} {};", type_of(a), before));
        assign(before, a.transport, a.dtype, "s", true);
      }
      emitter_.line(config_.whole ? fmt::format("t.a{0} = part{0};", k)
                                  : fmt::format("t.a{0} = {1}::apply({2}, part{0});", k,
                                                combiner_of(a.reduction), before));
      update_references(k + 1, "t");
    }
  }

  void fold_element(size_t k) {
    const Accumulator& a = form_.accumulators[k];
    const std::string value = is_arg(a.reduction)
                                  ? fmt::format("{}{{{}, at}}", type_of(a), emitter_.emit(a.lift))
                                  : emitter_.emit_as(a.lift, a.dtype);
    emitter_.line(
        fmt::format("part{0} = {1}::apply(part{0}, {2});", k, combiner_of(a.reduction), value));
  }

  void finish() {
    bind_state("s");
    bind_all(LeafKind::Count, 0, length_, DType::Int64);
    for (size_t i = 0; i < form_.finish.size(); ++i) {
      const Stage& stage = form_.stages[i];
      const auto number = static_cast<int64_t>(i);
      const std::string value = emitter_.emit(form_.finish[i]);
      const DType dtype = form_.finish[i]->dtype;
      if (form_.length()->is_constant() || is_arg(stage.reduction)) {
        bind_all(LeafKind::Result, number, value, dtype);
        continue;
      }
      emitter_.line(fmt::format("const {} d{} = {} == 0 ? {} : {};", value_type(dtype), i, length_,
                                identity_of(stage.reduction, dtype), value));
      bind_all(LeafKind::Result, number, fmt::format("d{}", i), dtype);
    }
  }

  void write_row_outputs() {
    for (const auto& output : form_.outputs) {
      if (output.maps_back) continue;
      emitter_.open();
      bind_coordinates(emitter_, output.extra, "extra");
      const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
      emitter_.line(fmt::format("store({}, {}, {});", kernel_.buffer(output.value, true),
                                emitter_.emit(output.offset), value));
      const std::string text = emitter_.close();
      Expr count = product_of(pool_, extents_of(pool_, output.extra));
      emitter_.line(fmt::format("for (long long extra = lane; extra < {}; extra += {}) {{\n{}}}",
                                kernel_.size(count), config_.lanes * config_.cluster, text));
    }
  }

  void write_streamed_outputs() {
    if (!maps_back()) return;
    emitter_.open();
    for_groups(false, [&] { write_group(); });
    emit_tiles_of_outputs(emitter_.close());
  }

  void emit_tiles_of_outputs(const std::string& text) {
    if (config_.whole) {
      emitter_.line(text);
    } else {
      emit_tiles(text);
    }
  }

  void write_group() {
    size_t number = 0;
    for (const auto& output : form_.outputs) {
      if (!output.maps_back) continue;
      emitter_.line(fmt::format("{} y{}[{}];", value_type(kernel_.dtype_of(output.value)), number++,
                                config_.width));
    }
    for_elements(true, [&] {
      size_t i = 0;
      for (const auto& output : form_.outputs) {
        if (!output.maps_back) continue;
        const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
        if (reads_.output_base(output)) {
          emitter_.line(fmt::format("y{}[v] = {};", i, value));
        } else {
          emitter_.line(fmt::format("store({}, {}, {});", kernel_.buffer(output.value, true),
                                    emitter_.emit(output.offset), value));
        }
        ++i;
      }
    });
    size_t i = 0;
    for (const auto& output : form_.outputs) {
      if (!output.maps_back) continue;
      if (Expr base = reads_.output_base(output)) {
        emitter_.line(
            fmt::format("send<{}, kVector>({} + {} + begin + first, y{}, extent - first);",
                        config_.width, kernel_.buffer(output.value, true), emitter_.emit(base), i));
      }
      ++i;
    }
  }

  ExprPool& pool_;
  const RowForm& form_;
  FoldConfig config_;
  int64_t states_;
  KernelText kernel_;
  Emitter emitter_;
  std::vector<Phase> phases_;
  FoldReads reads_;
  std::vector<Expr> leaves_;
  std::string length_;
};

}  // namespace

KernelLaunch fold_kernel(StepBuilder& builder, const RowForm& form, const FoldConfig& config,
                         int64_t states) {
  return FoldText(builder, form, config, states).launch();
}

}  // namespace redfuser
