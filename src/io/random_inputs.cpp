#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/low_bit.h"
#include "base/memory_budget.h"
#include "io/did_you_mean.h"
#include "redfuser/inputs.h"

namespace redfuser {
namespace {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Generator {
 public:
  Generator(uint64_t seed, const std::string& name) : state_(seed) {
    for (const char c : name) state_ = next() ^ static_cast<uint8_t>(c);
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // N(0, 1), by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

std::vector<std::string> input_names(const Model& model) {
  std::vector<std::string> names;
  for (const ValueInfo& info : model.inputs()) names.push_back(info.name);
  return names;
}

template <typename Map>
void check_inputs_exist(const Model& model, const Map& by_input, const char* what) {
  const std::vector<std::string> names = input_names(model);
  for (const auto& [name, value] : by_input) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      user_error("{} for \"{}\", which is no input of the model{}", what, name,
                 io::did_you_mean(name, names));
    }
  }
}

void check_symbols_exist(const Model& model, const RandomOptions& options) {
  std::vector<std::string> symbols;
  for (const ValueInfo& info : model.inputs()) {
    for (const auto& dim : info.dims) {
      if (dim.size < 0) symbols.push_back(dim.symbol);
    }
  }
  for (const auto& [name, size] : options.symbols) {
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) {
      const std::string list =
          symbols.empty() ? "it has none" : fmt::format("it has {}", fmt::join(symbols, ", "));
      user_error("a size for \"{}\", which is no symbolic dimension of the model's inputs{} ({})",
                 name, io::did_you_mean(name, symbols), list);
    }
    if (size < 0) user_error("the size of \"{}\" is negative: {}", name, size);
  }
}

// Takes the sizes that whole shapes give to symbols.
void bind_shape(const ValueInfo& info, const Dims& dims, std::map<std::string, int64_t>& symbols) {
  if (dims.size() != info.dims.size()) {
    user_error("the shape [{}] given for input \"{}\" has {} dimensions; the model wants {}",
               fmt::join(dims, ","), info.name, dims.size(), info.dims.size());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const ValueInfo::Dimension& dim = info.dims[i];
    const int64_t wanted =
        dim.size >= 0 ? dim.size : symbols.emplace(dim.symbol, dims[i]).first->second;
    if (wanted != dims[i]) {
      user_error("the shape given for input \"{}\" has {} in dimension {}, but {} is {}", info.name,
                 dims[i], i, dim.size >= 0 ? "the model's" : fmt::format("\"{}\"", dim.symbol),
                 wanted);
    }
  }
}

Tensor allocated(const ValueInfo& info, const Dims& dims) {
  try {
    return Tensor(info.dtype, dims);
  } catch (const MemoryLimitError& error) {
    user_error("input \"{}\": {}", info.name, error.what());
  }
}

Tensor random_tensor(const ValueInfo& info, const Dims& dims, const RandomOptions& options) {
  if (info.any_shape && size_of(info.dtype) != 0) {
    user_error("input \"{}\" has no shape: give it with --inputs", info.name);
  }
  const bool codes = is_low_bit_float(info.dtype);
  if (!is_float(info.dtype) && !is_integer(info.dtype) && !codes && info.dtype != DType::Bool) {
    user_error("input \"{}\" is of dtype {}, for which no random tensor can be made", info.name,
               name_of(info.dtype));
  }
  Tensor tensor = allocated(info, dims);
  Generator generator(options.seed, info.name);
  const auto range = options.ranges.find(info.name);
  const bool ranged = range != options.ranges.end();
  const double low = ranged ? range->second.first : 0;
  const double high = ranged ? range->second.second : 2;
  if (bits_of(info.dtype) < 8 && !codes && (low < 0 || high > 2)) {
    user_error("the range of input \"{}\" is too wide for {}", info.name, name_of(info.dtype));
  }
  if (!(low < high)) user_error("the range of input \"{}\" is empty", info.name);
  const auto number = [&] {
    return ranged ? low + generator.uniform() * (high - low) : generator.normal();
  };
  if (codes) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.as<uint8_t>()[i] = low_bit_code(info.dtype, static_cast<float>(number()));
    }
    return tensor;
  }
  dispatch(info.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      T& element = tensor.as<T>()[i];
      if constexpr (std::is_same_v<T, bool>) {
        element = (generator.next() >> 63) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(std::floor(low + generator.uniform() * (high - low)));
      } else {
        element = static_cast<T>(number());
      }
    }
  });
  return tensor;
}

}  // namespace

NamedTensors random_inputs(const Model& model, const RandomOptions& options) {
  check_inputs_exist(model, options.shapes, "a shape");
  check_inputs_exist(model, options.ranges, "a range");
  check_symbols_exist(model, options);
  std::map<std::string, int64_t> symbols = options.symbols;
  for (const ValueInfo& info : model.inputs()) {
    const auto shape = options.shapes.find(info.name);
    if (shape != options.shapes.end()) bind_shape(info, shape->second, symbols);
  }
  NamedTensors tensors;
  for (const ValueInfo& info : model.inputs()) {
    Dims dims;
    for (const auto& dim : info.dims) {
      dims.push_back(dim.size >= 0 ? dim.size : symbols.emplace(dim.symbol, 1).first->second);
    }
    tensors[info.name] = random_tensor(info, dims, options);
  }
  return tensors;
}

}  // namespace redfuser
