#include "cuda/choice_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cuda/cache_files.h"

namespace redfuser::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// False for an incomplete entry.
bool read_measured(const Json& entry, MeasuredChoice& choice) {
  if (!entry.contains("choice") || !entry["choice"].is_string()) return false;
  if (!entry.contains("measured") || !entry["measured"].is_array()) return false;
  choice.choice = entry["choice"].get<std::string>();
  bool found = false;
  for (const Json& one : entry["measured"]) {
    const bool whole = one.is_object() && one.contains("choice") && one["choice"].is_string() &&
                       one.contains("us") && one["us"].is_number() && one["us"].get<double>() >= 0;
    if (!whole) return false;
    choice.measured.emplace_back(one["choice"].get<std::string>(), one["us"].get<double>());
    found |= choice.measured.back().first == choice.choice;
  }
  return found;
}

// The defect of an entry; empty if it is valid.
std::string problem_of(const Json& entry, const std::string& task, MeasuredChoice& choice) {
  if (!entry.is_object() || !entry.contains("task") || !entry["task"].is_string()) {
    return "it is damaged";
  }
  if (entry["task"].get<std::string>() != task) return "it is another task's";
  return read_measured(entry, choice) ? "" : "it is damaged";
}

}  // namespace

double MeasuredChoice::us() const {
  const auto found = std::find_if(measured.begin(), measured.end(),
                                  [&](const auto& entry) { return entry.first == choice; });
  RF_CHECK(found != measured.end(), "{} was not measured", choice);
  return found->second;
}

ChoiceCache::ChoiceCache(const CacheOptions& options, std::vector<std::string> identity)
    : options_(resolved(options)), identity_(std::move(identity)) {}

std::string ChoiceCache::path(const std::string& task) const {
  return (fs::path(options_.folder) / "choices" / (cache_key(identity_, task) + ".json")).string();
}

std::optional<MeasuredChoice> ChoiceCache::load(const std::string& task) {
  std::string text;
  if (options_.mode == CacheMode::Off || !read_file(path(task), text)) return std::nullopt;
  MeasuredChoice choice;
  const std::string problem = problem_of(Json::parse(text, nullptr, false), task, choice);
  if (problem.empty()) return choice;
  warnings_.push_back(
      fmt::format("the choice kept in {} is measured again: {}", path(task), problem));
  return std::nullopt;
}

void ChoiceCache::store(const std::string& task, const MeasuredChoice& choice) {
  if (options_.mode != CacheMode::On) return;
  const fs::path entry = path(task);
  Json measured = Json::array();
  for (const auto& [text, us] : choice.measured) measured.push_back({{"choice", text}, {"us", us}});
  const Json json = {{"redfuser", library_version()},
                     {"machine", identity_},
                     {"task", task},
                     {"choice", choice.choice},
                     {"measured", std::move(measured)}};
  std::error_code error;
  fs::create_directories(entry.parent_path(), error);
  if (!error && write_file(entry, json.dump(1) + "\n")) return;
  if (!unwritable_) warnings_.push_back("measured choices cannot be kept in " + options_.folder);
  unwritable_ = true;
}

}  // namespace redfuser::cuda
