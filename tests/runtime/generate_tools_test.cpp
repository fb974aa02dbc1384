// redfuser-run --generate, as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "redfuser/io.h"
#include "support/test_paths.h"
#include "support/text_model.h"
#include "support/tools_fixture.h"

namespace redfuser {
namespace {

class GenerateTool : public ToolsTest {
 protected:
  static std::string file(const std::string& name) {
    return std::string(test_paths::models()) + "/decoders/llama/" + name;
  }
  static std::string on_cpu(const std::string& more) {
    return file("model.onnx") + " --device cpu " + more;
  }
};

TEST_F(GenerateTool, WritesTokensAndTimes) {
  for (const int batch : {1, 3}) {
    const std::string prompt = file(batch == 1 ? "prompt1.npy" : "prompt3.npz");
    const Finished done =
        run("redfuser-run", on_cpu("--generate 64 --prompt " + prompt + " --json -"));
    ASSERT_EQ(done.code, 0) << done.errors;
    const nlohmann::json report = nlohmann::json::parse(done.output);
    const Tensor wanted =
        load_tensors(file("tokens" + std::to_string(batch) + ".npy")).begin()->second;
    std::vector<int64_t> tokens;
    for (const auto& row : report["tokens"]) {
      for (const int64_t token : row) tokens.push_back(token);
    }
    EXPECT_EQ(tokens,
              std::vector<int64_t>(wanted.as<int64_t>(), wanted.as<int64_t>() + wanted.size()));
    EXPECT_EQ(report["tokens"].size(), static_cast<size_t>(batch));
    EXPECT_EQ(report["time"]["token_ms"].size(), 63u);
    for (const char* key : {"first_token_ms", "tokens_per_s", "token_p50_ms", "token_p99_ms"}) {
      EXPECT_GT(report["time"][key], 0) << key;
    }
  }
}

TEST_F(GenerateTool, TakesEveryOption) {
  const std::string prompt = " --prompt " + file("prompt1.npy");
  const Finished largest = run("redfuser-run", on_cpu("--generate 8" + prompt));
  ASSERT_EQ(largest.code, 0) << largest.errors;
  for (const char* part :
       {"ms to the first token", "tokens/s", "p50", "p99", "tokens    0 46 121"}) {
    EXPECT_NE(largest.output.find(part), std::string::npos) << largest.output;
  }
  const auto tokens = [&](const std::string& options) {
    const Finished done = run("redfuser-run", on_cpu(prompt + " " + options));
    EXPECT_EQ(done.code, 0) << done.errors;
    return done.output.substr(done.output.find("tokens    "));
  };
  const std::string first = tokens("--generate 8");
  EXPECT_EQ(tokens("--generate 8 --prompt-chunk 3"), first);
  EXPECT_EQ(tokens("--generate 8 --top-k 1 --seed 4"), first);
  EXPECT_EQ(tokens("--generate 8 --top-p 0.000001 --temperature 2"), first);
  EXPECT_NE(tokens("--generate 8 --temperature 3 --seed 4"), first);
  EXPECT_NE(tokens("--generate 64 --repetition-penalty 4"), tokens("--generate 64"));
  EXPECT_EQ(tokens("--generate 8 --stop 121 --stop 46"), "tokens    0 46\n");
  EXPECT_EQ(tokens("--generate 8 --state present.0.key=past_key_values.0.key:2"
                   " --state present.1.key=past_key_values.1.key"),
            first);
}

TEST_F(GenerateTool, ProfilesOneMoreToken) {
  const std::string prompt = " --prompt " + file("prompt3.npz"), trace = path("trace.json");
  const auto report = [&](const std::string& options) {
    const Finished done =
        run("redfuser-run", on_cpu("--generate 8" + prompt + " --json - " + options));
    EXPECT_EQ(done.code, 0) << done.errors;
    return nlohmann::json::parse(done.output);
  };
  const nlohmann::json plain = report(""), profiled = report("--profile " + trace);
  EXPECT_EQ(profiled["tokens"], plain["tokens"]);
  EXPECT_EQ(profiled["time"]["token_ms"].size(), plain["time"]["token_ms"].size());
  EXPECT_FALSE(plain.contains("profile"));
  EXPECT_EQ(profiled["profile"]["runs"], 1);
  EXPECT_GT(profiled["profile"]["steps"].size(), 4u);
  const nlohmann::json events = nlohmann::json::parse(read(trace));
  EXPECT_GT(events["traceEvents"].size(), profiled["profile"]["steps"].size());
  const Finished ended =
      run("redfuser-run", on_cpu("--generate 8 --stop 46 --prompt " + file("prompt1.npy") +
                                 " --profile " + path("none.json")));
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("every sequence ended before"), std::string::npos) << ended.errors;
}

TEST_F(GenerateTool, ErrorsNameTheOption) {
  const std::string prompt = " --prompt " + file("prompt1.npy");
  const std::pair<std::string, const char*> cases[] = {
      {"--generate 4", "--generate needs --prompt"},
      {"--generate 0" + prompt, "max_tokens is 0"},
      {prompt, "--prompt goes with --generate"},
      {"--top-k 4", "--top-k goes with --generate"},
      {"--generate 4 --dim batch_size=2" + prompt, "--dim does not go with --generate"},
      {"--generate 4 --prompt /no/such.npy", "/no/such.npy"},
      {"--generate 4 --state a=b:c" + prompt, "--state"},
      {"--generate 4 --state present.0.key=past.0.key:2" + prompt, "no input \"past.0.key\""},
      {"--generate 4 --top-p 2" + prompt, "top_p is 2"},
  };
  for (const auto& [arguments, part] : cases) {
    const Finished done = run("redfuser-run", on_cpu(arguments));
    EXPECT_EQ(done.code, 2) << arguments;
    EXPECT_NE(done.errors.find(part), std::string::npos) << done.errors;
  }
  const TextModel plain("g (float[n] x) => (float[n] y) { y = Exp(x) }");
  const Finished stateless =
      run("redfuser-run", plain.path() + " --device cpu --generate 4" + prompt);
  EXPECT_NE(stateless.errors.find("the model has no states"), std::string::npos);
}

}  // namespace
}  // namespace redfuser
