#include "redfuser/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "io/element.h"

namespace redfuser {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Difference {
  double absolute = 0, relative = 0;
  double allowed = 0;

  // The error relative to the tolerance; above 1 is a mismatch.
  double excess() const {
    if (absolute == 0) return 0;
    return allowed > 0 ? absolute / allowed : kInfinity;
  }
};

// The distance from |value| to the next larger number of the type; 0 for a type without floats.
double unit_in_last_place(DType dtype, double value) {
  const auto spacing = [value](int digits, int smallest_exponent) {
    const int exponent = value == 0 ? smallest_exponent : std::ilogb(value);
    return std::ldexp(1, std::max(exponent, smallest_exponent) - digits + 1);
  };
  switch (dtype) {
    case DType::Float16:
      return spacing(11, -14);
    case DType::BFloat16:
      return spacing(8, -126);
    case DType::Float32:
      return spacing(24, -126);
    case DType::Float64:
      return spacing(53, -1022);
    default:
      return 0;
  }
}

Difference difference(double got, double expected, double exact, DType narrower,
                      const Tolerance& tolerance) {
  Difference result;
  if (std::isnan(got) && std::isnan(expected)) return result;
  if (got == expected && !(exact > 0)) return result;  // infinities differ by NaN
  if (!std::isfinite(got) || !std::isfinite(expected)) {
    result.absolute = result.relative = kInfinity;
    return result;
  }
  result.absolute = exact;
  result.relative = expected != 0 ? exact / std::fabs(expected) : kInfinity;
  result.allowed = tolerance.absolute + tolerance.relative * std::fabs(expected);
  if (tolerance.units > 0 || tolerance.error > 0) {
    const double units = tolerance.units * unit_in_last_place(narrower, expected);
    result.allowed = std::max(result.allowed, tolerance.error + units);
  }
  return result;
}

template <typename T>
double exact_difference(T got, T expected) {
  if constexpr (std::is_same_v<T, bool>) {
    return got != expected ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    // The magnitude of a 64-bit difference fits the unsigned type.
    const uint64_t a = static_cast<uint64_t>(got), b = static_cast<uint64_t>(expected);
    return static_cast<double>(got > expected ? a - b : b - a);
  } else {
    return std::fabs(static_cast<double>(got) - static_cast<double>(expected));
  }
}

class Accumulator {
 public:
  Accumulator(Comparison& result, DType narrower, const Tolerance& tolerance)
      : result_(result), narrower_(narrower), tolerance_(tolerance) {}

  void add(int64_t position, double got, double expected, double exact) {
    count(got, result_.got_nan, result_.got_inf);
    count(expected, result_.expected_nan, result_.expected_inf);
    if (std::isfinite(got) && std::isfinite(expected)) {
      dot_ += got * expected;
      got_square_ += got * got;
      expected_square_ += expected * expected;
      result_.max_absolute = std::max(result_.max_absolute, exact);
    }
    const Difference difference = redfuser::difference(got, expected, exact, narrower_, tolerance_);
    const double excess = difference.excess();
    if (!(excess <= 1)) ++result_.mismatches;
    if (position == 0 || excess > worst_excess_) {
      worst_excess_ = excess;
      worst_ = position;
      result_.worst_got = got;
      result_.worst_expected = expected;
      result_.worst_absolute = difference.absolute;
      result_.worst_relative = difference.relative;
    }
  }

  void finish(const Dims& dims) {
    if (result_.elements > 0) result_.worst_index = io::unravel(worst_, dims);
    const double norms = std::sqrt(got_square_) * std::sqrt(expected_square_);
    if (norms > 0) {
      result_.cosine = dot_ / norms;
    } else {
      result_.cosine = got_square_ == expected_square_ ? 1 : 0;
    }
    result_.passed = result_.mismatches == 0;
  }

 private:
  static void count(double value, int64_t& nan, int64_t& inf) {
    if (std::isnan(value)) ++nan;
    if (std::isinf(value)) ++inf;
  }

  Comparison& result_;
  DType narrower_;
  Tolerance tolerance_;
  double dot_ = 0, got_square_ = 0, expected_square_ = 0;
  double worst_excess_ = -1;
  int64_t worst_ = 0;
};

Comparison compare_texts(Comparison result, const Tensor& got, const Tensor& expected) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (got.text(i) == expected.text(i)) continue;
    if (result.mismatches++ == 0) {
      result.worst_index = io::unravel(i, expected.dims());
      result.problem =
          fmt::format("at [{}]: got \"{}\", expected \"{}\"", fmt::join(result.worst_index, ","),
                      got.text(i), expected.text(i));
    }
  }
  result.cosine = result.mismatches == 0 ? 1 : 0;
  result.passed = result.mismatches == 0;
  return result;
}

bool comparable(DType a, DType b) { return a == b || (is_float(a) && is_float(b)); }

// The type with the larger unit in the last place.
DType narrower_of(DType a, DType b) {
  return unit_in_last_place(a, 1) >= unit_in_last_place(b, 1) ? a : b;
}

void check_tolerance(double value, const char* name) {
  if (std::isfinite(value) && value >= 0) return;
  user_error("the {} tolerance is a finite number that is not negative, not {}", name, value);
}

}  // namespace

Comparison compare(const std::string& name, const Tensor& got, const Tensor& expected,
                   const Tolerance& tolerance) {
  check_tolerance(tolerance.relative, "relative");
  check_tolerance(tolerance.absolute, "absolute");
  Comparison result;
  result.name = name;
  if (!comparable(got.dtype(), expected.dtype()) || got.dims() != expected.dims()) {
    result.problem = fmt::format("got {}, expected {}", describe(got), describe(expected));
    return result;
  }
  result.elements = expected.size();
  if (expected.dtype() == DType::String) return compare_texts(std::move(result), got, expected);
  if (size_of(expected.dtype()) == 0) {
    result.problem = fmt::format("values of type {} are not compared", name_of(expected.dtype()));
    return result;
  }
  Tolerance applied = tolerance;
  if (!is_float(expected.dtype())) applied.relative = 0;
  if (got.dtype() != expected.dtype()) {
    result.note = fmt::format("the types differ: got {}, expected {}; compared by value",
                              name_of(got.dtype()), name_of(expected.dtype()));
  }
  Accumulator accumulator(result, narrower_of(got.dtype(), expected.dtype()), applied);
  dispatch(got.dtype(), [&](auto got_tag) {
    dispatch(expected.dtype(), [&](auto expected_tag) {
      using G = typename decltype(got_tag)::type;
      using E = typename decltype(expected_tag)::type;
      for (int64_t i = 0; i < result.elements; ++i) {
        const Arithmetic<G> a = got.as<G>()[i];
        const Arithmetic<E> b = expected.as<E>()[i];
        double exact = 0;
        if constexpr (std::is_same_v<G, E>) {
          exact = exact_difference(a, b);
        } else {
          exact = exact_difference(static_cast<double>(a), static_cast<double>(b));
        }
        accumulator.add(i, static_cast<double>(a), static_cast<double>(b), exact);
      }
    });
  });
  accumulator.finish(expected.dims());
  return result;
}

std::vector<Comparison> compare(const NamedTensors& got, const NamedTensors& expected,
                                const Tolerance& tolerance) {
  if (got.size() == 1 && expected.size() == 1) {
    const auto& [name, tensor] = *got.begin();
    return {compare(name, tensor, expected.begin()->second, tolerance)};
  }
  std::vector<Comparison> results;
  size_t common = 0;
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) {
      Comparison missing;
      missing.name = name;
      missing.problem = "expected, but not among the outputs";
      results.push_back(std::move(missing));
    } else {
      ++common;
      results.push_back(compare(name, found->second, tensor, tolerance));
    }
  }
  if (common == 0) {
    std::vector<std::string> names, wanted;
    for (const auto& [name, tensor] : got) names.push_back(name);
    for (const auto& [name, tensor] : expected) wanted.push_back(name);
    user_error("no tensor to compare by name: the outputs are {}; the expected ones are {}",
               fmt::join(names, ", "), fmt::join(wanted, ", "));
  }
  return results;
}

std::string describe(const Comparison& comparison) {
  const Comparison& c = comparison;
  if (!c.problem.empty()) return fmt::format("{}: {}", c.name, c.problem);
  const std::string note = c.note.empty() ? "" : "; " + c.note;
  std::string text;
  if (c.passed) {
    text = fmt::format("{}: {} elements agree", c.name, c.elements);
  } else {
    text = fmt::format("{}: {} of {} elements differ", c.name, c.mismatches, c.elements);
  }
  if (c.elements == 0) return text + note;
  text += fmt::format("; {} at [{}]: got {:.9g}, expected {:.9g} (abs {:.3g}, rel {:.3g})",
                      c.passed ? "largest error" : "worst", fmt::join(c.worst_index, ","),
                      c.worst_got, c.worst_expected, c.worst_absolute, c.worst_relative);
  text += fmt::format("; cosine {:.9f}", c.cosine);
  if (c.got_nan + c.expected_nan > 0) {
    text += fmt::format("; NaN {} got, {} expected", c.got_nan, c.expected_nan);
  }
  if (c.got_inf + c.expected_inf > 0) {
    text += fmt::format("; Inf {} got, {} expected", c.got_inf, c.expected_inf);
  }
  return text + note;
}

Summary summarize(const Tensor& tensor) {
  Summary summary;
  if (!tensor.defined() || size_of(tensor.dtype()) == 0 || tensor.dtype() == DType::String) {
    return summary;
  }
  int64_t finite = 0;
  double sum = 0;
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const elements = tensor.as<T>();
    const int64_t count = tensor.size();
    for (int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(static_cast<Arithmetic<T>>(elements[i]));
      if (std::isnan(value)) {
        ++summary.nan;
      } else if (std::isinf(value)) {
        ++summary.inf;
      } else {
        summary.min = finite == 0 ? value : std::min(summary.min, value);
        summary.max = finite == 0 ? value : std::max(summary.max, value);
        sum += value;
        ++finite;
      }
    }
  });
  if (finite > 0) summary.mean = sum / static_cast<double>(finite);
  return summary;
}

}  // namespace redfuser
