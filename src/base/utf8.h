// Texts as Unicode characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redfuser {

// The characters of a UTF-8 text; nullopt if it is not valid UTF-8 (RFC 3629: shortest forms, up to
// U+10FFFF, without surrogates).
std::optional<std::u32string> from_utf8(std::string_view text);

// UTF-8 of characters; nullopt if one of them is a surrogate or above U+10FFFF.
std::optional<std::string> to_utf8(std::u32string_view characters);

enum class LetterCase { Lower, Upper };

// Every character by Unicode's simple case mapping, one to one and the same in every language.
std::u32string with_case(std::u32string characters, LetterCase target);

}  // namespace redfuser
