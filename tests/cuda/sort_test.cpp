// Rows sorted by several blocks against a stable sort on the host; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "io/element.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/ranked_rows.h"
#include "support/sort_cases.h"

namespace redfuser {
namespace {

using testing::drawn;
using testing::kSortCases;
using testing::set_element;
using testing::sort_graph;
using testing::SortCase;

class CudaSort : public ::testing::TestWithParam<SortCase> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

// NaN first, then by value, equal values by position. `at(j)` is element j of a line.
template <typename At>
std::vector<int64_t> ranked(int64_t length, bool largest, At at) {
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto x = at(a), y = at(b);
    if (x != x || y != y) return x != x && y == y;
    return largest ? x > y : x < y;
  });
  return order;
}

std::vector<double> doubles(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.size(); ++i) result.push_back(io::element_as_double(tensor, i));
  return result;
}

void expect_ranked(const SortCase& c, const std::vector<double>& x, const std::vector<double>& y,
                   const Tensor& i, int64_t rows, int64_t length, int64_t k) {
  for (int64_t row = 0; row < rows; ++row) {
    const auto place = [&](int64_t j, int64_t size) {
      return c.columns ? j * rows + row : row * size + j;
    };
    const auto order = ranked(length, c.largest,
                              [&](int64_t j) { return x[static_cast<size_t>(place(j, length))]; });
    int64_t wrong = 0;
    for (int64_t rank = 0; rank < k; ++rank) {
      const int64_t at = i.as<int64_t>()[place(rank, k)];
      const double expected =
          x[static_cast<size_t>(place(order[static_cast<size_t>(rank)], length))];
      const double got = y[static_cast<size_t>(place(rank, k))];
      wrong += at != order[static_cast<size_t>(rank)];
      wrong += !(got == expected || (got != got && expected != expected));
    }
    EXPECT_EQ(wrong, 0) << "row " << row << " of " << rows << " x " << length << ", k " << k;
  }
}

TEST_P(CudaSort, AgreesWithAStableSort) {
  const SortCase& c = GetParam();
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  struct Size {
    int64_t rows, length, k;
  };
  for (const Size& size : {Size{6, 20001, 20001}, Size{6, 70000, 30000}, Size{1, 300000, 300000}}) {
    const Program program = compile(Model::parse(sort_graph(c, size.rows, size.length, size.k)));
    Session gpu(program, on_gpu);
    Tensor x(c.dtype, c.columns ? Dims{size.length, size.rows} : Dims{size.rows, size.length});
    std::mt19937_64 generator(static_cast<uint64_t>(size.length));
    for (int64_t row = 0; row < size.rows; ++row) {
      for (int64_t j = 0; j < size.length; ++j) {
        set_element(x, c.columns ? j * size.rows + row : row * size.length + j,
                    drawn(generator, row, j, size.length));
      }
    }
    const NamedTensors got = gpu.run({{"x", x}});
    expect_ranked(c, doubles(x), doubles(got.at("y")), got.at("i"), size.rows, size.length, size.k);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaSort, ::testing::ValuesIn(kSortCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
