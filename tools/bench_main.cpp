// redfuser-bench: times workloads on a GPU or the CPU, from a plain ONNX graph through the whole
// pipeline.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench_calibrate.h"
#include "bench_cpu.h"
#include "bench_sweep.h"
#include "command_line.h"
#include "tool.h"
#include "tuning_view.h"

namespace redfuser::tools {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::string suites = "rows", json, only, commit, models;
  bool quick = false, check_only = false, tune = false, calibrate = false;
  double budget_s = 0.4;
  size_t sweep = 0, count = 300;
  uint64_t seed = 1;
  SessionOptions session;
};

bool is_cpu(const BenchOptions& options) { return options.session.device == "cpu"; }

std::vector<WorkloadMaker> workloads(const std::string& suite, const BenchOptions& options) {
  if (suite == "rows") return row_workloads(options.quick);
  if (suite == "curve") return row_curve_workloads();
  if (suite == "layout") return layout_workloads();
  if (suite == "maps") return map_workloads();
  if (suite == "attention") return attention_workloads(options.quick);
  if (suite == "decode") return decode_workloads(options.quick);
  if (suite == "accept") return accept_attention_workloads();
  if (suite == "shapes") return shape_workloads();
  if (suite == "select") return select_workloads(options.quick);
  if (suite == "products") return product_workloads(options.quick);
  if (suite == "moe") return routing_workloads();
  if (suite == "normgemm") return norm_product_workloads();
  if (suite == "ffn") return ffn_workloads(options.quick);
  if (suite == "quant") return quantised_workloads(options.quick);
  if (suite == "recurrent") return recurrent_workloads();
  if (suite == "e2e") return model_workloads(options.models);
  if (suite == "gate") return gate_workloads(options.count, options.seed, is_cpu(options));
  fail(
      "--suite is rows, curve, layout, maps, attention, decode, accept, shapes, select, products, "
      "moe, normgemm, ffn, quant, recurrent, e2e or gate, not \"{}\"",
      suite);
}

// "attention x12, product x48, 61 launches"
std::string strategy(const Program& program, const Session& session) {
  std::map<std::string, int> counts;
  for (const StepInfo& step : program.steps()) {
    if (step.kind != "alias") ++counts[step.kind];
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += (text.empty() ? "" : ", ") + kind;
    if (count > 1) text += fmt::format(" x{}", count);
  }
  return session.launches() == 0 ? text : fmt::format("{}; {} launches", text, session.launches());
}

bool is_default(const StepTuning& tuning) { return tuning.choice == tuning.default_choice; }

// The same workload with measured choices; where these are the default's, it is not timed again.
void measure_tuned(const Program& program, const Workload& workload, const BenchOptions& options,
                   Json& row) {
  SessionOptions tuned = options.session;
  tuned.tune = true;
  Session session(program, tuned);
  const size_t told = session.notes().size();
  const NamedTensors outputs = session.run(workload.inputs);
  for (size_t i = told; i < session.notes().size(); ++i) {
    const std::string& note = session.notes()[i];
    if (note.starts_with("warning")) tell(fmt::format("{}: {}\n", workload.name, note));
  }
  row["tuned_error"] = relative_error(workload, outputs);
  row["steps"] = tuning_json(session.tunings());
  const bool same = std::all_of(session.tunings().begin(), session.tunings().end(), is_default);
  if (options.check_only) return;
  row["tuned_us"] = same ? row["us"].get<double>()
                         : session.time_on_device(workload.inputs, options.budget_s).median_us;
}

Json measure(const Workload& workload, const BenchOptions& options, Json& result) {
  Json row = {{"suite", workload.suite}, {"name", workload.name}};
  try {
    const Model model =
        workload.path.empty() ? Model::parse(workload.model) : Model::load(workload.path);
    const Program program = compile(model);
    Session session(program, options.session);
    result["device"] = session.device();
    for (const auto& [name, version] : session.versions()) result["versions"][name] = version;
    const NamedTensors outputs = session.run(workload.inputs);
    row["error"] = relative_error(workload, outputs);
    if (!options.check_only && is_cpu(options)) {
      measure_on_cpu(model, workload, options.session, options.budget_s, row);
    } else if (!options.check_only) {
      const DeviceTiming timing = session.time_on_device(workload.inputs, options.budget_s);
      row["us"] = timing.median_us;
      row["min_us"] = timing.min_us;
      row["replays"] = timing.replays;
    }
    row["strategy"] = strategy(program, session);
    row["memory_bytes"] = session.peak_bytes();
    if (options.tune && !is_cpu(options)) measure_tuned(program, workload, options, row);
  } catch (const std::exception& error) {
    row["why_not"] = error.what();
  }
  return row;
}

std::string line(const Json& row) {
  std::string text = fmt::format("{:<28}", row["name"].get<std::string>());
  if (row.contains("us")) text += fmt::format("{:10.1f} us", row["us"].get<double>());
  if (row.contains("tuned_us")) {
    text += fmt::format("  tuned {:.1f} us", row["tuned_us"].get<double>());
  }
  if (row.contains("unfused_us")) {
    text += fmt::format("  unfused {:.1f} us", row["unfused_us"].get<double>());
  }
  if (row.contains("error")) text += fmt::format("  error {:.1e}", row["error"].get<double>());
  if (row.contains("strategy")) text += "  " + row["strategy"].get<std::string>();
  if (row.contains("why_not")) text += "  no: " + row["why_not"].get<std::string>();
  return text;
}

// What a user of the default loses against the tuned choices, workload by workload.
std::string tuning_table(const Json& rows) {
  std::string text = fmt::format("{:<28}{:>12}{:>12}{:>16}  choice\n", "", "default us", "tuned us",
                                 "default/tuned");
  std::string worst_name;
  double worst = 0;
  int count = 0, within = 0;
  for (const Json& row : rows) {
    if (!row.contains("tuned_us") || row["steps"].empty()) continue;
    const double us = row["us"].get<double>(), tuned = row["tuned_us"].get<double>();
    const double ratio = us / tuned;
    const std::string name = row["name"].get<std::string>();
    text += fmt::format("{:<28}{:>12.1f}{:>12.1f}{:>16.3f}", name, us, tuned, ratio);
    for (const Json& step : row["steps"]) {
      const bool kept = step["choice"] == step["default"];
      text += kept ? "  default" : "  " + step["choice"].get<std::string>();
    }
    text += "\n";
    ++count;
    within += ratio <= 1.1;
    if (ratio <= worst) continue;
    worst = ratio;
    worst_name = name;
  }
  if (count == 0) return "nothing was tuned\n";
  return text + fmt::format(
                    "the default is within 10 % of the tuned choice on {} of {}; worst {}: "
                    "{:.3f}\n",
                    within, count, worst_name, worst);
}

std::optional<BenchOptions> parse(int argc, char** argv) {
  CLI::App app("Times workloads on a GPU or the CPU.", "redfuser-bench");
  BenchOptions options;
  options.session.device = "cuda";
  app.add_option(
         "--suite", options.suites,
         "rows, curve (rows by length), layout (of any axis), maps (orders of dimensions), "
         "attention, decode, accept, shapes, "
         "select (top-k, sort, positions), products (of few rows), moe (routing), normgemm "
         "(norms into products), ffn (chains of two products), quant (rows to FP8 for a product, "
         "products of 8-bit integers), "
         "e2e, gate (graphs drawn at random), or several with commas")
      ->capture_default_str();
  app.add_option("--models", options.models, "Folder of e2e's models")->type_name("DIR");
  app.add_option("--json", options.json, "Write the results here (- for stdout)")
      ->type_name("FILE");
  app.add_option("--only", options.only, "Workloads whose name contains this");
  app.add_flag("--quick", options.quick, "Fewer sizes");
  app.add_flag("--check-only", options.check_only, "Compare with fp64, do not time");
  app.add_option("--device", options.session.device, "cuda or cpu")->capture_default_str();
  app.add_flag("--tf32", options.session.tf32, "Products of fp32 may round to TF32");
  app.add_flag("--exact-products", options.session.exact_products,
               "Products, attention and convolutions multiply fp32 operands exactly");
  app.add_flag("--exact-masks", options.session.exact_masks,
               "What masks hide may be NaN or infinite");
  app.add_option("--threads", options.session.threads, "CPU: threads (0: one per core)")
      ->capture_default_str();
  app.add_flag("--tune", options.tune,
               "Time measured choices beside the default (on the CPU always)");
  app.add_option("--cache-dir", options.session.kernel_cache_folder, "Compiled kernels");
  app.add_option("--seconds", options.budget_s, "Timing budget of a workload")
      ->capture_default_str();
  app.add_flag("--calibrate", options.calibrate,
               "Instead of a suite: measure the GPU's rates beside the table of machines");
  app.add_option("--sweep", options.sweep,
                 "Instead of a suite: check so many cases out of kernels of all sizes");
  app.add_option("--count", options.count, "Graphs of the gate")->capture_default_str();
  app.add_option("--seed", options.seed, "Which cases of the sweep, which graphs of the gate")
      ->capture_default_str();
  app.add_option("--commit", options.commit, "Recorded in the results");
  if (parse_command_line(app, argc, argv)) return std::nullopt;
  return options;
}

int run(int argc, char** argv) {
  const std::optional<BenchOptions> options = parse(argc, argv);
  if (!options) return kSuccess;
  const bool stdout_taken = takes_stdout({{"--json", options->json}});
  const Words words(stdout_taken);
  if (options->calibrate) return run_calibration(options->json);
  if (options->sweep > 0) {
    return run_sweep({options->sweep, options->seed, options->only, options->json, options->commit,
                      options->session});
  }
  Json result = {{"device", ""}, {"versions", Json::object()}};
  if (!options->commit.empty()) result["commit"] = options->commit;
  result["rows"] = Json::array();
  bool complete = true;
  std::string rest = options->suites + ",";
  while (!rest.empty()) {
    const std::string suite = rest.substr(0, rest.find(','));
    rest.erase(0, suite.size() + 1);
    for (const WorkloadMaker& maker : workloads(suite, *options)) {
      if (maker.name.find(options->only) == std::string::npos) continue;
      const Json row = measure(maker.make(), *options, result);
      for (const char* error : {"error", "tuned_error"}) {
        const bool wanted = error != std::string("tuned_error") || options->tune;
        complete = complete &&
                   (!wanted || (row.contains(error) && std::isfinite(row[error].get<double>())));
      }
      result["rows"].push_back(row);
      words.say(line(row) + "\n");
      if (!options->json.empty() && !stdout_taken) {
        write_output(options->json, result.dump(1) + "\n");
      }
    }
  }
  if (is_cpu(*options) && !options->check_only) words.say("\n" + cpu_table(result["rows"]));
  if (options->tune && !is_cpu(*options)) words.say("\n" + tuning_table(result["rows"]));
  if (stdout_taken) write_output("-", result.dump(1) + "\n");
  return complete ? kSuccess : kFailedCheck;
}

}  // namespace
}  // namespace redfuser::tools

int main(int argc, char** argv) {
  return redfuser::tools::guarded([&] { return redfuser::tools::run(argc, argv); });
}
