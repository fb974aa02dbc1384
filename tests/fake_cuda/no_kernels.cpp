// Kernels of the fake driver are counted, not run.
#include "fake_cuda/kernels.h"

namespace redfuser::device_tests {

bool runs_kernels() { return false; }
std::shared_ptr<KernelCode> load_code(const void*) { return nullptr; }
int first_architecture() { return 90; }
void write_map(const MapArguments&) {}

}  // namespace redfuser::device_tests
