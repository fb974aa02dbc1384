#include "codegen/text/loop.h"

#include <fmt/format.h>

namespace redfuser::codegen {
namespace {

bool is_one_line(const std::string& text) { return text.find('\n') + 1 == text.size(); }

}  // namespace

std::string loop_over(const std::string& variable, const std::string& end,
                      const std::string& body) {
  return fmt::format(
      "#pragma unroll\nfor (int {0} = 0; {0} < {1}; ++{0}) {2}", variable, end,
      is_one_line(body) ? body.substr(0, body.size() - 1) : fmt::format("{{\n{}}}", body));
}

std::string braced(const std::string& body) {
  if (body.empty()) return "{}\n";
  if (!is_one_line(body)) return fmt::format("{{\n{}}}\n", body);
  return fmt::format("{{ {} }}\n", body.substr(0, body.size() - 1));
}

}  // namespace redfuser::codegen
