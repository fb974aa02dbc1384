// The page of redfuser/report.h: its data, embedded in the viewer.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/output_file.h"
#include "codegen/core/target_table.h"
#include "codegen/select/generate.h"
#include "onnx/import/file_nodes.h"
#include "redfuser/report.h"
#include "runtime/report/page_layout.h"
#include "runtime/report/viewer.h"

namespace redfuser {
namespace runtime {
namespace {

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

StepCandidate candidate_of(const codegen::Offer& offer) {
  StepCandidate candidate;
  candidate.family = offer.family;
  candidate.configuration = offer.config;
  if (offer.time > 0) candidate.estimated_us = offer.time;
  candidate.refusal = offer.refusal;
  return candidate;
}

Json to_json(const StepCandidate& candidate) {
  return {{"family", candidate.family},
          {"configuration", candidate.configuration},
          {"estimated_us", number(candidate.estimated_us)},
          {"measured_us", number(candidate.measured_us)},
          {"refusal", candidate.refusal}};
}

Json kernel_json(const codegen::GpuCall& call) {
  const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
  if (launch == nullptr) {
    return {{"family", "cublaslt"}, {"configuration", ""}, {"name", ""}};
  }
  std::vector<std::string> parts;
  for (const auto& [name, value] : launch->config)
    parts.push_back(fmt::format("{}={}", name, value));
  return {{"family", launch->family},
          {"configuration", fmt::format("{}", fmt::join(parts, " "))},
          {"name", launch->name}};
}

class PageWriter {
 public:
  PageWriter(const CompiledProgram& program, const ReportOptions& options)
      : program_(program),
        options_(options),
        own_(clone(program.graph())),
        file_(onnx::file_nodes(*program.model)) {
    for (size_t i = 0; i < file_.size(); ++i) by_name_.emplace(file_[i].name, i);
  }

  Json write() const {
    Json page = {{"title", options_.title}, {"target", options_.target}};
    page["facts"] = Json::array();
    for (const auto& [name, text] : options_.facts) page["facts"].push_back({name, text});
    page["before"] = graph_json(file_graph(program_));
    page["after"] = graph_json(step_graph(program_));
    page["owners"] = owners();
    page["steps"] = Json::array();
    for (size_t i = 0; i < program_.plan.steps.size(); ++i) page["steps"].push_back(step(i));
    page["regions"] = regions();
    page["refused"] = Json::array();
    for (const cascade::UnfusedReport& refused : program_.plan.report.unfused) {
      page["refused"].push_back(
          {{"nodes", refused.nodes}, {"reason", refused.reason}, {"blame", refused.blame}});
    }
    return page;
  }

 private:
  // The file's nodes that a node of the graph is of. A joined node has the names of several.
  std::set<size_t> sources_of(const ir::Node& node) const {
    std::set<size_t> sources;
    if (node.source >= 0) sources.insert(static_cast<size_t>(node.source));
    std::istringstream names(node.name);
    for (std::string name; names >> name;) {
      const auto found = by_name_.find(name);
      if (found != by_name_.end()) sources.insert(found->second);
    }
    return sources;
  }

  // By node of the file: the step that computes it, -1 for none. A step may have but a view of
  // another one's result, so the same operator counts most, and a region before another step.
  std::vector<int> owners() const {
    std::vector<int> owners(file_.size(), -1), strengths(file_.size(), -1);
    for (size_t i = 0; i < program_.plan.steps.size(); ++i) {
      for (const ir::NodeId id : program_.plan.steps[i].nodes) {
        const ir::Node& node = program_.graph().nodes[static_cast<size_t>(id)];
        for (const size_t source : sources_of(node)) {
          const int strength = 2 * (node.op == file_[source].op) + program_.steps[i].fused;
          if (strength <= strengths[source]) continue;
          strengths[source] = strength;
          owners[source] = static_cast<int>(i);
        }
      }
    }
    return owners;
  }

  Json step(size_t i) const {
    const StepInfo& info = program_.steps[i];
    const fuse::Step& planned = program_.plan.steps[i];
    std::set<size_t> nodes;
    for (const ir::NodeId node : planned.nodes) {
      nodes.merge(sources_of(program_.graph().nodes[static_cast<size_t>(node)]));
    }
    Json json = {{"label", info.label}, {"kind", info.kind}, {"nodes", nodes}};
    if (const auto* cascade = std::get_if<fuse::CascadeStep>(&planned.kind)) {
      json["region"] = cascade->report;
    }
    add_facts(i, json);
    return json;
  }

  void add_facts(size_t i, Json& json) const {
    const bool given = i < options_.steps.size();
    const StepFacts facts = given ? options_.steps[i] : StepFacts();
    json["estimated_us"] = number(facts.estimated_us);
    json["measured_us"] = number(facts.measured_us);
    json["share"] = number(facts.share);
    json["bytes"] = facts.bytes;
    json["candidates"] = Json::array();
    for (const StepCandidate& each : facts.candidates) json["candidates"].push_back(to_json(each));
    json["kernels"] = Json::array();
    if (!facts.family.empty()) {
      json["kernels"].push_back(
          {{"family", facts.family}, {"configuration", facts.configuration}, {"name", ""}});
    } else if (!options_.target.empty()) {
      add_kernels(i, facts.kernels, json);
    }
  }

  // Of those that the step may launch, the ones that a run did.
  void add_kernels(size_t i, const std::vector<std::string>& launched, Json& json) const {
    try {
      const codegen::GpuStep form =
          generate(own_, program_.plan.steps[i], codegen::target_named(options_.target));
      if (json["candidates"].empty()) {
        for (const codegen::Offer& offer : form.offers) {
          json["candidates"].push_back(to_json(candidate_of(offer)));
        }
      }
      if (form.time > 0 && json["estimated_us"].is_null()) json["estimated_us"] = form.time;
      for (const codegen::GpuCall& call : form.calls) {
        const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
        const bool ran =
            launch == nullptr || launched.empty() ||
            std::find(launched.begin(), launched.end(), launch->name) != launched.end();
        if (ran) json["kernels"].push_back(kernel_json(call));
      }
    } catch (const UserError& error) {
      json["no_kernel"] = error.what();
    }
  }

  Json regions() const {
    Json list = Json::array();
    for (const cascade::FusedReport& fused : program_.plan.report.fused) {
      Json forms = Json::array();
      for (const cascade::StageReport& stage : fused.stages) {
        forms.push_back({{"reduce", stage.reduce},
                         {"form", stage.form},
                         {"F", stage.F},
                         {"G", stage.G},
                         {"H", stage.H},
                         {"rho", stage.rho}});
      }
      Json json = {{"id", fused.id},
                   {"class", fused.region_class},
                   {"strategy", fused.strategy},
                   {"nodes", fused.nodes},
                   {"cases", fused.cases},
                   {"max_error", number(fused.max_error)},
                   {"forms", std::move(forms)}};
      for (size_t i = 0; i < program_.plan.steps.size(); ++i) {
        const auto* cascade = std::get_if<fuse::CascadeStep>(&program_.plan.steps[i].kind);
        if (cascade == nullptr || cascade->report != fused.id) continue;
        json["step"] = i;
        json["equations"] = equations(own_, cascade->streaming);
      }
      list.push_back(std::move(json));
    }
    return list;
  }

  const CompiledProgram& program_;
  const ReportOptions& options_;
  const ir::Graph own_;  // the program's takes no new expressions
  const std::vector<onnx::FileNode> file_;
  std::map<std::string, size_t> by_name_;
};

// JSON that can stand within <script>: a '<' occurs in its strings alone.
std::string embeddable(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace
}  // namespace runtime

std::string report_page(const Program& program, const ReportOptions& options) {
  RF_CHECK(program.handle() != nullptr, "report_page: the program is empty");
  const runtime::CompiledProgram& compiled = *program.handle();
  RF_CHECK(options.steps.empty() || options.steps.size() == compiled.steps.size(),
           "report_page: {} facts of {} steps", options.steps.size(), compiled.steps.size());
  if (!options.target.empty()) codegen::target_named(options.target);
  return runtime::viewer_page(runtime::embeddable(runtime::PageWriter(compiled, options).write()));
}

void save_report(const Program& program, const ReportOptions& options, const std::string& path) {
  write_text(path, report_page(program, options));
}

}  // namespace redfuser
