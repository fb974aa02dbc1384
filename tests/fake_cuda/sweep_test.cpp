// Kernels of many sizes start: those of redfuser-bench --sweep on a driver that refuses what a real
// one refuses, their static shared memory as the launches say (SweepCompile has that from the
// assembler).
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "bench_sweep.h"
#include "codegen/core/kernel_config.h"
#include "codegen/joined/joined_steps.h"
#include "codegen/orders/memory_orders.h"
#include "cuda/driver.h"
#include "fake_cuda/device_harness.h"
#include "runtime/gpu/bound/program.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::device_tests {
namespace {

using tools::SweepCase;

class Sweep : public FakeGpu {
 protected:
  Sweep() {
    gpu->memory = size_t{1} << 46;
    gpu->moves_bytes = false;
    gpu->static_shared = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      const auto found = static_bytes_.find(std::hash<std::string>()(text));
      if (found == static_bytes_.end()) ADD_FAILURE() << "a text of nobody:\n" << text;
      return found == static_bytes_.end() ? 0 : found->second;
    };
  }

  codegen::Target target() const { return {runtime::machine_of(cuda::Device::open()->info())}; }

  void note(const codegen::GpuStep& step) {
    for (const codegen::GpuCall& call : step.calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr) continue;
      const std::lock_guard lock(mutex_);
      static_bytes_[std::hash<std::string>()(launch->source)] = launch->static_shared;
    }
  }

  // Launch limits from the texts of the default and of every choice. The order of an expression's
  // terms follows from what the graph's pool has had before: the defaults have a pool, and so have
  // the choices that are loaded together.
  void note(const Program& program, bool choices) {
    const runtime::CompiledProgram& compiled = *program.handle();
    const fuse::Plan& plan = compiled.plan;
    codegen::Target placed = target();
    codegen::place_values(placed, plan, {}, {});
    const codegen::JoinedSteps joined(clone(compiled.graph()), plan, placed, {});
    const auto each_step = [&](const auto& visit) {
      const ir::Graph graph = clone(compiled.graph());
      for (size_t i = 0; i < plan.steps.size(); ++i) {
        if (!std::holds_alternative<fuse::AliasStep>(plan.steps[i].kind)) visit(graph, i);
      }
    };
    each_step([&](const ir::Graph& graph, size_t step) {
      note(joined.generate(graph, plan, step, placed));
    });
    if (!choices) return;
    const ir::Graph configured = clone(compiled.graph());
    each_step([&](const ir::Graph& together, size_t step) {
      for (const auto& [choice, time] : joined.kernel_configs(configured, plan, step, placed, {})) {
        note(joined.generate(together, plan, step, placed, choice));
        note(joined.generate(clone(compiled.graph()), plan, step, placed, choice));
      }
    });
  }

  using Sizes = std::map<std::string, int64_t>;  // by symbol

  // Memory that nobody touches.
  static NamedDeviceTensors tensors_of(const std::vector<ValueInfo>& values, uint64_t first,
                                       const Sizes& sizes) {
    NamedDeviceTensors result;
    for (const ValueInfo& value : values) {
      DeviceTensor& tensor = result[value.name];
      tensor.dtype = value.dtype;
      for (const auto& dim : value.dims) {
        tensor.dims.push_back(dim.size < 0 ? sizes.at(dim.symbol) : dim.size);
      }
      tensor.data = reinterpret_cast<void*>(first);
      first += uint64_t{1} << 40;
    }
    return result;
  }

  // A program once for each of these sizes.
  void launch(const std::string& name, const std::string& text, const std::vector<Sizes>& runs) {
    const Model model = Model::parse(text);
    CompileOptions quick;
    quick.certify = false;
    const Program program = compile(model, quick);
    note(program, options.tune);
    Sizes last;
    try {
      Session session(program, options);
      for (const Sizes& sizes : runs) {
        last = sizes;
        session.enqueue(tensors_of(model.inputs(), uint64_t{1} << 44, sizes),
                        tensors_of(model.outputs(), uint64_t{1} << 45, sizes), nullptr);
      }
      for (const std::string& note : session.notes()) {
        EXPECT_FALSE(note.starts_with("warning")) << name << ": " << note;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ": " << error.what();
      for (const auto& [symbol, size] : last) ADD_FAILURE() << symbol << " = " << size;
    }
  }
  void launch(const SweepCase& sweep_case) {
    launch(sweep_case.name, sweep_case.model(), {Sizes()});
  }

  void launch_all(const std::vector<SweepCase>& cases) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1u); ++i) {
      threads.emplace_back([&] {
        for (size_t c = next++; c < cases.size(); c = next++) launch(cases[c]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(gpu->refusals.empty()) << fmt::format("{}", fmt::join(gpu->refusals, "\n"));
    EXPECT_GT(gpu->launches.size(), 0u);
  }

  std::mutex mutex_;
  std::unordered_map<size_t, int> static_bytes_;  // by the hash of the text
};

// Half of all kinds, for every number of rows, length, type and number of tensors.
TEST_F(Sweep, Rows) {
  const std::vector<SweepCase> all = tools::row_sweep();
  std::vector<SweepCase> cases;
  for (size_t i = 0; i < all.size(); i += 2) cases.push_back(all[i]);
  launch_all(cases);
}

// The first k of a row, of one size and of sizes of run time.
TEST_F(Sweep, Ranks) {
  const std::string head = "<ir_version: 9, opset_import: [\"\" : 20]> ";
  for (const char* type : {"float", "float16", "int64"}) {
    for (const int64_t k : {1, 8, 50, 200, 1024}) {
      const auto graph = [&](const std::string& rows, const std::string& length) {
        return fmt::format(
            "{0}g ({1}[{2},{3}] x) => ({1}[{2},{4}] y, int64[{2},{4}] i) {{ "
            "k = Constant<value = int64[1] {{{4}}}>() y, i = TopK<axis = 1>(x, k) }}",
            head, type, rows, length, k);
      };
      std::vector<Sizes> runs;
      for (const int64_t length : {k, int64_t{1024}, int64_t{1025}, int64_t{32001}}) {
        for (const int64_t rows : {0, 1, 131, 132, 5000}) {
          runs.push_back({{"m", rows}, {"n", length}});
          launch(fmt::format("{} of {}x{} {}", k, rows, length, type),
                 graph(std::to_string(rows), std::to_string(length)), {Sizes()});
        }
      }
      launch(fmt::format("{} of open {}", k, type), graph("m", "n"), runs);
    }
  }
  EXPECT_TRUE(gpu->refusals.empty()) << fmt::format("{}", fmt::join(gpu->refusals, "\n"));
  EXPECT_GT(gpu->launches.size(), 0u);
}

TEST_F(Sweep, RowsOfAnyLength) {
  std::vector<Sizes> runs;
  for (const int64_t length : tools::row_lengths()) {
    for (const int64_t rows : {1, 333}) runs.push_back({{"m", rows}, {"n", length}});
  }
  for (const std::string& kind : tools::row_kinds()) {
    for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32}) {
      for (const int terms : {1, 2, 3, 4}) {
        launch(kind, tools::row_model(kind, {0, 0, dtype, terms, true}), runs);
        EXPECT_GE(gpu->launches.size() + static_cast<size_t>(gpu->recorded), runs.size());
        gpu->launches.clear();
        gpu->recorded = 0;
      }
    }
  }
  EXPECT_TRUE(gpu->refusals.empty()) << fmt::format("{}", fmt::join(gpu->refusals, "\n"));
}

TEST_F(Sweep, Layouts) { launch_all(sampled(tools::layout_sweep(), 600, 1)); }

TEST_F(Sweep, Attention) { launch_all(sampled(tools::attention_sweep(), 2500, 1)); }

TEST_F(Sweep, Products) { launch_all(tools::product_sweep()); }

TEST_F(Sweep, OtherGpus) {
  for (const int architecture : {80, 89, 100}) {
    gpu->architecture = architecture;
    launch_all(sampled(tools::row_sweep(), 500, 2));
    launch_all(sampled(tools::layout_sweep(), 200, 2));
    launch_all(sampled(tools::attention_sweep(), 300, 2));
  }
}

TEST_F(Sweep, EveryChoice) {
  options.tune = true;
  launch_all(sampled(tools::row_sweep(), 150, 3));
  launch_all(sampled(tools::layout_sweep(), 100, 3));
  launch_all(sampled(tools::attention_sweep(), 100, 3));
}

}  // namespace
}  // namespace redfuser::device_tests
