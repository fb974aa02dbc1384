#include "runtime/program/program_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/program/compiled_program.h"
#include "runtime/program/make_guards.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kMostParts = 16;

size_t index(int64_t id) { return static_cast<size_t>(id); }

// The part of every step: the first one in which its operands and its sizes are known.
class Stages {
 public:
  explicit Stages(const CompiledProgram& whole)
      : whole_(whole), graph_(whole.graph()), known_from_(whole.symbol_names.size(), kNever) {
    for (const ir::ValueId id : graph_.inputs) know(id, 0);
    for (const fuse::Append& append : whole.appends) {
      known_from_[index(append.begin->integer)] = known_from_[index(append.room->integer)] = 0;
    }
    for (const fuse::Step& step : whole.plan.steps) place(step);
  }

  size_t count() const { return *std::max_element(stages_.begin(), stages_.end()) + 1; }
  size_t of(size_t step) const { return stages_[step]; }
  // Whether the sizes that the step binds are bound before its part.
  bool binds_before(size_t step) const { return before_[step]; }
  // By symbol: whether parts before this one make it known.
  std::vector<bool> known_before(size_t part) const {
    std::vector<bool> known;
    for (const size_t from : known_from_) known.push_back(from <= part);
    return known;
  }

 private:
  static constexpr size_t kNever = SIZE_MAX;

  void know(ir::ValueId value, size_t part) {
    for (const int64_t symbol : whole_.shape_symbols[index(value)]) {
      size_t& from = known_from_[index(symbol)];
      from = std::min(from, part);
    }
  }

  size_t first_part(const fuse::Step& step) const {
    size_t part = 0;
    for (const ir::ValueId read : step.reads) {
      const auto written = written_in_.find(read);
      if (written != written_in_.end()) part = std::max(part, written->second);
      for (const int64_t symbol : whole_.shape_symbols[index(read)]) {
        const size_t from = known_from_[index(symbol)];
        if (from != kNever) part = std::max(part, from);
      }
    }
    for (const ir::NodeId node : step.sized_by) {
      const auto bound = bound_from_.find(node);
      if (bound != bound_from_.end()) part = std::max(part, bound->second);
    }
    return std::min(part, kMostParts - 1);
  }

  void bind(ir::NodeId node, size_t part) {
    bound_from_[node] = part;
    for (const ir::ValueId output : graph_.nodes[index(node)].outputs) {
      if (output != ir::kAbsent) know(output, part);
    }
  }

  void place(const fuse::Step& step) {
    size_t part = first_part(step);
    const bool before = !step.binds.empty() && part + 1 < kMostParts;
    if (before) ++part;
    for (const ir::NodeId node : step.binds) bind(node, part);
    // Its kernel finds the sizes of its results.
    if (const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind)) {
      bind(opaque->node, part + 1);
    }
    for (const ir::ValueId value : step.writes) written_in_[value] = part;
    stages_.push_back(part);
    before_.push_back(before);
  }

  const CompiledProgram& whole_;
  const ir::Graph& graph_;
  std::vector<size_t> known_from_;  // by symbol
  std::map<ir::NodeId, size_t> bound_from_;
  std::map<ir::ValueId, size_t> written_in_;
  std::vector<size_t> stages_;
  std::vector<bool> before_;
};

class PartMaker {
 public:
  explicit PartMaker(const CompiledProgram& whole) : whole_(whole), stages_(whole) {}

  std::vector<ProgramPart> run() {
    if (stages_.count() == 1) return {};
    std::vector<ProgramPart> parts(stages_.count());
    for (size_t i = 0; i < whole_.plan.steps.size(); ++i) {
      const fuse::Step& step = whole_.plan.steps[i];
      parts[stages_.of(i)].steps.push_back(i);
      for (const ir::ValueId value : step.writes) writers_[value] = stages_.of(i);
      if (stages_.binds_before(i)) add_binds(parts[stages_.of(i) - 1], step);
    }
    find_crossing(parts);
    if (has_lists()) return {};
    for (size_t k = 0; k < parts.size(); ++k) parts[k].program = program_of(parts[k], k);
    return parts;
  }

 private:
  void add_binds(ProgramPart& part, const fuse::Step& step) const {
    const std::set<ir::ValueId> reads(step.reads.begin(), step.reads.end());
    for (const ir::NodeId node : step.binds) {
      part.binds.push_back(node);
      for (const ir::ValueId input : whole_.graph().nodes[index(node)].inputs) {
        if (input == ir::kAbsent || reads.count(input) == 0) continue;
        if (whole_.graph().values[index(input)].is_constant()) continue;
        part.sources.push_back(input);
      }
    }
    std::sort(part.sources.begin(), part.sources.end());
    part.sources.erase(std::unique(part.sources.begin(), part.sources.end()), part.sources.end());
  }

  void find_crossing(const std::vector<ProgramPart>& parts) {
    const std::vector<ir::ValueId>& outputs = whole_.graph().outputs;
    leaving_.insert(outputs.begin(), outputs.end());
    for (size_t k = 0; k < parts.size(); ++k) {
      leaving_.insert(parts[k].sources.begin(), parts[k].sources.end());
      for (const size_t i : parts[k].steps) {
        for (const ir::ValueId read : whole_.plan.steps[i].reads) {
          const auto writer = writers_.find(read);
          if (writer != writers_.end() && writer->second != k) leaving_.insert(read);
        }
      }
    }
  }

  // Lists are in host memory alone, and no DeviceTensor.
  bool has_lists() const {
    const ir::Graph& graph = whole_.graph();
    const auto is_listed = [&](ir::ValueId id) { return is_list(graph.values[index(id)].dtype); };
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), is_listed) ||
           std::any_of(leaving_.begin(), leaving_.end(), is_listed);
  }

  // The graph of a part: its inputs and outputs in the order of the whole program's, then of their
  // numbers.
  std::shared_ptr<ir::Graph> graph_of(const std::vector<fuse::Step>& steps, size_t number) const {
    const ir::Graph& whole = whole_.graph();
    auto graph = std::make_shared<ir::Graph>(whole);
    std::set<ir::ValueId> read, written;
    for (const fuse::Step& step : steps) {
      read.insert(step.reads.begin(), step.reads.end());
      written.insert(step.writes.begin(), step.writes.end());
    }
    const bool last = number + 1 == stages_.count();
    const auto is_known = [&](ir::ValueId id) { return whole.values[index(id)].is_constant(); };
    graph->inputs.clear();
    for (const ir::ValueId id : whole.inputs) {
      const bool returned = last && std::count(whole.outputs.begin(), whole.outputs.end(), id) > 0;
      if (number == 0 || read.count(id) || returned) graph->inputs.push_back(id);
      read.erase(id);
    }
    for (const ir::ValueId id : read) {
      if (!written.count(id) && !is_known(id)) graph->inputs.push_back(id);
    }
    graph->outputs.clear();
    for (const ir::ValueId id : whole.outputs) {
      const bool made = written.count(id) > 0;
      if (made || (last && !writers_.count(id))) graph->outputs.push_back(id);
      written.erase(id);
    }
    for (const ir::ValueId id : written) {
      if (leaving_.count(id)) graph->outputs.push_back(id);
    }
    return graph;
  }

  std::shared_ptr<const CompiledProgram> program_of(const ProgramPart& part, size_t number) const {
    auto made = std::make_shared<CompiledProgram>();
    made->model = whole_.model;
    made->options = whole_.options;
    made->symbol_names = whole_.symbol_names;
    made->shape_symbols = whole_.shape_symbols;
    if (number > 0) made->outer_symbols = stages_.known_before(number);
    fuse::Plan& plan = made->plan;
    plan.report = whole_.plan.report;
    for (const size_t i : part.steps) {
      fuse::Step& step = plan.steps.emplace_back(whole_.plan.steps[i]);
      if (stages_.binds_before(i)) step.binds.clear();
      made->steps.push_back(whole_.steps[i]);
      const auto bodies = whole_.bodies.find(i);
      if (bodies != whole_.bodies.end()) made->bodies[plan.steps.size() - 1] = bodies->second;
      if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
        plan.alias_roots[alias->value] = plan.root(alias->source);
      }
    }
    const std::shared_ptr<ir::Graph> graph = graph_of(plan.steps, number);
    free_values(plan.steps, *graph);
    plan.graph = graph;
    make_guards(*made);
    return made;
  }

  static void free_values(std::vector<fuse::Step>& steps, const ir::Graph& graph) {
    std::set<ir::ValueId> kept(graph.outputs.begin(), graph.outputs.end());
    kept.insert(graph.inputs.begin(), graph.inputs.end());
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      step->frees.clear();
      for (const std::vector<ir::ValueId>* ids : {&step->reads, &step->writes}) {
        for (const ir::ValueId id : *ids) {
          if (graph.values[index(id)].is_constant()) continue;
          if (kept.insert(id).second) step->frees.push_back(id);
        }
      }
    }
  }

  const CompiledProgram& whole_;
  const Stages stages_;
  std::map<ir::ValueId, size_t> writers_;  // the part that writes a value
  std::set<ir::ValueId> leaving_;          // written by a part, and read outside of it
};

}  // namespace

const std::vector<ProgramPart>& ProgramParts::of(const CompiledProgram& whole) const {
  std::call_once(made_, [&] {
    if (whole.plan.steps.empty()) return;
    parts_ = PartMaker(whole).run();
  });
  return parts_;
}

void visit_parts(const CompiledProgram& whole,
                 const std::function<void(const CompiledProgram& program,
                                          const std::vector<size_t>& steps)>& visit) {
  const std::vector<ProgramPart>& parts = whole.parts.of(whole);
  for (const ProgramPart& part : parts) visit(*part.program, part.steps);
  if (!parts.empty()) return;
  std::vector<size_t> all(whole.plan.steps.size());
  std::iota(all.begin(), all.end(), size_t{0});
  visit(whole, all);
}

}  // namespace redfuser::runtime
