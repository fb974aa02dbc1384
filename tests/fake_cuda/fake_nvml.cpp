// libnvidia-ml.so.1 of fake_cuda.h.
#include <string>

#include "fake_cuda/fake_cuda.h"

using namespace redfuser::device_tests;

namespace {
constexpr int kSuccess = 0, kInvalidArgument = 2, kNotFound = 6;
}

extern "C" {

FakeCuda* fake_cuda();

int nvmlInit_v2() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  if (fake_cuda()->bus != bus) return kNotFound;
  return *device = fake_cuda(), kSuccess;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned* mhz) {
  if (which != 1 && which != 2) return kInvalidArgument;
  return *mhz = which == 1 ? fake_cuda()->sm_mhz : fake_cuda()->memory_mhz, kSuccess;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  return *celsius = fake_cuda()->temperature_c, kSuccess;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  return *milliwatts = fake_cuda()->power_mw, kSuccess;
}

}  // extern "C"
