// NaN and infinite keys, values and rows behind masks of attention: fused on the CPU and, where
// there is one, on a GPU, beside the unfused graph, NaN for NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/half.h"
#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/codegen_harness.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

constexpr int64_t kLength = 90;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Mask {
  const char* name;
  std::string text;  // from scores s to masked scores a, by c
  std::function<bool(int64_t row, int64_t key)>
      visible;  // row: counted so that the last sees itself
  bool floats_only = false;
};

std::vector<Mask> masks() {
  const std::string where = " a = Where(c, s, nt)", added = " b = Where(c, zt, nt) a = Add(s, b)",
                    lowest = " b = Where(c, zt, lt) a = Add(s, b)";
  const std::string causal = "c = LessOrEqual(j, i)";
  const std::string window =
      "d = Sub(i, j) c0 = GreaterOrEqual(d, zero) c1 = Less(d, w) c = And(c0, c1)";
  const std::string length = "l = Reshape(len, s3) c = Less(j, l)";
  const auto before = [](int64_t i, int64_t j) { return j <= i; };
  const auto near = [](int64_t i, int64_t j) { return j <= i && i - j < 70; };
  const auto there = [](int64_t, int64_t j) { return j < kLength; };
  return {{"causal_where", causal + where, before},
          {"causal_added", causal + added, before},
          {"causal_lowest_added", causal + lowest, before, true},
          {"window_where", window + where, near},
          {"window_added", window + added, near},
          {"length_where", length + where, there},
          {"length_added", length + added, there},
          {"length_multiplied_and_causal",
           "l = Reshape(len, s3) e = Less(j, l) et = CastLike(e, s) f = Mul(s, et) " + causal +
               " a = Where(c, f, nt)",
           before}};
}

// Sizes for which a GPU has a kernel family each.
struct Shape {
  const char* name;
  const char* type;
  int64_t rows, keys, size;
};
const Shape kShapes[] = {{"tiles", "float16", 200, 200, 64},
                         {"tiles_of_floats", "float", 200, 200, 64},
                         {"few_rows", "float16", 4, 700, 64},
                         {"few_rows_of_floats", "float", 4, 700, 64},
                         {"wide", "bfloat16", 70, 200, 320}};

struct Case {
  Mask mask;
  Shape shape;
};
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Mask& mask : masks()) {
    for (const Shape& shape : kShapes) {
      if (!mask.floats_only || shape.type == std::string("float")) result.push_back({mask, shape});
    }
  }
  return result;
}
std::string name_of(const Case& c) { return std::string(c.mask.name) + "_" + c.shape.name; }

Model model_of(const Case& c) {
  const auto& [name, type, rows, keys, size] = c.shape;
  const std::string text = fmt::format(
      "g (T[2,{0},{2}] q, T[2,{1},{2}] k, T[2,{1},{2}] v, int64[2] len) => (y) {{"
      " none = Constant<value = float {{-inf}}>() fz = Constant<value = float {{0}}>()"
      " low = Constant<value = float {{-3.4028234663852886e38}}>()"
      " zero = Constant<value = int64 {{0}}>() one = Constant<value = int64 {{1}}>()"
      " w = Constant<value = int64 {{70}}>() m = Constant<value = int64 {{{0}}}>()"
      " n = Constant<value = int64 {{{1}}}>() off = Constant<value = int64 {{{3}}}>()"
      " at = Constant<value = int64[1] {{1}}>() s3 = Constant<value = int64[3] {{2,1,1}}>()"
      " kt = Transpose<perm = [0, 2, 1]>(k) s = MatMul(q, kt) nt = CastLike(none, s)"
      " zt = CastLike(fz, s) lt = CastLike(low, s) j = Range(zero, n, one)"
      " i0 = Range(zero, m, one) i1 = Add(i0, off) i = Unsqueeze(i1, at) {4}"
      " p = Softmax<axis = -1>(a) y = MatMul(p, v) }}",
      rows, keys, size, keys - rows, c.mask.text);
  return model_of_type(text, type);
}

Program compiled(const Model& model, bool fuse) {
  CompileOptions options;
  options.fuse = fuse;
  options.certify = false;
  return compile(model, options);
}

// An element of an input that is no number, or is so large that its product with kRowElement
// overflows.
constexpr float kRowElement = 3;
struct Fault {
  const char* input;
  int64_t line;  // of the first of two batches
  double value;
};

std::vector<Fault> faults(const Shape& shape) {
  std::vector<Fault> result;
  for (const char* input : {"k", "v"}) {
    for (const int64_t line : {shape.keys - 1, shape.keys / 2, kLength + 1, int64_t{0}}) {
      for (const double value : {kNaN, kInfinity, -kInfinity})
        result.push_back({input, line, value});
    }
  }
  result.push_back({"q", shape.rows / 2, kNaN});
  result.push_back({"q", shape.rows / 2, kInfinity});
  if (shape.type != std::string("float16")) {
    result.push_back({"k", shape.keys - 1, 3e38});
    result.push_back({"k", shape.keys / 2, -3e38});
  }
  return result;
}

// Whether a GPU multiplies elements in two parts unless products are to be exact: what an infinite
// one is multiplied by is NaN then.
bool has_parts(const Shape& shape) { return shape.type == std::string("float"); }

NamedTensors with_fault(NamedTensors inputs, const Fault& fault) {
  Tensor& tensor = inputs.at(fault.input);
  const Tensor given = as_floats(tensor);  // the elements of the tensor itself, if it is of floats
  Tensor floats(DType::Float32, given.dims());
  std::copy_n(given.as<float>(), given.size(), floats.as<float>());
  const int64_t size = floats.dims()[2];
  floats.as<float>()[fault.line * size + size / 3] = static_cast<float>(fault.value);
  tensor = cast_floats(floats, tensor.dtype());
  return inputs;
}

bool same(double got, double expected, double tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

double tolerance_of(const Shape& shape) {
  return shape.type == std::string("float")     ? 1e-4
         : shape.type == std::string("float16") ? 4e-3
                                                : 3e-2;
}

// Elements that differ from `expected`; where `hidden` says so of a row, `other` is right too.
int64_t count_wrong(const Tensor& got, const Tensor& expected, double tolerance,
                    const Tensor* other = nullptr,
                    const std::function<bool(int64_t row)>& hidden = nullptr) {
  const Tensor a = as_floats(got), b = as_floats(expected), c = as_floats(other ? *other : got);
  const int64_t rows = a.dims()[1], columns = a.dims()[2];
  int64_t wrong = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    bool right = same(a.as<float>()[i], b.as<float>()[i], tolerance);
    if (other && hidden(i / columns % rows)) {
      right = right || same(a.as<float>()[i], c.as<float>()[i], tolerance);
    }
    wrong += !right;
  }
  return wrong;
}

class MaskedValues : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    model_ = model_of(GetParam());
    fused_ = compiled(model_, true);
    unfused_ = compiled(model_, false);
    inputs_ = random_inputs(model_, {});
    for (int64_t b = 0; b < 2; ++b) inputs_.at("len").as<int64_t>()[b] = kLength;
    for (const char* name : {"q", "k"}) {  // scores of about one
      Tensor floats = as_floats(inputs_.at(name));
      for (int64_t i = 0; i < floats.size(); ++i) floats.as<float>()[i] *= 0.3F;
      const int64_t size = floats.dims()[2];
      for (int64_t i = size / 3; name[0] == 'q' && i < floats.size(); i += size) {
        floats.as<float>()[i] = kRowElement;
      }
      inputs_.at(name) = cast_floats(floats, inputs_.at(name).dtype());
    }
  }
  static Tensor run(const Program& program, const NamedTensors& inputs,
                    const SessionOptions& options = {}) {
    return Session(program, options).run(inputs).at("y");
  }
  static std::string text(const Fault& fault) {
    return fmt::format("{} in line {} of {}", fault.value, fault.line, fault.input);
  }

  Model model_;
  Program fused_, unfused_;
  NamedTensors inputs_;
};

TEST_P(MaskedValues, CpuIsExact) {
  const Shape& shape = GetParam().shape;
  ASSERT_EQ(fused_.steps().size(), 1u) << "one fused region";
  for (const Fault& fault : faults(shape)) {
    const NamedTensors inputs = with_fault(inputs_, fault);
    EXPECT_EQ(count_wrong(run(fused_, inputs), run(unfused_, inputs), tolerance_of(shape)), 0)
        << text(fault);
  }
}

TEST_P(MaskedValues, GpuIsExactWhereAsked) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Shape& shape = GetParam().shape;
  SessionOptions options;
  options.device = "cuda";
  options.exact_masks = true;
  options.exact_products = has_parts(shape);
  EXPECT_EQ(count_wrong(run(fused_, inputs_, options), run(unfused_, inputs_), tolerance_of(shape)),
            0)
      << "numbers alone";
  for (const Fault& fault : faults(shape)) {
    const NamedTensors inputs = with_fault(inputs_, fault);
    EXPECT_EQ(count_wrong(run(fused_, inputs, options), run(unfused_, inputs), tolerance_of(shape)),
              0)
        << text(fault);
  }
}

// Without, a row that a fault is hidden from may be what it is without the fault.
TEST_P(MaskedValues, GpuIsExactWhereVisible) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const auto& [mask, shape] = GetParam();
  SessionOptions options;
  options.device = "cuda";
  for (Fault fault : faults(shape)) {
    // The first row sees that key alone: at -inf, a finite fill outweighs it, which is not
    // computed.
    if (mask.floats_only && fault.input == std::string("k") && fault.line == 0) continue;
    if (has_parts(shape) && std::isinf(fault.value)) continue;
    const NamedTensors inputs = with_fault(inputs_, fault);
    const auto hidden = [&](int64_t row) {
      return fault.input != std::string("q") &&
             !mask.visible(row + shape.keys - shape.rows, fault.line);
    };
    const Tensor without = run(unfused_, inputs_);
    EXPECT_EQ(count_wrong(run(fused_, inputs, options), run(unfused_, inputs), tolerance_of(shape),
                          &without, hidden),
              0)
        << text(fault);
  }
}

// The check's kernel runs first, and the attention kernel reads its result.
TEST_P(MaskedValues, ExactKernelsCheckFirst) {
  using namespace codegen_tests;
  constexpr int kSpill = 16;  // bytes, of fp32 on sm_80
  for (codegen::Target target : kTargets) {
    const GeneratedModel plain = generate_model(model_, target);
    target.exact_masks = true;
    const GeneratedModel exact = generate_model(model_, target);
    if (exact.kernels.size() == plain.kernels.size()) {
      // Every score is computed anyway: in memory, or because a finite fill may be outweighed.
      EXPECT_TRUE(!plain.kernels[0].family.starts_with("attention") || GetParam().mask.floats_only);
      for (size_t i = 0; i < plain.kernels.size(); ++i) {
        EXPECT_EQ(exact.kernels[i].source, plain.kernels[i].source);
      }
      continue;
    }
    ASSERT_EQ(exact.kernels.size(), plain.kernels.size() + 1);
    EXPECT_EQ(exact.kernels[0].family, "mask_check");
    // Scores that a Where hides may have any value; values are multiplied, and rows and keys added
    // to a mask.
    const bool replaced = std::string(GetParam().mask.name).ends_with("where");
    EXPECT_EQ(exact.kernels[0].buffers.size(), replaced ? 2u : 4u);
    const int flag = exact.kernels[0].buffers[0].scratch;
    ASSERT_GE(flag, 0);
    for (size_t i = 0; i < plain.kernels.size(); ++i) {
      const codegen::KernelLaunch& kernel = exact.kernels[i + 1];
      EXPECT_EQ(kernel.family, plain.kernels[i].family);
      if (kernel.family.find("merge") != std::string::npos) continue;
      EXPECT_TRUE(std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                              [&](const codegen::BufferRef& ref) { return ref.scratch == flag; }))
          << kernel.name;
    }
    Compiler* compiler = Compiler::find();
    if (!compiler || GetParam().mask.name != std::string("causal_added")) continue;
    for (const codegen::KernelLaunch& kernel : exact.kernels) {
      const Compiler::Result result = compiler->compile(kernel.source, target.architecture);
      EXPECT_TRUE(result.compiled) << result.log;
      EXPECT_LE(result.spilled, kSpill) << kernel.name << " on " << target.architecture;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, MaskedValues, testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace redfuser
