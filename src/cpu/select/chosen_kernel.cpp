#include "cpu/select/chosen_kernel.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kKept = 8;
// Estimates of several steps are less certain than that of one.
constexpr double kDoubt = 1.1;

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
  for (const Way& way : choice->ways) {
    if (!way.offer.refusal.empty() || way.inner_bytes > context.room) continue;
    return emit(form, way)->run(context);
  }
  RF_CHECK(false, "a region has no kernel without inner values");
}

Selection ChosenKernel::selection(std::span<const int64_t> symbols, bool tune) const {
  const auto choice = find(key_of(symbols, tune));
  return choice == nullptr ? Selection() : choice->selection;
}

double ChosenKernel::estimate(std::span<const int64_t> symbols, int threads) const {
  StepForm form = form_of(symbols, threads);
  return by_estimate(form, false)->ways.front().offer.time;
}

ChosenKernel::Key ChosenKernel::key_of(std::span<const int64_t> symbols, bool tune) const {
  Key key{tune};
  for (const int64_t symbol : symbols_) key.push_back(symbols[static_cast<size_t>(symbol)]);
  return key;
}

std::shared_ptr<const ChosenKernel::Choice> ChosenKernel::find(const Key& key) const {
  std::lock_guard lock(mutex_);
  for (const auto& [known, choice] : choices_) {
    if (known == key) return choice;
  }
  return nullptr;
}

void ChosenKernel::keep(Key key, std::shared_ptr<const Choice> choice) const {
  std::lock_guard lock(mutex_);
  choices_.emplace_front(std::move(key), std::move(choice));
  if (choices_.size() > kKept) choices_.pop_back();
}

StepForm ChosenKernel::form_of(std::span<const int64_t> symbols, int threads) const {
  StepForm form{graph_, kind_, symbols, threads};
  form.panels = panels_;
  return form;
}

std::shared_ptr<const ChosenKernel::Choice> ChosenKernel::choose(const RunContext& context) const {
  const Key key = key_of(context.symbols, context.tune);
  if (auto known = find(key)) return known;
  StepForm form = form_of(context.symbols, context.pool.size());
  std::shared_ptr<Choice> choice;
  if (context.tune) {
    choice = std::make_shared<Choice>();
    form.thorough = true;
    std::vector<select::Candidate> others;
    choice->ways = ways_of(form, &others);
    RunContext measured = context;
    measured.tune = false;
    measure(measured, form, *choice, std::move(others));
  } else {
    choice = by_estimate(form, true);
  }
  keep(key, choice);
  return choice;
}

std::shared_ptr<ChosenKernel::Choice> ChosenKernel::by_estimate(StepForm& form, bool emits) const {
  auto choice = std::make_shared<Choice>();
  choice->ways = ways_of(form, nullptr);
  const Way& best = choice->ways.front();
  RF_CHECK(best.offer.refusal.empty(), "a step has no CPU kernel: {}", best.offer.refusal);
  if (emits) choice->plan = emit(form, best);
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
  if (divisions_ != nullptr) add_divisions(form, ways);
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
    constexpr int64_t kMost = int64_t{4} << 30;
    if (cost.bytes > kMost) {
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
  constexpr int kRounds = 7;
  constexpr double kBudget = 2e6;  // microseconds
  std::vector<std::shared_ptr<const StepPlan>> plans;
  for (const Way& way : ways) plans.push_back(emit(form, way));
  std::vector<double> least(ways.size(), HUGE_VAL);
  double total = 0;
  for (int round = 0; round < kRounds && (round < 2 || total < kBudget); ++round) {
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
