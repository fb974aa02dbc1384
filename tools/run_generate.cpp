#include "run_generate.h"

#include <fmt/ranges.h>

#include <numeric>

#include "redfuser/io.h"
#include "redfuser/trace.h"
#include "time_view.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct Prompt {
  Tensor ids, mask;
};

// Of a file with one tensor, or with input_ids and perhaps attention_mask. One row may lack the
// dimension of the batch.
Prompt load_prompt(const std::string& path) {
  const NamedTensors tensors = load_tensors(path);
  const auto ids = tensors.find("input_ids"), mask = tensors.find("attention_mask");
  if (tensors.size() != 1 && ids == tensors.end()) {
    fail("--prompt {}: the file has {} tensors, none of them \"input_ids\"", path, tensors.size());
  }
  Prompt prompt{ids == tensors.end() ? tensors.begin()->second : ids->second, {}};
  if (mask != tensors.end()) prompt.mask = mask->second;
  for (Tensor* tensor : {&prompt.ids, &prompt.mask}) {
    if (tensor->dims().size() == 1) *tensor = tensor->reshaped({1, tensor->size()});
  }
  return prompt;
}

// The last run of a generation is one more than asked, whose steps are timed: the token that it
// gives is left out.
struct TimedGeneration {
  Generation result;
  std::vector<std::vector<StepTime>> profile;  // empty where all sequences ended before
};

TimedGeneration generate(Session& session, Generator& generator, const Prompt& prompt,
                         GenerateOptions options, bool profiles) {
  if (!profiles) return {generator.generate(prompt.ids, prompt.mask, options), {}};
  const auto wanted = static_cast<size_t>(options.max_tokens);
  ++options.max_tokens;
  std::map<int64_t, size_t> counts;
  TimedGeneration timed;
  timed.result = generator.generate(prompt.ids, prompt.mask, options, [&](int64_t row, int64_t) {
    if (++counts[row] == wanted) session.profile(true);
    return true;
  });
  session.profile(false);
  Generation& result = timed.result;
  if (result.token_ms.size() < wanted) return timed;
  timed.profile.push_back(session.step_times());
  result.token_ms.pop_back();
  for (auto& row : result.tokens) row.resize(std::min(row.size(), wanted));
  return timed;
}

// Of the tokens after the first ones.
double tokens_per_second(const Generation& result) {
  size_t later = 0;
  for (const auto& row : result.tokens) later += row.empty() ? 0 : row.size() - 1;
  const auto& times = result.token_ms;
  return static_cast<double>(later) / std::accumulate(times.begin(), times.end(), 0.0) * 1e3;
}

std::string text_of(const RunOptions& options, const std::string& device, const Prompt& prompt,
                    const TimedGeneration& timed) {
  const Generation& result = timed.result;
  std::string text = fmt::format("model     {}\ndevice    {}\nprompt    {}\n", options.model,
                                 device, describe(prompt.ids));
  text += fmt::format("time      {:.3f} ms to the first token\n", result.first_token_ms);
  if (!result.token_ms.empty()) {
    const Spread spread = spread_of(result.token_ms);
    text += fmt::format("          {:.1f} tokens/s; per token {:.3f} ms p50, {:.3f} ms p99\n",
                        tokens_per_second(result), spread.median, spread.p99);
  }
  const char* heading = "tokens";
  for (const auto& row : result.tokens) {
    text += fmt::format("{:<10}{}\n", heading, fmt::join(row, " "));
    heading = "";
  }
  if (!timed.profile.empty()) text += indented("profile", profile_lines(timed.profile));
  return text;
}

std::string json_of(const RunOptions& options, const std::string& device, const Prompt& prompt,
                    const TimedGeneration& timed) {
  const Generation& result = timed.result;
  Json time = {{"first_token_ms", result.first_token_ms},
               {"tokens_per_s", nullptr},
               {"token_p50_ms", nullptr},
               {"token_p99_ms", nullptr},
               {"token_ms", Json(result.token_ms)}};
  if (!result.token_ms.empty()) {
    const Spread spread = spread_of(result.token_ms);
    time["tokens_per_s"] = tokens_per_second(result);
    time["token_p50_ms"] = spread.median;
    time["token_p99_ms"] = spread.p99;
  }
  Json root = {{"model", options.model},
               {"device", device},
               {"prompt", {{"shape", Json(prompt.ids.dims())}}},
               {"tokens", Json(result.tokens)},
               {"time", std::move(time)}};
  if (!timed.profile.empty()) root["profile"] = profile_json(timed.profile);
  return root.dump(1) + "\n";
}

}  // namespace

void run_generation(const Model& model, const Program& program, const RunOptions& options,
                    const Words& words) {
  const GenerationOptions& wanted = options.generation;
  const Prompt prompt = load_prompt(wanted.prompt);
  Session session(program, options.session);
  for (const std::string& note : session.notes()) tell(note + "\n");
  GenerateOptions chosen = wanted.generate;
  chosen.seed = options.random.seed;
  Generator generator(session, model, {state_pairs(wanted.states, model), 0});
  const TimedGeneration result =
      generate(session, generator, prompt, chosen, !options.profile.empty());
  if (!options.profile.empty()) {
    if (result.profile.empty()) {
      tell("--profile: every sequence ended before the token that is timed\n");
    } else {
      write_output(options.profile, chrome_trace(result.profile, "redfuser-run"));
    }
  }
  if (options.json != "-") words.say(text_of(options, session.device(), prompt, result));
  if (!options.json.empty()) {
    write_output(options.json, json_of(options, session.device(), prompt, result));
  }
}

}  // namespace redfuser::tools
