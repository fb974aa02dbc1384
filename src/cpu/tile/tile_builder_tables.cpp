// Functions of one value of 8 bits as tables of their 256 values: what stands between two
// quantisations of a tensor is such a function, however long.
#include <algorithm>

#include "cpu/machine/this_machine.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"
#include "ir/scalars/integers.h"

namespace redfuser::cpu {
namespace {

// Elements of a program from which on a table may be worth its making.
constexpr int64_t kFewest = 4 * ByteTable::kValues;

bool is_byte(ir::Expr expr) { return expr->dtype == DType::Int8 || expr->dtype == DType::UInt8; }

// Whether the operands decide the value.
bool is_function(ir::Expr expr) {
  switch (expr->op) {
    case ir::ExprOp::Symbol:
    case ir::ExprOp::Axis:
    case ir::ExprOp::Leaf:
    case ir::ExprOp::Read:
    case ir::ExprOp::Reduce:
      return false;
    default:
      return true;
  }
}

// Microseconds of an element, besides those of loads and stores.
double element_time(const TileProgram& program) {
  constexpr double kBytes = 12;  // of two operands and a result
  const select::CpuMachine& machine = this_machine();
  double time = 0;
  for (const auto& instruction : program.block) {
    const Instruction* i = instruction.get();
    const auto* unary = dynamic_cast<const Unary*>(i);
    const auto* binary = dynamic_cast<const Binary*>(i);
    const bool special = (unary != nullptr && unary->special) || (binary && binary->special);
    if (dynamic_cast<const Convert*>(i) != nullptr) {
      time += 1 / machine.convert_rate;
    } else if (special) {
      time += 1 / machine.special_rate;
    } else if (unary != nullptr || binary != nullptr || dynamic_cast<const Select*>(i) != nullptr) {
      time += kBytes / machine.l1_rate;
    }
  }
  return time;
}

}  // namespace

ir::Expr TileBuilder::byte_source(ir::Expr expr) {
  if (expr->is_constant()) return nullptr;
  if (!is_function(expr)) return expr;
  const auto found = byte_sources_.find(expr);
  if (found != byte_sources_.end()) return found->second;
  ir::Expr source = nullptr;
  for (ir::Expr arg : expr->args) {
    ir::Expr one = byte_source(arg);
    if (one == nullptr || one == source) continue;
    if (source != nullptr || !is_byte(one)) {
      source = expr;
      break;
    }
    source = one;
  }
  return byte_sources_[expr] = source;
}

std::optional<ByteTable> TileBuilder::table_of(ir::ExprPool& pool, ir::Expr expr, ir::Expr source,
                                               double* time) {
  ir::Expr byte = pool.leaf(ir::LeafKind::Result, 0, source->dtype);
  ir::Expr axis = pool.shared_axis("byte", pool.integer(ByteTable::kValues));
  TileProgram program;
  TileBuilder builder(pool, program, [](int64_t) { return Dims(); });
  builder.tables_ = false;
  const int scope = builder.fixed_scope({axis});
  const RegisterId in = builder.make_view(Elem::I32, Shape::Columns, scope);
  builder.bind(byte, in);
  const RegisterId out = builder.compile(pool.substitute(expr, {{source, byte}}));
  if (out == in || builder.info(out).shape != Shape::Columns ||
      builder.info(out).elem != elem_of(expr->dtype)) {
    return std::nullopt;
  }
  if (time != nullptr) *time = element_time(program);
  program.registers[static_cast<size_t>(out)].dense = false;
  program.layout();

  const int64_t lowest = ir::lowest_word(source->dtype);
  int32_t bytes[ByteTable::kValues];
  for (int64_t i = 0; i < ByteTable::kValues; ++i) bytes[i] = static_cast<int32_t>(lowest + i);
  uint32_t elements[ByteTable::kValues];
  std::vector<char> scratch(static_cast<size_t>(program.scratch_bytes()) + 64);
  const auto begin = reinterpret_cast<uintptr_t>(scratch.data());
  TileContext machine;
  program.prepare(machine, {}, {}, scratch.data() + (64 - begin % 64) % 64, nullptr);
  machine.slots[static_cast<size_t>(in)] = {reinterpret_cast<char*>(bytes), 0, nullptr};
  machine.slots[static_cast<size_t>(out)] = {reinterpret_cast<char*>(elements), 0, nullptr};
  program.run(machine, 0, 1);
  return ByteTable(elements, lowest);
}

RegisterId TileBuilder::build_table(ir::Expr expr) {
  const Elem elem = elem_of(expr->dtype);
  if (!is_function(expr) || expr->args.empty() || size_of(elem) != sizeof(uint32_t)) {
    return kNoRegister;
  }
  ir::Expr source = byte_source(expr);
  if (source == nullptr || source == expr || !is_byte(source)) return kNoRegister;
  const Variation v = variation(source);
  if (!has_columns(v.shape)) return kNoRegister;
  const int64_t columns = program_.scopes[static_cast<size_t>(v.scope)].extent;
  if (columns * (has_rows(v.shape) ? extent_of(rows_) : 1) < kFewest) return kNoRegister;
  double time = 0;
  const auto table = table_of(pool_, expr, source, &time);
  if (!table || time <= 1 / this_machine().lookup_rate) return kNoRegister;
  const RegisterId index = compile(source);
  const Register from = info(index);
  const RegisterId result = make(elem, from.shape, from.scope, from.depth);
  emit(std::make_unique<Lookup>(result, index, *table), from.depth);
  return result;
}

}  // namespace redfuser::cpu
