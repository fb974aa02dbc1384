#include "cuda/kernel_cache.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/temporary_path.h"
#include "base/thread_pool.h"
#include "cuda/cache_files.h"

namespace redfuser::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The defect of an entry; empty if it is valid.
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

Json uses_of(const KernelSource& source) {
  Json uses = Json::array();
  for (const KernelUse& use : source.uses) {
    uses.push_back({{"nodes", use.nodes}, {"choice", use.choice}, {"parameters", use.parameters}});
  }
  return uses;
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

CacheOptions resolved(CacheOptions options) {
  if (options.folder.empty()) options.folder = default_cache_folder();
  if (options.folder.empty()) options.mode = CacheMode::Off;
  if (options.mode == CacheMode::Off) options.folder.clear();
  return options;
}

KernelCache::KernelCache(CacheOptions options, std::vector<std::string> identity)
    : options_(resolved(std::move(options))), identity_(std::move(identity)) {}

std::string KernelCache::key(const std::string& text) const { return cache_key(identity_, text); }

std::string KernelCache::entry(const KernelSource& source) const {
  return source.name + "." + key(source.text);
}

bool KernelCache::load(const KernelSource& source, std::string& cubin) {
  if (options_.mode == CacheMode::Off) return false;
  const fs::path entry = fs::path(options_.folder) / this->entry(source);
  std::error_code error;
  if (!fs::exists(entry, error)) return false;
  const std::string problem = problem_of(entry, source.text, cubin);
  if (problem.empty()) return true;
  warnings_.push_back(
      fmt::format("the kernel cache's entry {} is compiled again: {}", entry.string(), problem));
  return false;
}

void KernelCache::store(const KernelSource& source, const std::string& cubin) {
  const fs::path entry = fs::path(options_.folder) / this->entry(source);
  static std::atomic<int> number = 0;
  const std::string own = fmt::format("{}.{}.{}", entry.string(), ::getpid(), number++);
  const fs::path aside = own + ".tmp", damaged = own + ".old";
  const HeldSignals held;  // the three files of an entry belong together
  std::error_code error;
  fs::create_directories(aside, error);
  const Json meta = {{"redfuser", library_version()},
                     {"compiler", identity_},
                     {"cubin", digest(cubin)},
                     {"kernel", source.name},
                     {"uses", uses_of(source)}};
  const bool written = !error && write_file(aside / "source.cu", source.text) &&
                       write_file(aside / "kernel.cubin", cubin) &&
                       write_file(aside / "meta.json",
                                  meta.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (written) {
    fs::rename(entry, damaged, error);
    fs::rename(aside, entry, error);
  }
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  fs::remove_all(damaged, ignored);
  // Another process may have written the same entry.
  if (fs::exists(entry / "meta.json", ignored)) return;
  if (warnings_.empty() || !warnings_.back().starts_with("the kernel cache cannot")) {
    warnings_.push_back(fmt::format("the kernel cache cannot be written: {}{}", options_.folder,
                                    error ? ": " + error.message() : ""));
  }
}

std::string KernelCache::build(const KernelSource& source, const Compiler& compiler) const {
  std::error_code error;
  const bool writable = options_.mode == CacheMode::On;
  const fs::path folder =
      writable ? fs::path(options_.folder) : fs::temp_directory_path(error) / "redfuser";
  const fs::path path = folder / "failed" / (entry(source) + ".cu");
  try {
    return compiler(source.text, path.string());
  } catch (const InternalError&) {
    fs::create_directories(path.parent_path(), error);
    write_file(path, source.text);
    throw;
  }
}

std::vector<std::string> KernelCache::get(const std::vector<KernelSource>& sources,
                                          const Compiler& compiler, int threads) {
  std::vector<std::string> cubins;
  for (CompiledText& text : try_get(sources, compiler, threads)) {
    if (text.error) std::rethrow_exception(text.error);
    cubins.push_back(std::move(text.cubin));
  }
  return cubins;
}

std::vector<CompiledText> KernelCache::try_get(const std::vector<KernelSource>& sources,
                                               const Compiler& compiler, int threads) {
  const auto start = std::chrono::steady_clock::now();
  warnings_.clear();
  std::vector<CompiledText> texts(sources.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!load(sources[i], texts[i].cubin)) missing.push_back(i);
  }
  if (!missing.empty()) {
    ThreadPool pool(threads);
    pool.parallel_for(static_cast<int64_t>(missing.size()), [&](int64_t task, int) {
      CompiledText& text = texts[missing[static_cast<size_t>(task)]];
      try {
        text.cubin = build(sources[missing[static_cast<size_t>(task)]], compiler);
      } catch (...) {
        text.error = std::current_exception();
      }
    });
  }
  compiled_ = 0;
  for (const size_t i : missing) {
    if (texts[i].error) continue;
    ++compiled_;
    if (options_.mode == CacheMode::On) store(sources[i], texts[i].cubin);
  }
  cached_ = static_cast<int>(sources.size() - missing.size());
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return texts;
}

}  // namespace redfuser::cuda
