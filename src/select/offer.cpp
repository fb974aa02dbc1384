#include "select/offer.h"

#include <fmt/format.h>

namespace redfuser::select {

std::string to_string(const Offer& offer) {
  if (!offer.refusal.empty()) return fmt::format("{}: refused, {}", offer.family, offer.refusal);
  std::string text = offer.family;
  if (offer.config != offer.family) text += fmt::format(" ({})", offer.config);
  if (offer.time > 0) text += fmt::format(": {:.1f} us", offer.time);
  return text;
}

}  // namespace redfuser::select
