#include <algorithm>

#include "fuzz/smoke.h"

namespace redfuser {

void mutate_bytes(std::vector<uint8_t>& bytes, Random& random) {
  constexpr size_t kLongest = 1 << 16;
  const auto at = [&] {
    return static_cast<std::ptrdiff_t>(bytes.empty() ? 0 : random() % bytes.size());
  };
  switch (bytes.empty() ? 0 : random() % 5) {
    case 0:
      if (bytes.size() < kLongest)
        bytes.insert(bytes.begin() + at(), static_cast<uint8_t>(random() >> 8));
      return;
    case 1:
      bytes.erase(bytes.begin() + at());
      return;
    case 2:
      bytes[static_cast<size_t>(at())] ^= static_cast<uint8_t>(1 << random() % 8);
      return;
    case 3:
      bytes[static_cast<size_t>(at())] = static_cast<uint8_t>(random() >> 8);
      return;
    default:
      std::swap(bytes[static_cast<size_t>(at())], bytes[static_cast<size_t>(at())]);
  }
}

}  // namespace redfuser
