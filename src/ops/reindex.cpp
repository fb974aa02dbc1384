#include "ops/reindex.h"

#include <algorithm>

#include "base/error.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

// The dimensions of more than one element.
struct Dimensions {
  std::vector<size_t> place;  // in the full shape
  std::vector<ir::Expr> size;
};

Dimensions without_ones(std::span<const ir::Expr> shape) {
  Dimensions result;
  result.place.reserve(shape.size());
  result.size.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i]->is_constant(1)) continue;
    result.place.push_back(i);
    result.size.push_back(shape[i]);
  }
  return result;
}

struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

// Products of the first 0, 1, 2, ... sizes (of the last ones when `reversed`).
std::vector<ir::Expr> running_products(ir::ExprPool& pool, std::span<const ir::Expr> sizes,
                                       bool reversed) {
  std::vector<ir::Expr> products;
  products.reserve(sizes.size() + 1);
  products.push_back(pool.integer(1));
  for (size_t i = 0; i < sizes.size(); ++i) {
    products.push_back(pool.mul(products.back(), sizes[reversed ? sizes.size() - 1 - i : i]));
  }
  return products;
}

// Pairs (i, j), increasing, with equal products of i and j sizes; from (0, 0) on.
std::vector<std::pair<size_t, size_t>> meetings(const std::vector<ir::Expr>& a,
                                                const std::vector<ir::Expr>& b) {
  std::vector<std::pair<size_t, size_t>> pairs{{0, 0}};
  for (size_t i = 1; i < a.size(); ++i) {
    for (size_t j = pairs.back().second + 1; j < b.size(); ++j) {
      if (a[i] != b[j]) continue;
      pairs.push_back({i, j});
      break;
    }
  }
  return pairs;
}

std::vector<Group> match(ir::ExprPool& pool, std::span<const ir::Expr> from,
                         std::span<const ir::Expr> to) {
  std::vector<Group> groups;
  groups.reserve(std::max(from.size(), to.size()));
  size_t equal = 0;  // leading sizes, whose products need not be compared
  for (; equal < std::min(from.size(), to.size()) && from[equal] == to[equal]; ++equal) {
    groups.push_back({equal, equal + 1, equal, equal + 1});
  }
  if (equal == from.size() && equal == to.size()) return groups;
  auto leading = meetings(running_products(pool, from.subspan(equal), false),
                          running_products(pool, to.subspan(equal), false));
  for (auto& [f, t] : leading) f += equal, t += equal;
  for (size_t i = 1; i < leading.size(); ++i) {
    groups.push_back(
        {leading[i - 1].first, leading[i].first, leading[i - 1].second, leading[i].second});
  }
  auto [f, t] = leading.back();
  if (f == from.size() && t == to.size()) return groups;
  auto trailing = meetings(running_products(pool, from.subspan(f), true),
                           running_products(pool, to.subspan(t), true));
  groups.push_back({f, from.size() - trailing.back().first, t, to.size() - trailing.back().second});
  for (size_t i = trailing.size() - 1; i > 0; --i) {
    groups.push_back({from.size() - trailing[i].first, from.size() - trailing[i - 1].first,
                      to.size() - trailing[i].second, to.size() - trailing[i - 1].second});
  }
  return groups;
}

// a mod b = a − b · ⌊a / b⌋, so that quotients cancel.
ir::Expr by_quotients(ir::ExprPool& pool, ir::Expr e) {
  return pool.rewrite(e, [&](ir::Expr node) -> ir::Expr {
    if (node->op != ir::ExprOp::FloorMod) return nullptr;
    ir::Expr a = by_quotients(pool, node->args[0]), b = node->args[1];
    return pool.sub(a, pool.mul(b, pool.floordiv(a, b)));
  });
}

// The only position of a dimension of one element is 0.
ir::Expr at_zero(ir::ExprPool& pool, ir::Expr e) {
  return pool.rewrite(e, [&](ir::Expr node) -> ir::Expr {
    const bool one = node->op == ir::ExprOp::Axis && node->extent()->is_constant(1);
    return one ? pool.integer(0) : nullptr;
  });
}

ir::Expr offset(ir::ExprPool& pool, std::span<const ir::Expr> index,
                std::span<const ir::Expr> shape) {
  ir::Expr position = pool.integer(0);
  for (size_t i = 0; i < index.size(); ++i) {
    position = pool.add(pool.mul(position, shape[i]), by_quotients(pool, at_zero(pool, index[i])));
  }
  return position;
}

ir::Expr count(ir::ExprPool& pool, std::span<const ir::Expr> shape) {
  ir::Expr size = pool.integer(1);
  for (ir::Expr dim : shape) size = pool.mul(size, dim);
  return size;
}

}  // namespace

std::vector<ir::Expr> reshape_index(ir::ExprPool& pool, std::span<const ir::Expr> from,
                                    std::span<const ir::Expr> to, std::span<const ir::Expr> index) {
  RF_CHECK(index.size() == from.size(), "reshape_index: rank {} indexed by {}", from.size(),
           index.size());
  const Dimensions source = without_ones(from), target = without_ones(to);
  std::vector<ir::Expr> result(to.size(), pool.integer(0));
  for (const Group& group : match(pool, source.size, target.size)) {
    ir::Expr linear = pool.integer(0);
    for (size_t i = group.from_begin; i < group.from_end; ++i) {
      linear = pool.add(pool.mul(linear, source.size[i]), index[source.place[i]]);
    }
    for (size_t i = group.to_end; i > group.to_begin; --i) {
      const bool first = i - 1 == group.to_begin;
      result[target.place[i - 1]] = first ? linear : pool.floormod(linear, target.size[i - 1]);
      if (!first) linear = pool.floordiv(linear, target.size[i - 1]);
    }
  }
  return result;
}

ir::Expr joined_element(
    ir::ExprPool& pool, std::span<const ir::Expr> sizes, size_t axis,
    std::span<const ir::Expr> index,
    const std::function<ir::Expr(size_t part, std::vector<ir::Expr> at)>& element) {
  std::vector<ir::Expr> starts{pool.integer(0)};
  for (ir::Expr size : sizes) starts.push_back(pool.add(starts.back(), size));
  ir::Expr result = nullptr;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i]->is_constant(0)) continue;
    std::vector<ir::Expr> at(index.begin(), index.end());
    at[axis] = clamp_index(pool, pool.sub(index[axis], starts[i]), sizes[i]);
    ir::Expr part = element(i, std::move(at));
    result = result ? pool.select(less(pool, index[axis], starts[i + 1]), part, result) : part;
  }
  return result;
}

bool same_order(ir::ExprPool& pool, std::span<const ir::Expr> from, std::span<const ir::Expr> read,
                std::span<const ir::Expr> to, std::span<const ir::Expr> index) {
  return count(pool, from) == count(pool, to) &&
         offset(pool, read, from) == offset(pool, index, to);
}

}  // namespace redfuser::ops
