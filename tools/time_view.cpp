#include "time_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace redfuser::tools {
namespace {

struct Part {
  const char *key, *name;
  std::vector<double> milliseconds;
};

std::vector<double> latencies(const Measurement& m) {
  std::vector<double> sums = m.host_to_device;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += m.compute[i] + m.device_to_host[i];
  return sums;
}

// Those that were measured.
std::vector<Part> parts_of(const Measurement& m) {
  std::vector<Part> parts = {{"wall_ms", "wall", m.wall},
                             {"latency_ms", "latency", latencies(m)},
                             {"host_to_device_ms", "host to device", m.host_to_device},
                             {"compute_ms", "compute", m.compute},
                             {"device_to_host_ms", "device to host", m.device_to_host},
                             {"enqueue_ms", "enqueue", m.enqueue}};
  std::erase_if(parts, [](const Part& part) { return part.milliseconds.empty(); });
  return parts;
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

double median(std::vector<double> samples) { return spread_of(std::move(samples)).median; }

std::string beginning_of(const std::string& label) {
  constexpr size_t kShown = 60;
  return label.size() <= kShown ? label : label.substr(0, label.rfind(' ', kShown)) + " ...";
}

// Steps that run the same kernels; on the CPU a step by itself.
struct Group {
  std::string what;
  int count = 0;
  double us = 0, share = 0, bytes = 0;
  std::string first;
};

std::vector<Group> grouped(const std::vector<ProfiledStep>& steps) {
  std::vector<Group> groups;
  std::map<std::string, size_t> places;
  for (const ProfiledStep& step : steps) {
    if (step.us <= 0) continue;
    std::vector<std::string> names;
    for (const auto& [name, us] : step.kernels) names.push_back(name);
    const std::string what = names.empty() ? step.kind : fmt::format("{}", fmt::join(names, " + "));
    const std::string key = names.empty() ? std::to_string(groups.size()) : step.kind + what;
    const auto [place, added] = places.emplace(key, groups.size());
    if (added) groups.push_back({what, 0, 0, 0, 0, step.label});
    Group& group = groups[place->second];
    ++group.count;
    group.us += step.us;
    group.share += step.share;
    group.bytes =
        step.bytes > 0 && group.bytes >= 0 ? group.bytes + static_cast<double>(step.bytes) : -1;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.us > b.us; });
  return groups;
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {samples.front(),
          sum / static_cast<double>(samples.size()),
          percentile(samples, 0.5),
          percentile(samples, 0.9),
          percentile(samples, 0.95),
          percentile(samples, 0.99),
          samples.back()};
}

std::vector<ProfiledStep> profiled_steps(const std::vector<std::vector<StepTime>>& profile) {
  std::vector<ProfiledStep> steps;
  if (profile.empty()) return steps;
  for (size_t i = 0; i < profile.back().size(); ++i) {
    const StepTime& last = profile.back()[i];
    // A run of the same sizes has the same steps.
    const auto over_runs = [&](const auto& time_of) {
      std::vector<double> samples;
      for (const auto& run : profile) {
        if (run.size() == profile.back().size()) samples.push_back(time_of(run[i]));
      }
      return median(std::move(samples));
    };
    ProfiledStep step{last.label, last.kind, last.bytes};
    step.us = over_runs([](const StepTime& time) { return time.duration_us; });
    for (size_t k = 0; k < last.kernels.size(); ++k) {
      step.kernels.emplace_back(last.kernels[k].name, over_runs([&](const StepTime& time) {
                                  return time.kernels[k].duration_us;
                                }));
    }
    steps.push_back(std::move(step));
  }
  double total = 0;
  for (const ProfiledStep& step : steps) total += step.us;
  for (ProfiledStep& step : steps) step.share = total > 0 ? step.us / total : 0;
  return steps;
}

void add_profile(const std::vector<ProfiledStep>& profile, std::vector<StepFacts>& steps) {
  if (profile.size() != steps.size()) return;
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].measured_us = profile[i].us;
    steps[i].share = profile[i].share;
    steps[i].bytes = profile[i].bytes;
  }
}

std::vector<std::string> time_lines(const Measurement& m, bool timed) {
  const std::vector<Part> parts = parts_of(m);
  if (!timed) {
    std::vector<std::string> texts;
    for (const Part& part : parts) {
      texts.push_back(fmt::format("{} {:.3f} ms", part.name, part.milliseconds.front()));
    }
    return {fmt::format("{}", fmt::join(texts, ", "))};
  }
  std::vector<std::string> lines = {fmt::format("{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
                                                "ms", "min", "mean", "median", "p90", "p95", "p99",
                                                "max")};
  for (const Part& part : parts) {
    const Spread s = spread_of(part.milliseconds);
    lines.push_back(
        fmt::format("{:<16}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}",
                    part.name, s.min, s.mean, s.median, s.p90, s.p95, s.p99, s.max));
  }
  lines.push_back(fmt::format("{} runs{}", m.wall.size(),
                              m.resident ? ", inputs and outputs on the device" : ""));
  return lines;
}

std::string clocks_line(const DeviceState& state) {
  if (!state.note.empty()) {
    return fmt::format("SM at most {} MHz, memory at most {} MHz ({})", state.max_sm_mhz,
                       state.max_memory_mhz, state.note);
  }
  return fmt::format("SM {} of {} MHz, memory {} of {} MHz, {} °C, {:.0f} W", state.sm_mhz,
                     state.max_sm_mhz, state.memory_mhz, state.max_memory_mhz, state.temperature_c,
                     state.power_w);
}

std::string heading(const char* name) { return fmt::format("{:<10}", name); }

std::string indented(const char* name, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += heading(text.empty() ? name : "") + line + "\n";
  }
  return text;
}

std::vector<std::string> profile_lines(const std::vector<std::vector<StepTime>>& profile) {
  constexpr size_t kShown = 16;
  const std::vector<Group> groups = grouped(profiled_steps(profile));
  std::vector<std::string> lines = {fmt::format("{:>6} {:>10} {:>6} {:>9} {:>9}  {}", "share", "µs",
                                                "steps", "MB", "GB/s", "kernels; first step")};
  for (size_t i = 0; i < std::min(kShown, groups.size()); ++i) {
    const Group& g = groups[i];
    const bool known = g.bytes > 0;
    lines.push_back(fmt::format("{:>5.1f}% {:>10.1f} {:>6} {:>9} {:>9}  {}; {}", 100 * g.share,
                                g.us, g.count, known ? fmt::format("{:.3g}", g.bytes / 1e6) : "-",
                                known ? fmt::format("{:.0f}", g.bytes / g.us / 1e3) : "-", g.what,
                                beginning_of(g.first)));
  }
  if (groups.size() > kShown) lines.push_back(fmt::format("and {} more", groups.size() - kShown));
  return lines;
}

Json time_json(const Measurement& m) {
  Json json = {{"iterations", m.wall.size()}, {"resident", m.resident}};
  for (const Part& part : parts_of(m)) {
    const Spread s = spread_of(part.milliseconds);
    json[part.key] = {{"min", s.min}, {"mean", s.mean}, {"median", s.median}, {"p90", s.p90},
                      {"p95", s.p95}, {"p99", s.p99},   {"max", s.max}};
  }
  return json;
}

Json to_json(const DeviceState& state) {
  Json json = {{"max_sm_mhz", state.max_sm_mhz}, {"max_memory_mhz", state.max_memory_mhz}};
  if (!state.note.empty()) {
    json["note"] = state.note;
    return json;
  }
  json["sm_mhz"] = state.sm_mhz;
  json["memory_mhz"] = state.memory_mhz;
  json["temperature_c"] = state.temperature_c;
  json["power_w"] = state.power_w;
  return json;
}

Json profile_json(const std::vector<std::vector<StepTime>>& profile) {
  Json steps = Json::array();
  double total = 0;
  for (const ProfiledStep& step : profiled_steps(profile)) {
    total += step.us;
    Json json = {
        {"label", step.label}, {"kind", step.kind}, {"us", step.us}, {"share", step.share}};
    if (step.bytes > 0) {
      json["bytes"] = step.bytes;
      if (step.us > 0) json["gb_per_s"] = step.gigabytes_per_second();
    }
    for (const auto& [name, us] : step.kernels) {
      json["kernels"].push_back({{"name", name}, {"us", us}});
    }
    steps.push_back(std::move(json));
  }
  return {{"runs", profile.size()}, {"us", total}, {"steps", std::move(steps)}};
}

}  // namespace redfuser::tools
