#include "codegen/attention/visible_keys.h"

#include <fmt/format.h>

namespace redfuser::codegen {
namespace {

std::vector<ir::Expr> row_axes(const AttentionSpec& form) {
  if (!form.row) return {};
  return {form.row};
}

// An int expression divided by the tile's keys, rounded down or up.
std::string tiles_below(const std::string& key, int unit) {
  return key == "0" ? key : fmt::format("{} / {}", key, unit);
}
std::string tiles_up_to(const std::string& key, int unit) {
  return fmt::format("({} + {}) / {}", key, unit - 1, unit);
}

}  // namespace

VisibleKeys::VisibleKeys(ir::ExprPool& pool, const AttentionSpec& form, const MaskCondition& mask)
    : form_(form),
      skips_(mask.skips()),
      ranges_(cascade::tile_ranges(pool, mask.visible, row_axes(form), form.rows.cascade.stream)) {}

void VisibleKeys::declare(Emitter& emitter, const std::string& first_row,
                          const std::string& last_row, int unit) const {
  const std::string keys = emitter.kernel().size(form_.rows.length());
  emitter.open();
  if (form_.row) {
    emitter.bind(ranges_.rows[0].first, first_row);
    emitter.bind(ranges_.rows[0].last, last_row);
  }
  const auto all = [&](const std::string& begin, const std::string& end) {
    if (form_.mask_check < 0) return std::string();
    return fmt::format("if ({}[0] == 0.0f) {{\n{} = 0;\n{} = {};\n}}\n",
                       emitter.kernel().buffer(form_.mask_check), begin, end,
                       tiles_up_to(as_int(keys), unit));
  };
  const size_t count = ranges_.visible.size();
  const bool several = count > 1;
  for (size_t k = 0; k < count; ++k) {
    const std::string begin = as_int(emitter.emit(ranges_.visible[k].begin));
    const std::string end = as_int(emitter.emit(ranges_.visible[k].end));
    const std::string place = several ? fmt::format("[{}]", k) : "";
    emitter.line(fmt::format("begin{0} = {1};\nend{0} = {2};", place, tiles_below(begin, unit),
                             tiles_up_to(end, unit)));
  }
  emitter.line(several ? all("begin[0]", "end[0]") : all("begin", "end"));
  const std::string text = emitter.close();
  if (several) {
    emitter.line(
        fmt::format("int begin[{0}], end[{0}];\n{{\n{1}}}\n"
                    "const KeyTiles<{0}> visited(begin, end);",
                    count, text));
  } else {
    emitter.line(
        fmt::format("int begin, end;\n{{\n{}}}\nconst int tiles = max(end - begin, 0);", text));
  }
}

std::string VisibleKeys::tiles(Emitter& emitter, const std::string& first_row,
                               const std::string& last_row, int unit) const {
  if (!skips_) {
    const std::string keys = emitter.kernel().size(form_.rows.length());
    return fmt::format("TileRange{{0, {}}}", tiles_up_to(as_int(keys), unit));
  }
  declare(emitter, first_row, last_row, unit);
  return ranges_.visible.size() > 1 ? "visited" : "TileRange{begin, tiles}";
}

}  // namespace redfuser::codegen
