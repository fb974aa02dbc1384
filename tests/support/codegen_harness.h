// Generated kernels without a GPU: the kernels of a model's plan, and their compilation by NVRTC.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/core/target_table.h"
#include "codegen/orders/memory_orders.h"
#include "codegen/select/generate.h"
#include "cuda/kernel_cache.h"
#include "cuda/nvrtc.h"
#include "ir/evaluate.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"
#include "support/test_paths.h"

namespace redfuser::codegen_tests {

// One GPU of each compute capability that every kernel is compiled for.
inline const codegen::Target kTargets[] = {codegen::target_named("sm_80"),
                                           codegen::target_named("sm_90a"),
                                           codegen::target_named("sm_100a")};

inline std::string target_name(const ::testing::TestParamInfo<codegen::Target>& info) {
  return cuda::architecture_name(info.param.architecture);
}

struct GeneratedModel {
  // With sizes of 128 for every symbol, but for products: the library's, at any size.
  int launches = 0, products = 0, run_products = 0;
  std::vector<codegen::KernelLaunch> kernels;
  std::vector<codegen::ProductCall> product_calls;
  std::shared_ptr<const ir::ExprPool> pool;  // of their sizes
};

inline GeneratedModel generate_model(const Model& model, const codegen::Target& machine = {}) {
  CompileOptions options;
  options.certify = false;
  const Program program = compile(model, options);
  const runtime::CompiledProgram& compiled = *program.handle();
  const std::vector<int64_t> symbols(compiled.symbol_names.size() + 1024, 128);
  const ir::Graph graph = clone(compiled.graph());
  codegen::Target target = machine;
  target.orders =
      std::make_shared<codegen::MemoryOrders>(codegen::memory_orders(compiled.plan, {}));
  GeneratedModel result;
  result.pool = graph.pool;
  for (const fuse::Step& step : compiled.plan.steps) {
    for (const codegen::GpuCall& call : generate(graph, step, target).calls) {
      if (const auto* launch = std::get_if<codegen::KernelLaunch>(&call)) {
        result.launches += evaluate_size(launch->grid[0], symbols) > 0;
        result.kernels.push_back(*launch);
      } else {
        const auto& product = std::get<codegen::ProductCall>(call);
        ++result.products;
        result.run_products +=
            evaluate_size(product.batch, symbols) > 0 && evaluate_size(product.m, symbols) > 0;
        result.product_calls.push_back(product);
      }
    }
  }
  return result;
}

inline GeneratedModel generate_model(const std::string& path, const codegen::Target& target = {}) {
  return generate_model(Model::load(path), target);
}

// NVRTC with the assembler's report. Found where sessions find it, or among the packages of the
// tests' Python.
class Compiler {
 public:
  static Compiler* find() {
    static Compiler compiler;
    return compiler.destroy_ ? &compiler : nullptr;
  }

  struct Result {
    bool compiled = false;
    int spilled = 0, stack = 0;  // bytes; spilled registers are on the stack too
    int shared = 0;              // static shared memory, bytes
    std::string log;
  };
  std::string version() const {
    int major = 0, minor = 0;
    version_(&major, &minor);
    return std::to_string(major) + "." + std::to_string(minor);
  }
  // `architecture` is a compute capability times ten; the options are those of sessions.
  Result compile(const std::string& source, int architecture) {
    void* program = nullptr;
    Result result;
    if (create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return result;
    std::vector<std::string> options = cuda::compile_options(architecture);
    options.emplace_back("--ptxas-options=-v");
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    result.compiled = compile_(program, static_cast<int>(texts.size()), texts.data()) == 0;
    size_t size = 0;
    log_size_(program, &size);
    result.log.resize(size);
    log_(program, result.log.data());
    destroy_(&program);
    read_log(result);
    return result;
  }

  // Adds up ptxas' figures of every function in the log.
  static void read_log(Result& result) {
    static const std::regex frame("(\\d+) bytes stack frame, (\\d+) bytes spill stores");
    for (std::sregex_iterator at(result.log.begin(), result.log.end(), frame), end; at != end;
         ++at) {
      result.stack += std::stoi((*at)[1]);
      result.spilled += std::stoi((*at)[2]);
    }
    static const std::regex shared("(\\d+) bytes smem");
    for (std::sregex_iterator at(result.log.begin(), result.log.end(), shared), end; at != end;
         ++at) {
      result.shared += std::stoi((*at)[1]);
    }
  }

 private:
  Compiler() {
    if (!open()) {
      setenv("REDFUSER_CUDA_LIBRARIES", test_paths::python(), 0);
      open();
    }
  }
  bool open() try {
    const cuda::Library library(cuda::nvrtc_library());
    library.bind(version_, "nvrtcVersion");
    library.bind(create_, "nvrtcCreateProgram");
    library.bind(compile_, "nvrtcCompileProgram");
    library.bind(log_size_, "nvrtcGetProgramLogSize");
    library.bind(log_, "nvrtcGetProgramLog");
    library.bind(destroy_, "nvrtcDestroyProgram");
    return true;
  } catch (const UserError&) {
    return false;
  }

  int (*version_)(int*, int*) = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*compile_)(void*, int, const char* const*) = nullptr;
  int (*log_size_)(void*, size_t*) = nullptr;
  int (*log_)(void*, char*) = nullptr;
  int (*destroy_)(void**) = nullptr;
};

// A kernel of a template with a functor written by hand compiles, and all its values are in
// registers.
inline void expect_in_registers(const std::string& text, int architecture,
                                const std::string& name) {
  const Compiler::Result result = Compiler::find()->compile(text, architecture);
  ASSERT_TRUE(result.compiled) << name << "\n" << result.log;
  EXPECT_EQ(result.spilled, 0) << name << "\n" << result.log;
  EXPECT_EQ(result.stack, 0) << name << "\n" << result.log;
}

// ptxas' figures of every text, in order. `origins` by text is for errors. Logs are kept as a cache
// keeps machine code.
inline std::vector<Compiler::Result> compile_all(const std::map<std::string, std::string>& origins,
                                                 int architecture) {
  Compiler* compiler = Compiler::find();
  std::vector<cuda::KernelSource> texts;
  for (const auto& [text, origin] : origins) texts.push_back({text});
  cuda::KernelCache cache({cuda::CacheMode::On, test_paths::cache()},
                          {"logs", compiler->version(), cuda::architecture_name(architecture)});
  const std::vector<std::string> logs =
      cache.get(texts, [&](const std::string& text, const std::string&) {
        const Compiler::Result result = compiler->compile(text, architecture);
        if (!result.compiled) user_error("{}:\n{}{}", origins.at(text), result.log, text);
        return result.log;
      });
  std::printf("%zu kernels, %d compiled in %.1f s\n", texts.size(), cache.compiled(),
              cache.seconds());
  std::vector<Compiler::Result> results;
  for (const std::string& log : logs) {
    results.emplace_back().log = log;
    Compiler::read_log(results.back());
  }
  return results;
}

// Every distinct source compiles for the architecture and spills at most `spill` bytes.
inline void expect_compiles(const std::vector<codegen::KernelLaunch>& kernels, int architecture,
                            int spill = 0) {
  Compiler* compiler = Compiler::find();
  ASSERT_NE(compiler, nullptr);
  std::set<std::string> seen;
  for (const codegen::KernelLaunch& kernel : kernels) {
    if (!seen.insert(kernel.source).second) continue;
    const Compiler::Result result = compiler->compile(kernel.source, architecture);
    EXPECT_TRUE(result.compiled) << architecture << " " << kernel.name << "\n"
                                 << result.log << kernel.source;
    EXPECT_EQ(result.log.find("instructions are serialized"), std::string::npos)
        << architecture << " " << kernel.name << "\n"
        << result.log;
    EXPECT_LE(result.spilled, spill) << architecture << " " << kernel.name << "\n"
                                     << kernel.source.substr(0, 2000);
  }
}

}  // namespace redfuser::codegen_tests
