#include "cuda/choice_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "cuda/cache_files.h"

namespace redfuser::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool is_time(const Json& entry, const char* name) {
  return entry.contains(name) && entry[name].is_number() && entry[name].get<double>() >= 0;
}

// What is wrong with an entry; empty if nothing is.
std::string problem_of(const Json& entry, const std::string& task, MeasuredChoice& choice) {
  if (!entry.is_object() || !entry.contains("task") || !entry["task"].is_string()) {
    return "it is damaged";
  }
  if (entry["task"].get<std::string>() != task) return "it is another task's";
  const bool whole = entry.contains("choice") && entry["choice"].is_string() &&
                     is_time(entry, "us") && is_time(entry, "default_us") &&
                     entry.contains("candidates") && entry["candidates"].is_number_integer();
  if (!whole) return "it is damaged";
  choice = {entry["choice"].get<std::string>(), entry["us"].get<double>(),
            entry["default_us"].get<double>(), entry["candidates"].get<int>()};
  return "";
}

}  // namespace

ChoiceCache::ChoiceCache(const CacheOptions& options, std::vector<std::string> identity)
    : mode_(options.mode), folder_(options.folder), identity_(std::move(identity)) {
  if (folder_.empty()) folder_ = default_cache_folder();
  if (folder_.empty()) mode_ = CacheMode::Off;
}

std::string ChoiceCache::path(const std::string& task) const {
  return (fs::path(folder_) / "choices" / (cache_key(identity_, task) + ".json")).string();
}

std::optional<MeasuredChoice> ChoiceCache::load(const std::string& task) {
  std::string text;
  if (mode_ == CacheMode::Off || !read_file(path(task), text)) return std::nullopt;
  MeasuredChoice choice;
  const std::string problem = problem_of(Json::parse(text, nullptr, false), task, choice);
  if (problem.empty()) return choice;
  warnings_.push_back(
      fmt::format("the choice kept in {} is measured again: {}", path(task), problem));
  return std::nullopt;
}

void ChoiceCache::store(const std::string& task, const MeasuredChoice& choice) {
  if (mode_ != CacheMode::On) return;
  static std::atomic<int> number = 0;
  const fs::path entry = path(task);
  const fs::path aside = fmt::format("{}.{}.{}.tmp", entry.string(), ::getpid(), number++);
  const Json json = {
      {"redfuser", library_version()},  {"machine", identity_}, {"task", task},
      {"choice", choice.choice},        {"us", choice.us},      {"default_us", choice.default_us},
      {"candidates", choice.candidates}};
  std::error_code error, ignored;
  fs::create_directories(entry.parent_path(), error);
  const bool written = !error && write_file(aside, json.dump(1) + "\n");
  if (written) fs::rename(aside, entry, error);
  if (written && !error) return;
  fs::remove(aside, ignored);
  if (!unwritable_) warnings_.push_back("measured choices cannot be kept in " + folder_);
  unwritable_ = true;
}

}  // namespace redfuser::cuda
