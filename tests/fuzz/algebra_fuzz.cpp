// Any cascade is derived or refused, and a certified form agrees with the cascade. The bytes are
// the choices of the generator.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cascade/certify/certificate.h"
#include "cascade/derive/derive.h"
#include "support/cascade_generator.h"

namespace {

// Rounding alone stays far below; a wrong form does not.
constexpr double kTolerance = 0.05;
// Enough for empty segments, uneven ones and tiles that do not divide them.
const std::vector<int64_t> kLengths = {1, 3};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redfuser;
  size_t at = 0;
  ir::ExprPool pool;
  const cascade::Cascade cascade =
      CascadeGenerator(pool, [&]() -> uint64_t { return at < size ? data[at++] : 0; }).cascade();
  const auto derived = derive(pool, cascade);
  if (!std::holds_alternative<cascade::Derivation>(derived)) return 0;
  const cascade::Streaming& streaming = std::get<cascade::Derivation>(derived).streaming;
  if (!certify(pool, cascade, streaming).valid) return 0;
  const auto found = mismatch(pool, cascade, streaming, 1, kTolerance, kLengths);
  if (!found || !found->finite) return 0;
  std::fprintf(stderr, "%s\n%s%s", found->text.c_str(), to_string(pool, cascade).c_str(),
               to_string(pool, streaming).c_str());
  std::abort();
}
