#include "io/json_tensors.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/utf8.h"

namespace redfuser::io {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kLargestRank = 64;

// Numbers of a nested list in row-major order.
struct Collected {
  Dims dims;
  std::vector<const Json*> elements;
};

void collect(const Json& value, size_t depth, Collected& out, const std::string& what) {
  if (!value.is_array()) {
    if (depth != out.dims.size()) user_error("{}: the lists are not of equal depth", what);
    out.elements.push_back(&value);
    return;
  }
  const int64_t length = static_cast<int64_t>(value.size());
  if (depth == out.dims.size()) {
    if (!out.elements.empty()) user_error("{}: the lists are not of equal depth", what);
    if (depth == kLargestRank) user_error("{}: the lists are nested too deeply", what);
    out.dims.push_back(length);
  } else if (out.dims[depth] != length) {
    user_error("{}: a list has {} elements where its neighbour has {}", what, length,
               out.dims[depth]);
  }
  for (const Json& item : value) collect(item, depth + 1, out, what);
}

// An element as messages show it.
std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return (value.is_string() ? "the text " : "") + text.substr(0, 40);
}

double as_double(const Json& value, const std::string& what) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  user_error("{}: {} stands where a number is expected", what, shown(value));
}

template <typename T>
T convert(const Json& value, const std::string& what) {
  if constexpr (std::is_same_v<T, bool>) {
    return as_double(value, what) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_boolean()) return static_cast<T>(value.get<bool>());
    bool fits = false;
    T result = 0;
    if (value.is_number_unsigned()) {
      const uint64_t number = value.get<uint64_t>();
      fits = number <= static_cast<uint64_t>(std::numeric_limits<T>::max());
      result = static_cast<T>(number);
    } else if (value.is_number_integer()) {
      const int64_t number = value.get<int64_t>();
      fits = std::is_signed_v<T> && number >= static_cast<int64_t>(std::numeric_limits<T>::min());
      result = static_cast<T>(number);
    }
    if (!fits) {
      user_error("{}: {} stands where an integer in [{}, {}] is expected", what, shown(value),
                 std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    }
    return result;
  } else {
    return static_cast<T>(as_double(value, what));
  }
}

Tensor build_texts(const Collected& data, const std::string& what) {
  std::vector<std::string> texts;
  for (const Json* value : data.elements) {
    if (!value->is_string()) {
      user_error("{}: {} stands where a text is expected", what, shown(*value));
    }
    texts.push_back(value->get<std::string>());
  }
  return Tensor::strings(data.dims, texts);
}

Tensor build(DType dtype, const Collected& data, const std::string& what) {
  if (dtype == DType::String) return build_texts(data, what);
  Tensor tensor(dtype, data.dims);
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = tensor.as<T>();
    for (size_t i = 0; i < data.elements.size(); ++i) to[i] = convert<T>(*data.elements[i], what);
  });
  return tensor;
}

// How JSON, which has no such numbers, spells them.
bool is_number_word(const Json& value) {
  return value == "NaN" || value == "Infinity" || value == "-Infinity";
}

DType narrowest(const std::vector<const Json*>& elements) {
  bool all_bool = !elements.empty(), all_integer = !elements.empty();
  bool all_text = true, any_word = false;
  for (const Json* value : elements) {
    all_bool = all_bool && value->is_boolean();
    all_integer = all_integer && value->is_number_integer();
    all_text = all_text && value->is_string();
    any_word = any_word || !is_number_word(*value);
  }
  if (all_text && any_word) return DType::String;
  return all_bool ? DType::Bool : all_integer ? DType::Int64 : DType::Float32;
}

Tensor described_tensor(const Json& value, const std::string& what) {
  for (const char* key : {"dtype", "shape", "data"}) {
    if (!value.contains(key)) user_error("{}: \"{}\" is missing", what, key);
  }
  const Json& name = value["dtype"];
  const DType dtype =
      name.is_string() ? dtype_of_name(name.get_ref<const std::string&>()) : DType::Undefined;
  if (size_of(dtype) == 0) user_error("{}: {} is no known dtype", what, name.dump());
  Collected data;
  collect(value["data"], 0, data, what);
  const int64_t given = static_cast<int64_t>(data.elements.size());
  if (!value["shape"].is_array()) user_error("{}: \"shape\" is no list", what);
  data.dims.clear();
  for (const Json& dim : value["shape"]) {
    data.dims.push_back(convert<int64_t>(dim, what + ": \"shape\""));
  }
  if (element_count(data.dims) != given) {
    user_error("{}: \"data\" has {} elements, but \"shape\" wants {}", what, given,
               element_count(data.dims));
  }
  return build(dtype, data, what);
}

DType declared_dtype(const std::string& name, std::span<const ValueInfo> declared) {
  for (const ValueInfo& info : declared) {
    if (info.name == name) return info.dtype;
  }
  return DType::Undefined;
}

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

namespace {

Json json_texts(const Tensor& tensor) {
  Json data = Json::array();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (!from_utf8(tensor.text(i))) {
      user_error("JSON holds no text that is not UTF-8 (element {}); a folder (of .pb files) does",
                 i);
    }
    data.push_back(tensor.text(i));
  }
  return data;
}

Json json_elements(const Tensor& tensor) {
  if (tensor.dtype() == DType::String) return json_texts(tensor);
  Json data = Json::array();
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = tensor.as<T>();
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        data.push_back(from[i]);
      } else {
        data.push_back(number(static_cast<double>(from[i])));
      }
    }
  });
  return data;
}

bool is_plain(DType dtype) {
  return is_float(dtype) || dtype == DType::Bool || dtype == DType::String ||
         (is_integer(dtype) && bits_of(dtype) >= 8);
}

}  // namespace

DType dtype_of_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::BFloat16); ++i) {
    const DType dtype = static_cast<DType>(i);
    if (name_of(dtype) == name && dtype != DType::Undefined) {
      return dtype;
    }
  }
  return DType::Undefined;
}

NamedTensors tensors_from_json(const std::string& text, const std::string& what,
                               std::span<const ValueInfo> declared) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    user_error("\"{}\" is not valid JSON: {}", what, error.what());
  }
  if (!root.is_object()) user_error("\"{}\" must hold an object of tensors by name", what);
  NamedTensors tensors;
  for (const auto& [name, value] : root.items()) {
    const std::string label = fmt::format("\"{}\" tensor \"{}\"", what, name);
    if (value.is_object()) {
      tensors[name] = described_tensor(value, label);
      continue;
    }
    Collected data;
    collect(value, 0, data, label);
    const DType declared_type = declared_dtype(name, declared);
    tensors[name] =
        build(is_plain(declared_type) ? declared_type : narrowest(data.elements), data, label);
  }
  return tensors;
}

std::string tensors_to_json(const NamedTensors& tensors) {
  Json root = Json::object();
  for (const auto& entry : tensors) {
    const Tensor& tensor = entry.second;
    if (is_low_bit_float(tensor.dtype()) || size_of(tensor.dtype()) == 0) {
      user_error("JSON holds no values of type {}; a folder (of .pb files) does",
                 name_of(tensor.dtype()));
    }
    const DType dtype = tensor.dtype();
    root[entry.first] = {
        {"dtype", name_of(dtype)}, {"shape", tensor.dims()}, {"data", json_elements(tensor)}};
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redfuser::io
