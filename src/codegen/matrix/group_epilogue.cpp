#include "codegen/matrix/group_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/polynomial.h"

namespace redfuser::codegen {

GroupEpilogue::GroupEpilogue(Emitter& emitter, const fuse::ProductStep& step,
                             ProductEpilogue epilogue)
    : pool_(emitter.pool()),
      emitter_(emitter),
      group_(emitter, step.n),
      epilogue_(std::move(epilogue)),
      rows_(step.m) {
  std::erase_if(rows_, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
}

void GroupEpilogue::merge_rows(ir::Expr count) {
  if (rows_.size() < 2) return;
  ir::Expr row = pool_.axis("row", count);
  auto by_row = [&](ir::Expr offset) -> ir::Expr {
    auto parts = strided(pool_, offset, rows_);
    if (!parts) return nullptr;
    for (size_t i = 0; i + 1 < rows_.size(); ++i) {
      ir::Expr next = pool_.mul(parts->strides[i + 1], rows_[i + 1]->extent());
      if (parts->strides[i] != next) return nullptr;
    }
    return pool_.add(parts->base, pool_.mul(row, parts->strides.back()));
  };
  ir::Expr offset = by_row(epilogue_.offset);
  ir::Expr body = pool_.rewrite(epilogue_.body, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Read || !depends_on_row(e)) return nullptr;
    ir::Expr at = by_row(e->args[0]);
    return at ? pool_.read(e->integer, e->dtype, {at}) : nullptr;
  });
  if (!offset || depends_on_row(body)) return;
  epilogue_.offset = offset;
  epilogue_.body = body;
  rows_ = {row};
}

void GroupEpilogue::load_columns(std::string& declared) {
  const auto of_columns = [&](ir::Expr read) { return !depends_on_row(read); };
  group_.load(epilogue_.body, of_columns, &declared);
}

std::string GroupEpilogue::finish(bool rounds, const std::string& values) {
  for (size_t i = 0; i < epilogue_.products.size(); ++i) {
    const DType dtype = epilogue_.products[i]->dtype;
    const std::string sum = fmt::format("sums[{}][v]", i);
    group_.bind(
        epilogue_.products[i],
        rounds && dtype != DType::Float32
            ? fmt::format("Element<{0}>::get(Element<{0}>::put({1}))", storage_type(dtype), sum)
            : sum);
  }
  emitter_.open();
  bind_coordinates(emitter_, rows_, "row");
  group_.load(epilogue_.body);
  if (values.empty()) {
    group_.write({{epilogue_.value, epilogue_.body, epilogue_.offset}});
  } else {
    group_.each([&] {
      emitter_.line(fmt::format("{}[v] = {};", values, emitter_.emit_as(epilogue_.body, dtype())));
    });
  }
  return emitter_.close();
}

bool GroupEpilogue::depends_on_row(ir::Expr e) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](ir::Expr axis) { return e->depends_on(axis); });
}

}  // namespace redfuser::codegen
