// The page of redfuser/report.h: its data, embedded in the viewer.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files/output_file.h"
#include "codegen/core/target_table.h"
#include "onnx/import/file_nodes.h"
#include "redfuser/report.h"
#include "runtime/report/facts_json.h"
#include "runtime/report/page_layout.h"
#include "runtime/report/viewer.h"

namespace redfuser {
namespace runtime {
namespace {

class PageWriter {
 public:
  PageWriter(const Program& program, const ReportOptions& options)
      : program_(*program.handle()),
        options_(options),
        facts_(options.steps.empty() && !options.target.empty() ? program.step_facts(options.target)
                                                                : options.steps),
        own_(clone(program_.graph())),
        file_(onnx::file_nodes(*program_.model)) {
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
    const StepFacts facts = i < facts_.size() ? facts_[i] : StepFacts();
    json.update(facts_json(facts));
    if (!facts.kernels.empty() || facts.family.empty()) return;
    json["kernels"].push_back(
        {{"family", facts.family}, {"configuration", facts.configuration}, {"name", ""}});
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
                   {"nodes", fused.nodes},
                   {"cases", fused.cases},
                   {"max_error", std::isfinite(fused.max_error) ? Json(fused.max_error) : Json()},
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
  const std::vector<StepFacts> facts_;
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
  return runtime::viewer_page(runtime::embeddable(runtime::PageWriter(program, options).write()));
}

void save_report(const Program& program, const ReportOptions& options, const std::string& path) {
  write_text(path, report_page(program, options));
}

}  // namespace redfuser
