#include "codegen/attention/visible_keys.h"

#include <fmt/format.h>

namespace redfuser::codegen {
namespace {

std::vector<ir::Expr> row_axes(const AttentionSpec& form) {
  if (!form.row) return {};
  return {form.row};
}

}  // namespace

VisibleKeys::VisibleKeys(ir::ExprPool& pool, const AttentionSpec& form)
    : form_(form),
      mask_(mask_condition(pool, form)),
      ranges_(cascade::tile_ranges(pool, mask_.visible, row_axes(form), form.rows.cascade.stream)) {
}

void VisibleKeys::declare(Emitter& emitter, const std::string& first_row, int lines,
                          int unit) const {
  const std::string keys = emitter.kernel().size(form_.rows.length());
  if (!mask_.skips()) {
    emitter.line(fmt::format("const long long begin = 0, end = {};", keys));
    return;
  }
  emitter.line("long long begin, end;");
  emitter.open();
  if (form_.row) {
    emitter.line(fmt::format("const long long top = {}, bottom = min_of(top + {}, {} - 1);",
                             first_row, lines - 1, emitter.kernel().size(form_.row->extent())));
    emitter.bind(ranges_.rows[0].first, "top");
    emitter.bind(ranges_.rows[0].last, "bottom");
  }
  emitter.line(fmt::format("begin = {} / {} * {};", emitter.emit(ranges_.begin), unit, unit));
  emitter.line(fmt::format("end = {};", emitter.emit(ranges_.end)));
  if (form_.mask_check >= 0) {
    emitter.line(fmt::format("if ({}[0] == 0.0f) {{\nbegin = 0;\nend = {};\n}}",
                             emitter.kernel().buffer(form_.mask_check), keys));
  }
  const std::string text = emitter.close();
  emitter.line(fmt::format("{{\n{}}}", text));
}

}  // namespace redfuser::codegen
