#include "codegen/functor/rank_key.h"

#include <fmt/format.h>

#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

std::string_view key_type(const cascade::Accumulator& accumulator) {
  return size_of(accumulator.lift->dtype) == 8 ? "unsigned long long" : "unsigned";
}

std::string key_text(Emitter& emitter, const cascade::Accumulator& accumulator) {
  const DType dtype = accumulator.lift->dtype;
  std::string value = emitter.emit(accumulator.lift);
  if (dtype == DType::UInt32 || dtype == DType::Bool) {
    value = fmt::format("static_cast<unsigned>({})", value);
  } else if (is_integer(dtype) && size_of(dtype) < 8) {
    value = fmt::format("static_cast<int>({})", value);
  }
  return fmt::format("rank_key<{}>({})", wants_large(accumulator.reduction), value);
}

}  // namespace redfuser::codegen
