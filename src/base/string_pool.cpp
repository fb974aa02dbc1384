#include "base/string_pool.h"

#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/memory_budget.h"

namespace redfuser {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kOverhead = 96;  // bytes of the containers per string

struct StringPool {
  std::mutex mutex;
  std::deque<std::string> all{std::string()};  // a deque: the texts never move
  std::unordered_map<std::string_view, uint64_t> numbers{{std::string_view(), 0}};
  size_t bytes = 0;
};

StringPool& texts() {
  static StringPool* const all = new StringPool;  // outlives every static tensor
  return *all;
}

}  // namespace

uint64_t number_of_text(const std::string& text) {
  StringPool& known = texts();
  const std::lock_guard lock(known.mutex);
  const auto found = known.numbers.find(text);
  if (found != known.numbers.end()) return found->second;
  if (text.size() > kMaxBytes - known.bytes) {
    user_error("strings of more than {} bytes in all", kMaxBytes);
  }
  if (const auto budget = current_budget()) take(*budget, text.size() + kOverhead);
  known.bytes += text.size();
  known.all.push_back(text);
  const uint64_t number = known.all.size() - 1;
  known.numbers.emplace(known.all.back(), number);
  return number;
}

const std::string& text_of_number(uint64_t number) {
  StringPool& known = texts();
  const std::lock_guard lock(known.mutex);
  RF_CHECK(number < known.all.size(), "no text has number {}", number);
  return known.all[number];
}

}  // namespace redfuser
