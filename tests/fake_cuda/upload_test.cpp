// Weights on their way to the GPU of fake_cuda.h, whose memory is the host's.
#include <cstring>

#include "base/deferred_contents.h"
#include "fake_cuda/device_harness.h"
#include "runtime/load/upload.h"

namespace redfuser::device_tests {
namespace {

int number_at(size_t tensor, int64_t element) {
  return static_cast<int>(element * 31 + static_cast<int64_t>(tensor) * 1000003);
}

class Numbers : public DeferredContents {
 public:
  explicit Numbers(size_t tensor) : tensor_(tensor) {}
  void write(size_t offset, size_t bytes, char* to) const override {
    for (size_t i = 0; i < bytes / 4; ++i) {
      const int number = number_at(tensor_, static_cast<int64_t>(offset / 4 + i));
      std::memcpy(to + 4 * i, &number, 4);
    }
  }

 private:
  size_t tensor_;
};

Tensor tensor_of(size_t number, int64_t size, bool deferred) {
  if (deferred) {
    return Tensor::deferred(DType::Int32, {size}, std::make_shared<Numbers>(number));
  }
  Tensor tensor(DType::Int32, {size});
  for (int64_t i = 0; i < size; ++i) tensor.as<int>()[i] = number_at(number, i);
  return tensor;
}

class Upload : public FakeGpu {
 protected:
  // Sizes in elements; every second tensor is deferred.
  void expect_upload(const std::vector<int64_t>& sizes) {
    const cuda::DevicePtr device = cuda::Device::open();
    std::vector<runtime::Placed> placed;
    int64_t bytes = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      placed.push_back({tensor_of(i, sizes[i], i % 2 == 1), bytes});
      bytes += (4 * sizes[i] + 255) / 256 * 256;
    }
    const cuda::Buffer memory(device, bytes, "weights");
    upload(device, memory, placed, 3);
    const char* base = reinterpret_cast<const char*>(memory.address());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int* there = reinterpret_cast<const int*>(base + placed[i].offset);
      for (int64_t e = 0; e < sizes[i]; ++e) {
        ASSERT_EQ(there[e], number_at(i, e)) << "tensor " << i << ", element " << e;
      }
    }
  }
};

TEST_F(Upload, FewBytesGoAtOnce) {
  expect_upload({5, 1000, 0, 64});
  EXPECT_EQ(gpu->pinned, 0);
}

TEST_F(Upload, ManyPassThroughPageLockedBuffers) {
  expect_upload({5, 3 << 20, 1000003, 77, 0, 64, 2 << 20, 1 << 20, 1, 999});
  EXPECT_EQ(gpu->pinned, 1);
  EXPECT_EQ(gpu->to_device, 7) << "28.6 MB in pieces of 4 MiB";
}

}  // namespace
}  // namespace redfuser::device_tests
