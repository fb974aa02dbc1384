#include "ir/expr.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/integers.h"
#include "ir/depth.h"
#include "ir/expr_map.h"
#include "ir/expr_table.h"
#include "ir/fold.h"
#include "ir/polynomial.h"
#include "ir/scalars/integers.h"
#include "ir/scalars/operations.h"

namespace redfuser::ir {
namespace {

size_t hash_of(const ExprNode& node) {
  size_t hash = static_cast<size_t>(node.op) * 1000003u + static_cast<size_t>(node.dtype);
  auto mix = [&](uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  };
  mix(static_cast<uint64_t>(node.reduction) * 16 + static_cast<uint64_t>(node.leaf_kind));
  mix(static_cast<uint64_t>(node.integer));
  mix(std::bit_cast<uint64_t>(node.number));
  for (Expr arg : node.args) mix(arg->id);
  return hash;
}

bool equal(const ExprNode& a, const ExprNode& b) {
  return a.op == b.op && a.dtype == b.dtype && a.reduction == b.reduction &&
         a.leaf_kind == b.leaf_kind && a.integer == b.integer &&
         std::bit_cast<uint64_t>(a.number) == std::bit_cast<uint64_t>(b.number) && a.args == b.args;
}

// The result of an operation as it was asked for, before folding.
struct Made {
  ExprOp op = ExprOp::Constant;
  uint32_t count = 0;
  const Expr* args = nullptr;
  Expr result = nullptr;
};

size_t hash_of(ExprOp op, const std::vector<Expr>& args) {
  size_t hash = static_cast<size_t>(op);
  for (Expr arg : args) hash = (hash ^ arg->id) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

void unite(std::vector<uint32_t>& axes, const std::vector<uint32_t>& more) {
  if (std::includes(axes.begin(), axes.end(), more.begin(), more.end())) return;
  if (std::includes(more.begin(), more.end(), axes.begin(), axes.end())) {
    axes = more;
    return;
  }
  std::vector<uint32_t> result;
  result.reserve(axes.size() + more.size());
  std::set_union(axes.begin(), axes.end(), more.begin(), more.end(), std::back_inserter(result));
  axes = std::move(result);
}

}  // namespace

struct ExprPool::Impl {
  std::shared_ptr<const ExprPool> base;                    // may be null
  size_t base_nodes = 0, base_symbols = 0, base_axes = 0;  // how many it has
  Chunks<ExprNode> nodes;
  ExprTable<Expr> interned;
  ExprTable<Made> made;    // results of ExprPool::make
  Chunks<Expr> requested;  // arguments of those that were folded
  std::vector<std::string> symbols, axes;
  std::map<std::string, Expr> symbol_by_name;
  std::map<std::pair<std::string, Expr>, Expr> shared_axes;

  Expr find_made(size_t hash, ExprOp op, const std::vector<Expr>& args) const {
    const auto same = [&](const Made& made) {
      return made.op == op &&
             std::equal(args.begin(), args.end(), made.args, made.args + made.count);
    };
    for (const Impl* at = this; at != nullptr; at = at->base ? at->base->impl_.get() : nullptr) {
      if (const Made* found = at->made.find(hash, same)) return found->result;
    }
    return nullptr;
  }

  Expr find(size_t hash, const ExprNode& node) const {
    const auto same = [&](Expr known) { return equal(*known, node); };
    for (const Impl* at = this; at != nullptr; at = at->base ? at->base->impl_.get() : nullptr) {
      if (const Expr* found = at->interned.find(hash, same)) return *found;
    }
    return nullptr;
  }
};

ExprPool::ExprPool() : impl_(std::make_unique<Impl>()) {}
ExprPool::ExprPool(std::shared_ptr<const ExprPool> base) : ExprPool() {
  base->extended_ = true;
  impl_->base_nodes = base->size();
  impl_->base_symbols = base->symbol_count();
  impl_->base_axes = base->axis_count();
  impl_->base = std::move(base);
}
ExprPool::~ExprPool() = default;

bool ExprNode::is_constant(double value) const {
  if (op != ExprOp::Constant) return false;
  return is_float(dtype) ? number == value : number_of_word(dtype, integer) == value;
}

bool ExprNode::depends_on(Expr axis) const {
  return std::binary_search(free_axes.begin(), free_axes.end(),
                            static_cast<uint32_t>(axis->integer));
}

Expr ExprNode::extent() const { return op == ExprOp::Axis ? args[0] : args[0]->args[0]; }

Expr ExprPool::intern(ExprNode node) {
  const size_t hash = hash_of(node);
  if (Expr found = impl_->find(hash, node)) return found;
  RF_CHECK(!extended_, "a pool that others extend takes no new expressions");
  node.id = static_cast<uint32_t>(size());
  for (Expr arg : node.args) node.depth = std::max(node.depth, arg->depth + 1);
  if (node.depth > kMaxExprDepth) {
    throw ExprTooDeep(fmt::format("an expression nests more than {} deep", kMaxExprDepth));
  }
  node.has_leaf = node.op == ExprOp::Leaf;
  node.has_read = node.op == ExprOp::Read;
  if (node.op == ExprOp::Axis) {
    node.free_axes = {static_cast<uint32_t>(node.integer)};
  } else {
    for (Expr arg : node.args) {
      unite(node.free_axes, arg->free_axes);
      node.has_leaf |= arg->has_leaf;
      node.has_read |= arg->has_read;
      node.bound_level = std::max(node.bound_level, arg->bound_level);
    }
  }
  if (node.op == ExprOp::Reduce) {
    std::erase(node.free_axes, static_cast<uint32_t>(node.args[0]->integer));
    node.bound_level += 1;
  }
  Expr result = impl_->nodes.append(&node, 1);
  impl_->interned.insert(hash, result);
  return result;
}

Expr ExprPool::number(double value, DType dtype) {
  if (dtype == DType::UInt64) {
    return number_int(static_cast<int64_t>(saturated<uint64_t>(value)), dtype);
  }
  if (is_integer(dtype)) {
    const int64_t whole = saturated<int64_t>(value);
    return number_int(std::clamp(whole, lowest_word(dtype), highest_word(dtype)), dtype);
  }
  if (!is_float(dtype)) return number_int(saturated<int64_t>(value), dtype);
  ExprNode node{ExprOp::Constant, dtype};
  node.number = value;
  return intern(std::move(node));
}

Expr ExprPool::number_int(int64_t value, DType dtype) {
  if (is_float(dtype)) return number(static_cast<double>(value), dtype);
  ExprNode node{ExprOp::Constant, dtype};
  node.integer = dtype == DType::Bool ? (value != 0) : wrapped_word(dtype, value);
  return intern(std::move(node));
}

Expr ExprPool::find_symbol(const std::string& name) const {
  const auto found = impl_->symbol_by_name.find(name);
  if (found != impl_->symbol_by_name.end()) return found->second;
  return impl_->base ? impl_->base->find_symbol(name) : nullptr;
}

Expr ExprPool::find_shared_axis(const std::pair<std::string, Expr>& key) const {
  const auto found = impl_->shared_axes.find(key);
  if (found != impl_->shared_axes.end()) return found->second;
  return impl_->base ? impl_->base->find_shared_axis(key) : nullptr;
}

Expr ExprPool::symbol(const std::string& name) {
  if (Expr known = find_symbol(name)) return known;
  ExprNode node{ExprOp::Symbol, DType::Int64};
  node.integer = static_cast<int64_t>(symbol_count());
  Expr symbol = intern(std::move(node));
  impl_->symbols.push_back(name);
  impl_->symbol_by_name.emplace(name, symbol);
  return symbol;
}

Expr ExprPool::fresh_symbol(const std::string& hint) {
  std::string name = hint;
  for (int suffix = 1; find_symbol(name) != nullptr; ++suffix) {
    name = fmt::format("{}_{}", hint, suffix);
  }
  return symbol(name);
}

Expr ExprPool::axis(const std::string& name, Expr extent) {
  ExprNode node{ExprOp::Axis, DType::Int64};
  node.integer = static_cast<int64_t>(axis_count());
  node.args = {extent};
  Expr axis = intern(std::move(node));
  impl_->axes.push_back(name);
  return axis;
}

Expr ExprPool::shared_axis(const std::string& key, Expr extent) {
  std::pair<std::string, Expr> wanted{key, extent};
  if (Expr known = find_shared_axis(wanted)) return known;
  return impl_->shared_axes.emplace(std::move(wanted), axis(key, extent)).first->second;
}

Expr ExprPool::leaf(LeafKind kind, int64_t index, DType dtype) {
  ExprNode node{ExprOp::Leaf, dtype};
  node.leaf_kind = kind;
  node.integer = index;
  return intern(std::move(node));
}

Expr ExprPool::read(int64_t value, DType dtype, std::vector<Expr> indices) {
  ExprNode node{ExprOp::Read, dtype};
  node.integer = value;
  node.args = std::move(indices);
  return intern(std::move(node));
}

Expr ExprPool::make(ExprOp op, std::vector<Expr> args) {
  // Folding needs proofs, and the same operations come again with every layer of a model.
  const size_t hash = hash_of(op, args);
  if (Expr known = impl_->find_made(hash, op, args)) return known;
  Expr result = fold(*this, op, args);
  const Expr* stored = nullptr;
  if (!result) {
    ExprNode node{op, result_dtype(op, args)};
    node.args = std::move(args);
    result = intern(std::move(node));
    stored = result->args.data();
  }
  if (extended_) return result;
  const size_t count = stored != nullptr ? result->args.size() : args.size();
  if (stored == nullptr) stored = impl_->requested.append(args.data(), count);
  impl_->made.insert(hash, {op, static_cast<uint32_t>(count), stored, result});
  return result;
}

Expr ExprPool::cast(DType dtype, Expr value) {
  if (Expr folded = fold_cast(*this, dtype, value)) return folded;
  ExprNode node{ExprOp::Cast, dtype};
  node.args = {value};
  return intern(std::move(node));
}

Expr ExprPool::select(Expr condition, Expr then, Expr otherwise) {
  return make(ExprOp::Select, {condition, then, otherwise});
}

Expr ExprPool::reduce(Reduction reduction, Expr axis, Expr body, Expr rank, bool index) {
  if (!picks_element(reduction) && axis->extent()->is_constant(1)) {
    return substitute(body, {{axis, integer(0)}});
  }
  Expr bound = shared_axis(fmt::format("r{}", body->bound_level + 1), axis->extent());
  ExprNode node{ExprOp::Reduce, index || is_arg(reduction) ? DType::Int64 : body->dtype};
  node.reduction = reduction;
  node.integer = index;
  node.args = {bound, bound == axis ? body : substitute(body, {{axis, bound}})};
  if (rank) node.args.push_back(rank);
  return intern(std::move(node));
}

const std::string& ExprPool::symbol_name(Expr symbol) const {
  const auto number = static_cast<size_t>(symbol->integer);
  if (number < impl_->base_symbols) return impl_->base->symbol_name(symbol);
  return impl_->symbols[number - impl_->base_symbols];
}
const std::string& ExprPool::axis_name(Expr axis) const {
  const auto number = static_cast<size_t>(axis->integer);
  if (number < impl_->base_axes) return impl_->base->axis_name(axis);
  return impl_->axes[number - impl_->base_axes];
}
size_t ExprPool::size() const { return impl_->base_nodes + impl_->nodes.size(); }
size_t ExprPool::symbol_count() const { return impl_->base_symbols + impl_->symbols.size(); }
size_t ExprPool::axis_count() const { return impl_->base_axes + impl_->axes.size(); }

Expr ExprPool::rebuild(Expr node, std::vector<Expr> args) {
  switch (node->op) {
    case ExprOp::Cast:
      return cast(node->dtype, args[0]);
    case ExprOp::Read:
      return read(node->integer, node->dtype, std::move(args));
    case ExprOp::Axis:
      return node;
    case ExprOp::Reduce:
      return reduce(node->reduction, args[0], args[1], args.size() > 2 ? args[2] : nullptr,
                    node->integer != 0);
    default: {
      Expr result = make(node->op, std::move(args));
      return result;
    }
  }
}

Expr ExprPool::rewrite(Expr root, const std::function<Expr(Expr)>& replace) {
  ExprMap memo;
  const auto go = [&](const auto& self, Expr node) -> Expr {
    if (Expr known = memo.find(node)) return known;
    Expr result = replace(node);
    if (!result) {
      result = node;
      std::vector<Expr> args;  // empty while none changes
      const size_t count = node->op == ExprOp::Axis ? 0 : node->args.size();
      for (size_t i = node->op == ExprOp::Reduce ? 1 : 0; i < count; ++i) {
        Expr arg = self(self, node->args[i]);
        if (args.empty() && arg != node->args[i]) args = node->args;
        if (!args.empty()) args[i] = arg;
      }
      if (!args.empty()) result = rebuild(node, std::move(args));
    }
    memo.insert(node, result);
    return result;
  };
  return go(go, root);
}

Expr ExprPool::substitute(Expr root, const std::vector<std::pair<Expr, Expr>>& map) {
  if (map.empty()) return root;
  const bool only_axes = std::all_of(map.begin(), map.end(),
                                     [](auto& pair) { return pair.first->op == ExprOp::Axis; });
  return rewrite(root, [&](Expr node) -> Expr {
    for (auto& [from, to] : map) {
      if (node == from) return to;
    }
    if (only_axes) {
      for (auto& [from, to] : map) {
        if (node->depends_on(from)) return nullptr;
      }
      return node;
    }
    return nullptr;
  });
}

void visit(Expr root, const std::function<void(Expr)>& visit, bool into_reductions) {
  ExprMap seen;
  const auto go = [&](const auto& self, Expr node) -> void {
    if (!seen.add(node)) return;
    const bool enters = node->op != ExprOp::Axis && (into_reductions || node->op != ExprOp::Reduce);
    if (enters) {
      for (Expr arg : node->args) self(self, arg);
    }
    visit(node);
  };
  go(go, root);
}

bool jumps(Expr expr) {
  if (expr->args.empty() || !is_float(expr->args[0]->dtype)) return false;
  return expr->op == ExprOp::Cast ? !is_float(expr->dtype) : scalar_op(expr->op).jumps;
}

}  // namespace redfuser::ir
