#include "codegen/text/scalar_text.h"

#include <fmt/format.h>

namespace redfuser::codegen {

std::string scalar_text(std::string_view pattern, DType dtype,
                        const std::vector<std::string>& args) {
  // An argument refers to its value.
  const std::string_view single = dtype == DType::Float64 ? "" : "f";
  const auto suffix = fmt::arg("f", single);
  const auto format = fmt::runtime(pattern);
  if (args.size() == 1) return fmt::format(format, fmt::arg("x", args[0]), suffix);
  std::string result = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    result = fmt::format(format, fmt::arg("a", result), fmt::arg("b", args[i]), suffix);
  }
  return result;
}

}  // namespace redfuser::codegen
