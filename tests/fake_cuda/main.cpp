#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("REDFUSER_CUDA_LIBRARIES", REDFUSER_FAKE_CUDA, 1);
  setenv("NVTX_INJECTION64_PATH", REDFUSER_FAKE_CUDA "/libfake_nvtx.so", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
