#include "cpu/tile/tile_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "cpu/tile/specialize.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::cpu {

TileBuilder::TileBuilder(ir::ExprPool& pool, TileProgram& program, DimsOf dims)
    : pool_(pool), program_(program), dims_(std::move(dims)) {
  stack_.push_back({&program.block, {}, {}, {}, {}});
}

int TileBuilder::set_outer(ir::Expr axis) {
  Role role;
  role.slot = program_.axis_slots++;
  roles_[axis->integer] = role;
  return role.slot;
}

void TileBuilder::set_rows(std::vector<ir::Expr> axes) {
  rows_ = std::move(axes);
  int64_t inner = 1;
  for (size_t i = rows_.size(); i-- > 0;) {
    Role role;
    role.kind = Role::Row;
    role.inner = inner;
    role.extent = extent_of(rows_[i]);
    inner *= role.extent;
    roles_[rows_[i]->integer] = role;
  }
}

int TileBuilder::looped_scope(const std::vector<ir::Expr>& axes) {
  const int scope = static_cast<int>(program_.scopes.size());
  Scope& s = program_.scopes.emplace_back();
  s.axes = axes;
  s.extent = s.tile = extent_of(axes);
  int64_t inner = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    Role role;
    role.kind = Role::Column;
    role.scope = scope;
    role.inner = inner;
    role.extent = extent_of(axes[i]);
    inner *= role.extent;
    roles_[axes[i]->integer] = role;
  }
  return scope;
}

int TileBuilder::fixed_scope(const std::vector<ir::Expr>& axes) {
  std::vector<int64_t> key;
  for (ir::Expr axis : axes) key.push_back(axis->integer);
  auto found = fixed_scopes_.find(key);
  if (found != fixed_scopes_.end()) return found->second;
  return fixed_scopes_[key] = looped_scope(axes);
}

void TileBuilder::at_depth(int depth, const std::function<void()>& body) {
  const auto keep = stack_.begin() + depth + 1;
  std::vector<OpenBlock> tail(std::make_move_iterator(keep), std::make_move_iterator(stack_.end()));
  stack_.erase(keep, stack_.end());
  body();
  for (OpenBlock& block : tail) stack_.push_back(std::move(block));
}

void TileBuilder::in_column_loop(int scope, int depth, const std::function<void()>& body,
                                 bool partial) {
  for (ir::Expr axis : program_.scopes[static_cast<size_t>(scope)].axes) {
    roles_[axis->integer].depth = depth + 1;
  }
  at_depth(depth, [&] {
    auto loop = std::make_unique<ColumnLoop>(scope, partial);
    stack_.push_back({&loop->block, {}, {}, {}, {}});
    body();
    stack_.pop_back();
    stack_.back().block->push_back(std::move(loop));
  });
}

void TileBuilder::in_axis_loop(ir::Expr axis, int depth, const std::function<void()>& body) {
  Role role;
  role.slot = program_.axis_slots++;
  role.depth = depth + 1;
  roles_[axis->integer] = role;
  at_depth(depth, [&] {
    auto loop = std::make_unique<AxisLoop>(role.slot, extent_of(axis));
    stack_.push_back({&loop->block, {}, {}, {}, {}});
    body();
    stack_.pop_back();
    stack_.back().block->push_back(std::move(loop));
  });
}

void TileBuilder::at_part_end(ir::Expr axis, int64_t period, const std::function<void()>& body) {
  auto guard = std::make_unique<AtPartEnd>(roles_.at(axis->integer).slot, period);
  stack_.push_back({&guard->block, {}, {}, {}, {}});
  body();
  stack_.pop_back();
  stack_.back().block->push_back(std::move(guard));
}

void TileBuilder::after_first(int scope, const std::function<void()>& body) {
  auto guard = std::make_unique<AfterFirst>(scope);
  stack_.push_back({&guard->block, {}, {}, {}, {}});
  body();
  stack_.pop_back();
  if (!guard->block.empty()) stack_.back().block->push_back(std::move(guard));
}

void TileBuilder::bind(ir::Expr leaf, RegisterId r) { leaves_[leaf] = r; }

void TileBuilder::bind_ranked(int64_t value, RegisterId matrix, int64_t filled) {
  ranked_[value] = {matrix, filled};
}

RegisterId TileBuilder::make(Elem elem, Shape shape, int scope, int depth) {
  Register r;
  r.elem = elem;
  r.shape = shape;
  r.scope = has_columns(shape) ? scope : kNoScope;
  r.depth = depth;
  program_.registers.push_back(r);
  return static_cast<RegisterId>(program_.registers.size() - 1);
}

RegisterId TileBuilder::make_view(Elem elem, Shape shape, int scope) {
  const RegisterId r = make(elem, shape, scope, 0);
  program_.registers[static_cast<size_t>(r)].dense = false;
  return r;
}

RegisterId TileBuilder::make_matrix(Elem elem, Shape shape, int scope, int depth, int64_t rows) {
  const RegisterId r = make(elem, shape, scope, depth);
  program_.registers[static_cast<size_t>(r)].matrix_rows = std::max<int64_t>(rows, 1);
  return r;
}

RegisterId TileBuilder::renamed(RegisterId r, int depth) {
  Register copy = info(r);
  RF_CHECK(copy.dense, "only dense registers can be renamed");
  copy.alias = r;
  copy.depth = depth;
  program_.registers.push_back(copy);
  return static_cast<RegisterId>(program_.registers.size() - 1);
}

void TileBuilder::emit(std::unique_ptr<Instruction> instruction, int depth) {
  for (const RegisterId r : instruction->writes) {
    const bool first = written_.insert(r).second;
    if (first && instruction->bindable) producers_[r] = instruction.get();
    if (!first) producers_.erase(r);
  }
  stack_[static_cast<size_t>(depth)].block->push_back(std::move(instruction));
}

RegisterId TileBuilder::numbered(const Key& key, int depth,
                                 const std::function<RegisterId()>& emit) {
  for (int d = depth; d >= 0; --d) {
    auto& numbers = stack_[static_cast<size_t>(d)].numbers;
    auto found = numbers.find(key);
    if (found != numbers.end()) return found->second;
  }
  const RegisterId r = emit();
  stack_[static_cast<size_t>(depth)].numbers[key] = r;
  return r;
}

namespace {

enum Tag : int64_t {
  kConstant,
  kUnary,
  kBinary,
  kSelect,
  kConvert,
  kSpread,
  kRow,
  kColumn,
  kSlot,
  kPosition
};

int64_t bits(double x) {
  int64_t b;
  std::memcpy(&b, &x, sizeof(b));
  return b;
}

}  // namespace

RegisterId TileBuilder::constant(Elem elem, double number, int64_t integer) {
  return numbered({kConstant, static_cast<int>(elem), bits(number), integer}, 0, [&] {
    const RegisterId r = make(elem, Shape::Scalar, kNoScope, 0);
    emit(std::make_unique<Fill>(r, number, integer), 0);
    return r;
  });
}

RegisterId TileBuilder::identity(ir::Reduction reduction, DType dtype, Shape shape, int scope,
                                 int depth) {
  const double infinity = std::numeric_limits<double>::infinity();
  double number = 0;
  int64_t integer = 0;
  switch (reduction) {
    case ir::Reduction::Prod:
      number = 1;
      integer = 1;
      break;
    case ir::Reduction::Max:
      number = -infinity;
      integer = is_integer(dtype) ? ir::lowest_word(dtype) : 0;
      break;
    case ir::Reduction::Min:
      number = infinity;
      integer = is_integer(dtype) ? ir::highest_word(dtype) : 1;
      break;
    default:
      break;
  }
  const RegisterId r = make(elem_of(dtype), shape, scope, depth);
  emit(std::make_unique<Fill>(r, number, integer), depth);
  return r;
}

void TileBuilder::copy(RegisterId to, RegisterId from, int depth) {
  emit(std::make_unique<Spread>(to, from), depth);
}

RegisterId TileBuilder::spread(RegisterId r, Shape shape, int scope) {
  const Register from = info(r);
  const Shape whole = from.shape | shape;
  if (from.shape == whole) return r;
  const int columns = has_columns(from.shape) ? from.scope : scope;
  int depth = from.depth;
  if (has_columns(whole)) {
    for (ir::Expr axis : program_.scopes[static_cast<size_t>(columns)].axes) {
      depth = std::max(depth, roles_.at(axis->integer).depth);
    }
  }
  return numbered({kSpread, r, static_cast<int>(whole), columns}, depth, [&] {
    const RegisterId out = make(from.elem, whole, columns, depth);
    emit(std::make_unique<Spread>(out, r), depth);
    return out;
  });
}

RegisterId TileBuilder::converted(RegisterId r, Elem elem) {
  const Register from = info(r);
  if (from.elem == elem) return r;
  return numbered({kConvert, r, static_cast<int>(elem)}, from.depth, [&] {
    const RegisterId out = make(elem, from.shape, from.scope, from.depth);
    emit(std::make_unique<Convert>(
             kernels().convert[static_cast<int>(elem)][static_cast<int>(from.elem)], out, r),
         from.depth);
    return out;
  });
}

static bool is_costly(UnaryOp op) {
  switch (op) {
#define RF_UNARY(NAME, REFERENCE, ...) \
  case UnaryOp::NAME:                  \
    return ir::scalar_op(ir::ExprOp::NAME).costly;
#define RF_UNARY_BITS RF_UNARY
#include "ir/scalars/operations.def"
    default:
      return false;
  }
}

static bool is_costly(BinaryOp op) {
  switch (op) {
#define RF_BINARY(NAME, REFERENCE, ...) \
  case BinaryOp::NAME:                  \
    return ir::scalar_op(ir::ExprOp::NAME).costly;
#include "ir/scalars/operations.def"
    default:
      return op == BinaryOp::ExpSub;
  }
}

RegisterId TileBuilder::unary(UnaryOp op, RegisterId a, Elem result) {
  const Register from = info(a);
  const UnaryFn function = kernels().unary[static_cast<int>(from.elem)][static_cast<int>(op)];
  RF_CHECK(function, "no CPU kernel for unary operation {} on element class {}",
           static_cast<int>(op), static_cast<int>(from.elem));
  return numbered({kUnary, static_cast<int>(op), a}, from.depth, [&] {
    const RegisterId out = make(result, from.shape, from.scope, from.depth);
    auto instruction = std::make_unique<Unary>(function, out, a);
    instruction->op = op;
    instruction->special = is_costly(op);
    instruction->rounds = op == UnaryOp::RoundHalf || op == UnaryOp::RoundBFloat;
    emit(std::move(instruction), from.depth);
    return out;
  });
}

static bool gives_boolean(BinaryOp op) {
  switch (op) {
#define RF_BINARY(NAME, REFERENCE, ...) \
  case BinaryOp::NAME:                  \
    return ir::scalar_op(ir::ExprOp::NAME).boolean;
#include "ir/scalars/operations.def"
    default:
      return false;
  }
}

RegisterId TileBuilder::binary(BinaryOp op, RegisterId a, RegisterId b) {
  const Register x = info(a), y = info(b);
  RF_CHECK(x.elem == y.elem, "operands of different element classes");
  RF_CHECK(!has_columns(x.shape) || !has_columns(y.shape) || x.scope == y.scope,
           "operands over the columns of different loops");
  const BinaryFn* functions = kernels().binary[static_cast<int>(x.elem)][static_cast<int>(op)];
  RF_CHECK(functions[0], "no CPU kernel for binary operation {} on element class {}",
           static_cast<int>(op), static_cast<int>(x.elem));
  const int depth = std::max(x.depth, y.depth);
  return numbered({kBinary, static_cast<int>(op), a, b}, depth, [&] {
    const RegisterId out = make(gives_boolean(op) ? Elem::Bool : x.elem, x.shape | y.shape,
                                has_columns(x.shape) ? x.scope : y.scope, depth);
    auto instruction = std::make_unique<Binary>(functions, out, a, b);
    instruction->op = op;
    instruction->special = is_costly(op);
    emit(std::move(instruction), depth);
    return out;
  });
}

RegisterId TileBuilder::build_select(ir::Expr expr) {
  const Elem elem = elem_of(expr->dtype);
  const RegisterId condition = converted(compile(expr->args[0]), Elem::Bool);
  const RegisterId a = converted(compile(expr->args[1]), elem);
  return select(condition, a, converted(compile(expr->args[2]), elem));
}

RegisterId TileBuilder::select(RegisterId condition, RegisterId a, RegisterId b) {
  const Elem elem = info(a).elem;
  int scope = kNoScope, depth = 0;
  Shape shape = Shape::Scalar;
  for (RegisterId r : {condition, a, b}) {
    shape = shape | info(r).shape;
    depth = std::max(depth, info(r).depth);
    if (has_columns(info(r).shape)) scope = info(r).scope;
  }
  if (!is_vector(info(condition).shape, shape)) condition = spread(condition, shape, scope);
  depth = std::max(depth, info(condition).depth);
  return numbered({kSelect, condition, a, b}, depth, [&] {
    const RegisterId out = make(elem, shape, scope, depth);
    emit(std::make_unique<Select>(elem, out, condition, a, b), depth);
    return out;
  });
}

RegisterId TileBuilder::build_position(ir::Expr expr) {
  using ir::ExprOp;
  const auto is = [](ir::Expr e, ExprOp op) { return e->op == op && e->dtype == DType::Int64; };
  if (!is(expr, ExprOp::Max) || !expr->args[1]->is_constant(0)) return kNoRegister;
  const ir::Expr limited = expr->args[0];
  if (!is(limited, ExprOp::Min) || !limited->args[1]->is_constant()) return kNoRegister;
  const ir::Expr counted = limited->args[0];
  if (!is(counted, ExprOp::Select)) return kNoRegister;
  const ir::Expr negative = counted->args[0], position = counted->args[2];
  const bool from_end = negative->op == ExprOp::Less && negative->args[0] == position &&
                        negative->args[1]->is_constant(0);
  const ir::Expr size = pool_.sub(counted->args[1], position);
  if (!from_end || !size->is_constant()) return kNoRegister;
  const RegisterId a = converted(compile(position), Elem::I64);
  const Register from = info(a);
  if (from.shape == Shape::Scalar) return kNoRegister;
  const PositionBounds bounds{size->integer, limited->args[1]->integer};
  return numbered({kPosition, a, bounds.size, bounds.last}, from.depth, [&] {
    const RegisterId out = make(Elem::I64, from.shape, from.scope, from.depth);
    emit(std::make_unique<BoundPositions>(out, a, bounds), from.depth);
    return out;
  });
}

RegisterId TileBuilder::build_axis(ir::Expr axis) {
  auto found = roles_.find(axis->integer);
  RF_CHECK(found != roles_.end(), "an axis has no role in a tile program");
  const Role role = found->second;
  switch (role.kind) {
    case Role::Slot:
      return numbered({kSlot, role.slot}, role.depth, [&] {
        const RegisterId r = make(Elem::I64, Shape::Scalar, kNoScope, role.depth);
        emit(std::make_unique<AxisValue>(r, role.slot), role.depth);
        return r;
      });
    case Role::Row:
      return numbered({kRow, role.inner, role.extent}, 0, [&] {
        const RegisterId r = make(Elem::I64, Shape::Rows, kNoScope, 0);
        emit(std::make_unique<RowIndex>(r, role.inner, role.extent), 0);
        return r;
      });
    default:
      return numbered({kColumn, role.scope, role.inner, role.extent}, role.depth, [&] {
        const RegisterId r = make(Elem::I64, Shape::Columns, role.scope, role.depth);
        emit(std::make_unique<ColumnIndex>(r, role.inner, role.extent), role.depth);
        return r;
      });
  }
}

TileBuilder::Variation TileBuilder::variation(ir::Expr expr) const {
  Variation result;
  auto add = [&](Shape shape, int scope, int depth) {
    result.shape = result.shape | shape;
    result.depth = std::max(result.depth, depth);
    if (has_columns(shape)) {
      RF_CHECK(result.scope == kNoScope || result.scope == scope,
               "an expression varies over the columns of two loops");
      result.scope = scope;
    }
  };
  for (uint32_t axis : expr->free_axes) {
    auto found = roles_.find(axis);
    RF_CHECK(found != roles_.end(), "an axis has no role in a tile program");
    const Role& role = found->second;
    const Shape shape = role.kind == Role::Row      ? Shape::Rows
                        : role.kind == Role::Column ? Shape::Columns
                                                    : Shape::Scalar;
    add(shape, role.scope, role.depth);
  }
  auto add_register = [&](RegisterId id) { add(info(id).shape, info(id).scope, info(id).depth); };
  if (expr->has_leaf || expr->has_read) {
    visit(expr, [&](ir::Expr node) {
      if (node->op == ir::ExprOp::Leaf) {
        auto found = leaves_.find(node);
        if (found != leaves_.end()) add_register(found->second);
      } else if (node->op == ir::ExprOp::Read && node->integer < 0) {
        auto found = ranked_.find(node->integer);
        if (found == ranked_.end()) return;
        const Register& matrix = info(found->second.first);
        add(has_rows(matrix.shape) ? Shape::Rows : Shape::Scalar, kNoScope, matrix.depth);
      }
    });
  }
  return result;
}

}  // namespace redfuser::cpu
