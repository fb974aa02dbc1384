// Generated kernels without a GPU: what a model's plan becomes, and what NVRTC says to it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "codegen/device_program.h"
#include "redfuser/redfuser.h"
#include "runtime/compiled_program.h"

namespace redfuser::codegen_tests {

struct GeneratedModel {
  int launches = 0, products = 0;  // with sizes of 128 for every symbol
  std::vector<KernelLaunch> kernels;
};

inline GeneratedModel generate_model(const std::string& path, const Target& target = {}) {
  CompileOptions options;
  options.certify = false;
  const Program program = compile(Model::load(path), options);
  const CompiledProgram& compiled = *program.handle();
  const std::vector<int64_t> symbols(compiled.symbol_names.size() + 1024, 128);
  GeneratedModel result;
  for (const Step& step : compiled.plan.steps) {
    for (const DeviceCall& call : generate(compiled.graph(), step, target).calls) {
      if (const auto* launch = std::get_if<KernelLaunch>(&call)) {
        result.launches += evaluate_size(launch->grid[0], symbols) > 0;
        result.kernels.push_back(*launch);
      } else {
        ++result.products;
      }
    }
  }
  return result;
}

// NVRTC with the assembler's report. Found on the loader's path or in /usr/local/cuda.
class Compiler {
 public:
  static Compiler* find() {
    static Compiler compiler;
    return compiler.library_ ? &compiler : nullptr;
  }

  struct Result {
    bool compiled = false;
    int spilled = 0;  // bytes
    std::string log;
  };
  Result compile(const std::string& source, const std::string& architecture) {
    void* program = nullptr;
    Result result;
    if (create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return result;
    const std::string target = "--gpu-architecture=" + architecture;
    const char* options[] = {target.c_str(), "--std=c++17", "--ptxas-options=-v"};
    result.compiled = compile_(program, 3, options) == 0;
    size_t size = 0;
    log_size_(program, &size);
    result.log.resize(size);
    log_(program, result.log.data());
    destroy_(&program);
    static const std::regex spill("(\\d+) bytes spill stores");
    for (std::sregex_iterator at(result.log.begin(), result.log.end(), spill), end; at != end;
         ++at) {
      result.spilled += std::stoi((*at)[1]);
    }
    return result;
  }

 private:
  Compiler() {
    for (const char* name :
         {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library_) break;
    }
    if (!library_) return;
    bind(create_, "nvrtcCreateProgram");
    bind(compile_, "nvrtcCompileProgram");
    bind(log_size_, "nvrtcGetProgramLogSize");
    bind(log_, "nvrtcGetProgramLog");
    bind(destroy_, "nvrtcDestroyProgram");
  }
  template <typename F>
  void bind(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
  }

  void* library_ = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_)(void*, int, const char* const*);
  int (*log_size_)(void*, size_t*);
  int (*log_)(void*, char*);
  int (*destroy_)(void**);
};

// Every distinct source compiles for the architecture and spills at most `spill` bytes.
inline void expect_compiles(const std::vector<KernelLaunch>& kernels,
                            const std::string& architecture, int spill = 0) {
  Compiler* compiler = Compiler::find();
  ASSERT_NE(compiler, nullptr);
  std::set<std::string> seen;
  for (const KernelLaunch& kernel : kernels) {
    if (!seen.insert(kernel.source).second) continue;
    const Compiler::Result result = compiler->compile(kernel.source, architecture);
    EXPECT_TRUE(result.compiled) << architecture << " " << kernel.name << "\n"
                                 << result.log << kernel.source;
    EXPECT_LE(result.spilled, spill) << architecture << " " << kernel.name << "\n"
                                     << kernel.source.substr(0, 2000);
  }
}

}  // namespace redfuser::codegen_tests
