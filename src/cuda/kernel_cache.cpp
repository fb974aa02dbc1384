#include "cuda/kernel_cache.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"

namespace redfuser::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kVersion = REDFUSER_VERSION;

bool read_file(const fs::path& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream text;
  text << file.rdbuf();
  bytes = std::move(text).str();
  return true;
}

bool write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return static_cast<bool>(file);
}

std::string digest(const std::string& bytes) {
  return fmt::format("{:016x}{:016x}", hash_text(bytes, 1), hash_text(bytes, 2));
}

// What is wrong with an entry; empty if nothing is.
std::string problem_of(const fs::path& entry, const std::string& source, std::string& cubin) {
  std::string kept, text;
  if (!read_file(entry / "meta.json", text)) return "meta.json is missing";
  if (!read_file(entry / "source.cu", kept)) return "source.cu is missing";
  if (!read_file(entry / "kernel.cubin", cubin)) return "kernel.cubin is missing";
  const Json meta = Json::parse(text, nullptr, false);
  if (!meta.is_object() || !meta.contains("cubin") || !meta["cubin"].is_string()) {
    return "meta.json is damaged";
  }
  if (kept != source) return "source.cu is another kernel's";
  if (meta["cubin"].get<std::string>() != digest(cubin)) return "kernel.cubin is damaged";
  return "";
}

}  // namespace

std::string default_cache_folder() {
  for (const auto& [variable, below] :
       {std::pair{"XDG_CACHE_HOME", ""}, std::pair{"HOME", ".cache"}}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    return (fs::path(value) / below / "redfuser" / "kernels").string();
  }
  return "";
}

KernelCache::KernelCache(CacheOptions options, std::vector<std::string> identity)
    : options_(std::move(options)), identity_(std::move(identity)) {
  if (options_.folder.empty()) options_.folder = default_cache_folder();
  if (options_.folder.empty()) options_.mode = CacheMode::Off;
}

std::string KernelCache::key(const std::string& source) const {
  std::string text = kVersion;
  for (const std::string& part : identity_) text += '\0' + part;
  return digest(text + '\0' + source);
}

bool KernelCache::load(const std::string& source, std::string& cubin) {
  if (options_.mode == CacheMode::Off) return false;
  const fs::path entry = fs::path(options_.folder) / key(source);
  std::error_code error;
  if (!fs::exists(entry, error)) return false;
  const std::string problem = problem_of(entry, source, cubin);
  if (problem.empty()) return true;
  warnings_.push_back(
      fmt::format("the kernel cache's entry {} is compiled again: {}", entry.string(), problem));
  return false;
}

void KernelCache::store(const std::string& source, const std::string& cubin) {
  const fs::path entry = fs::path(options_.folder) / key(source);
  const fs::path aside = fmt::format("{}.{}.tmp", entry.string(), ::getpid());
  const fs::path damaged = fmt::format("{}.{}.old", entry.string(), ::getpid());
  std::error_code error;
  fs::create_directories(aside, error);
  const Json meta = {{"redfuser", kVersion}, {"compiler", identity_}, {"cubin", digest(cubin)}};
  const bool written = !error && write_file(aside / "source.cu", source) &&
                       write_file(aside / "kernel.cubin", cubin) &&
                       write_file(aside / "meta.json", meta.dump(1) + "\n");
  if (written) {
    fs::rename(entry, damaged, error);
    fs::rename(aside, entry, error);
  }
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  fs::remove_all(damaged, ignored);
  // Another process may have put the same entry there meanwhile.
  if (fs::exists(entry / "meta.json", ignored)) return;
  if (warnings_.empty() || !warnings_.back().starts_with("the kernel cache cannot")) {
    warnings_.push_back(fmt::format("the kernel cache cannot be written: {}{}", options_.folder,
                                    error ? ": " + error.message() : ""));
  }
}

std::string KernelCache::build(const std::string& source, const Compiler& compiler) const {
  std::error_code error;
  const bool writable = options_.mode == CacheMode::On;
  const fs::path folder =
      writable ? fs::path(options_.folder) : fs::temp_directory_path(error) / "redfuser";
  const fs::path path = folder / "failed" / (key(source) + ".cu");
  try {
    return compiler(source, path.string());
  } catch (const InternalError&) {
    fs::create_directories(path.parent_path(), error);
    write_file(path, source);
    throw;
  }
}

std::vector<std::string> KernelCache::get(const std::vector<std::string>& sources,
                                          const Compiler& compiler, int threads) {
  const auto start = std::chrono::steady_clock::now();
  warnings_.clear();
  std::vector<std::string> cubins(sources.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!load(sources[i], cubins[i])) missing.push_back(i);
  }
  if (!missing.empty()) {
    ThreadPool pool(threads);
    pool.parallel_for(static_cast<int64_t>(missing.size()), [&](int64_t task, int) {
      const size_t i = missing[static_cast<size_t>(task)];
      cubins[i] = build(sources[i], compiler);
    });
  }
  if (options_.mode == CacheMode::On) {
    for (const size_t i : missing) store(sources[i], cubins[i]);
  }
  compiled_ = static_cast<int>(missing.size());
  cached_ = static_cast<int>(sources.size() - missing.size());
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return cubins;
}

}  // namespace redfuser::cuda
