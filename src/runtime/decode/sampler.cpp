#include "runtime/decode/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "redfuser/dlpack.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kKeptPrograms = 4;

void check_options(const GenerateOptions& options) {
  const double temperature = options.temperature.value_or(0);
  if (options.max_tokens < 1) user_error("generate: max_tokens is {}", options.max_tokens);
  if (options.prompt_chunk < 0) user_error("generate: prompt_chunk is {}", options.prompt_chunk);
  if (options.top_k < 0) user_error("generate: top_k is {}", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    user_error("generate: top_p is {}, not above 0 and at most 1", options.top_p);
  }
  if (!std::isfinite(temperature) || temperature < 0) {
    user_error("generate: the temperature is {}, not finite or below 0", temperature);
  }
  if (!std::isfinite(options.repetition_penalty) || options.repetition_penalty <= 0) {
    user_error("generate: the repetition penalty is {}, not finite and above 0",
               options.repetition_penalty);
  }
}

Tensor scalar(double value) {
  Tensor tensor(DType::Float64, {});
  *tensor.as<double>() = value;
  return tensor;
}

// Rows have as many tokens as the one with most, up to a power of two, by repeating one of theirs:
// runs of few sizes.
void penalise(double penalty, int64_t vocabulary, const std::vector<SequenceState>& rows,
              NamedTensors& inputs) {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<std::vector<int64_t>> tokens;
  size_t most = 16;
  for (const SequenceState& row : rows) {
    auto& own = tokens.emplace_back();
    std::copy_if(row.tokens.begin(), row.tokens.end(), std::back_inserter(own),
                 [&](int64_t token) { return token >= 0 && token < vocabulary; });
    most = std::max(most, std::bit_ceil(own.size()));
  }
  Tensor seen(DType::Int64, {count, static_cast<int64_t>(most)}),
      factors(DType::Float32, {count, 1});
  for (size_t row = 0; row < tokens.size(); ++row) {
    std::vector<int64_t>& own = tokens[row];
    factors.as<float>()[row] = own.empty() ? 1 : static_cast<float>(penalty);
    own.resize(most, own.empty() ? 0 : own.front());
    std::copy(own.begin(), own.end(), seen.as<int64_t>() + row * most);
  }
  inputs["seen"] = seen;
  inputs["penalty"] = factors;
}

// In [0, 1), alike in every standard library.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

void Sampler::begin(const GenerateOptions& options, size_t rows) {
  check_options(options);
  options_ = options;
  const bool narrows = options.top_k > 0 || options.top_p < 1;
  temperature_ = options.temperature.value_or(narrows ? 1 : 0);
  random_.clear();
  for (size_t row = 0; row < rows; ++row) {
    std::seed_seq seed{static_cast<uint32_t>(options.seed),
                       static_cast<uint32_t>(options.seed >> 32), static_cast<uint32_t>(row)};
    random_.emplace_back(seed);
  }
}

SamplingForm Sampler::form_of(const DeviceTensor& logits) const {
  SamplingForm form{logits.dtype, logits.dims.size() == 2, options_.repetition_penalty != 1,
                    temperature_ > 0, 0};
  const int64_t vocabulary = logits.dims.back();
  if (form.draws && options_.top_k > 0) {
    form.sorted = std::min(options_.top_k, vocabulary);
  } else if (form.draws && options_.top_p < 1) {
    form.sorted = vocabulary;
  }
  return form;
}

Session& Sampler::program_of(const SamplingForm& form) {
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& program) { return program.first == form; });
  if (known != programs_.end()) {
    std::rotate(programs_.begin(), known, known + 1);
    return *programs_.front().second;
  }
  SessionOptions options = session_.options();
  options.device = session_.stream() != nullptr ? "cuda" : "cpu";
  options.tune = false;
  CompileOptions quick;
  quick.certify = false;
  const Program program = compile(Model::parse(sampling_graph(form)), quick);
  if (programs_.size() >= kKeptPrograms) programs_.pop_back();
  programs_.emplace(programs_.begin(), form, std::make_unique<Session>(program, options));
  return *programs_.front().second;
}

NamedTensors Sampler::inputs_of(const SamplingForm& form, int64_t vocabulary,
                                const std::vector<SequenceState>& rows) {
  NamedTensors inputs;
  if (form.penalises) penalise(options_.repetition_penalty, vocabulary, rows, inputs);
  if (!form.draws) return inputs;
  inputs["temperature"] = scalar(temperature_);
  inputs["top_p"] = scalar(options_.top_p);
  Tensor& parts = inputs["uniform"] =
      Tensor(DType::Float64, {static_cast<int64_t>(rows.size()), 1});
  for (size_t row = 0; row < rows.size(); ++row) {
    parts.as<double>()[row] = rows[row].ended ? 0 : uniform(random_[row]);
  }
  return inputs;
}

void Sampler::enqueue(const DeviceTensor& logits, const std::vector<SequenceState>& rows) {
  const SamplingForm form = form_of(logits);
  Session& program = program_of(form);
  NamedTensors host = inputs_of(form, logits.dims.back(), rows);
  results_.clear();
  if (session_.stream() == nullptr) {
    host["logits"] = dlpack::to_tensor(logits);
    for (const auto& [name, tensor] : program.run(host)) results_[name] = dlpack::on_host(tensor);
    return;
  }
  NamedDeviceTensors inputs = {{"logits", logits}};
  for (const auto& [name, tensor] : host) inputs[name] = dlpack::on_host(tensor);
  results_ = program.enqueue(inputs, {}, session_.stream());
}

std::vector<int64_t> Sampler::tokens(const std::vector<SequenceState>& rows) {
  NamedTensors results;
  if (session_.stream() != nullptr) {
    results = session_.to_host(results_);
  } else {
    for (const auto& [name, tensor] : results_) results[name] = dlpack::to_tensor(tensor);
  }
  const Tensor &tokens = results.at("token"), &nan = results.at("nan");
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].ended || nan.as<float>()[row] == 0) continue;
    user_error("generate: the logits of row {} are NaN", row);
  }
  return {tokens.as<int64_t>(), tokens.as<int64_t>() + rows.size()};
}

}  // namespace redfuser::runtime
