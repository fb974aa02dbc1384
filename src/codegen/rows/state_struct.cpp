#include "codegen/rows/state_struct.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

StateStruct::StateStruct(Emitter& emitter, const FlatStreaming& form,
                         const SinglePassConfig& config)
    : emitter_(emitter), form_(form), config_(config), counts_(counts(form)), leaves_(emitter) {
  leaves_.add(form);
}

std::string StateStruct::type_of(const cascade::Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("Ranked<{}>", value_type(a.lift->dtype));
  return std::string(value_type(a.dtype));
}
std::string StateStruct::identity_of_accumulator(const cascade::Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("{}{{0, -1}}", type_of(a));
  return identity_of(a.reduction, a.dtype);
}

std::string StateStruct::declaration() const {
  std::string text = "struct State {\n";
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    text += fmt::format("  alignas(8) {} a{};\n", type_of(form_.accumulators[k]), k);
  }
  return text + (counts_ ? "  alignas(8) int count;\n};\n" : "};\n");
}
void StateStruct::define() {
  std::string text = "auto identity = [] {\nState s;\n";
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    text += fmt::format("s.a{} = {};\n", k, identity_of_accumulator(form_.accumulators[k]));
  }
  emitter_.line(text + (counts_ ? "s.count = 0;\nreturn s;\n};" : "return s;\n};"));
  define_merge();
}

bool StateStruct::uses(ir::LeafKind kind, size_t reference) const {
  for (const cascade::Accumulator& a : form_.accumulators) {
    for (ir::Expr root : {a.lift, a.transport}) {
      if (!root) continue;
      bool found = false;
      visit(root, [&](ir::Expr e) {
        found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == kind &&
                 e->integer == static_cast<int64_t>(reference);
      });
      if (found) return true;
    }
  }
  return false;
}

void StateStruct::bind_state(const std::string& state) {
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const auto number = static_cast<int64_t>(k);
    if (is_arg(a.reduction)) {
      bind(ir::LeafKind::State, number, fmt::format("max_of({}.a{}.index, 0ll)", state, k),
           DType::Int64);
    } else {
      bind(ir::LeafKind::State, number, fmt::format("{}.a{}", state, k), a.dtype);
    }
  }
  if (!counts_) return;
  bind(ir::LeafKind::Count, 0, fmt::format("static_cast<long long>({}.count)", state),
       DType::Int64);
}

// target = expr over a state, in a block of its own: the same expression over another state must
// not be taken for it.
void StateStruct::assign(const std::string& target, ir::Expr expr, DType dtype,
                         const std::string& state, bool with_references) {
  emitter_.open();
  bind_state(state);
  if (with_references) {
    for (size_t r = 0; r < form_.references.size(); ++r) {
      const DType type = form_.references[r].value->dtype;
      bind(ir::LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("old{}", r), type);
      bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("new{}", r), type);
    }
  }
  emitter_.line(fmt::format("{} = {};", target, emitter_.emit_as(expr, dtype)));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void StateStruct::declare_old_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (!moves(r)) continue;
    const ir::Expr value = form_.references[r].value;
    emitter_.line(fmt::format("{} old{};", value_type(value->dtype), r));
    assign(fmt::format("old{}", r), value, value->dtype, "s", false);
  }
}
void StateStruct::declare_new_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    emitter_.line(fmt::format("{} new{};", value_type(form_.references[r].value->dtype), r));
  }
}
void StateStruct::update_references(size_t done, const std::string& state) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const cascade::Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) != done) continue;
    if (!moves(r) && !uses(ir::LeafKind::NewResult, r)) continue;
    assign(fmt::format("new{}", r), reference.value, reference.value->dtype, state, false);
  }
}

void StateStruct::define_merge() {
  emitter_.open();
  emitter_.line("State t;");
  if (counts_) emitter_.line("t.count = lanes_reduce<SumOp, kLanes>(s.count);");
  declare_old_references();
  declare_new_references();
  update_references(0, "t");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    if (a.transport) move(fmt::format("s.a{}", k), a, "u");
    emitter_.line(
        fmt::format("t.a{0} = lanes_reduce<{1}, kLanes>(s.a{0});", k, combiner_of(a.reduction)));
    update_references(k + 1, "t");
  }
  const std::string text = emitter_.close();
  // Transports see the state as it was, whatever has been moved since.
  for (const int lanes : merged_lanes()) {
    emitter_.line(
        fmt::format("auto merged{0} = [&](State s) {{\nconstexpr int kLanes = {0};\n"
                    "const State u = s;\n{1}return t;\n}};",
                    lanes, text));
  }
}

// Of how many lanes the states are merged: of a row in a warp, of warps, blocks and segments.
std::set<int> StateStruct::merged_lanes() const {
  std::set<int> result{std::min(config_.lanes, 32)};
  if (config_.lanes > 32) result.insert(config_.threads / 32);
  if (config_.cluster > 1) result.insert(config_.cluster);
  return result;
}

void StateStruct::merge_block() {
  emitter_.line(fmt::format("s = merged{}(s);", std::min(config_.lanes, 32)));
  if (config_.lanes > 32) merge_warps();
}

void StateStruct::merge_warps() {
  const int warps = config_.threads / 32;
  emitter_.line(
      fmt::format("if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = s;\n__syncthreads();\n"
                  "s = merged{}(slots[threadIdx.x & {}]);",
                  warps, warps - 1));
  if (config_.cluster > 1) {
    emitter_.line(
        fmt::format("mailbox.exchange(s);\n"
                    "s = merged{}(mailbox.letters[threadIdx.x & {}]);",
                    config_.cluster, config_.cluster - 1));
  }
}

void StateStruct::merge_segments(const std::string& stored) {
  emitter_.line(fmt::format(
      "const State* states = reinterpret_cast<const State*>({0}) + row * segments;\n"
      "s = threadIdx.x < segments ? states[threadIdx.x] : identity();\ns = merged32(s);\n"
      "for (unsigned first = {1} + (threadIdx.x >> 5) * 31; first < segments; first += {2}) {{\n"
      "const unsigned one = first + (threadIdx.x & 31) - 1;\n"
      "if ((threadIdx.x & 31) != 0) s = one < segments ? states[one] : identity();\n"
      "s = merged32(s);\n}}",
      stored, config_.threads, config_.threads / 32 * 31));
  merge_warps();
}

void StateStruct::renew_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (moves(r)) emitter_.line(fmt::format("old{0} = new{0};", r));
  }
}

void StateStruct::move(const std::string& target, const cascade::Accumulator& a,
                       const std::string& state) {
  assign(target, a.transport, a.dtype, state, true);
}

}  // namespace redfuser::codegen
