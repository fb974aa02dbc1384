// Products by cuBLASLt in every layout, against the host; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/cublaslt.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

struct Case {
  int64_t batch, m, n, k;
  bool a_by_columns, b_by_columns, shared_b, bias, addend;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << (c.a_by_columns ? " aT" : "")
       << (c.b_by_columns ? " bT" : "") << (c.shared_b ? " shared b" : "")
       << (c.bias ? " bias" : "") << (c.addend ? " addend" : "");
}

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(seed >> 40) * 0x1p-23f - 1;
  }
  return values;
}

class CudaProduct : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    device_ = cuda::Device::open();
    stream_ = std::make_unique<cuda::Stream>(device_);
  }
  cuda::DevicePointer upload(const std::vector<float>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    buffers_.emplace_back(device_, bytes, "a test");
    stream_->to_device(buffers_.back().address(), values.data(), bytes);
    return buffers_.back().address();
  }

  cuda::DevicePtr device_;
  std::unique_ptr<cuda::Stream> stream_;
  std::vector<cuda::Buffer> buffers_;
};

TEST_P(CudaProduct, MatchesTheHost) {
  const Case p = GetParam();
  const int64_t b_batch = p.shared_b ? 0 : p.k * p.n;
  const auto a = numbers(p.batch * p.m * p.k, 1), b = numbers(p.batch * p.k * p.n, 2);
  const auto bias = numbers(p.n, 3), addend = numbers(p.batch * p.m * p.n, 4);
  cuda::Product product;
  product.batch = p.batch;
  product.m = p.m;
  product.n = p.n;
  product.k = p.k;
  product.a = {upload(a), p.a_by_columns ? 1 : p.k, p.a_by_columns ? p.m : 1, p.m * p.k};
  product.b = {upload(b), p.b_by_columns ? 1 : p.n, p.b_by_columns ? p.k : 1, b_batch};
  std::vector<float> c(addend.size(), NAN);
  product.c = {upload(c), p.n, 1, p.m * p.n};
  if (p.bias) product.bias = upload(bias);
  if (p.addend) product.addend = upload(addend);
  product.name = "test";
  const cuda::ProductLibrary library(device_);
  const cuda::Buffer workspace(device_, cuda::ProductLibrary::kWorkspaceBytes, "a test");
  library.prepare(product).run(*stream_, workspace.address());
  stream_->to_host(c.data(), product.c.data, static_cast<int64_t>(c.size() * sizeof(float)));
  stream_->synchronize();
  auto at = [](const std::vector<float>& values, int64_t i) {
    return static_cast<double>(values[static_cast<size_t>(i)]);
  };
  for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
    const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    double sum = (p.bias ? at(bias, column) : 0) + (p.addend ? at(addend, i) : 0);
    for (int64_t k = 0; k < p.k; ++k) {
      sum += at(a, batch * p.m * p.k + (p.a_by_columns ? k * p.m + row : row * p.k + k)) *
             at(b, batch * b_batch + (p.b_by_columns ? column * p.k + k : k * p.n + column));
    }
    ASSERT_NEAR(at(c, i), sum, 1e-4) << "element " << i;
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (int flags = 0; flags < 32; ++flags) {
    auto bit = [flags](int i) { return (flags >> i & 1) != 0; };
    list.push_back({2, 17, 24, 33, bit(0), bit(1), bit(2), bit(3), bit(4)});
  }
  // Vectors and single elements in every layout.
  for (const Case& size : {Case{1, 1, 1, 1}, Case{3, 1, 5, 7}, Case{3, 5, 1, 7}, Case{1, 6, 9, 1},
                           Case{2, 1, 1, 64}, Case{1, 4, 4, 0}, Case{1, 128, 64, 256}}) {
    for (int flags = 0; flags < 4; ++flags) {
      list.push_back({size.batch, size.m, size.n, size.k, (flags & 1) != 0, (flags & 2) != 0});
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Layout, CudaProduct, testing::ValuesIn(cases()));

}  // namespace
}  // namespace redfuser
