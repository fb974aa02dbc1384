// Operators that find the size of their results, on a GPU; skipped where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "redfuser/device.h"
#include "redfuser/error.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

using Random = std::mt19937;

Tensor flags(DType dtype, const Dims& dims, double fraction, Random& random) {
  std::bernoulli_distribution set(fraction);
  Tensor tensor(dtype, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (dtype == DType::Bool) {
      tensor.as<bool>()[i] = set(random);
    } else {
      tensor.as<float>()[i] = set(random) ? static_cast<float>(random() % 9) - 4 : -0.0f;
    }
  }
  return tensor;
}

Tensor one(DType dtype, double value) {
  Tensor tensor(dtype, {1});
  if (dtype == DType::Int64) {
    tensor.as<int64_t>()[0] = static_cast<int64_t>(value);
  } else {
    tensor.as<float>()[0] = static_cast<float>(value);
  }
  return tensor;
}

// Corners, some of them in decreasing order; `levels` different scores, so that many are equal.
struct Boxes {
  int64_t batches, classes, boxes;
  double side, most, overlap, least;
  unsigned levels;
};
NamedTensors boxes_of(const Boxes& b, Random& random) {
  std::uniform_real_distribution<float> place(0, static_cast<float>(b.side)), size(-1, 1);
  Tensor boxes(DType::Float32, {b.batches, b.boxes, 4});
  Tensor scores(DType::Float32, {b.batches, b.classes, b.boxes});
  for (int64_t i = 0; i < b.batches * b.boxes; ++i) {
    float* at = boxes.as<float>() + 4 * i;
    at[0] = place(random);
    at[1] = place(random);
    at[2] = at[0] + size(random);
    at[3] = at[1] + size(random);
  }
  std::generate_n(scores.as<float>(), scores.size(), [&] {
    return static_cast<float>(random() % b.levels) / static_cast<float>(b.levels);
  });
  return {{"x", boxes},
          {"s", scores},
          {"most", one(DType::Int64, b.most)},
          {"overlap", one(DType::Float32, b.overlap)},
          {"least", one(DType::Float32, b.least)}};
}

constexpr const char* kSuppression =
    "g (float[b, n, 4] x, float[b, c, n] s, int64[1] most, float[1] overlap, float[1] least) => "
    "(int64[m, 3] y) { y = NonMaxSuppression(x, s, most, overlap, least) }";
constexpr const char* kCentered =
    "g (float[b, n, 4] x, float[b, c, n] s, int64[1] most, float[1] overlap, float[1] least) => "
    "(int64[m, 3] y) { y = NonMaxSuppression<center_point_box = 1>(x, s, most, overlap, least) }";
constexpr const char* kRows =
    "g (float[a, n, c] x, bool[m] k) => (float[a, p, c] y) { y = Compress<axis = 1>(x, k) }";

struct Case {
  const char* name;
  std::string graph;
  std::function<NamedTensors(Random&)> inputs;
};

std::vector<Case> cases() {
  const auto nonzero = [](const Dims& dims, double fraction) {
    return [=](Random& random) -> NamedTensors {
      return {{"x", flags(DType::Float32, dims, fraction, random)}};
    };
  };
  const auto compress = [](const Dims& dims, int64_t length) {
    return [=](Random& random) -> NamedTensors {
      return {{"x", flags(DType::Float32, dims, 0.9, random)},
              {"k", flags(DType::Bool, {length}, 0.4, random)}};
    };
  };
  const auto boxes = [](const Boxes& b) {
    return [=](Random& random) { return boxes_of(b, random); };
  };
  constexpr double kAll = 9e18;
  return {
      {"places", "g (float[a, b] x) => (int64[2, m] y) { y = NonZero(x) }",
       nonzero({70, 131}, 0.3)},
      {"few_places", "g (float[a] x) => (int64[1, m] y) { y = NonZero(x) }",
       nonzero({100000}, 0.001)},
      {"all_places", "g (float[a, b, c] x) => (int64[3, m] y) { y = NonZero(x) }",
       nonzero({2, 3, 2048}, 1)},
      {"no_places", "g (float[a] x) => (int64[1, m] y) { y = NonZero(x) }", nonzero({3000}, 0)},
      {"places_of_nothing", "g (float[a, b] x) => (int64[2, m] y) { y = NonZero(x) }",
       nonzero({0, 5}, 1)},
      {"place_of_a_scalar", "g (float x) => (int64[0, m] y) { y = NonZero(x) }", nonzero({}, 1)},
      {"places_of_a_size_that_others_have",
       "g (float[a] x) => (int64[1, m] y, int64[1, m] z) { y = NonZero(x) z = Neg(y) }",
       nonzero({500}, 0.5)},
      {"rows", kRows, compress({3, 90, 7}, 90)},
      {"rows_of_the_first_ones", kRows, compress({3, 90, 7}, 11)},
      {"elements", "g (float[a, b] x, bool[m] k) => (float[p] y) { y = Compress(x, k) }",
       compress({50, 60}, 2999)},
      {"boxes", kSuppression, boxes({2, 3, 150, 8, kAll, 0.3, 0.2, 1000})},
      {"equal_scores", kSuppression, boxes({1, 2, 700, 12, kAll, 0.2, 0.1, 7})},
      {"centered", kCentered, boxes({2, 1, 300, 9, kAll, 0.4, 0.3, 50})},
      {"at_most", kSuppression, boxes({1, 2, 900, 40, 70, 0.3, 0.0, 100000})},
      {"in_chunks", kSuppression, boxes({1, 1, 4500, 50, kAll, 0.3, 0.05, 100000})},
      {"at_most_in_chunks", kSuppression, boxes({1, 1, 4500, 90, 2500, 0.3, 0.05, 100000})},
      {"none_above", kSuppression, boxes({1, 2, 100, 9, kAll, 0.3, 1.0, 10})},
      {"none_at_all", kSuppression, boxes({1, 2, 100, 9, 0, 0.3, 0.1, 10})},
      {"no_boxes", kSuppression, boxes({1, 2, 0, 9, kAll, 0.3, 0.1, 10})},
      {"no_classes", kSuppression, boxes({1, 0, 10, 9, kAll, 0.3, 0.1, 10})},
  };
}

class CudaSelection : public testing::TestWithParam<Case> {};

// In several runs, of which later ones replay a CUDA graph.
TEST_P(CudaSelection, HasTheBitsOfTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Program program = compile(
      Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 17]> ") + GetParam().graph));
  SessionOptions on_cpu, on_gpu;
  on_cpu.device = "cpu";
  on_gpu.device = "cuda";
  Session cpu(program, on_cpu), gpu(program, on_gpu);
  for (const std::string& note : gpu.notes()) {
    EXPECT_EQ(note.find("the CPU computes"), std::string::npos) << note;
  }
  for (const unsigned seed : {1, 2, 3}) {
    Random random(seed);
    const NamedTensors inputs = GetParam().inputs(random);
    const NamedTensors wanted = cpu.run(inputs), got = gpu.run(inputs);
    for (const auto& [name, tensor] : wanted) {
      const Tensor& own = got.at(name);
      ASSERT_EQ(own.dims(), tensor.dims()) << name;
      EXPECT_TRUE(std::equal(tensor.as<char>(), tensor.as<char>() + tensor.bytes(), own.as<char>()))
          << name << ", seed " << seed;
    }
  }
}

// The size is known behind the kernels that write the result.
TEST(CudaSelections, AreCopiedToTheCallersMemory) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Program program =
      compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 17]> "
                           "g (float[a, b] x) => (int64[2, m] y) { y = NonZero(x) }"));
  SessionOptions options;
  options.device = "cuda";
  Session session(program, options);
  Random random(5);
  const NamedTensors inputs = {{"x", flags(DType::Float32, {40, 50}, 0.2, random)}};
  const Tensor wanted = session.run(inputs).at("y");
  const NamedDeviceTensors given = session.to_device(inputs);
  const DeviceTensor target = session.allocate(DType::Int64, wanted.dims()),
                     small = session.allocate(DType::Int64, {2, 3});
  for (int run = 0; run < 3; ++run) {
    const NamedDeviceTensors results = session.enqueue(given, {{"y", target}});
    EXPECT_EQ(results.at("y").data, target.data);
    const Tensor got = session.to_host(results).at("y");
    EXPECT_TRUE(
        std::equal(wanted.as<int64_t>(), wanted.as<int64_t>() + wanted.size(), got.as<int64_t>()));
    EXPECT_THROW(session.enqueue(given, {{"y", small}}), UserError);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaSelection, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
