// The text of a row kernel: load values that passes share, reduce pass by pass, finish, map back.
#include "codegen/rows/multi_pass.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/leaf_names.h"
#include "codegen/text/operation_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

class MultiPassText {
 public:
  MultiPassText(StepBuilder& builder, const FlatStreaming& form, const MultiPassConfig& config)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        config_(config),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        leaves_(emitter_),
        phases_(phases_of(form)) {
    if (config.chunks > 0) shared_ = shared_values(form, phases_);
    leaves_.add(form);
    emitter_.set_ranked_reads(
        [this](ir::Expr read, const std::string& rank) { return ranked_result(read, rank); });
  }

  KernelLaunch launch() {
    length_ = kernel_.size(form_.length());
    place();
    leaves_.bind(ir::LeafKind::Count, 0, length_, DType::Int64);
    if (!shared_.empty()) load_shared();
    for (const Phase& phase : phases_) run_phase(phase);
    finish();
    write_row_outputs(emitter_, kernel_, form_, config_.lanes * config_.cluster);
    write_streamed_outputs();
    if (config_.cluster > 1) emitter_.line("ptx_cluster_arrive();\nptx_cluster_wait();");
    const std::string text = emitter_.close();
    std::string before = fmt::format("const bool vector = {};\n", vector_condition());
    if (config_.lanes > 32) {
      before += fmt::format("__shared__ __align__(16) char slots[{}];\n", all_slot_bytes());
    }
    KernelLaunch launch = kernel_.launch(config_.chunks == 0   ? "row_passes"
                                         : config_.cluster > 1 ? "row_cluster"
                                                               : "row_resident",
                                         form_.comment, {}, "", before + text, config_.threads);
    launch.config = config_.parameters();
    launch.cluster = config_.cluster;
    launch.static_shared = config_.lanes > 32 ? all_slot_bytes() : 0;
    ir::Expr rows = product_of(pool_, extents_of(pool_, form_.cascade.rows));
    launch.grid[0] = config_.lanes == 32 ? ceil_div(pool_, rows, config_.threads / 32)
                                         : pool_.mul(rows, pool_.integer(config_.cluster));
    return launch;
  }

 private:
  int warps() const { return config_.lanes / 32; }
  int slot_bytes() const { return 16 * (warps() + 1); }
  int all_slot_bytes() const { return std::max(slots_, 1) * slot_bytes(); }
  bool ranked(const cascade::Accumulator& a) const { return is_ranked(a.reduction); }

  // The row of this thread, and its lane in the row.
  void place() {
    if (config_.lanes == 32) {
      ir::Expr rows = product_of(pool_, extents_of(pool_, form_.cascade.rows));
      emitter_.line(fmt::format("const long long row = blockIdx.x * {}ll + (threadIdx.x >> 5);",
                                config_.threads / 32));
      emitter_.line(fmt::format("if (row >= {}) return;", kernel_.size(rows)));
      emitter_.line("const int lane = threadIdx.x & 31;");
    } else if (config_.cluster > 1) {
      emitter_.line(fmt::format("const long long row = blockIdx.x / {};", config_.cluster));
      emitter_.line(
          fmt::format("const int lane = ptx_cluster_rank() * {} + threadIdx.x;", config_.threads));
    } else {
      emitter_.line("const long long row = blockIdx.x;\nconst int lane = threadIdx.x;");
    }
    bind_coordinates(emitter_, form_.cascade.rows, "row");
  }

  // Runs `body` for every element of this thread. With `load`, the streamed reads of `roots` are
  // loaded as vectors. `around` adds text before and after the elements of a group.
  template <typename Body, typename After>
  void for_elements(const std::vector<ir::Expr>& roots, Body body, After after) {
    emitter_.open();
    emitter_.line(fmt::format("const long long valid = {} - first;", length_));
    const auto loaded = load_vectors(roots);
    emitter_.open();
    emitter_.line(fmt::format("const long long at = min_of(first + v, {} - 1);", length_));
    emitter_.bind(form_.cascade.stream, "at");
    for (auto& [read, name] : loaded) emitter_.bind(read, name + "[v]");
    if (bind_shared_) {
      for (size_t i = 0; i < shared_.size(); ++i) {
        emitter_.bind(shared_[i], fmt::format("kept{}[c][v]", i));
      }
    }
    body();
    const std::string elements = emitter_.close();
    emitter_.line(fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}",
                              config_.width, elements));
    after();
    const std::string group = emitter_.close();
    const int step = config_.lanes * config_.width * config_.cluster;
    if (config_.chunks > 0) {
      emitter_.line(
          fmt::format("#pragma unroll\nfor (int c = 0; c < {}; ++c) {{\nconst long long "
                      "first = c * {}ll + lane * {};\nif (first < {}) {{\n{}}}\n}}",
                      config_.chunks, step, config_.width, length_, group));
    } else {
      emitter_.line(
          fmt::format("for (long long first = lane * {}ll; first < {}; first += {}) {{\n{}}}",
                      config_.width, length_, step, group));
    }
  }
  template <typename Body>
  void for_elements(const std::vector<ir::Expr>& roots, Body body) {
    for_elements(roots, body, [] {});
  }

  ir::Expr consecutive(ir::Expr offset) {
    auto affine = affine_in(pool_, offset, form_.cascade.stream);
    if (!affine || !affine->stride->is_constant(1) ||
        affine->base->depends_on(form_.cascade.stream)) {
      return nullptr;
    }
    return affine->base;
  }

  void require(const std::string& buffer, ir::Expr base) {
    if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
      aligned_.push_back(buffer);
    }
    for (ir::Expr unit : offset_units(pool_, base)) units_.push_back(unit);
  }

  std::vector<std::pair<ir::Expr, std::string>> load_vectors(const std::vector<ir::Expr>& roots) {
    std::vector<std::pair<ir::Expr, std::string>> loaded;
    std::set<ir::Expr> seen;
    std::function<void(ir::Expr)> go = [&](ir::Expr e) {
      if (!seen.insert(e).second) return;
      if (bind_shared_ && std::find(shared_.begin(), shared_.end(), e) != shared_.end()) return;
      for (ir::Expr arg : e->args) go(arg);
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      ir::Expr base = consecutive(e->args[0]);
      if (!base || !base_available(base)) return;
      const std::string buffer = kernel_.buffer(e->integer), name = emitter_.fresh("g");
      require(buffer, base);
      const std::string start = emitter_.emit(base);
      emitter_.line(
          fmt::format("{0} {1}[{2}];\nload_group<{2}>({1}, {3}, {4} + first, valid, vector);",
                      value_type(e->dtype), name, config_.width, buffer, start));
      loaded.emplace_back(e, name);
    };
    for (ir::Expr root : roots) go(root);
    return loaded;
  }

  // Whether it does not depend on the axes of inner reductions.
  bool base_available(ir::Expr base) const {
    bool available = true;
    visit(base, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Axis) return;
      available &= std::find(form_.cascade.rows.begin(), form_.cascade.rows.end(), e) !=
                   form_.cascade.rows.end();
    });
    return available;
  }

  std::string vector_condition() {
    if (aligned_.empty() || config_.width == 1) return "false";
    units_.push_back(form_.length());
    return all_aligned(kernel_.multiples(units_, config_.width), aligned_);
  }

  void load_shared() {
    for (size_t i = 0; i < shared_.size(); ++i) {
      emitter_.line(fmt::format("{} kept{}[{}][{}];", value_type(shared_[i]->dtype), i,
                                config_.chunks, config_.width));
    }
    for_elements(shared_, [&] {
      for (size_t i = 0; i < shared_.size(); ++i) {
        emitter_.line(fmt::format("kept{}[c][v] = {};", i, emitter_.emit(shared_[i])));
      }
    });
    bind_shared_ = true;
  }

  std::string guard() const {
    ir::Expr length = form_.length();
    if (length->is_constant() && length->integer % config_.width == 0) return "";
    return "if (v < valid) ";
  }

  std::string reduced(const std::string& value, ir::Reduction reduction, const std::string& slots) {
    const std::string_view op = combiner_of(reduction);
    if (config_.lanes == 32) return fmt::format("warp_reduce<{}>({})", op, value);
    if (config_.cluster > 1) {
      return fmt::format("cluster_reduce<{}, {}, {}>({}, {})", config_.cluster, warps(), op, value,
                         slots);
    }
    return fmt::format("block_reduce<{}, {}>({}, {})", warps(), op, value, slots);
  }

  std::string new_slots() { return fmt::format("slots + {}", slots_++ * slot_bytes()); }

  void run_phase(const Phase& phase) {
    std::vector<ir::Expr> roots;
    std::vector<size_t> plain;
    for (size_t k = phase.begin; k < phase.end; ++k) {
      const cascade::Accumulator& a = form_.accumulators[k];
      if (ranked(a)) continue;
      plain.push_back(k);
      roots.push_back(a.lift);
      if (is_arg(a.reduction)) {
        const auto type = value_type(a.lift->dtype);
        emitter_.line(fmt::format("Ranked<{0}> a{1}{{0, -1}};", type, k));
      } else {
        emitter_.line(
            fmt::format("{} a{} = {};", value_type(a.dtype), k, identity_of(a.reduction, a.dtype)));
      }
    }
    if (!plain.empty()) {
      for_elements(roots, [&] {
        for (size_t k : plain) fold(k);
      });
    }
    for (size_t k : plain) {
      const cascade::Accumulator& a = form_.accumulators[k];
      const std::string name = fmt::format("a{}", k);
      const std::string slots = config_.lanes == 32 ? "" : new_slots();
      emitter_.line(fmt::format("{} = {};", name, reduced(name, a.reduction, slots)));
      if (is_arg(a.reduction)) {
        leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k),
                     fmt::format("max_of(a{}.index, 0ll)", k), DType::Int64);
      } else {
        leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), name, a.dtype);
      }
    }
    for (size_t k = phase.begin; k < phase.end; ++k) {
      if (ranked(form_.accumulators[k])) select_ranks(k);
    }
    make_references(phase.end);
  }

  void fold(size_t k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const std::string_view op = combiner_of(a.reduction);
    if (is_arg(a.reduction)) {
      emitter_.line(fmt::format("{3}a{0} = {1}::apply(a{0}, Ranked<{4}>{{{2}, at}});", k, op,
                                emitter_.emit(a.lift), guard(), value_type(a.lift->dtype)));
    } else {
      emitter_.line(fmt::format("{3}a{0} = {1}::apply(a{0}, {2});", k, op,
                                emitter_.emit_as(a.lift, a.dtype), guard()));
    }
  }

  // The first k elements in order of rank, one reduction for each.
  void select_ranks(size_t k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const auto type = value_type(a.lift->dtype);
    const bool large = wants_large(a.reduction);
    emitter_.line(fmt::format("Ranked<{}> top{}[{}];", type, k, std::max<int64_t>(a.k, 1)));
    emitter_.open();
    emitter_.line(fmt::format("Ranked<{0}> best{{0, -1}};", type));
    for_elements({a.lift}, [&] {
      emitter_.line(fmt::format("const Ranked<{}> here{{{}, at}};", type, emitter_.emit(a.lift)));
      emitter_.line(
          fmt::format("{}if ((rank == 0 || ranks_before<{}>(last, here)) && "
                      "ranks_before<{}>(here, best)) best = here;",
                      guard(), large, large));
    });
    std::string slots;
    if (config_.lanes > 32) {
      slots = fmt::format("slots + ({} + (rank & 1)) * {}", slots_, slot_bytes());
      slots_ += 2;
    }
    emitter_.line(fmt::format("best = {};", reduced("best", a.reduction, slots)));
    emitter_.line(fmt::format("top{}[rank] = last = best;\n", k));
    const std::string text = emitter_.close();
    emitter_.line(
        fmt::format("{{\nRanked<{0}> last{{0, -1}};\n#pragma unroll 1\nfor (int rank = "
                    "0; rank < {1}; ++rank) {{\n{2}}}\n}}",
                    type, a.k, text));
  }

  std::string ranked_result(ir::Expr read, const std::string& rank) {
    const int64_t code = -read->integer - 2;
    ir::Expr finish = form_.finish[static_cast<size_t>(code / 2)];
    RF_CHECK(finish->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
    const std::string entry = fmt::format("top{}[{}]", finish->integer, rank);
    return fmt::format("{0}.index < 0 ? 0 : {0}.{1}", entry, code % 2 ? "index" : "value");
  }

  void make_references(size_t done) {
    for (size_t r = 0; r < form_.references.size(); ++r) {
      const cascade::Reference& reference = form_.references[r];
      if (static_cast<size_t>(reference.ready_after) > done || bound_references_.count(r)) continue;
      bound_references_.insert(r);
      leaves_.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), emitter_.emit(reference.value),
                   reference.value->dtype);
    }
  }

  void finish() {
    for (size_t i = 0; i < form_.finish.size(); ++i) {
      const cascade::Stage& stage = form_.cascade.stages[i];
      if (is_ranked(stage.reduction)) continue;
      const auto number = static_cast<int64_t>(i);
      const std::string value = emitter_.emit(form_.finish[i]);
      const DType dtype = form_.finish[i]->dtype;
      if (form_.length()->is_constant() || is_arg(stage.reduction)) {
        leaves_.bind(ir::LeafKind::Result, number, value, dtype);
        continue;
      }
      emitter_.line(fmt::format("const {} d{} = {} == 0 ? {} : {};", value_type(dtype), i, length_,
                                identity_of(stage.reduction, dtype), value));
      leaves_.bind(ir::LeafKind::Result, number, fmt::format("d{}", i), dtype);
    }
  }

  void write_streamed_outputs() {
    std::vector<const FlatStreaming::Output*> outputs;
    std::vector<ir::Expr> roots;
    for (const auto& output : form_.outputs) {
      if (!output.maps_back) continue;
      outputs.push_back(&output);
      roots.push_back(output.body);
    }
    if (outputs.empty()) return;
    for_elements(
        roots,
        [&] {
          for (size_t i = 0; i < outputs.size(); ++i) {
            const DType dtype = kernel_.dtype_of(outputs[i]->value);
            const std::string value = emitter_.emit_as(outputs[i]->body, dtype);
            if (consecutive(outputs[i]->offset)) {
              emitter_.line(fmt::format("y{}[v] = {};", i, value));
            } else {
              emitter_.line(fmt::format("if (v < valid) store({}, {}, {});",
                                        kernel_.buffer(outputs[i]->value, true),
                                        emitter_.emit(outputs[i]->offset), value));
            }
          }
        },
        [&] {
          for (size_t i = 0; i < outputs.size(); ++i) {
            ir::Expr base = consecutive(outputs[i]->offset);
            if (!base) continue;
            const std::string buffer = kernel_.buffer(outputs[i]->value, true);
            require(buffer, base);
            emitter_.line(fmt::format("store_group<{}>({}, {} + first, y{}, valid, vector);",
                                      config_.width, buffer, emitter_.emit(base), i));
          }
        },
        outputs);
  }

  // As above, with the arrays that gather a group's results.
  template <typename Body, typename After>
  void for_elements(const std::vector<ir::Expr>& roots, Body body, After after,
                    const std::vector<const FlatStreaming::Output*>& outputs) {
    std::string arrays;
    for (size_t i = 0; i < outputs.size(); ++i) {
      arrays += fmt::format("{} y{}[{}];\n", value_type(kernel_.dtype_of(outputs[i]->value)), i,
                            config_.width);
    }
    emitter_.line(arrays);
    for_elements(roots, body, after);
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const FlatStreaming& form_;
  MultiPassConfig config_;
  KernelText kernel_;
  Emitter emitter_;
  LeafNames leaves_;
  std::vector<Phase> phases_;
  std::vector<ir::Expr> shared_;
  std::string length_;
  std::vector<std::string> aligned_;
  std::vector<ir::Expr> units_;
  std::set<size_t> bound_references_;
  int slots_ = 0;
  bool bind_shared_ = false;
};

}  // namespace

KernelLaunch multi_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                               const MultiPassConfig& config) {
  return MultiPassText(builder, form, config).launch();
}

}  // namespace redfuser::codegen
