#include "cuda/nvrtc.h"

#include <algorithm>

#include "base/error.h"

namespace redfuser::cuda {
namespace {

using Status = int;           // nvrtcResult
using ProgramHandle = void*;  // nvrtcProgram

struct NvrtcApi {
  Status (*nvrtcVersion)(int*, int*);
  const char* (*nvrtcGetErrorString)(Status);
  Status (*nvrtcCreateProgram)(ProgramHandle*, const char*, const char*, int, const char* const*,
                               const char* const*);
  Status (*nvrtcDestroyProgram)(ProgramHandle*);
  Status (*nvrtcCompileProgram)(ProgramHandle, int, const char* const*);
  Status (*nvrtcGetProgramLogSize)(ProgramHandle, size_t*);
  Status (*nvrtcGetProgramLog)(ProgramHandle, char*);
  Status (*nvrtcGetCUBINSize)(ProgramHandle, size_t*);
  Status (*nvrtcGetCUBIN)(ProgramHandle, char*);
};

NvrtcApi load_nvrtc() {
  const Library library(nvrtc_library());
  NvrtcApi api;
#define RF_BIND(name) library.bind(api.name, #name)
  RF_BIND(nvrtcVersion);
  RF_BIND(nvrtcGetErrorString);
  RF_BIND(nvrtcCreateProgram);
  RF_BIND(nvrtcDestroyProgram);
  RF_BIND(nvrtcCompileProgram);
  RF_BIND(nvrtcGetProgramLogSize);
  RF_BIND(nvrtcGetProgramLog);
  RF_BIND(nvrtcGetCUBINSize);
  RF_BIND(nvrtcGetCUBIN);
#undef RF_BIND
  return api;
}

const NvrtcApi& nvrtc() {
  static const NvrtcApi api = load_nvrtc();
  return api;
}

void check(Status status, const char* what) {
  if (status != 0) internal_error("NVRTC, {}: {}", what, nvrtc().nvrtcGetErrorString(status));
}

class SourceProgram {
 public:
  SourceProgram(const std::string& source, const std::string& path) {
    check(nvrtc().nvrtcCreateProgram(&handle, source.c_str(), path.c_str(), 0, nullptr, nullptr),
          "reading a kernel");
  }
  ~SourceProgram() { nvrtc().nvrtcDestroyProgram(&handle); }
  SourceProgram(const SourceProgram&) = delete;

  std::string log() const {
    size_t size = 0;
    if (nvrtc().nvrtcGetProgramLogSize(handle, &size) != 0 || size <= 1) return "";
    std::string text(size, '\0');
    nvrtc().nvrtcGetProgramLog(handle, text.data());
    text.resize(size - 1);
    return text;
  }

  ProgramHandle handle = nullptr;
};

}  // namespace

LibraryNames nvrtc_library() {
  return {"NVRTC, CUDA's run-time compiler",
          {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
          {"libnvrtc-builtins.so."}};
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check(nvrtc().nvrtcVersion(&major, &minor), "reading its version");
  return fmt::format("{}.{}", major, minor);
}

std::string architecture_name(int architecture) {
  return fmt::format("sm_{}{}", architecture, architecture >= 90 ? "a" : "");
}

std::vector<std::string> compile_options(int architecture) {
  return {"--gpu-architecture=" + architecture_name(architecture), "--std=c++17"};
}

std::string compile(const std::string& source, const std::vector<std::string>& options,
                    const std::string& path) {
  const SourceProgram program(source, path);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const Status status =
      nvrtc().nvrtcCompileProgram(program.handle, static_cast<int>(texts.size()), texts.data());
  if (status != 0) {
    internal_error("a kernel does not compile ({}); its source is {}\n{}",
                   nvrtc().nvrtcGetErrorString(status), path, program.log());
  }
  size_t size = 0;
  check(nvrtc().nvrtcGetCUBINSize(program.handle, &size), "reading machine code");
  std::string cubin(size, '\0');
  check(nvrtc().nvrtcGetCUBIN(program.handle, cubin.data()), "reading machine code");
  return cubin;
}

}  // namespace redfuser::cuda
