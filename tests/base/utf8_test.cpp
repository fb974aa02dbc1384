// Texts as characters: every form of UTF-8, and what is none.
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace redfuser {
namespace {

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t c = 0; c <= 0x110000; ++c) {
    const std::optional<std::string> text = to_utf8(std::u32string(1, c));
    const bool valid = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    ASSERT_EQ(text.has_value(), valid) << static_cast<uint32_t>(c);
    if (valid) {
      ASSERT_EQ(from_utf8(*text), std::u32string(1, c));
    }
  }
}

TEST(Utf8, InvalidTexts) {
  const char* const invalid[] = {"\x80",
                                 "\xc3",
                                 "\xc0\x80",
                                 "\xc1\xbf",
                                 "\xe0\x9f\xbf",
                                 "\xed\xa0\x80",
                                 "\xf0\x8f\xbf\xbf",
                                 "\xf4\x90\x80\x80",
                                 "\xf8\x88\x80\x80\x80",
                                 "\xc3(",
                                 "a\xff"};
  for (const char* text : invalid) EXPECT_FALSE(from_utf8(text)) << text;
}

TEST(Utf8, Cases) {
  EXPECT_EQ(with_case(U"Az \u00dcß\u03a3\u0416", LetterCase::Lower), U"az \u00fcß\u03c3\u0436");
  EXPECT_EQ(with_case(U"Az \u00fcß\u03c3\u0436", LetterCase::Upper), U"AZ \u00dcß\u03a3\u0416");
}

}  // namespace
}  // namespace redfuser
