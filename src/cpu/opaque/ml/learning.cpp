// Dictionaries of ai.onnx.ml: labels, categories and their positions.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// The list of keys, values or defaults named `prefix` + type, as a tensor; undefined without one.
Tensor list_attribute(const OpaqueCall& call, const std::string& prefix) {
  if (call.has(prefix + "tensor")) return tensor_attribute(call, prefix + "tensor");
  if (call.has(prefix + "strings")) {
    const auto list = words_attribute(call, prefix + "strings");
    return Tensor::strings({static_cast<int64_t>(list.size())}, list);
  }
  if (call.has(prefix + "int64s")) return tensor_of_integers(call.integers(prefix + "int64s", {}));
  if (call.has(prefix + "floats")) {
    const std::vector<double> list = reals_attribute(call, prefix + "floats");
    Tensor tensor(DType::Float32, {static_cast<int64_t>(list.size())});
    std::transform(list.begin(), list.end(), tensor.as<float>(),
                   [](double number) { return static_cast<float>(number); });
    return tensor;
  }
  return {};
}

Tensor default_value(const OpaqueCall& call, DType dtype) {
  if (call.has("default_tensor")) return tensor_attribute(call, "default_tensor");
  if (dtype == DType::String) return Tensor::strings({1}, {call.text("default_string", "_Unused")});
  Tensor tensor(dtype, {1});
  const double real = call.real("default_float", -0.0);
  const int64_t whole = call.integer("default_int64", -1);
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      *tensor.as<T>() = static_cast<T>(whole);
    } else {
      *tensor.as<T>() = static_cast<T>(real);
    }
  });
  return tensor;
}

// Elements as bytes, so that one map serves every type. NaN is one key, as are both zeros.
std::string key_of(const Tensor& tensor, int64_t i) {
  const size_t width = size_of(tensor.dtype());
  std::string key(tensor.as<char>() + static_cast<size_t>(i) * width, width);
  if (!is_float(tensor.dtype())) return key;
  double value = 0;
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<double>(tensor.as<T>()[i]);
  });
  if (std::isnan(value)) return "nan";
  return value == 0 ? "zero" : key;
}

// The value beside each element's key.
void look_up(OpaqueCall& call, const Tensor& keys, const Tensor& values, const Tensor& fallback) {
  const Tensor& x = call.tensor(0);
  std::map<std::string, int64_t> table;
  for (int64_t i = 0; i < keys.size(); ++i) table.emplace(key_of(keys, i), i);
  Tensor& y = call.allocate(0, x.dims());
  if (y.dtype() != values.dtype()) call.fail("it has several lists of values");
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto found = table.find(key_of(x, i));
    const bool known = found != table.end();
    copy_element(known ? values : fallback, known ? found->second : 0, y, i);
  }
}

}  // namespace

void run_label_encoder(OpaqueCall& call) {
  if (call.has("classes_strings")) return run_category_mapper(call);
  const Tensor& x = call.tensor(0);
  const Tensor keys = list_attribute(call, "keys_"), values = list_attribute(call, "values_");
  if (!keys.defined() || !values.defined() || keys.size() != values.size() ||
      keys.dtype() != x.dtype()) {
    call.fail("keys, values and input do not fit each other");
  }
  const Tensor fallback = default_value(call, values.dtype());
  if (fallback.dtype() != values.dtype() || fallback.size() != 1) call.fail("the default value");
  look_up(call, keys, values, fallback);
}

// Position of a text in a list of categories, or the text at a position.
void run_category_mapper(OpaqueCall& call) {
  const bool words = call.tensor(0).dtype() == DType::String;
  const bool ranks = call.has("classes_strings");  // LabelEncoder of version 1
  const std::vector<std::string> texts =
      words_attribute(call, ranks ? "classes_strings" : "cats_strings");
  std::vector<int64_t> numbers = call.integers("cats_int64s", {});
  if (ranks) {
    numbers.resize(texts.size());
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
  }
  if (numbers.size() != texts.size()) {
    call.fail(fmt::format("{} cats_strings for {} cats_int64s", texts.size(), numbers.size()));
  }
  const Tensor left = Tensor::strings({static_cast<int64_t>(texts.size())}, texts);
  const Tensor right = tensor_of_integers(numbers);
  const Tensor fallback = words ? tensor_of_integers({call.integer("default_int64", -1)})
                                : Tensor::strings({1}, {call.text("default_string", "_Unused")});
  look_up(call, words ? left : right, words ? right : left, fallback);
}

// Serves the form in which an unknown category is an error.
void run_one_hot_encoder(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const bool words = x.dtype() == DType::String;
  const std::vector<std::string> texts = words_attribute(call, "cats_strings");
  const Tensor categories = words ? Tensor::strings({static_cast<int64_t>(texts.size())}, texts)
                                  : tensor_of_integers(call.integers("cats_int64s", {}));
  std::map<std::string, int64_t> table;
  for (int64_t i = 0; i < categories.size(); ++i) table[key_of(categories, i)] = i;
  const Tensor keys = words ? x : tensor_of_integers(call.integers_of(0));
  Dims dims = x.dims();
  dims.push_back(categories.size());
  Tensor& y = call.allocate(0, dims);
  std::fill_n(y.as<float>(), y.size(), 0.0f);
  for (int64_t i = 0; i < keys.size(); ++i) {
    const auto found = table.find(key_of(keys, i));
    if (found == table.end()) {
      call.fail(words ? fmt::format("\"{}\" is none of the categories", keys.text(i))
                      : fmt::format("{} is none of the categories", keys.as<int64_t>()[i]));
    }
    y.as<float>()[i * categories.size() + found->second] = 1;
  }
}

}  // namespace redfuser::cpu
