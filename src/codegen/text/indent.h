// Layout of generated text.
#pragma once

#include <string>
#include <string_view>

namespace redfuser::codegen {

// `text`, C++ with balanced brackets, with each line indented: two spaces for every open brace,
// four more within open parentheses. Brackets in comments and literals do not count; preprocessor
// lines begin at column 0; block comments and raw literals are not changed.
std::string indented(std::string_view text);

}  // namespace redfuser::codegen
