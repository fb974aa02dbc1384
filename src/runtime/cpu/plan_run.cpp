#include "runtime/cpu/plan_run.h"

#include <algorithm>
#include <optional>

#include "base/deferred_contents.h"
#include "base/error.h"
#include "base/memory_budget.h"
#include "base/memory_pool.h"
#include "base/tensors/blocks.h"
#include "cpu/opaque/opaque_shapes.h"
#include "ir/polynomial.h"
#include "redfuser/memory_limit.h"
#include "runtime/cpu/call_run.h"
#include "runtime/cpu/growing_body.h"
#include "runtime/facts/step_bytes.h"
#include "runtime/facts/step_facts.h"
#include "runtime/program/bind_inputs.h"

namespace redfuser::runtime {

PlanRun::PlanRun(std::shared_ptr<const CompiledProgram> program, ThreadPool& pool, bool tune)
    : program_(std::move(program)),
      graph_(program_->graph()),
      kernels_(program_->cpu_kernels.of(program_->plan)),
      pool_(pool),
      tune_(tune),
      values_(graph_.values.size()),
      is_output_(graph_.values.size(), false),
      all_checks_(graph_),
      checks_(all_checks_) {
  for (const ir::ValueId id : graph_.outputs) is_output_[index(id)] = true;
  for (const fuse::Step& step : program_->plan.steps) {
    bool known = true;
    const int64_t bytes = outputs_of(step, known);
    fixed_bytes_.push_back(known ? bytes : -1);
  }
  find_leaving();
  if (!program_->bodies.empty()) calls_.resize(program_->plan.steps.size());
  for (const auto& [step, bodies] : program_->bodies) {
    calls_[step] = std::make_unique<CallRun>(*program_, step, bodies, pool, tune);
  }
  clear();
}

PlanRun::~PlanRun() {
  memory_->close();
  outputs_->close();
}

void PlanRun::find_leaving() {
  const std::vector<fuse::Step>& steps = program_->plan.steps;
  std::vector<bool> leaves = is_output_;
  leaves_.resize(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    for (const ir::ValueId id : steps[i].writes) leaves_[i] = leaves_[i] || leaves[index(id)];
    const auto* same = std::get_if<fuse::AliasStep>(&steps[i].kind);
    if (same != nullptr && leaves[index(same->value)]) leaves[index(same->source)] = true;
  }
}

CallRun* PlanRun::call_of(size_t step) const {
  return calls_.empty() ? nullptr : calls_[step].get();
}

void PlanRun::clear() {
  targets_.clear();
  growing_ = nullptr;
  packs_ = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Tensor& constant = graph_.values[i].constant;
    if (values_[i].defined() != constant.defined() ||
        storage_of(values_[i]) != storage_of(constant)) {
      values_[i] = constant;
    }
  }
}

int64_t PlanRun::outputs_of(const fuse::Step& step, bool& known) const {
  int64_t needed = 0;
  if (std::holds_alternative<fuse::AliasStep>(step.kind)) return needed;
  for (const ir::ValueId id : step.writes) {
    const std::vector<int64_t>& open = program_->shape_symbols[index(id)];
    if (!std::all_of(open.begin(), open.end(), [&](int64_t symbol) {
          return static_cast<size_t>(symbol) < symbols_.size() &&
                 symbols_[static_cast<size_t>(symbol)] >= 0;
        })) {
      known = false;
      continue;
    }
    if (is_callers(id)) continue;
    const int64_t width = static_cast<int64_t>(size_of(graph_.values[index(id)].dtype));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(cpu::dims_of(graph_, id, symbols_)), width, &bytes) ||
        __builtin_add_overflow(needed, bytes, &needed)) {
      return INT64_MAX;
    }
  }
  return needed;
}

int64_t PlanRun::room_for(size_t number) const {
  const fuse::Step& step = program_->plan.steps[number];
  bool known = true;
  const bool fixed = fixed_bytes_[number] >= 0 && targets_.empty();
  const int64_t needed = fixed ? fixed_bytes_[number] : outputs_of(step, known);
  if (needed > memory_limit_ - meter_.live()) {
    user_error("\"{}\" needs {} bytes for its outputs, with {} in use, above the limit of {}",
               step.label, needed, meter_.live(), memory_limit_);
  }
  // The caller's own limit also counts the inputs and the model's weights.
  const int64_t left = MemoryLimit::left();
  if (needed > left) {
    user_error("\"{}\" needs {} bytes for its outputs, with {} left of the memory limit",
               step.label, needed, left);
  }
  return std::min(memory_limit_ - meter_.live() - needed, left);
}

bool PlanRun::is_callers(ir::ValueId id) const {
  return !targets_.empty() && targets_[index(id)].defined();
}

void PlanRun::alias(const fuse::AliasStep& step) {
  values_[index(step.value)] = values_[index(step.source)].reshaped(memory_of(step.value));
}

Dims PlanRun::memory_of(ir::ValueId id) const {
  const bool grows = growing_ != nullptr && !packs_ && growing_->sizes.grows(graph_, id);
  return grows ? growing_->sizes.memory_of(graph_, id) : cpu::dims_of(graph_, id, symbols_);
}

std::vector<std::pair<ir::ValueId, Tensor>> PlanRun::pack(const fuse::Step& step) {
  std::vector<std::pair<ir::ValueId, Tensor>> before;
  for (const ir::ValueId id : step.reads) {
    Tensor& value = values_[index(id)];
    if (!growing_->sizes.grows(graph_, id)) continue;
    before.emplace_back(id, value);
    value = part_below(value, cpu::dims_of(graph_, id, symbols_));
  }
  return before;
}

void PlanRun::unpack(const fuse::Step& step, std::vector<std::pair<ir::ValueId, Tensor>> before) {
  packs_ = false;
  for (auto& [id, value] : before) values_[index(id)] = std::move(value);
  for (const ir::ValueId id : step.writes) {
    if (growing_->sizes.grows(graph_, id)) {
      values_[index(id)] = resized(values_[index(id)], memory_of(id));
    }
  }
}

bool PlanRun::passed_at(size_t step) const {
  const auto passed = passed_sizes_.find(step);
  return passed != passed_sizes_.end() && passed->second == symbols_;
}

void PlanRun::check_positions(size_t number, cpu::RunContext& context) {
  const std::vector<cpu::PositionGuard>& guards = program_->guards[number];
  const GrowingProgram::Step* step = growing_ != nullptr ? &growing_->steps[number] : nullptr;
  const bool passed = passed_at(number);
  bool fixed = false;
  for (size_t i = 0; i < guards.size(); ++i) {
    if (passed && guards[i].fixed()) continue;
    fixed |= guards[i].fixed();
    guards[i].run(context,
                  step != nullptr && !step->guards.empty() ? step->guards[i].get() : nullptr);
  }
  if (fixed) passed_sizes_[number] = symbols_;
}

// Opaque kernels determine the sizes of their outputs and need working memory, so the limit applies
// as they allocate.
void PlanRun::compute(size_t number, cpu::RunContext& context, StepObserver* observer) {
  const fuse::Step& step = program_->plan.steps[number];
  const int64_t left = std::max<int64_t>(memory_limit_ - meter_.live(), 1);
  std::optional<MemoryLimit> limit;
  if (std::holds_alternative<fuse::OpaqueStep>(step.kind)) limit.emplace(left);
  try {
    if (CallRun* call = call_of(number)) {
      call->run(context, left, observer);
      peak_ = std::max(peak_, meter_.live() + call->peak());
    } else if (growing_ != nullptr && growing_->steps[number].plan != nullptr) {
      growing_->steps[number].plan->run(context);
    } else {
      kernels_[number]->run(context);
      meter_.note(context.inner_bytes);
    }
  } catch (const MemoryLimitError& error) {
    user_error("\"{}\": {}", step.label, error.what());
  }
}

void PlanRun::run_step(size_t number, StepObserver* observer) {
  const fuse::Step& step = program_->plan.steps[number];
  cpu::RunContext context{graph_, values_, symbols_, pool_};
  context.tune = tune_;
  context.targets = targets_;
  for (const ir::NodeId node : step.binds) bind_runtime_shape(context, graph_.nodes[index(node)]);
  context.room = room_for(number);
  packs_ = growing_ != nullptr && growing_->steps[number].packed;
  std::vector<std::pair<ir::ValueId, Tensor>> packed;
  if (packs_) packed = pack(step);
  const auto* same_bytes = std::get_if<fuse::AliasStep>(&step.kind);
  if (same_bytes != nullptr) {
    alias(*same_bytes);
  } else {
    check_positions(number, context);
    compute(number, context, observer);
  }
  for (const ir::ValueId id : step.writes) {
    RF_CHECK(values_[index(id)].defined(), "step \"{}\" did not compute \"{}\"", step.label,
             graph_.values[index(id)].name);
  }
  if (packs_) unpack(step, std::move(packed));
  if (observer != nullptr) observer->computed(step, values_);
  for (const ir::ValueId id : step.writes) {
    const Tensor& tensor = values_[index(id)];
    // Bytes shared with an input, a constant or a target belong to the caller or the model.
    if (!is_callers(id) && (same_bytes == nullptr || meter_.has(tensor))) meter_.add(tensor);
  }
  for (const ir::ValueId id : step.frees) {
    if (is_output_[index(id)] || graph_.values[index(id)].is_constant()) continue;
    meter_.remove(values_[index(id)]);
    values_[index(id)] = Tensor();
  }
}

void PlanRun::run(int64_t memory_limit, StepObserver* observer) {
  memory_limit_ = memory_limit;
  has_run_ = true;
  peak_ = 0;
  meter_.restart();
  memory_->begin_run();
  outputs_->begin_run();
  checks_ = all_checks_;
  checks_.run(symbols_);
  const size_t count = program_->plan.steps.size();
  for (size_t i = 0; i < count; ++i) {
    if (observer != nullptr) observer->starting(i);
    const bool timed = observer != nullptr && observer->times_steps();
    const auto start = timed ? StepObserver::Clock::now() : StepObserver::Clock::time_point();
    const fuse::Step& step = program_->plan.steps[i];
    try {
      const PoolScope pooled(leaves_[i] ? outputs_ : memory_);
      run_step(i, observer);
    } catch (const ir::CoefficientOverflow& error) {
      user_error("\"{}\": {}", step.label, error.what());
    }
    if (!step.binds.empty() || std::holds_alternative<fuse::OpaqueStep>(step.kind)) {
      checks_.run(symbols_);
    }
    if (!timed) continue;
    const CallRun* call = call_of(i);
    observer->ended(i, start, call != nullptr ? call->times() : std::vector<KernelTime>());
  }
  peak_ = std::max(peak_, meter_.peak());
}

void PlanRun::restart() {
  for (const auto& call : calls_) {
    if (call != nullptr) call->restart();
  }
}

std::vector<Tensor> PlanRun::run(std::span<const Tensor* const> inputs, int64_t memory_limit,
                                 StepObserver* observer, GrowingBody* growing) {
  struct Clear {
    PlanRun& plan;
    ~Clear() { plan.clear(); }
  } at_end{*this};
  for (size_t i = 0; i < inputs.size(); ++i) values_[index(graph_.inputs[i])] = *inputs[i];
  if (!program_->symbol_names.empty()) bind_sizes(*program_, values_, symbols_);
  const bool grows = growing != nullptr && growing->enter(*this);
  run(memory_limit, observer);
  std::vector<Tensor> outputs;
  outputs.reserve(graph_.outputs.size());
  for (auto at = graph_.outputs.begin(); at != graph_.outputs.end(); ++at) {
    Tensor& value = values_[index(*at)];
    const bool stays = graph_.values[index(*at)].is_constant() ||
                       std::find(at + 1, graph_.outputs.end(), *at) != graph_.outputs.end();
    if (grows) {
      outputs.push_back(growing->leave(*this, *at));
      continue;
    }
    outputs.push_back(stays ? value : std::move(value));
  }
  return outputs;
}

std::vector<StepTuning> PlanRun::tunings() const {
  std::vector<StepTuning> tunings;
  for (size_t i = 0; tune_ && i < kernels_.size(); ++i) {
    if (kernels_[i] == nullptr) continue;
    const cpu::Selection selection = kernels_[i]->selection(symbols_, true);
    if (selection.measured.size() < 2) continue;
    StepTuning tuning{i, program_->steps[i].label, program_->steps[i].kind};
    tuning.default_choice = selection.measured.front().first;
    tuning.default_us = selection.measured.front().second;
    tuning.choice = selection.offers.front().choice;
    for (const auto& [choice, us] : selection.measured) {
      if (choice == tuning.choice) tuning.us = us;
    }
    tuning.measured = selection.measured;
    tuning.estimated_us = selection.estimated;
    tunings.push_back(std::move(tuning));
  }
  return tunings;
}

std::vector<StepFacts> PlanRun::step_facts(const std::vector<StepTuning>& tunings) const {
  std::vector<StepFacts> facts(kernels_.size());
  for (size_t i = 0; has_run_ && i < kernels_.size(); ++i) {
    if (const CallRun* call = call_of(i)) facts[i] = call->facts();
    if (kernels_[i] == nullptr) continue;
    const cpu::Selection selection = kernels_[i]->selection(symbols_, tune_);
    const auto tuning = std::find_if(tunings.begin(), tunings.end(),
                                     [&](const StepTuning& other) { return other.step == i; });
    facts[i] = facts_of(selection.offers, tuning == tunings.end() ? nullptr : &*tuning);
    facts[i].bytes = step_bytes(*program_, i, symbols_);
  }
  return facts;
}

}  // namespace redfuser::runtime
