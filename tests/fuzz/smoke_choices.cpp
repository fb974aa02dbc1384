// Inputs that are the choices of a generator.
#include "fuzz/smoke.h"

namespace redfuser {

void mutate_input(std::vector<uint8_t>& input, const std::vector<uint8_t>&, Random& random) {
  constexpr size_t kLength = 64;
  while (input.size() < kLength) input.push_back(static_cast<uint8_t>(random() >> 8));
  mutate_bytes(input, random);
}

}  // namespace redfuser
