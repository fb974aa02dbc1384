// Models whose structure follows from values of inputs: a program for each set of values. The fake
// GPU's kernels compute nothing, so launches and sizes are compared.
#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

constexpr const char* kSums =
    "g (float[m, n] x, int64[k] axes) => (float[?] y) { y = ReduceSum<keepdims = 0>(x, axes) }";
constexpr const char* kBranches =
    "g (bool c, float[n] x) => (float[n] y) { y = If(c)<"
    " then_branch = t () => (float[n] a) { a = Exp(x) },"
    " else_branch = e () => (float[n] b) { b = Neg(x) }> }";

template <typename T>
Tensor scalar(DType dtype, Dims dims, T value) {
  Tensor tensor(dtype, std::move(dims));
  tensor.as<T>()[0] = value;
  return tensor;
}

class ValuesOnGpu : public FakeGpu {
 protected:
  static Tensor axis(int64_t value) { return scalar<int64_t>(DType::Int64, {1}, value); }
  static Tensor matrix() { return vector_of(6).reshaped({2, 3}); }
};

TEST_F(ValuesOnGpu, DecideSizes) {
  Session session(compile(model(kSums)), options);
  for (const int64_t at : {0, 1, 0, -1, -2}) {
    const auto y = session.run({{"x", matrix()}, {"axes", axis(at)}}).at("y");
    EXPECT_EQ(y.dims(), (Dims{at % 2 == 0 ? 3 : 2})) << at;
  }
  EXPECT_EQ(session.device(), "Fake GPU");
  EXPECT_EQ(gpu->launches.size(), 4u);  // the second run of a program replays a graph
}

// More sets of values than are kept.
TEST_F(ValuesOnGpu, ManySets) {
  Session session(compile(model("g (float[1, 1, 1, 1, 1, 1, 1, 1, 1, 2] x, int64[k] axes) => "
                                "(float[?] y) { y = ReduceSum<keepdims = 0>(x, axes) }")),
                  options);
  const Tensor x = vector_of(2).reshaped({1, 1, 1, 1, 1, 1, 1, 1, 1, 2});
  for (int64_t run = 0; run < 20; ++run) {
    Dims wanted(9, 1);
    if (run % 10 != 9) wanted.back() = 2;
    EXPECT_EQ(session.run({{"x", x}, {"axes", axis(run % 10)}}).at("y").dims(), wanted);
  }
}

TEST_F(ValuesOnGpu, DecideBranches) {
  Session session(compile(model(kBranches)), options);
  for (const bool c : {true, false, true}) {
    const NamedTensors inputs = {{"c", scalar<bool>(DType::Bool, {}, c)}, {"x", vector_of(4)}};
    EXPECT_EQ(session.run(inputs).at("y").dims(), (Dims{4}));
  }
  EXPECT_EQ(gpu->launches.size(), 2u);
}

TEST_F(ValuesOnGpu, FaultsNameTheInput) {
  Session session(compile(model(kSums)), options);
  expect_mentions(error_of([&] { session.run({{"x", matrix()}}); }), "input \"axes\" is missing");
  expect_mentions(error_of([&] {
                    session.run({{"x", matrix()}, {"axes", axis(5)}});
                  }),
                  "[ReduceSum] node");
  expect_mentions(error_of([&] {
                    session.run({{"x", matrix()}, {"axes", axis(0)}, {"z", axis(0)}});
                  }),
                  "\"z\"");
}

// Sizes that values decide: the host reads them between kernels, until the same values come again.
// Then a program of these values has one kernel.
TEST_F(ValuesOnGpu, DecideSizesOfAPlan) {
  Session session(compile(model("g (float[n] x, int64[2] s) => (float[m, n] y) "
                                "{ a = Expand(x, s) y = Neg(a) }")),
                  options);
  const auto rows = [&](int64_t count) {
    Tensor shape(DType::Int64, {2});
    shape.as<int64_t>()[0] = count, shape.as<int64_t>()[1] = 4;
    const Tensor y = session.run({{"x", vector_of(4)}, {"s", shape}}).at("y");
    EXPECT_EQ(y.dims(), (Dims{count, 4}));
    return gpu->launches.size();
  };
  EXPECT_EQ(rows(2), 2u);
  EXPECT_EQ(rows(3), 4u);
  EXPECT_EQ(rows(3), 5u);
  EXPECT_EQ(rows(5), 7u);
  session.profile(true);
  rows(3);
  EXPECT_EQ(session.step_times().size(), session.step_facts().size());
}

// Values of tensors that are no numbers of a few decide nothing.
TEST_F(ValuesOnGpu, OfOtherInputsAreRefused) {
  expect_mentions(error_of([&] {
                    Session(compile(model("g (seq(float[n]) s, float[n] x) => (float[m, n] y) "
                                          "{ y = ConcatFromSequence<axis = 0, new_axis = 1>(s) }")),
                            options);
                  }),
                  "no plan for a GPU");
}

}  // namespace
}  // namespace redfuser::device_tests
