#include "cpu/opaque/ml/scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"

namespace redfuser::cpu {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// √2·erf⁻¹(2p-1) by Winitzki's approximation, with the constants that ONNX Runtime takes; written
// so that nothing cancels.
double probit(double p) {
  const double t = 2 * p - 1, log = std::log((1 - t) * (1 + t));
  const double v = 2 / (3.14159 * 0.147) + 0.5 * log, v2 = log / 0.147;
  const double root = std::sqrt(-v2 / (std::sqrt(v * v - v2) + v));
  return std::sqrt(2.0) * (t < 0 ? -root : root);
}

void softmax(double* row, int64_t count, bool keep_zeros) {
  constexpr double kZero = 1e-7;
  const double largest = *std::max_element(row, row + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (keep_zeros && std::abs(row[i]) <= kZero) {
      row[i] *= std::exp(-largest);
    } else {
      sum += row[i] = std::exp(row[i] - largest);
    }
  }
  for (int64_t i = 0; i < count && sum > 0; ++i) row[i] /= sum;
}

}  // namespace

Tensor tensor_attribute(const OpaqueCall& call, const std::string& name) {
  const auto* tensor = std::get_if<Tensor>(&call.node().attributes.at(name));
  if (tensor == nullptr) call.fail(fmt::format("attribute {} is no tensor", name));
  return *tensor;
}

Tensor tensor_of_integers(const std::vector<int64_t>& list) {
  Tensor tensor(DType::Int64, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), tensor.as<int64_t>());
  return tensor;
}

std::vector<double> reals_attribute(const OpaqueCall& call, const std::string& name) {
  std::vector<double> values;
  if (!call.has(name)) return values;
  if (const auto* list = std::get_if<std::vector<float>>(&call.node().attributes.at(name))) {
    return {list->begin(), list->end()};
  }
  const Tensor tensor = tensor_attribute(call, name);
  if (tensor.dtype() == DType::String) call.fail(fmt::format("attribute {} holds strings", name));
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.size(); ++i)
      values.push_back(static_cast<double>(tensor.as<T>()[i]));
  });
  return values;
}

std::vector<std::string> words_attribute(const OpaqueCall& call, const std::string& name) {
  if (!call.has(name)) return {};
  const auto* list = std::get_if<std::vector<std::string>>(&call.node().attributes.at(name));
  if (list == nullptr) call.fail(fmt::format("attribute {} is not a list of strings", name));
  return *list;
}

Tensor class_labels(const OpaqueCall& call, const std::string& integers, const std::string& words) {
  const std::vector<std::string> texts = words_attribute(call, words);
  if (!texts.empty()) return Tensor::strings({static_cast<int64_t>(texts.size())}, texts);
  return tensor_of_integers(call.integers(integers, {}));
}

void copy_element(const Tensor& source, int64_t from, Tensor& target, int64_t to) {
  const size_t width = size_of(source.dtype());
  std::memcpy(target.as<char>() + static_cast<size_t>(to) * width,
              source.as<char>() + static_cast<size_t>(from) * width, width);
}

ScoreTransform score_transform(const OpaqueCall& call) {
  if (call.has("post_transform")) {
    const auto* number = std::get_if<int64_t>(&call.node().attributes.at("post_transform"));
    if (number != nullptr && (*number < 0 || *number > 4)) {
      call.fail(fmt::format("unknown post_transform {}", *number));
    }
    if (number != nullptr) return static_cast<ScoreTransform>(*number);
  }
  static constexpr const char* kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = call.text("post_transform", "NONE");
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) call.fail(fmt::format("unknown post_transform \"{}\"", name));
  return static_cast<ScoreTransform>(found - std::begin(kNames));
}

void transform_scores(ScoreTransform transform, double* row, int64_t count) {
  if (transform == ScoreTransform::Probit) {
    for (int64_t i = 0; i < count; ++i) row[i] = probit(row[i]);
  }
  if (count < 2) return;
  if (transform == ScoreTransform::Logistic) {
    for (int64_t i = 0; i < count; ++i) row[i] = logistic(row[i]);
  }
  if (transform == ScoreTransform::Softmax) softmax(row, count, false);
  if (transform == ScoreTransform::SoftmaxZero) softmax(row, count, true);
}

void transform_pair(ScoreTransform transform, bool share, double score, double* row) {
  row[0] = share && transform != ScoreTransform::Logistic ? 1 - score : -score;
  row[1] = score;
  if (transform == ScoreTransform::Logistic || transform == ScoreTransform::Probit) {
    transform_scores(transform, row, 2);
  }
}

}  // namespace redfuser::cpu
