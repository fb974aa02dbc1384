# The headers that most files include, parsed once for the library and once for the tests. With
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON each file sees only what it includes itself.
set(redfuser_common_headers
    <fmt/format.h> <fmt/ranges.h> <algorithm> <cmath> <cstdint> <cstring> <filesystem> <functional>
    <limits> <map> <memory> <optional> <set> <span> <string> <unordered_map> <unordered_set>
    <utility> <variant> <vector>)
