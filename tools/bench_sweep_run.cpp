// redfuser-bench --sweep.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench_sweep.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxElements = int64_t{1} << 26, kSampledRows = 16;
constexpr double kMaxWork = 0x1p32;

void append(std::vector<SweepCase>& cases, std::vector<SweepCase> all, size_t count,
            const SweepOptions& options) {
  std::erase_if(all, [&](const SweepCase& c) {
    return c.elements > kMaxElements || c.work > kMaxWork ||
           c.name.find(options.only) == std::string::npos;
  });
  for (SweepCase& c : sampled(std::move(all), count, options.seed)) cases.push_back(std::move(c));
}

// Half of them rows, a quarter of these of other layouts, and of the others most attention.
std::vector<SweepCase> chosen(const SweepOptions& options) {
  std::vector<SweepCase> cases;
  append(cases, row_sweep(), (options.count + 1) / 2 - options.count / 8, options);
  append(cases, layout_sweep(), options.count / 8, options);
  append(cases, attention_sweep(), (options.count - options.count / 8) - (options.count + 1) / 2,
         options);
  append(cases, product_sweep(), options.count / 8, options);
  return cases;
}

class Sweep {
 public:
  explicit Sweep(const SweepOptions& options) : options_(options), cases_(chosen(options)) {
    options_.session.threads = 1;
    result_ = {{"device", ""}, {"versions", Json::object()}};
    if (!options.commit.empty()) result_["commit"] = options.commit;
    result_["seed"] = options.seed;
  }

  int run() {
    rows_.resize(cases_.size());
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1U); ++i) {
      threads.emplace_back([this] {
        for (size_t i = next_++; i < cases_.size(); i = next_++) measure(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto right = static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(), [](const Json& row) { return row["right"]; }));
    const auto launched = static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(), [](const Json& row) { return row["ran"]; }));
    result_["cases"] = rows_.size();
    result_["ran"] = launched;
    result_["right"] = right;
    result_["seconds"] = seconds.count();
    result_["rows"] = rows_;
    if (!options_.json.empty()) write_output(options_.json, result_.dump(1) + "\n");
    fmt::print("{} cases: {} ran, {} right, in {:.1f} s\n", rows_.size(), launched, right,
               seconds.count());
    return right == rows_.size() ? kSuccess : kFailedCheck;
  }

 private:
  void measure(size_t number) {
    const SweepCase& c = cases_[number];
    Json row = {{"name", c.name}, {"ran", false}, {"right", false}, {"tolerance", c.tolerance}};
    try {
      Workload workload = c.make();
      workload.sampled_rows = kSampledRows;
      CompileOptions quick;
      quick.certify = false;
      Session session(compile(Model::parse(workload.model), quick), options_.session);
      note(session);
      const NamedTensors outputs = session.run(workload.inputs);
      row["ran"] = true;
      const double error = relative_error(workload, outputs);
      row["error"] = error;
      row["right"] = error <= c.tolerance;
    } catch (const std::exception& error) {
      row["why_not"] = error.what();
    }
    const std::lock_guard lock(mutex_);
    print(row);
    rows_[number] = std::move(row);
  }

  void note(const Session& session) {
    const std::lock_guard lock(mutex_);
    result_["device"] = session.device();
    for (const auto& [name, version] : session.versions()) result_["versions"][name] = version;
  }

  static void print(const Json& row) {
    const std::string name = row["name"].get<std::string>();
    if (row.contains("why_not")) {
      fmt::print("{:<48}  no: {}\n", name, row["why_not"].get<std::string>());
    } else {
      fmt::print("{:<48}  error {:.1e}{}\n", name, row["error"].get<double>(),
                 row["right"].get<bool>() ? "" : "  WRONG");
    }
    std::fflush(stdout);
  }

  SweepOptions options_;
  const std::vector<SweepCase> cases_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::vector<Json> rows_;
  Json result_;
};

}  // namespace

int run_sweep(const SweepOptions& options) { return Sweep(options).run(); }

}  // namespace redfuser::tools
