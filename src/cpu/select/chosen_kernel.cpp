#include "cpu/select/chosen_kernel.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kKept = 32;
// Estimates of several steps are less certain than that of one.
constexpr double kDoubt = 1.1;
constexpr int64_t kMostInnerBytes = int64_t{4} << 30;

// The size at which the selection is made for `size`: itself if it is small, else the next one of
// four in an octave.
int64_t representative(int64_t size) {
  constexpr int64_t kExact = 16;
  constexpr int kBits = 3;  // of sizes that are representatives, to the leading zeros
  if (size <= kExact) return size;
  const int shift = std::bit_width(static_cast<uint64_t>(size)) - kBits;
  return (((size - 1) >> shift) + 1) << shift;
}

}  // namespace

ChosenKernel::ChosenKernel(const ir::Graph& graph, fuse::StepKind kind,
                           std::span<const Family> families, std::vector<int64_t> symbols,
                           std::shared_ptr<const Divisions> divisions)
    : graph_(graph),
      kind_(std::move(kind)),
      families_(families),
      symbols_(std::move(symbols)),
      divisions_(std::move(divisions)) {}

void ChosenKernel::run(RunContext& context) const {
  const std::shared_ptr<const Choice> choice = choose(context);
  if (choice->plan->inner_bytes() <= context.room) return choice->plan->run(context);
  StepForm form = form_of(context.symbols, context.pool.size());
  form.room = context.room;
  for (const Way& way : ways_of(form, nullptr)) {
    if (!way.offer.refusal.empty() || way.inner_bytes > context.room) continue;
    return emit(form, way)->run(context);
  }
  RF_CHECK(false, "a region has no kernel without inner values");
}

Selection ChosenKernel::selection(std::span<const int64_t> symbols, bool tune) const {
  const auto choice = find(choices_, key_of(symbols, tune));
  return choice == nullptr ? Selection() : choice->selection;
}

double ChosenKernel::estimate(std::span<const int64_t> symbols, int threads) const {
  StepForm form = form_of(symbols, threads);
  const auto choice = by_estimate(form, false);
  const select::Offer& best = choice->ways.front().offer;
  return best.refusal.empty() ? best.time : HUGE_VAL;
}

std::shared_ptr<const StepPlan> ChosenKernel::growing_plan(const GrowingSizes& sizes,
                                                           int threads) const {
  StepForm form = form_of(sizes.most, threads);
  form.growing = &sizes;
  const std::vector<Way> ways = ways_of(form, nullptr);
  return ways.front().offer.refusal.empty() ? emit(form, ways.front()) : nullptr;
}

ChosenKernel::Key ChosenKernel::key_of(std::span<const int64_t> symbols, bool tune) const {
  Key key{tune};
  for (const int64_t symbol : symbols_) key.push_back(symbols[static_cast<size_t>(symbol)]);
  return key;
}

std::shared_ptr<const ChosenKernel::Choice> ChosenKernel::find(const Choices& choices,
                                                               const Key& key) const {
  std::lock_guard lock(mutex_);
  for (const auto& [known, choice] : choices) {
    if (known == key) return choice;
  }
  return nullptr;
}

void ChosenKernel::keep(Choices& choices, Key key, std::shared_ptr<const Choice> choice) const {
  std::lock_guard lock(mutex_);
  choices.emplace_front(std::move(key), std::move(choice));
  if (choices.size() > kKept) choices.pop_back();
}

StepForm ChosenKernel::form_of(std::span<const int64_t> symbols, int threads) const {
  StepForm form{graph_, kind_, symbols, threads};
  form.panels = panels_;
  return form;
}

std::shared_ptr<const ChosenKernel::Choice> ChosenKernel::choose(const RunContext& context) const {
  const Key key = key_of(context.symbols, context.tune);
  if (auto known = find(choices_, key)) return known;
  if (!context.tune) {
    const auto choice = of_class(context);
    keep(choices_, key, choice);
    return choice;
  }
  StepForm form = form_of(context.symbols, context.pool.size());
  const auto choice = std::make_shared<Choice>();
  form.thorough = true;
  std::vector<select::Candidate> others;
  choice->ways = ways_of(form, &others);
  RunContext measured = context;
  measured.tune = false;
  measure(measured, form, *choice, std::move(others));
  keep(choices_, key, choice);
  return choice;
}

// The family or division that is taken at the representative sizes, whatever sizes came before.
std::shared_ptr<const ChosenKernel::Choice> ChosenKernel::of_class(
    const RunContext& context) const {
  const int threads = context.pool.size();
  StepForm form = form_of(context.symbols, threads);
  std::vector<int64_t> sizes = context.symbols;
  for (const int64_t symbol : symbols_) {
    int64_t& size = sizes[static_cast<size_t>(symbol)];
    size = representative(size);
  }
  if (sizes == context.symbols) return by_estimate(form, true);
  const Key key = key_of(sizes, false);
  auto at_class = find(classes_, key);
  if (at_class == nullptr) {
    StepForm class_form = form_of(sizes, threads);
    at_class = by_estimate(class_form, false);
    keep(classes_, key, at_class);
  }
  Way way = at_class->ways.front();
  if (!way.offer.refusal.empty() || !fit(form, way)) return by_estimate(form, true);
  auto choice = std::make_shared<Choice>();
  choice->plan = emit(form, way);
  choice->selection.offers = at_class->selection.offers;
  choice->selection.offers.front() = way.offer;
  choice->ways = {std::move(way)};
  return choice;
}

bool ChosenKernel::fit(StepForm& form, Way& way) const {
  if (way.family == nullptr) {
    way.inner_bytes = divisions_->bytes(divisions_->all().at(way.division), form.symbols);
    return way.inner_bytes <= kMostInnerBytes;
  }
  const select::FamilyAnswer answer = way.family->offer(form);
  if (!answer.refusal.empty() || answer.candidates.empty()) return false;
  const select::Candidate& best = answer.candidates.front();
  way.choice = best.choice;
  way.offer.time = best.time;
  way.offer.choice = way.offer.config = to_string(best.choice);
  return true;
}

std::shared_ptr<ChosenKernel::Choice> ChosenKernel::by_estimate(StepForm& form, bool emits) const {
  auto choice = std::make_shared<Choice>();
  choice->ways = ways_of(form, nullptr);
  const Way& best = choice->ways.front();
  if (emits) {
    RF_CHECK(best.offer.refusal.empty(), "a step has no CPU kernel: {}", best.offer.refusal);
    choice->plan = emit(form, best);
  }
  for (const Way& way : choice->ways) choice->selection.offers.push_back(way.offer);
  return choice;
}

std::vector<ChosenKernel::Way> ChosenKernel::ways_of(StepForm& form,
                                                     std::vector<select::Candidate>* others) const {
  std::vector<Way> ways;
  for (const Family& family : families_) {
    select::FamilyAnswer answer = family.offer(form);
    Way way{&family, 0, 0, {}, {std::string(family.name), "", 0, std::move(answer.refusal)}};
    if (way.offer.refusal.empty()) {
      const select::Candidate& best = answer.candidates.front();
      way.choice = best.choice;
      way.offer.time = best.time;
      way.offer.choice = way.offer.config = to_string(best.choice);
      form.least = std::min(form.least, best.time);
      if (others != nullptr) {
        others->insert(others->end(), answer.candidates.begin() + 1, answer.candidates.end());
      }
    }
    ways.push_back(std::move(way));
  }
  if (divisions_ != nullptr && form.growing == nullptr) add_divisions(form, ways);
  select::sort_by_time(ways);
  return ways;
}

void ChosenKernel::add_divisions(const StepForm& form, std::vector<Way>& ways) const {
  const double bound = kDoubt * form.floor;
  if (!form.thorough && form.least <= bound) {
    ways.push_back({nullptr, 0, 0, {}, {kDivisionFamily, "", 0, "", true}});
    ways.back().offer.refusal =
        fmt::format("the steps that the region has at least take {:.1f} us or more", bound);
    return;
  }
  const auto& divisions = divisions_->all();
  for (size_t i = 0; i < divisions.size(); ++i) {
    const Divisions::Cost cost = divisions_->cost(divisions[i], form.symbols, form.threads);
    Way way{nullptr,
            i,
            cost.bytes,
            {kDivisionFamily, {{"division", static_cast<int>(i)}}},
            {divisions[i].name, "", kDoubt * cost.time, "", true}};
    way.offer.config = fmt::format("{} steps", divisions[i].steps.size());
    way.offer.choice = to_string(way.choice);
    if (cost.bytes > kMostInnerBytes) {
      way.offer.refusal = fmt::format("its intermediate values take {} MB", cost.bytes >> 20);
    }
    ways.push_back(std::move(way));
  }
}

std::shared_ptr<const StepPlan> ChosenKernel::emit(StepForm& form, const Way& way) const {
  if (way.family != nullptr) return way.family->emit(form, way.choice);
  return plan_of(divisions_, way.division, way.inner_bytes);
}

// Takes turns, so that a disturbance of the machine meets all of them, and compares the least
// times.
void ChosenKernel::measure(RunContext& context, StepForm& form, Choice& choice,
                           std::vector<select::Candidate> others) const {
  constexpr double kHopeless = 20;
  std::vector<Way> ways = choice.ways;
  const double worst = kHopeless * ways.front().offer.time;
  std::erase_if(ways, [&](const Way& way) {
    return !way.offer.refusal.empty() || way.inner_bytes > context.room || way.offer.time > worst;
  });
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  for (select::Candidate& other : others) {
    if (ways.size() >= select::kMaxChoices) break;
    const auto family = std::find_if(families_.begin(), families_.end(), [&](const Family& f) {
      return f.name == other.choice.family;
    });
    Way way{&*family, 0, 0, other.choice, {other.choice.family, "", other.time}};
    way.offer.choice = way.offer.config = to_string(way.choice);
    ways.push_back(std::move(way));
  }
  constexpr int kFewestRounds = 7, kMostRounds = 200;
  constexpr double kEnough = 4e4, kBudget = 2e6;  // microseconds
  std::vector<std::shared_ptr<const StepPlan>> plans;
  for (const Way& way : ways) plans.push_back(emit(form, way));
  std::vector<double> least(ways.size(), HUGE_VAL);
  double total = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    if (total >= (round < kFewestRounds ? kBudget : kEnough) && round >= 2) break;
    for (size_t i = 0; i < plans.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      plans[i]->run(context);
      const double us =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
              .count();
      if (round > 0) least[i] = std::min(least[i], us);
      total += us;
    }
  }
  const auto best =
      static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
  for (size_t i = 0; i < ways.size(); ++i) {
    const select::Offer& offer = ways[i].offer;
    choice.selection.measured.emplace_back(offer.choice, least[i]);
    choice.selection.estimated[offer.choice] = offer.time;
  }
  choice.plan = plans[best];
  const std::string taken = ways[best].offer.choice;
  for (const Way& way : choice.ways) choice.selection.offers.push_back(way.offer);
  if (best >= choice.ways.size() || choice.ways[best].offer.choice != taken) {
    choice.selection.offers.push_back(ways[best].offer);
  }
  auto& offers = choice.selection.offers;
  const auto first = std::find_if(offers.begin(), offers.end(),
                                  [&](const auto& offer) { return offer.choice == taken; });
  std::rotate(offers.begin(), first, first + 1);
  std::swap(choice.ways.front(), ways[best]);
}

}  // namespace redfuser::cpu
