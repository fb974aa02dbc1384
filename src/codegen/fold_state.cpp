#include "codegen/fold_state.h"

#include <algorithm>

#include "base/error.h"

namespace redfuser {

FoldState::FoldState(Emitter& emitter, const RowForm& form, const FoldConfig& config)
    : emitter_(emitter), form_(form), config_(config), leaves_(emitter) {
  leaves_.add(form);
}

std::string FoldState::type_of(const Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("Ranked<{}>", value_type(a.lift->dtype));
  return std::string(value_type(a.dtype));
}
std::string FoldState::identity_of_accumulator(const Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("{}{{0, -1}}", type_of(a));
  return identity_of(a.reduction, a.dtype);
}

std::string FoldState::declaration() const {
  std::string text = "struct State {\n";
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    text += fmt::format("  alignas(8) {} a{};\n", type_of(form_.accumulators[k]), k);
  }
  return text + "  alignas(8) int count;\n};\n";
}
void FoldState::define() {
  std::string text = "auto identity = [] {\nState s;\n";
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    text += fmt::format("s.a{} = {};\n", k, identity_of_accumulator(form_.accumulators[k]));
  }
  emitter_.line(text + "s.count = 0;\nreturn s;\n};");
  define_merge();
}

bool FoldState::uses(LeafKind kind, size_t reference) const {
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

void FoldState::bind_state(const std::string& state) {
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const Accumulator& a = form_.accumulators[k];
    const auto number = static_cast<int64_t>(k);
    if (is_arg(a.reduction)) {
      bind(LeafKind::State, number, fmt::format("max_of({}.a{}.index, 0ll)", state, k),
           DType::Int64);
    } else {
      bind(LeafKind::State, number, fmt::format("{}.a{}", state, k), a.dtype);
    }
  }
  bind(LeafKind::Count, 0, fmt::format("static_cast<long long>({}.count)", state), DType::Int64);
}

// target = expr over a state, in a block of its own: the same expression over another state must
// not be taken for it.
void FoldState::assign(const std::string& target, Expr expr, DType dtype, const std::string& state,
                       bool with_references) {
  emitter_.open();
  bind_state(state);
  if (with_references) {
    for (size_t r = 0; r < form_.references.size(); ++r) {
      const DType type = form_.references[r].value->dtype;
      bind(LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("old{}", r), type);
      bind(LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("new{}", r), type);
    }
  }
  emitter_.line(fmt::format("{} = {};", target, emitter_.emit_as(expr, dtype)));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void FoldState::declare_old_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (!moves(r)) continue;
    const Expr value = form_.references[r].value;
    emitter_.line(fmt::format("{} old{};", value_type(value->dtype), r));
    assign(fmt::format("old{}", r), value, value->dtype, "s", false);
  }
}
void FoldState::declare_new_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    emitter_.line(fmt::format("{} new{};", value_type(form_.references[r].value->dtype), r));
  }
}
void FoldState::update_references(size_t done, const std::string& state) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) != done) continue;
    if (!moves(r) && !uses(LeafKind::NewResult, r)) continue;
    assign(fmt::format("new{}", r), reference.value, reference.value->dtype, state, false);
  }
}

void FoldState::define_merge() {
  emitter_.open();
  emitter_.line("State t;");
  const int lanes = std::min(config_.lanes, 32);
  emitter_.line(fmt::format("t.count = lanes_reduce<SumOp, {}>(s.count);", lanes));
  declare_old_references();
  declare_new_references();
  update_references(0, "t");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const Accumulator& a = form_.accumulators[k];
    if (a.transport) move(fmt::format("s.a{}", k), a, "u");
    emitter_.line(fmt::format("t.a{0} = lanes_reduce<{1}, {2}>(s.a{0});", k,
                              combiner_of(a.reduction), lanes));
    update_references(k + 1, "t");
  }
  const std::string text = emitter_.close();
  // Transports see the state as it was, whatever has been moved since.
  emitter_.line(
      fmt::format("auto merged = [&](State s) {{\nconst State u = s;\n{}return t;\n}};", text));
}

void FoldState::merge_block() {
  const int warps = config_.threads / 32;
  emitter_.line("s = merged(s);");
  if (config_.lanes <= 32) return;
  emitter_.line(fmt::format(
      "if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = s;\n__syncthreads();\n"
      "s = (threadIdx.x & 31) < {} ? slots[threadIdx.x & 31] : identity();\ns = merged(s);",
      warps));
  if (config_.cluster > 1) {
    emitter_.line(fmt::format(
        "if (threadIdx.x == 0) slots[{0}] = s;\nptx_cluster_arrive();\nptx_cluster_wait();\n"
        "s = (threadIdx.x & 31) < {1} ? remote(&slots[{0}], threadIdx.x & 31) : identity();\n"
        "s = merged(s);",
        warps, config_.cluster));
  }
}

void FoldState::merge_segments(const std::string& stored) {
  emitter_.line(fmt::format(
      "const State* states = reinterpret_cast<const State*>({0}) + row * segments;\n"
      "for (unsigned first = (threadIdx.x >> 5) * 31; first < segments; first += {1}) {{\n"
      "const unsigned one = first + (threadIdx.x & 31) - 1;\n"
      "if ((threadIdx.x & 31) != 0) s = one < segments ? states[one] : identity();\n"
      "s = merged(s);\n}}\nif ((threadIdx.x & 31) != 0) s = identity();",
      stored, config_.threads / 32 * 31));
  merge_block();
}

void FoldState::renew_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (moves(r)) emitter_.line(fmt::format("old{0} = new{0};", r));
  }
}

void FoldState::move(const std::string& target, const Accumulator& a, const std::string& state) {
  assign(target, a.transport, a.dtype, state, true);
}

}  // namespace redfuser
