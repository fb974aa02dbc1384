#include "base/tensors/scales.h"

#include <fmt/format.h>

#include <cmath>

#include "base/dispatch.h"

namespace redfuser {

std::string fault_of_scale(const std::string& name, const Tensor& scale, bool divides) {
  std::string fault;
  if (!is_float(scale.dtype()) || is_low_bit_float(scale.dtype())) return fault;
  dispatch(scale.dtype(), [&](auto tag) {
    using Stored = typename decltype(tag)::type;
    const Stored* numbers = scale.as<Stored>();
    for (int64_t i = 0; i < scale.size() && fault.empty(); ++i) {
      const auto number = static_cast<double>(static_cast<Arithmetic<Stored>>(numbers[i]));
      if (!std::isnan(number) && (number != 0 || !divides)) continue;
      fault = fmt::format("element {} of the scale \"{}\" is {}", i, name, number);
    }
  });
  return fault;
}

}  // namespace redfuser
