#include "codegen/text/function_text.h"

#include <fmt/format.h>

namespace redfuser::codegen {

std::string braced(const std::string& body) {
  if (body.empty()) return "{}";
  const bool one_line = body.find('\n') + 1 == body.size();
  return one_line ? fmt::format("{{ {} }}", body.substr(0, body.size() - 1))
                  : fmt::format("{{\n{}}}", body);
}

std::string function_text(std::string_view signature, const std::string& body,
                          std::string_view parameters) {
  const std::string head =
      parameters.empty() ? std::string() : fmt::format("template <{}> ", parameters);
  return fmt::format("{}{}{} {}\n", head, kInline, signature, braced(body));
}

std::string struct_text(std::string_view name, const std::string& members) {
  return fmt::format("struct {} {};\n", name, braced(members));
}

}  // namespace redfuser::codegen
