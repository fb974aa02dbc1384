// StringNormalizer: the case of letters, and words that are left out.
#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/string_pool.h"
#include "base/utf8.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// Letters of every script, except in the locale C, which has those of ASCII alone.
class Cases {
 public:
  explicit Cases(const OpaqueCall& call) : call_(call) {
    const std::string locale = call.text("locale", "");
    ascii_ = locale == "C" || locale == "POSIX";
  }

  std::string changed(const std::string& text, LetterCase target) const {
    const std::optional<std::u32string> characters = from_utf8(text);
    if (!characters) {
      call_.fail(fmt::format("a text of \"{}\" is not UTF-8", call_.input(0).name));
    }
    std::u32string result = with_case(*characters, target);
    for (size_t i = 0; ascii_ && i < result.size(); ++i) {
      const char32_t original = (*characters)[i];
      if (original >= 0x80) result[i] = original;
    }
    return *to_utf8(result);
  }

 private:
  const OpaqueCall& call_;
  bool ascii_;
};

}  // namespace

void run_string_normalizer(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const std::string action = call.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    call.fail(fmt::format("unknown case_change_action \"{}\"", action));
  }
  const bool sensitive = call.integer("is_case_sensitive", 0) != 0;
  const Cases cases(call);
  const std::vector<std::string> words = words_attribute(call, "stopwords");
  const auto key = [&](const std::string& text) {
    return sensitive || words.empty() ? text : cases.changed(text, LetterCase::Lower);
  };
  std::set<std::string> stop;
  for (const std::string& word : words) stop.insert(key(word));
  ChargedVector<uint64_t> kept;
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::string& text = x.text(i);
    if (stop.count(key(text)) > 0) continue;
    const bool changes = action == "LOWER" || action == "UPPER";
    const LetterCase target = action == "LOWER" ? LetterCase::Lower : LetterCase::Upper;
    kept.push_back(number_of_text(changes ? cases.changed(text, target) : text));
  }
  if (kept.empty()) kept.push_back(0);  // the empty text
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(kept.size());
  Tensor& y = call.allocate(0, dims);
  RF_CHECK(y.size() == static_cast<int64_t>(kept.size()), "{} texts for {}", kept.size(),
           describe(y));
  std::copy(kept.begin(), kept.end(), y.as<uint64_t>());
}

}  // namespace redfuser::cpu
