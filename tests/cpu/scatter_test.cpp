// Scatters, unpooled maxima and images from columns beside a loop over elements, for drawn sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "cpu/opaque/opaque.h"
#include "redfuser/error.h"
#include "support/opaque_harness.h"

namespace redfuser::testing {
namespace {

constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                            DType::Int8,    DType::UInt8,   DType::Int16,   DType::UInt16,
                            DType::Int32,   DType::UInt32,  DType::Int64,   DType::UInt64};
const char* const kReductions[] = {"none", "add", "mul", "min", "max"};

class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }
  Dims dims(int rank, int64_t most) {
    Dims result;
    for (int d = 0; d < rank; ++d) result.push_back(1 + below(most));
    return result;
  }
  // Small whole numbers, which every type has.
  Tensor values(DType dtype, const Dims& dims, int64_t most = 4) {
    std::vector<int> elements(static_cast<size_t>(element_count(dims)));
    for (int& e : elements) e = static_cast<int>(below(most));
    return make_tensor<int>(dtype, dims, elements);
  }
  Tensor positions(const Dims& dims, const std::function<int64_t(size_t)>& size) {
    std::vector<int64_t> elements(static_cast<size_t>(element_count(dims)));
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = below(2 * size(i)) - size(i);
    }
    return make_tensor<int64_t>(below(2) ? DType::Int64 : DType::Int32, dims, elements);
  }

 private:
  std::mt19937 random_;
};

// Of whole numbers, within the range of every type but for products, which are bounded here.
double combined(const std::string& reduction, double old_value, double update) {
  if (reduction == "add") return old_value + update;
  if (reduction == "mul") return old_value * update;
  if (reduction == "min") return std::min(old_value, update);
  return reduction == "max" ? std::max(old_value, update) : update;
}

Dims coordinates(int64_t number, const Dims& dims) {
  Dims at(dims.size());
  for (size_t d = dims.size(); d-- > 0;) at[d] = number % dims[d], number /= dims[d];
  return at;
}

int64_t number_of(const Dims& at, const Dims& dims) {
  int64_t number = 0;
  for (size_t d = 0; d < dims.size(); ++d) number = number * dims[d] + at[d];
  return number;
}

int64_t from_end(double position, int64_t size) {
  const auto at = static_cast<int64_t>(position);
  return at < 0 ? at + size : at;
}

TEST(Scatter, ElementsAsOneByOne) {
  Draws draw(11);
  for (int round = 0; round < 240; ++round) {
    const DType dtype = kTypes[round % std::size(kTypes)];
    const std::string reduction = kReductions[draw.below(5)];
    const int rank = static_cast<int>(1 + draw.below(4)), axis = static_cast<int>(draw.below(rank));
    // Long lines, whose parts threads share, and short ones.
    const Dims data = draw.dims(rank, rank <= 2 ? 400 : 9);
    Dims indices = data;
    for (int d = 0; d < rank; ++d) {
      if (d == axis) indices[d] = 1 + draw.below(2 * data[d]);
      if (d != axis) indices[d] = 1 + draw.below(data[d]);
    }
    // One factor for each element, so that no product leaves a type.
    const bool product = reduction == "mul";
    const Tensor x = draw.values(dtype, data, product ? 3 : 4);
    const Tensor u = product ? draw.values(dtype, indices, 2) : draw.values(dtype, indices, 2);
    const Tensor at = draw.positions(indices, [&](size_t) { return data[axis]; });
    std::vector<double> expected = values_of(x);
    const std::vector<double> updates = values_of(u), positions = values_of(at);
    for (size_t i = 0; i < updates.size(); ++i) {
      Dims to = coordinates(static_cast<int64_t>(i), indices);
      to[axis] = from_end(positions[i], data[axis]);
      double& target = expected[static_cast<size_t>(number_of(to, data))];
      target = combined(reduction, target, updates[i]);
    }
    const ir::Attributes attributes{{"axis", int64_t{axis}}, {"reduction", reduction}};
    SCOPED_TRACE(
        fmt::format("{} {} {} of {} axis {}", name_of(dtype), reduction, indices, data, axis));
    const double most = *std::max_element(expected.begin(), expected.end());
    if (most > 127 && dtype != DType::Float32) continue;  // beyond the narrowest types
    expect_values(run_node({"ScatterElements", {x, at, u}, attributes})[0], data, expected);
  }
}

TEST(Scatter, SlicesAsOneByOne) {
  Draws draw(12);
  for (int round = 0; round < 240; ++round) {
    const DType dtype = kTypes[round % std::size(kTypes)];
    const std::string reduction = kReductions[draw.below(5)];
    const int rank = static_cast<int>(1 + draw.below(4));
    const auto depth = static_cast<size_t>(1 + draw.below(rank));
    const Dims data = draw.dims(rank, rank <= 2 ? 300 : 9);
    Dims indices = draw.dims(static_cast<int>(draw.below(3)), 30);
    Dims shape = indices;
    indices.push_back(static_cast<int64_t>(depth));
    shape.insert(shape.end(), data.begin() + static_cast<int64_t>(depth), data.end());
    const Tensor x = draw.values(dtype, data, 3), u = draw.values(dtype, shape, 2);
    const Tensor at = draw.positions(indices, [&](size_t i) { return data[i % depth]; });
    std::vector<double> expected = values_of(x);
    const std::vector<double> updates = values_of(u), positions = values_of(at);
    const int64_t slice =
        element_count(Dims(data.begin() + static_cast<int64_t>(depth), data.end()));
    for (size_t i = 0; i < updates.size(); ++i) {
      const size_t tuple = i / static_cast<size_t>(slice);
      int64_t number = 0;
      for (size_t d = 0; d < depth; ++d) {
        number = number * data[d] + from_end(positions[tuple * depth + d], data[d]);
      }
      double& target =
          expected[static_cast<size_t>(number * slice) + i % static_cast<size_t>(slice)];
      target = combined(reduction, target, updates[i]);
    }
    SCOPED_TRACE(fmt::format("{} {} {} of {}", name_of(dtype), reduction, indices, data));
    const double most = *std::max_element(expected.begin(), expected.end());
    if (most > 127 && dtype != DType::Float32) continue;
    expect_values(run_node({"ScatterND", {x, at, u}, {{"reduction", reduction}}})[0], data,
                  expected);
  }
}

TEST(Scatter, NamesPositionsOutside) {
  const Tensor x = floats({3, 400}, std::vector<float>(1200));
  const Tensor u = floats({1, 400}, std::vector<float>(400));
  for (const int64_t bad : {int64_t{3}, int64_t{-4}, int64_t{1} << 40}) {
    std::vector<int64_t> at(400, -3);
    at[399] = bad;
    const std::string expected = fmt::format("index {} is outside [-3, 3)", bad);
    for (const char* op : {"ScatterElements", "ScatterND"}) {
      const bool tuples = std::string(op) == "ScatterND";
      const Tensor indices = integers(tuples ? Dims{400, 1} : Dims{1, 400}, at);
      const Tensor updates = tuples ? floats({400, 400}, std::vector<float>(160000)) : u;
      try {
        run_node({op, {x, indices, updates}});
        FAIL() << op << " took position " << bad;
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
    }
  }
}

// Element (c, t, p) of the columns belongs to the image where the convolution reads it.
TEST(Scatter, ImagesFromColumns) {
  Draws draw(13);
  for (int round = 0; round < 200; ++round) {
    const DType dtype = kTypes[round % std::size(kTypes)];
    const int rank = static_cast<int>(1 + draw.below(3));
    Dims image = draw.dims(rank, rank == 1 ? 90 : 24), block = draw.dims(rank, 4);
    std::vector<int64_t> strides = draw.dims(rank, 4), dilations = draw.dims(rank, 2), pads;
    for (int d = 0; d < 2 * rank; ++d) pads.push_back(draw.below(3));
    Dims places;
    for (int d = 0; d < rank; ++d) {
      const int64_t span = image[d] + pads[d] + pads[rank + d] - (block[d] - 1) * dilations[d] - 1;
      places.push_back(span < 0 ? 0 : span / strides[d] + 1);
    }
    const int64_t taps = element_count(block), count = element_count(places);
    const int64_t batch = 1 + draw.below(2), channels = 1 + draw.below(3);
    const Tensor x = draw.values(dtype, {batch, channels * taps, count}, 2);
    const std::vector<double> columns = values_of(x);
    const int64_t plane = element_count(image);
    std::vector<double> expected(static_cast<size_t>(batch * channels * plane));
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto n = static_cast<int64_t>(i);
      const Dims place = coordinates(n % count, places), tap = coordinates(n / count % taps, block);
      Dims at(static_cast<size_t>(rank));
      bool inside = true;
      for (int d = 0; d < rank; ++d) {
        at[d] = place[d] * strides[d] - pads[d] + tap[d] * dilations[d];
        inside = inside && at[d] >= 0 && at[d] < image[d];
      }
      if (inside) {
        expected[static_cast<size_t>(n / count / taps * plane + number_of(at, image))] +=
            columns[i];
      }
    }
    Dims dims{batch, channels};
    dims.insert(dims.end(), image.begin(), image.end());
    const ir::Attributes attributes{{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    SCOPED_TRACE(fmt::format("{} image {} block {} strides {} dilations {} pads {}", name_of(dtype),
                             image, block, strides, dilations, pads));
    expect_values(
        run_node({"Col2Im", {x, integers({rank}, image), integers({rank}, block)}, attributes})[0],
        dims, expected);
  }
}

TEST(Scatter, UnpooledMaxima) {
  Draws draw(14);
  for (int round = 0; round < 160; ++round) {
    const DType dtype = kTypes[round % 4];  // the floats
    const int rank = static_cast<int>(1 + draw.below(3));
    Dims in = draw.dims(2, 5), pooled = in, larger;
    const Dims kernel = draw.dims(rank, 3);
    for (int d = 0; d < rank; ++d) {
      in.push_back(1 + draw.below(rank == 1 ? 60 : 9));
      pooled.push_back(in.back() * kernel[d]);
    }
    larger = pooled;
    for (int d = 0; d < rank; ++d) larger[d + 2] += draw.below(2) * draw.below(4);
    const Tensor x = draw.values(dtype, in, 100);
    const int64_t count = element_count(pooled), channels = in[0] * in[1];
    // Each channel's maxima in its own channel of the result, or anywhere in it, some twice.
    const bool own = draw.below(2) != 0;
    std::vector<int64_t> at(static_cast<size_t>(x.size()));
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) * channels / x.size();
      at[i] = own ? channel * (count / channels) + draw.below(count / channels) : draw.below(count);
    }
    std::vector<double> expected(static_cast<size_t>(element_count(larger)));
    const std::vector<double> values = values_of(x);
    for (size_t i = 0; i < at.size(); ++i) {
      expected[static_cast<size_t>(number_of(coordinates(at[i], pooled), larger))] = values[i];
    }
    const ir::Attributes attributes{{"kernel_shape", std::vector<int64_t>(kernel)},
                                    {"strides", std::vector<int64_t>(kernel)}};
    SCOPED_TRACE(fmt::format("{} {} to {}", name_of(dtype), in, larger));
    std::vector<Tensor> inputs{x, integers(in, at)};
    if (larger != pooled || draw.below(2)) inputs.push_back(integers({rank + 2}, larger));
    expect_values(run_node({"MaxUnpool", inputs, attributes})[0], larger, expected);
    at.back() = count;
    inputs[1] = integers(in, at);
    EXPECT_THROW(run_node({"MaxUnpool", inputs, attributes}), UserError);
  }
}

}  // namespace
}  // namespace redfuser::testing
