// libnvrtc.so.13 of the emulated GPU: the host's compiler makes a shared library of a kernel.
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "emulated_cuda/host_source.h"

namespace {

namespace fs = std::filesystem;

struct Program {
  std::string source, code, log;
};
Program& of(void* program) { return *static_cast<Program*>(program); }

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A number that changes with the emulation's sources.
int sources() {
  std::map<fs::path, std::string> texts;
  for (const fs::directory_entry& entry : fs::directory_iterator(REDFUSER_TESTS "/emulated_cuda")) {
    texts[entry.path()] = contents(entry.path());
  }
  size_t hash = 0;
  for (const auto& [path, text] : texts) hash = 31 * hash + std::hash<std::string>()(text);
  return static_cast<int>(hash % 1000000);
}

int architecture_of(int count, const char* const* options) {
  const std::string kOption = "--gpu-architecture=sm_";
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.starts_with(kOption)) return std::stoi(option.substr(kOption.size()));
  }
  return 80;
}

bool build(Program& program, int architecture, const fs::path& folder) {
  const fs::path source = folder / "kernel.cpp", library = folder / "kernel.so",
                 log = folder / "log";
  std::ofstream(source) << redfuser::emulated_cuda::host_source(program.source, architecture);
  const std::string command = REDFUSER_COMPILER " -shared -I" REDFUSER_TESTS " " + source.string() +
                              " -o " + library.string() + " > " + log.string() + " 2>&1";
  const bool built = std::system(command.c_str()) == 0;
  program.log = contents(log);
  if (built) program.code = contents(library);
  return built;
}

}  // namespace

extern "C" {

// Differs from every real NVRTC, and changes with the emulation's sources: the cache keeps kernels
// between runs.
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 1000 + sources(), 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new Program{source, {}, {}}, 0;
}
int nvrtcDestroyProgram(void** program) { return delete static_cast<Program*>(*program), 0; }
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  char folder[] = "/tmp/emulated_nvrtc_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 6;
  const bool built = build(of(program), architecture_of(count, options), folder);
  fs::remove_all(folder);
  return built ? 0 : 6;
}
int nvrtcGetProgramLogSize(void* program, size_t* size) {
  return *size = of(program).log.size() + 1, 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  return std::memcpy(log, of(program).log.c_str(), of(program).log.size() + 1), 0;
}
int nvrtcGetCUBINSize(void* program, size_t* size) { return *size = of(program).code.size(), 0; }
int nvrtcGetCUBIN(void* program, char* code) {
  return std::memcpy(code, of(program).code.data(), of(program).code.size()), 0;
}

}  // extern "C"
