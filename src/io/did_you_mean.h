// Help with misspelt names.
#pragma once

#include <string>
#include <vector>

namespace redfuser::io {

// `; did you mean "x"?` for the closest candidate by edit distance, or "" if none is close.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace redfuser::io
