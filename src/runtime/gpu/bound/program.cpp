#include "runtime/gpu/bound/program.h"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>

#include "base/deferred_contents.h"
#include "base/error.h"
#include "codegen/orders/memory_orders.h"
#include "ir/evaluate.h"
#include "runtime/gpu/bound/arena.h"
#include "runtime/load/fallback.h"
#include "runtime/load/loader.h"
#include "runtime/load/open_gpu.h"
#include "runtime/load/reorder.h"

namespace redfuser::runtime {

namespace {

constexpr int kOldestArchitecture = 80;

size_t index(int64_t id) { return static_cast<size_t>(id); }

bool multiplies(const CompiledProgram& program) {
  const std::vector<fuse::Step>& steps = program.plan.steps;
  return std::any_of(steps.begin(), steps.end(), [](const fuse::Step& step) {
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    return product != nullptr && !product->of_integers();
  });
}

// Whether a product has operands of 8-bit floats.
bool multiplies_codes(const CompiledProgram& program) {
  const std::vector<fuse::Step>& steps = program.plan.steps;
  return std::any_of(steps.begin(), steps.end(), [](const fuse::Step& step) {
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    return product != nullptr && is_low_bit_float(product->a->dtype);
  });
}

// REDFUSER_KERNELS=portable.
bool portable_kernels() {
  const char* family = std::getenv("REDFUSER_KERNELS");
  return family != nullptr && std::string_view(family) == "portable";
}

// What tuning tries may call the library where the default does not.
std::unique_ptr<cuda::ProductLibrary> library_if_found(const cuda::DevicePtr& device) {
  try {
    return std::make_unique<cuda::ProductLibrary>(device);
  } catch (const UserError&) {
    return nullptr;
  }
}

void check_weights(int64_t bytes, int64_t memory_limit) {
  if (memory_limit > 0 && bytes > memory_limit) {
    user_error("the model's weights take {} bytes of GPU memory, above the limit of {}", bytes,
               memory_limit);
  }
}

}  // namespace

select::Machine machine_of(const cuda::DeviceInfo& info) {
  select::Machine machine = select::machine_like(info.architecture);
  machine.architecture = info.architecture;
  machine.multiprocessors = info.multiprocessors;
  machine.shared_bytes = info.shared_bytes;
  if (info.l2_bytes > 0) machine.l2_bytes = info.l2_bytes;
  if (info.sm_mhz > 0) machine.clock = info.sm_mhz;
  if (info.memory_rate > 0) machine.dram_rate = select::kMemoryEfficiency * info.memory_rate;
  return machine;
}

void visit_buffers(const codegen::GpuStep& step,
                   const std::function<void(const codegen::BufferRef&)>& visit) {
  for (const codegen::GpuCall& call : step.calls) {
    if (const auto* launch = std::get_if<codegen::KernelLaunch>(&call)) {
      for (const codegen::TmaView& view : launch->views) visit(view.buffer);
      for (const codegen::BufferRef& buffer : launch->buffers) visit(buffer);
    } else {
      const auto& product = std::get<codegen::ProductCall>(call);
      visit(product.a);
      visit(product.b);
      visit(product.c);
      visit(product.bias);
      visit(product.addend);
      visit(product.a_scale);
      visit(product.b_scale);
    }
  }
}

GpuProgram::GpuProgram(std::shared_ptr<const CompiledProgram> program,
                       const SessionOptions& options)
    : program_(std::move(program)),
      host_(*program_),
      device_(open_gpu(multiplies(*program_))),
      tf32_(options.tf32) {
  target_.exact_masks = options.exact_masks;
  target_.exact_products = options.exact_products;
  const cuda::DeviceInfo& info = device_->info();
  if (info.architecture < kOldestArchitecture) {
    user_error("{} has compute capability {}.{}; --device cuda needs {}.{} or newer", info.name,
               info.architecture / 10, info.architecture % 10, kOldestArchitecture / 10,
               kOldestArchitecture % 10);
  }
  std::vector<codegen::GpuStep> forms = generate_steps();
  if (std::any_of(forms.begin(), forms.end(), calls_products)) {
    products_ = std::make_unique<cuda::ProductLibrary>(device_);
  }
  if (options.tune && products_ == nullptr) products_ = library_if_found(device_);
  const std::vector<Placed> constants = place_constants(forms, options.memory_limit);
  // Copied while kernels are loaded.
  std::future<void> uploaded = std::async(std::launch::async, [&] {
    device_->make_current();
    upload(device_, constant_memory_, constants, options.threads);
  });
  load_steps(std::move(forms), options);
  find_produced_outputs();
  uploaded.get();
}

std::vector<codegen::GpuStep> GpuProgram::generate_steps() {
  static_cast<select::Machine&>(target_) = machine_of(device_->info());
  target_.tf32 = tf32_;
  target_.portable = portable_kernels();
  if (multiplies_codes(*program_))
    target_.scaled_products = cuda::ProductLibrary::has_line_scales();
  const ir::Graph own = clone(graph());  // the program's takes no new expressions
  place_values();
  for (;;) {
    std::vector<codegen::GpuStep> forms = generate_steps(own);
    const codegen::Target before = target_;
    place_values();  // the CPU's steps take row-major values without room
    const bool same = target_.appends->size() == before.appends->size();
    if (same && *target_.orders == *before.orders) return forms;
  }
}

std::set<size_t> GpuProgram::steps_of_host() const {
  std::set<size_t> on_host;
  for (size_t i = 0; i < program_->plan.steps.size(); ++i) {
    if (host_.has(i)) on_host.insert(i);
  }
  return on_host;
}

void GpuProgram::place_values() {
  codegen::place_values(target_, program_->plan, program_->appends, steps_of_host());
}

Dims GpuProgram::memory_dims(ir::ValueId value, const std::vector<int64_t>& symbols) const {
  Dims dims = cpu::dims_of(graph(), value, symbols);
  if (const fuse::Append* append = target_.append_of(value)) {
    dims[append->axis] = symbols[static_cast<size_t>(append->room->integer)];
  }
  return dims;
}

std::vector<int64_t> GpuProgram::with_most(std::vector<int64_t> symbols) const {
  for (const auto& step : steps_) {
    const auto& found = step->form.found;
    if (!found) continue;
    int64_t& size = symbols[index(found->symbol->integer)];
    if (size < 0) size = ir::evaluate_size(found->most, symbols);
  }
  return symbols;
}

std::vector<codegen::GpuStep> GpuProgram::generate_steps(const ir::Graph& own) {
  std::vector<codegen::GpuStep> forms;
  joined_ = codegen::JoinedSteps(own, program_->plan, target_, steps_of_host());
  for (size_t i = 0; i < program_->plan.steps.size(); ++i) {
    const fuse::Step& step = program_->plan.steps[i];
    codegen::GpuStep& form = forms.emplace_back();
    if (std::holds_alternative<fuse::AliasStep>(step.kind) || host_.has(i)) continue;
    std::string refusal;
    try {
      form = joined_.generate(own, program_->plan, i, target_);
      if (host_.binds_sizes_of(form)) refusal = "a size in \"" + step.label + "\" depends on data";
    } catch (const UserError& error) {
      refusal = error.what();
    }
    if (refusal.empty()) continue;
    if (const codegen::JoinedGroup* group = joined_.group_of(i)) {
      // Again from the first step on, each by itself.
      const size_t first = group->steps.front();
      joined_.separate(i);
      forms.resize(first);
      i = first - 1;
      continue;
    }
    host_.take(i, refusal);
    form = {};
  }
  return forms;
}

void GpuProgram::load_steps(std::vector<codegen::GpuStep> forms, const SessionOptions& options) {
  KernelLoader loader(device_, options);
  std::vector<LoadedGpuStep> loaded = loader.load(std::move(forms));
  Fallback fallback(*program_, target_, joined_, loader);
  fallback.replace(loaded);
  for (LoadedGpuStep& step : loaded) {
    if (products_ == nullptr && calls_products(step.step->form)) {
      products_ = std::make_unique<cuda::ProductLibrary>(device_);
    }
    steps_.push_back(std::move(step.step));
  }
  notes_ = loader.take_notes();
  for (std::string& note : fallback.take_notes()) notes_.push_back(std::move(note));
}

std::vector<Placed> GpuProgram::place_constants(const std::vector<codegen::GpuStep>& forms,
                                                int64_t memory_limit) {
  // Equal storage is uploaded once in each order.
  std::map<std::pair<const void*, codegen::MemoryOrder>, int64_t> offsets;
  std::vector<Placed> placed;
  int64_t bytes = 0;
  auto add = [&](const codegen::BufferRef& buffer) {
    if (buffer.value < 0) return;
    const Tensor& tensor = graph().values[static_cast<size_t>(buffer.value)].constant;
    if (!tensor.defined()) return;
    const codegen::MemoryOrder* order = target_.order_of(buffer.value);
    const auto [found, added] =
        offsets.try_emplace({storage_of(tensor), order ? *order : codegen::MemoryOrder()}, bytes);
    constants_[buffer.value] = found->second;
    if (!added) return;
    placed.push_back({order ? reordered(tensor, *order) : tensor, bytes});
    bytes += aligned_bytes(static_cast<int64_t>(placed.back().tensor.bytes()));
  };
  for (const codegen::GpuStep& form : forms) visit_buffers(form, add);
  for (const fuse::Step& step : program_->plan.steps) {
    const auto* alias = std::get_if<fuse::AliasStep>(&step.kind);
    if (alias != nullptr && !host_.keeps(alias->value)) add({alias->source, -1});
  }
  check_weights(bytes, memory_limit);
  constant_memory_ = cuda::Buffer(device_, bytes, "the model's weights");
  return placed;
}

bool GpuProgram::has_large_steps() const {
  const std::vector<fuse::Step>& steps = program_->plan.steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const fuse::StepKind& kind = steps[i].kind;
    const bool large = std::holds_alternative<fuse::ProductStep>(kind) ||
                       std::holds_alternative<fuse::CascadeStep>(kind) ||
                       (std::holds_alternative<fuse::OpaqueStep>(kind) && !host_.finds(i));
    if (large && !host_.has(i)) return true;
  }
  return false;
}

void GpuProgram::check_limit(int64_t memory_limit) const {
  check_weights(constant_bytes(), memory_limit);
}

void GpuProgram::find_produced_outputs() {
  std::set<ir::ValueId> written;
  for (const fuse::Step& step : program_->plan.steps) {
    if (std::holds_alternative<fuse::AliasStep>(step.kind)) continue;
    written.insert(step.writes.begin(), step.writes.end());
  }
  for (const ir::ValueId output : graph().outputs) {
    if (written.count(program_->plan.root(output)) && !host_.keeps(output)) {
      produced_.insert(output);
    }
  }
}

cuda::DevicePointer GpuProgram::constant(ir::ValueId value) const {
  const auto placed = constants_.find(value);
  if (placed != constants_.end()) {
    return constant_memory_.address() + static_cast<uint64_t>(placed->second);
  }
  const std::lock_guard<std::mutex> lock(late_mutex_);
  cuda::Buffer& memory = late_constants_[value];
  if (memory.bytes() == 0) {
    const Tensor& tensor = graph().values[static_cast<size_t>(value)].constant;
    const codegen::MemoryOrder* order = target_.order_of(value);
    const Tensor ordered = order ? reordered(tensor, *order) : tensor;
    memory = cuda::Buffer(device_, static_cast<int64_t>(ordered.bytes()), "a weight");
    upload(device_, memory, {{ordered, 0}}, 1);
  }
  return memory.address();
}

namespace {

// Everything that a loaded program and the paths of its kernels depend on.
using ProgramKey =
    std::tuple<const CompiledProgram*, bool, bool, bool, bool, bool, cuda::CacheMode, std::string>;

ProgramKey key_of(const CompiledProgram* program, const SessionOptions& options) {
  const cuda::CacheOptions cache = cuda::resolved(cache_options(options));
  return {program,
          options.tf32,
          options.exact_products,
          options.exact_masks,
          options.tune,
          portable_kernels(),
          cache.mode,
          cache.folder};
}

// Programs of different keys are made at the same time.
struct ProgramSlot {
  std::mutex mutex;
  std::weak_ptr<const GpuProgram> program;
};

std::shared_ptr<ProgramSlot> slot_of(const ProgramKey& key) {
  static std::mutex mutex;
  static std::map<ProgramKey, std::shared_ptr<ProgramSlot>> slots;
  const std::lock_guard lock(mutex);
  // A program under construction has a second owner.
  std::erase_if(slots, [](const auto& entry) {
    const std::unique_lock idle(entry.second->mutex, std::try_to_lock);
    return idle && entry.second.use_count() == 1 && entry.second->program.expired();
  });
  auto& slot = slots[key];
  if (slot == nullptr) slot = std::make_shared<ProgramSlot>();
  return slot;
}

}  // namespace

std::shared_ptr<const GpuProgram> cuda_program(std::shared_ptr<const CompiledProgram> program,
                                               const SessionOptions& options) {
  const std::shared_ptr<ProgramSlot> slot = slot_of(key_of(program.get(), options));
  const std::lock_guard lock(slot->mutex);
  std::shared_ptr<const GpuProgram> result = slot->program.lock();
  if (result == nullptr) {
    result = std::make_shared<const GpuProgram>(program, options);
    slot->program = result;
  } else {
    result->check_limit(options.memory_limit);
  }
  return result;
}

}  // namespace redfuser::runtime
