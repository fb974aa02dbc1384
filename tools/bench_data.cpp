#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <tuple>

#include "bench_workload.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

// A prime, so that rows differ.
constexpr int64_t kPeriod = 1000003;

// Round to nearest even; the values are far from the format's ends.
uint16_t to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14f) {
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(magnitude * 0x1p24f)));
  }
  const uint32_t kept = (bits & 0x7fffffffu) - 0x38000000u;
  return static_cast<uint16_t>(sign | (kept + 0xfffu + (kept >> 13 & 1u)) >> 13);
}

double convert_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0    ? std::ldexp(mantissa, -24)
                 : exponent == 31 ? (mantissa == 0 ? HUGE_VAL : std::nan(""))
                                  : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

// References of large products read many elements.
double from_half(uint16_t bits) {
  static const std::vector<double> values = [] {
    std::vector<double> all(0x10000);
    for (size_t i = 0; i < all.size(); ++i) all[i] = convert_half(static_cast<uint16_t>(i));
    return all;
  }();
  return values[bits];
}

uint16_t to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

double from_bfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// E4M3FN, to nearest even; the values are below its largest.
uint8_t to_code(float value) {
  const float magnitude = std::fabs(value);
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (magnitude < 0x1p-6f) {
    return static_cast<uint8_t>(sign | static_cast<int>(std::nearbyint(magnitude * 0x1p9f)));
  }
  const uint32_t kept = std::bit_cast<uint32_t>(magnitude) - (120u << 23);
  return static_cast<uint8_t>(sign | (kept + 0x7ffffu + (kept >> 20 & 1u)) >> 20);
}

double from_code(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double value = exponent == 0           ? std::ldexp(mantissa, -9)
                       : (code & 0x7f) == 0x7f ? std::nan("")
                                               : std::ldexp(mantissa + 8, exponent - 10);
  return code & 0x80 ? -value : value;
}

// Numbers of that name, type and deviation, drawn once.
template <typename T, typename Convert>
const std::vector<T>& period_of(DType dtype, const std::string& name, float deviation,
                                Convert convert) {
  static std::mutex mutex;
  static std::map<std::tuple<DType, std::string, float>, std::vector<T>> periods;
  const std::lock_guard lock(mutex);
  std::vector<T>& period = periods[{dtype, name, deviation}];
  if (period.empty()) {
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937_64 generator(seed);
    std::normal_distribution<float> normal;
    period.resize(kPeriod);
    for (T& value : period) value = convert(deviation * normal(generator));
  }
  return period;
}

template <typename T, typename Convert>
void fill(Tensor& tensor, const std::string& name, float deviation, Convert convert) {
  const std::vector<T>& period = period_of<T>(tensor.dtype(), name, deviation, convert);
  for (int64_t begin = 0; begin < tensor.size(); begin += kPeriod) {
    const auto count = static_cast<size_t>(std::min(kPeriod, tensor.size() - begin));
    std::memcpy(tensor.as<T>() + begin, period.data(), count * sizeof(T));
  }
}

}  // namespace

std::string type_name(DType dtype) {
  return dtype == DType::Float32 ? "float" : dtype == DType::Float16 ? "float16" : "bfloat16";
}

int type_number(DType dtype) {
  return dtype == DType::Float32 ? 1 : dtype == DType::Float16 ? 10 : 16;
}

std::string model_text(const std::string& graph) {
  return "<ir_version: 9, opset_import: [\"\" : 20]> " + graph;
}

Tensor normal_tensor(const std::string& name, DType dtype, Dims dims, float deviation) {
  Tensor tensor(dtype, std::move(dims));
  switch (dtype) {
    case DType::Float32:
      fill<float>(tensor, name, deviation, [](float x) { return x; });
      break;
    case DType::Float16:
      fill<uint16_t>(tensor, name, deviation, to_half);
      break;
    case DType::BFloat16:
      fill<uint16_t>(tensor, name, deviation, to_bfloat);
      break;
    case DType::Float8E4M3FN:
      fill<uint8_t>(tensor, name, deviation, to_code);
      break;
    default:
      fail("no random tensor of {}", name_of(dtype));
  }
  return tensor;
}

double element(const Tensor& tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return tensor.as<float>()[index];
    case DType::Float16:
      return from_half(tensor.as<uint16_t>()[index]);
    case DType::BFloat16:
      return from_bfloat(tensor.as<uint16_t>()[index]);
    case DType::Float8E4M3FN:
      return from_code(tensor.as<uint8_t>()[index]);
    default:
      fail("{} is not checked", name_of(tensor.dtype()));
  }
}

namespace {

struct ErrorSum {
  void add(double got, double expected) {
    difference += (got - expected) * (got - expected);
    norm += expected * expected;
  }
  double relative() const { return difference == 0 ? 0 : std::sqrt(difference / norm); }
  double difference = 0, norm = 0;
};

double model_error(const Workload& workload, const NamedTensors& outputs) {
  ErrorSum sum;
  for (const auto& [name, expected] : workload.expected) {
    // A single output may have another name in the file of expected ones.
    const bool single = outputs.size() == 1 && outputs.count(name) == 0;
    const Tensor& got = single ? outputs.begin()->second : outputs.at(name);
    if (got.dims() != expected.dims()) {
      fail("{}: got {}, expected {}", name, describe(got), describe(expected));
    }
    for (int64_t i = 0; i < got.size(); ++i) sum.add(element(got, i), element(expected, i));
  }
  return sum.relative();
}

}  // namespace

double relative_error(const Workload& workload, const NamedTensors& outputs) {
  if (!workload.expected.empty()) return model_error(workload, outputs);
  const Tensor& y = outputs.at("y");
  if (y.size() != workload.rows * workload.width) {
    fail("{}: y is {}", workload.name, describe(y));
  }
  const int64_t count = std::min(workload.rows, workload.sampled_rows);
  ErrorSum sum;
  for (int64_t i = 0; i < count; ++i) {
    // The first and the last row are among them.
    const int64_t row = count == 1 ? 0 : i * (workload.rows - 1) / (count - 1);
    const std::vector<double> reference = workload.reference(row);
    for (int64_t j = 0; j < workload.width; ++j) {
      sum.add(element(y, row * workload.width + j), reference[static_cast<size_t>(j)]);
    }
  }
  return sum.relative();
}

}  // namespace redfuser::tools
