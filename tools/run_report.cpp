#include "run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "time_view.h"
#include "tool.h"
#include "tuning_view.h"

namespace redfuser::tools {
namespace {

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

std::string inputs_text(const Model& model, const RunOptions& options, const RunResult& result) {
  std::vector<std::string> parts;
  for (const ValueInfo& info : model.inputs()) {
    const auto found = result.inputs.find(info.name);
    if (found != result.inputs.end()) {
      parts.push_back(fmt::format("{} {}", info.name, describe(found->second)));
    }
  }
  const std::string source = options.inputs.empty() && !parts.empty()
                                 ? fmt::format(" (random, seed {})", options.random.seed)
                                 : "";
  return fmt::format("{}{}{}\n", heading("inputs"),
                     parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", ")), source);
}

// The first of many.
std::string shortened(const std::vector<std::string>& words) {
  constexpr size_t kShown = 8;
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), kShown));
  return fmt::format("{}{}", fmt::join(words.begin(), end, ", "),
                     words.size() > kShown ? fmt::format(", ... ({})", words.size()) : "");
}

std::vector<std::string> texts_of(const Tensor& tensor) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < tensor.size(); ++i) texts.push_back(tensor.text(i));
  return texts;
}

std::string summary_text(const Tensor& tensor) {
  if (tensor.dtype() == DType::String) return "  " + shortened(texts_of(tensor));
  const Summary summary = summarize(tensor);
  std::string text =
      fmt::format("  {:>12.6g}  {:>12.6g}  {:>12.6g}", summary.min, summary.max, summary.mean);
  if (summary.nan > 0) text += fmt::format("  {} NaN", summary.nan);
  if (summary.inf > 0) text += fmt::format("  {} Inf", summary.inf);
  return text;
}

std::string outputs_text(const Model& model, const NamedTensors& outputs) {
  size_t name_width = 4, type_width = 4;
  for (const auto& [name, tensor] : outputs) {
    name_width = std::max(name_width, name.size());
    type_width = std::max(type_width, describe(tensor).size());
  }
  std::string text = fmt::format("{}{:<{}}  {:<{}}  {:>12}  {:>12}  {:>12}\n", heading("outputs"),
                                 "name", name_width, "type", type_width, "min", "max", "mean");
  for (const ValueInfo& info : model.outputs()) {
    const Tensor& tensor = outputs.at(info.name);
    text += fmt::format("{}{:<{}}  {:<{}}{}\n", heading(""), info.name, name_width,
                        describe(tensor), type_width, summary_text(tensor));
    if (!info.classes.empty()) {
      text += fmt::format("{}columns of {}: {}\n", heading(""), info.name, shortened(info.classes));
    }
  }
  return text;
}

std::string memory_text(const Measurement& m) {
  return fmt::format("{}{} of tensors at most, {} resident\n", heading("memory"),
                     readable_bytes(m.peak_tensor_bytes), readable_bytes(m.peak_process_bytes));
}

std::string comparisons_text(const RunResult& result) {
  std::string text;
  for (const Comparison& comparison : result.comparisons) {
    text += fmt::format("{}{} {}\n", heading("compare"), comparison.passed ? "ok  " : "FAIL",
                        describe(comparison));
  }
  return text;
}

std::string verification_text(const Verification& verification) {
  const Verification& v = verification;
  if (!v.reason.empty()) {
    return fmt::format("{}none: only a run decides the steps: {}\n", heading("verify"), v.reason);
  }
  const std::string counts =
      fmt::format("{} of {} steps, {} values", v.compared_steps, v.steps, v.values);
  std::string note;
  if (!v.against_cpu.empty()) {
    note = fmt::format("{}{} values are compared with the CPU's alone; {}\n", heading(""),
                       v.against_cpu.size(), v.against_cpu.front());
  }
  if (v.failed.empty()) {
    return fmt::format(
        "{}ok   {} agree with the unfused graph in fp64 ({} by the rounding of its types)\n{}",
        heading("verify"), counts, v.decided_wide, note);
  }
  return fmt::format(
      "{}FAIL {} values differ from the unfused graph in fp64 (of {}); the first is "
      "computed by \"{}\" ({})\n{}{}\n{}",
      heading("verify"), v.failed.size(), counts, v.first_label, v.first_kind, heading(""),
      describe(v.failed.front()), note);
}

std::string tuning_text(const std::vector<StepTuning>& tunings) {
  std::string text;
  for (const std::string& line : tuning_lines(tunings)) {
    text += fmt::format("{}{}\n", heading("tuned"), line);
  }
  return text;
}

Json to_json(const Comparison& c) {
  return {{"name", c.name},
          {"passed", c.passed},
          {"problem", c.problem},
          {"note", c.note},
          {"elements", c.elements},
          {"mismatches", c.mismatches},
          {"worst",
           {{"index", Json(c.worst_index)},
            {"got", number(c.worst_got)},
            {"expected", number(c.worst_expected)},
            {"abs", number(c.worst_absolute)},
            {"rel", number(c.worst_relative)}}},
          {"max_abs", number(c.max_absolute)},
          {"cosine", number(c.cosine)},
          {"nan", {{"got", c.got_nan}, {"expected", c.expected_nan}}},
          {"inf", {{"got", c.got_inf}, {"expected", c.expected_inf}}}};
}

Json to_json(const std::string& name, const Tensor& tensor) {
  const Summary summary = summarize(tensor);
  return {{"name", name},
          {"dtype", name_of(tensor.dtype())},
          {"shape", Json(tensor.dims())},
          {"min", summary.min},
          {"max", summary.max},
          {"mean", number(summary.mean)},
          {"nan", summary.nan},
          {"inf", summary.inf}};
}

Json verification_json(const Verification& verification) {
  Json failed = Json::array();
  for (const Comparison& comparison : verification.failed) failed.push_back(to_json(comparison));
  return {{"steps", verification.steps},
          {"compared_steps", verification.compared_steps},
          {"compared", verification.values},
          {"decided_wide", verification.decided_wide},
          {"against_cpu", Json(verification.against_cpu)},
          {"failed", std::move(failed)},
          {"first_node", verification.first_label},
          {"reason", verification.reason}};
}

}  // namespace

bool RunResult::passed() const {
  const bool equal = std::all_of(comparisons.begin(), comparisons.end(),
                                 [](const Comparison& c) { return c.passed; });
  return equal && (!verification || verification->failed.empty());
}

std::string text_report(const Model& model, const ReportView& report, const RunOptions& options,
                        const RunResult& result) {
  constexpr size_t kShownKinds = 6;
  std::string text = fmt::format("{}{}\n", heading("model"), options.model);
  text += inputs_text(model, options, result);
  text += fmt::format("{}{} before: {}\n{}{} after: {}\n", heading("operators"),
                      total(report.ops_before), most_frequent(report.ops_before, kShownKinds),
                      heading(""), total(report.ops_after),
                      most_frequent(report.ops_after, kShownKinds));
  text += fmt::format("{}{}\n", heading("fused"), fused_summary(report));
  text += outputs_text(model, result.measurement.outputs);
  const Measurement& m = result.measurement;
  text += indented("time", time_lines(m, options.timed));
  if (m.state) text += indented("clocks", {clocks_line(*m.state)});
  text += memory_text(m);
  if (!options.profile.empty()) text += indented("profile", profile_lines(m.profile));
  text += tuning_text(result.tunings);
  text += comparisons_text(result);
  if (result.verification) text += verification_text(*result.verification);
  return text;
}

std::string json_report(const Model& model, const ReportView& report, const RunOptions& options,
                        const RunResult& result) {
  Json inputs = Json::array(), outputs = Json::array(), comparisons = Json::array();
  for (const auto& [name, tensor] : result.inputs) inputs.push_back(to_json(name, tensor));
  for (const ValueInfo& info : model.outputs()) {
    outputs.push_back(to_json(info.name, result.measurement.outputs.at(info.name)));
    if (!info.classes.empty()) outputs.back()["classes"] = info.classes;
  }
  for (const Comparison& comparison : result.comparisons) {
    comparisons.push_back(to_json(comparison));
  }
  Json root = {{"model", options.model},
               {"device", result.device},
               {"fused", Json(report.fused_by_class)},
               {"ops_before", Json(report.ops_before)},
               {"ops_after", Json(report.ops_after)},
               {"inputs", std::move(inputs)},
               {"outputs", std::move(outputs)},
               {"time", time_json(result.measurement)},
               {"gpu", result.measurement.state ? to_json(*result.measurement.state) : Json()},
               {"peak_tensor_bytes", result.measurement.peak_tensor_bytes},
               {"peak_process_bytes", result.measurement.peak_process_bytes},
               {"compare", std::move(comparisons)}};
  if (!result.measurement.state) root.erase("gpu");
  if (!options.profile.empty()) {
    root["profile"] = profile_json(result.measurement.profile);
  }
  if (options.session.tune) root["tuned"] = tuning_json(result.tunings);
  if (report.json.contains("steps")) root["steps"] = report.json["steps"];
  if (result.verification) root["verify"] = verification_json(*result.verification);
  root["passed"] = result.passed();
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redfuser::tools
