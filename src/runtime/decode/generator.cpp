#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "onnx/import/row_lengths.h"
#include "redfuser/dlpack.h"
#include "redfuser/generate.h"
#include "runtime/decode/prompt.h"
#include "runtime/decode/sampler.h"

namespace redfuser {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The output of the logits.
std::string logits_of(const Model& model, const std::vector<StatePair>& states) {
  std::vector<std::string> floats;
  for (const ValueInfo& info : model.outputs()) {
    const bool state = std::any_of(states.begin(), states.end(), [&](const StatePair& pair) {
      return pair.present == info.name;
    });
    if (state || !is_float(info.dtype)) continue;
    if (info.name == "logits") return info.name;
    floats.push_back(info.name);
  }
  if (floats.size() == 1) return floats[0];
  user_error("generate: the model has no output \"logits\", and {} floating ones beside the states",
             floats.size());
}

}  // namespace

struct Generator::Impl {
  Impl(Session& of, const Model& model, const StateOptions& options)
      : session(of),
        states(of, model, options),
        inputs(model, states.pairs()),
        logits(logits_of(model, states.pairs())),
        sampler(of),
        from_the_left(onnx::node_of_row_lengths(*model.handle())) {}

  void start(const Tensor& prompt, const Tensor& mask);
  NamedDeviceTensors run(int64_t end);
  NamedDeviceTensors read_prompt(int64_t chunk);
  const DeviceTensor& logits_in(const NamedDeviceTensors& outputs) const;
  bool take(const NamedDeviceTensors& outputs, const GenerateOptions& options,
            const TokenCallback& on_token);

  Session& session;
  States states;
  runtime::DecoderInputs inputs;
  std::string logits;
  std::string from_the_left;  // a node that does not hide padding there, if not empty
  // Of the generation under way.
  runtime::Sampler sampler;
  std::vector<runtime::TokenRow> rows;
  std::vector<runtime::SequenceState> sequences;  // by row, as the tokens
  std::vector<std::vector<int64_t>> tokens;
  int64_t position = 0;  // that the next run begins with
};

void Generator::Impl::start(const Tensor& prompt, const Tensor& mask) {
  rows = runtime::rows_of(prompt, mask);
  sequences.assign(rows.size(), {});
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].ids.size(); ++i) {
      if (rows[row].seen[i] != 0) sequences[row].tokens.insert(rows[row].ids[i]);
    }
    if (rows[row].seen[0] != 0) continue;
    if (!inputs.takes_mask()) {
      user_error("generate: row {} is padded, but the model has no input \"attention_mask\"", row);
    }
    if (!from_the_left.empty()) {
      user_error(
          "generate: row {} is padded on the left, which node \"{}\" does not hide; give "
          "prompts of one length",
          row, from_the_left);
    }
  }
  tokens.assign(rows.size(), {});
  position = 0;
  states.reset();
}

NamedDeviceTensors Generator::Impl::run(int64_t end) {
  NamedDeviceTensors tensors;
  for (const auto& [name, tensor] : inputs.fill(rows, position, end)) {
    tensors[name] = dlpack::on_host(tensor);
  }
  position = end;
  return states.enqueue(tensors);
}

// [batch, n, vocabulary] or [batch, vocabulary]
const DeviceTensor& Generator::Impl::logits_in(const NamedDeviceTensors& outputs) const {
  const DeviceTensor& all = outputs.at(logits);
  const auto batch = static_cast<int64_t>(rows.size());
  const bool empty = std::find(all.dims.begin(), all.dims.end(), 0) != all.dims.end();
  if ((all.dims.size() != 2 && all.dims.size() != 3) || all.dims[0] != batch || empty) {
    user_error("generate: output \"{}\" is {}, not logits of {} rows", logits,
               describe(Tensor::wrap(all.dtype, all.dims, nullptr, nullptr)), batch);
  }
  return all;
}

NamedDeviceTensors Generator::Impl::read_prompt(int64_t chunk) {
  const auto length = static_cast<int64_t>(rows[0].ids.size());
  const int64_t step = inputs.takes_single_tokens() ? 1 : chunk > 0 ? chunk : length;
  while (position + step < length) run(position + step);
  return run(length);
}

// The next token of every row; false when there is nothing more to do.
bool Generator::Impl::take(const NamedDeviceTensors& outputs, const GenerateOptions& options,
                           const TokenCallback& on_token) {
  sampler.enqueue(logits_in(outputs), sequences);
  states.prepare();
  const std::vector<int64_t> next = sampler.tokens(sequences);
  bool more = false;
  for (size_t row = 0; row < rows.size(); ++row) {
    int64_t token = rows[row].ids.back();
    if (!sequences[row].ended) {
      token = next[row];
      tokens[row].push_back(token);
      sequences[row].tokens.insert(token);
      if (on_token && !on_token(static_cast<int64_t>(row), token)) return false;
      sequences[row].ended = std::count(options.stop.begin(), options.stop.end(), token) > 0;
    }
    rows[row].push(token, 1);
    more = more || !sequences[row].ended;
  }
  return more;
}

Generator::Generator(Session& session, const Model& model, const StateOptions& options)
    : impl_(std::make_unique<Impl>(session, model, options)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;

Generation Generator::generate(const Tensor& prompt, const Tensor& mask,
                               const GenerateOptions& options, const TokenCallback& on_token) {
  const Clock::time_point start = Clock::now();
  impl_->start(prompt, mask);
  impl_->sampler.begin(options, impl_->rows.size());
  bool more = impl_->take(impl_->read_prompt(options.prompt_chunk), options, on_token);
  Generation result;
  result.first_token_ms = milliseconds_since(start);
  for (int64_t count = 1; more && count < options.max_tokens; ++count) {
    const Clock::time_point before = Clock::now();
    more = impl_->take(impl_->run(impl_->position + 1), options, on_token);
    result.token_ms.push_back(milliseconds_since(before));
  }
  result.tokens = impl_->tokens;
  return result;
}

Generation Generator::generate(const Tensor& prompt, const GenerateOptions& options,
                               const TokenCallback& on_token) {
  return generate(prompt, Tensor(), options, on_token);
}

States& Generator::states() { return impl_->states; }

}  // namespace redfuser
