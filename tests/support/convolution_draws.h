// Graphs of convolutions drawn from a seed: one to three dimensions, kernels, strides, dilations,
// pads at either end, groups and numbers of channels and filters that nothing divides, with a bias,
// a residual and an activation or without.
#pragma once

#include <random>

#include "support/convolution_graphs.h"

namespace redfuser {

class DrawnConvolution {
 public:
  explicit DrawnConvolution(unsigned seed) : random_(seed) {
    constexpr const char* kTypes[] = {"float", "float16", "float", "bfloat16"};
    type = kTypes[seed % 4];
    const int rank = 1 + static_cast<int>(seed / 4 % 3);
    const int groups = of({1, 1, 2, 3, 4, 8, 32});
    const int channels = of({1, 2, 3, 4, 5, 8, 12, 16, 30, 37});
    const int filters = of({1, 2, 4, 5, 8, 16, 24});
    image_ = {groups * channels};
    result_ = {groups * filters};
    filter_ = {groups * filters, channels};
    std::vector<int> strides, dilations, begins, ends;
    for (int i = 0; i < rank; ++i) {
      const int kernel = rank == 3 ? of({1, 2, 3}) : of({1, 2, 3, 5, 7});
      const int stride = of({1, 1, 2, 3}), dilation = of({1, 1, 2});
      const int begin = between(0, kernel), end = between(0, kernel);
      const int window = dilation * (kernel - 1) + 1, size = window + between(0, 13);
      filter_.push_back(kernel);
      image_.push_back(size);
      result_.push_back((size + begin + end - window) / stride + 1);
      strides.push_back(stride), dilations.push_back(dilation);
      begins.push_back(begin), ends.push_back(end);
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    attributes_ =
        fmt::format("group = {}, strides = [{}], dilations = [{}], pads = [{}]", groups,
                    fmt::join(strides, ", "), fmt::join(dilations, ", "), fmt::join(begins, ", "));
    bias_ = of({0, 1}) == 1, residual_ = of({0, 1}) == 1;
    activation_ = of({0, 1, 2, 3, 4});
    inside_ = of({0, 1, 1}) == 1;
  }

  std::string type;

  // For a number of images, or a symbol.
  std::string graph(const std::string& images) const {
    const int code = type == "float" ? 1 : type == "float16" ? 10 : 16;
    const auto value = [&](const std::vector<int>& dims, const char* name) {
      return fmt::format("{}[{}, {}] {}", type, images, fmt::join(dims, ", "), name);
    };
    std::string body = fmt::format("w = Cast<to = {0}>(f) b = Cast<to = {0}>(g) ", code);
    body += inside_ ? "h = Tanh(x) " : "h = Identity(x) ";
    body += fmt::format("c = Conv<{}>(h, w{}) ", attributes_, bias_ ? ", b" : "");
    body += residual_ ? "s = Add(c, r) " : "s = Identity(c) ";
    constexpr const char* kActivations[] = {"y = Identity(s)", "y = Relu(s)", "y = Sigmoid(s)",
                                            "y = LeakyRelu(s)", "y = Elu(s)"};
    body += kActivations[activation_];
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 22]> g ({}, {}) => ({}) <{}, {}> {{ {} }}",
        value(image_, "x"), value(result_, "r"), value(result_, "y"), filter_text("f", filter_),
        filter_text("g", {result_[0]}), body);
  }

 private:
  int of(std::initializer_list<int> choices) { return choices.begin()[random_() % choices.size()]; }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

  std::mt19937 random_;
  std::vector<int> image_, filter_, result_;  // but for the number of images
  std::string attributes_;
  bool bias_, residual_, inside_;
  int activation_;
};

}  // namespace redfuser
