// libnvrtc.so.13 of fake_cuda.h: machine code is the text itself. FAKE_NVRTC_FAILS in the
// environment lets those kernels fail whose text contains it.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr char kLog[] = "kernel.cu(1): error: a fake error";

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new std::string(source), 0;
}
int nvrtcDestroyProgram(void** program) { return delete static_cast<std::string*>(*program), 0; }
int nvrtcCompileProgram(void* program, int, const char* const*) {
  const char* part = std::getenv("FAKE_NVRTC_FAILS");
  const auto& text = *static_cast<std::string*>(program);
  return part != nullptr && text.find(part) != std::string::npos ? 6 : 0;
}
int nvrtcGetProgramLogSize(void*, size_t* size) { return *size = sizeof kLog, 0; }
int nvrtcGetProgramLog(void*, char* log) { return std::memcpy(log, kLog, sizeof kLog), 0; }
int nvrtcGetCUBINSize(void* program, size_t* size) {
  return *size = static_cast<std::string*>(program)->size(), 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  const auto& text = *static_cast<std::string*>(program);
  return std::memcpy(code, text.data(), text.size()), 0;
}

}  // extern "C"
