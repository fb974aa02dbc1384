#include "ep/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "base/error.h"
#include "io/did_you_mean.h"

namespace redfuser::ep {
namespace {

[[noreturn]] void wrong_value(const std::string& name, const std::string& value,
                              const char* wanted) {
  user_error("RedFuser's execution provider: the option \"{}\" is \"{}\", not {}", name, value,
             wanted);
}

bool truth_of(const std::string& name, std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  wrong_value(name, value, "0 or 1");
}

template <typename T>
T number_of(const std::string& name, const std::string& value) {
  T number = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || at != end || number < 0) wrong_value(name, value, "a number from 0");
  return number;
}

using Set = std::function<void(ProviderOptions&, const std::string& name, const std::string&)>;

template <typename T>
Set number(T SessionOptions::*option) {
  return [option](ProviderOptions& options, const std::string& name, const std::string& value) {
    options.session.*option = number_of<T>(name, value);
  };
}

Set truth(bool SessionOptions::*option) {
  return [option](ProviderOptions& options, const std::string& name, const std::string& value) {
    options.session.*option = truth_of(name, value);
  };
}

Set truth(bool CompileOptions::*option) {
  return [option](ProviderOptions& options, const std::string& name, const std::string& value) {
    options.compile.*option = truth_of(name, value);
  };
}

void set_device(ProviderOptions& options, const std::string& name, const std::string& value) {
  if (value != "cpu" && value != "cuda" && value != "auto") {
    wrong_value(name, value, "cpu, cuda or auto");
  }
  options.session.device = value;
}

void set_cache(ProviderOptions& options, const std::string& name, const std::string& value) {
  static const std::map<std::string, KernelCacheMode> modes = {
      {"on", KernelCacheMode::On},
      {"off", KernelCacheMode::Off},
      {"readonly", KernelCacheMode::ReadOnly}};
  const auto mode = modes.find(value);
  if (mode == modes.end()) wrong_value(name, value, "on, off or readonly");
  options.session.kernel_cache = mode->second;
}

void set_folder(ProviderOptions& options, const std::string&, const std::string& value) {
  options.session.kernel_cache_folder = value;
}

void set_stream(ProviderOptions& options, const std::string& name, const std::string& value) {
  options.stream = reinterpret_cast<void*>(number_of<uintptr_t>(name, value));
}

std::map<std::string, Set> known_options(const std::string& provider) {
  std::map<std::string, Set> options = {
      {"threads", number(&SessionOptions::threads)},
      {"memory_limit", number(&SessionOptions::memory_limit)},
      {"tune", truth(&SessionOptions::tune)},
      {"tf32", truth(&SessionOptions::tf32)},
      {"exact_products", truth(&SessionOptions::exact_products)},
      {"exact_masks", truth(&SessionOptions::exact_masks)},
      {"kept_shapes", number(&SessionOptions::kept_shapes)},
      {"kernel_cache", set_cache},
      {"kernel_cache_folder", set_folder},
      {"fuse", truth(&CompileOptions::fuse)},
      {"certify", truth(&CompileOptions::certify)},
  };
  if (provider == kGpuProviderName) {
    options["user_compute_stream"] = set_stream;
  } else {
    options["device"] = set_device;
  }
  return options;
}

// Session options that ONNX Runtime has for the provider start with its name in small letters.
std::string prefix_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return "ep." + name + ".";
}

[[noreturn]] void unknown_option(const std::string& provider, const std::string& name,
                                 const std::map<std::string, Set>& options) {
  std::vector<std::string> names;
  for (const auto& [known, set] : options) names.push_back(known);
  user_error("{} has no option \"{}\"{} (its options are {})", provider, name,
             io::did_you_mean(name, names), fmt::join(names, ", "));
}

}  // namespace

ProviderOptions read_options(const Api& api, const std::string& provider,
                             const OrtSessionOptions& options) {
  const std::map<std::string, Set> known = known_options(provider);
  const std::string prefix = prefix_of(provider);
  OrtKeyValuePairs* entries = nullptr;
  check(api, api.ort->GetSessionOptionsConfigEntries(&options, &entries));
  const Released<OrtKeyValuePairs> owner(entries, api.ort->ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api.ort->GetKeyValuePairs(entries, &keys, &values, &count);
  ProviderOptions result;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = keys[i], value = values[i];
    if (key == "ep.context_enable" && value == "1") {
      user_error("{} writes no compiled model: ep.context_enable must be 0", provider);
    }
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size());
    const auto option = known.find(name);
    if (option == known.end()) unknown_option(provider, name, known);
    option->second(result, name, value);
  }
  return result;
}

}  // namespace redfuser::ep
