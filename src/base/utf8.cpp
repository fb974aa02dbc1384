#include "base/utf8.h"

#include <clocale>
#include <cstdint>
#include <cwctype>
#include <locale>

#include "base/error.h"

namespace redfuser {
namespace {

constexpr char32_t kLargest = 0x10ffff;

bool is_character(char32_t c) { return c <= kLargest && (c < 0xd800 || c > 0xdfff); }

// Continuation bytes behind a first byte, and the smallest character of that length.
struct Form {
  int continuation;
  char32_t smallest;
};

std::optional<Form> form_of(uint8_t first) {
  if (first < 0x80) return Form{0, 0};
  if (first >= 0xc0 && first < 0xe0) return Form{1, 0x80};
  if (first >= 0xe0 && first < 0xf0) return Form{2, 0x800};
  if (first >= 0xf0 && first < 0xf8) return Form{3, 0x10000};
  return std::nullopt;
}

// The C library's tables of all characters; they need no locale to be installed.
locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  RF_CHECK(locale != nullptr, "the C library has no locale C.UTF-8");
  return locale;
}

}  // namespace

std::optional<std::u32string> from_utf8(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at++]);
    const std::optional<Form> form = form_of(first);
    if (!form || text.size() - at < static_cast<size_t>(form->continuation)) return std::nullopt;
    char32_t character = form->continuation == 0 ? first : first & (0x3f >> form->continuation);
    for (int k = 0; k < form->continuation; ++k) {
      const auto byte = static_cast<uint8_t>(text[at++]);
      if ((byte & 0xc0) != 0x80) return std::nullopt;
      character = character << 6 | (byte & 0x3f);
    }
    if (character < form->smallest || !is_character(character)) return std::nullopt;
    characters.push_back(character);
  }
  return characters;
}

std::optional<std::string> to_utf8(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) {
    if (!is_character(c)) return std::nullopt;
    if (c < 0x80) {
      text.push_back(static_cast<char>(c));
      continue;
    }
    const int continuation = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const int mark = 0xff00 >> (continuation + 1) & 0xff;
    text.push_back(static_cast<char>(mark | static_cast<int>(c >> (6 * continuation))));
    for (int k = continuation - 1; k >= 0; --k) {
      text.push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3f)));
    }
  }
  return text;
}

std::u32string with_case(std::u32string characters, LetterCase target) {
  for (char32_t& c : characters) {
    const auto wide = static_cast<wint_t>(c);
    c = static_cast<char32_t>(target == LetterCase::Lower ? towlower_l(wide, unicode())
                                                          : towupper_l(wide, unicode()));
  }
  return characters;
}

}  // namespace redfuser
