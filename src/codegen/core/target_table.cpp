#include "codegen/core/target_table.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace redfuser::codegen {

Target target_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const select::NamedMachine& known : select::known_machines()) {
    if (known.name == name) return {known.machine};
    names.push_back(known.name);
  }
  user_error("no target is called \"{}\"; the targets are {}", name, fmt::join(names, ", "));
}

}  // namespace redfuser::codegen
