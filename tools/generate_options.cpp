#include "generate_options.h"

#include <algorithm>

#include "command_line.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

// Options that mean nothing without --generate, and those that mean nothing with it.
constexpr const char* kGenerating[] = {
    "--prompt",      "--prompt-chunk", "--state", "--stop", "--repetition-penalty",
    "--temperature", "--top-k",        "--top-p"};
constexpr const char* kOther[] = {"--inputs",  "--shape",       "--dim",     "--range",
                                  "--outputs", "--compare",     "--verify",  "--iterations",
                                  "--warmup",  "--resident",    "--explain", "--report",
                                  "--dump",    "--assert-fused"};

}  // namespace

void add_generate_options(CLI::App& app, GenerationOptions& options) {
  const char* group = "Tokens of a decoder (its cache stays on the device and starts empty)";
  app.add_option("--generate", options.generate.max_tokens,
                 "Generate so many tokens after --prompt; prints them and the times")
      ->type_name("N")
      ->group(group);
  app.add_option("--prompt", options.prompt,
                 "Token ids, integers of [length] or [batch,length]; or input_ids and the "
                 "attention_mask of a batch padded on the left")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--prompt-chunk", options.generate.prompt_chunk,
                 "Positions of the prompt in one run (0: all)")
      ->type_name("N")
      ->group(group);
  app.add_option("--state", options.states,
                 "An output that is the next run's input, such as present.0.key=past.0.key:2, "
                 "where names do not tell; without an axis the sizes do; repeatable")
      ->type_name("PRESENT=PAST:AXIS")
      ->group(group);
  app.add_option("--stop", options.generate.stop, "A token that ends its sequence; repeatable")
      ->type_name("ID")
      ->group(group);
  app.add_option("--repetition-penalty", options.generate.repetition_penalty,
                 "Divides positive logits of tokens that were there, multiplies others")
      ->type_name("R")
      ->group(group);
  app.add_option("--temperature", options.generate.temperature,
                 "Draw tokens, by --seed, from logits divided by this (0: the largest logit)")
      ->type_name("T")
      ->group(group);
  app.add_option("--top-k", options.generate.top_k, "Draw among so many largest logits")
      ->type_name("K")
      ->group(group);
  app.add_option("--top-p", options.generate.top_p,
                 "Draw among the fewest largest logits with this sum of probabilities")
      ->type_name("P")
      ->group(group);
}

void check_generate_options(const CLI::App& app, GenerationOptions& options) {
  options.wanted = app.count("--generate") > 0;
  for (const char* name : kGenerating) {
    if (!options.wanted && app.count(name) > 0) fail("{} goes with --generate", name);
  }
  for (const char* name : kOther) {
    if (options.wanted && app.count(name) > 0) fail("{} does not go with --generate", name);
  }
  if (options.wanted && options.prompt.empty()) fail("--generate needs --prompt FILE");
}

std::vector<StatePair> state_pairs(const std::vector<std::string>& states, const Model& model) {
  std::vector<StatePair> pairs;
  for (const std::string& text : states) {
    auto [present, past] = split_assignment(text, '=', "--state");
    const auto& inputs = model.inputs();
    const bool whole =
        std::any_of(inputs.begin(), inputs.end(),
                    [&, name = past](const auto& info) { return info.name == name; });
    std::optional<int64_t> axis;
    if (!whole && past.find(':') != std::string::npos) {
      const auto [name, number] = split_assignment(past, ':', "--state");
      past = name;
      axis = parse_integer(number, "--state");
    }
    pairs.push_back({past, present, axis});
  }
  return pairs;
}

}  // namespace redfuser::tools
