// Inputs of the graphs of code_products.h, and the comparison of their results.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "support/code_products.h"

namespace redfuser {

// Normal numbers, with a row of zeros; scales z and s are positive.
inline NamedTensors code_product_inputs(const Model& model, int64_t m) {
  RandomOptions options;
  options.symbols["m"] = m;
  options.seed = static_cast<uint64_t>(m);
  NamedTensors inputs = random_inputs(model, options);
  for (const char* scale : {"z", "s"}) {
    if (inputs.count(scale) == 0) continue;
    Tensor& tensor = inputs.at(scale);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.as<float>()[i] = 0.01f + std::fabs(tensor.as<float>()[i]) / 64;
    }
  }
  if (m > 3) std::fill_n(inputs.at("x").as<float>() + 128, 64, 0.0f);
  return inputs;
}

// Up to an ulp of bfloat16, and the rounding of sums by tensor cores.
inline void expect_near(const NamedTensors& got, const NamedTensors& expected) {
  Tolerance tolerance;
  tolerance.relative = 1e-2;
  tolerance.absolute = 2e-3;
  for (const Comparison& comparison : compare(got, expected, tolerance)) {
    EXPECT_TRUE(comparison.passed) << describe(comparison);
  }
}

inline std::string name_of_product(const testing::TestParamInfo<CodeProductGraph>& info) {
  return info.param.name;
}

}  // namespace redfuser
