#include "codegen/core/device_text.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace redfuser::codegen {
namespace {

class Prelude {
 public:
  void add(std::string_view name) {
    if (!added_.insert(name).second) return;
    std::string_view text = body_of(name);
    while (text.starts_with(kInclude)) {
      const size_t end = text.find('"', kInclude.size());
      add(text.substr(kInclude.size(), end - kInclude.size()));
      text.remove_prefix(end + 2);
    }
    text_ += text;
  }
  std::string take() { return std::move(text_); }

 private:
  static constexpr std::string_view kInclude = "#include \"", kMark = "#pragma once\n\n";

  static std::string_view body_of(std::string_view name) {
    const auto headers = device_headers();
    const auto found = std::find_if(headers.begin(), headers.end(),
                                    [&](const DeviceHeader& each) { return each.name == name; });
    RF_CHECK(found != headers.end(), "no device header {}", name);
    const size_t at = found->text.find(kMark);
    RF_CHECK(at != std::string_view::npos, "device header {} has no pragma", name);
    return found->text.substr(at + kMark.size());
  }

  std::set<std::string_view> added_;
  std::string text_;
};

}  // namespace

std::string device_prelude(std::span<const std::string_view> names) {
  Prelude prelude;
  for (std::string_view name : names) prelude.add(name);
  return prelude.take();
}

}  // namespace redfuser::codegen
