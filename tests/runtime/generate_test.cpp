// Tokens of decoders: those of ONNX Runtime, options, callbacks and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "redfuser/generate.h"
#include "redfuser/io.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

Tensor integers(const Dims& dims, const std::vector<int64_t>& values) {
  Tensor tensor(DType::Int64, dims);
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return tensor;
}

Rows rows(const Tensor& tensor) {
  Rows result;
  const int64_t width = tensor.dims()[1];
  for (int64_t row = 0; row < tensor.dims()[0]; ++row) {
    const int64_t* first = tensor.as<int64_t>() + row * width;
    result.emplace_back(first, first + width);
  }
  return result;
}

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

class LlamaDecoder : public testing::Test {
 protected:
  static std::string file(const std::string& name) {
    return std::string(test_paths::models()) + "/decoders/llama/" + name;
  }
  static Tensor only(const std::string& name) { return load_tensors(file(name)).begin()->second; }

  Model model = Model::load(file("model.onnx"));
  Session session{compile(model)};
  Generator generator{session, model};
  const Tensor prompt = only("prompt1.npy");
  const Rows expected = rows(only("tokens1.npy"));
};

TEST_F(LlamaDecoder, HasTheTokensOfOnnxRuntime) {
  EXPECT_EQ(generator.generate(prompt, {.max_tokens = 64}).tokens, expected);
  EXPECT_EQ(generator.states().length(), prompt.size() + 63);
  for (const int64_t chunk : {1, 4, 11, 100}) {
    GenerateOptions options{.max_tokens = 12, .prompt_chunk = chunk};
    const Rows first{{expected[0].begin(), expected[0].begin() + 12}};
    EXPECT_EQ(generator.generate(prompt, options).tokens, first) << chunk;
  }
}

TEST_F(LlamaDecoder, APaddedBatchHasTheTokensOfOnnxRuntime) {
  const NamedTensors prompts = load_tensors(file("prompt3.npz"));
  const Tensor &ids = prompts.at("input_ids"), &mask = prompts.at("attention_mask");
  const Rows wanted = rows(only("tokens3.npy"));
  for (const int64_t chunk : {0, 2}) {
    GenerateOptions options{.max_tokens = 64, .prompt_chunk = chunk};
    EXPECT_EQ(generator.generate(ids, mask, options).tokens, wanted) << chunk;
  }
  // The same sequence without its padding.
  const int64_t* row = ids.as<int64_t>() + 9;
  const Tensor alone = integers({1, 4}, {row + 5, row + 9});
  EXPECT_EQ(generator.generate(alone, {.max_tokens = 64}).tokens, Rows{wanted[1]});
}

TEST_F(LlamaDecoder, EndsAtAStopTokenOrByTheCallback) {
  const int64_t stop = expected[0][5];
  const auto end = std::find(expected[0].begin(), expected[0].end(), stop) + 1;
  const Generation stopped = generator.generate(prompt, {.max_tokens = 64, .stop = {stop}});
  EXPECT_EQ(stopped.tokens, (Rows{{expected[0].begin(), end}}));
  EXPECT_EQ(stopped.token_ms.size(), stopped.tokens[0].size() - 1);
  std::vector<int64_t> seen;
  const TokenCallback first_three = [&](int64_t row, int64_t token) {
    EXPECT_EQ(row, 0);
    seen.push_back(token);
    return seen.size() < 3;
  };
  EXPECT_EQ(generator.generate(prompt, {.max_tokens = 64}, first_three).tokens[0], seen);
  EXPECT_EQ(seen.size(), 3u);
}

// Rows of a batch end by themselves.
TEST_F(LlamaDecoder, ARowThatEndedLeavesTheOthers) {
  const NamedTensors prompts = load_tensors(file("prompt3.npz"));
  const Rows wanted = rows(only("tokens3.npy"));
  const Generation result =
      generator.generate(prompts.at("input_ids"), prompts.at("attention_mask"),
                         {.max_tokens = 20, .stop = {wanted[1][3]}});
  for (size_t row = 0; row < 3; ++row) {
    auto end = std::find(wanted[row].begin(), wanted[row].begin() + 20, wanted[1][3]);
    if (end != wanted[row].begin() + 20) ++end;
    EXPECT_EQ(result.tokens[row], (std::vector<int64_t>{wanted[row].begin(), end})) << row;
  }
}

TEST_F(LlamaDecoder, DrawsFollowTheSeed) {
  const auto drawn = [&](GenerateOptions options) {
    options.max_tokens = 12;
    return generator.generate(prompt, options).tokens[0];
  };
  const std::vector<int64_t> largest{expected[0].begin(), expected[0].begin() + 12};
  EXPECT_EQ(drawn({.temperature = 2.0, .seed = 1}), drawn({.temperature = 2.0, .seed = 1}));
  EXPECT_NE(drawn({.temperature = 2.0, .seed = 1}), drawn({.temperature = 2.0, .seed = 2}));
  EXPECT_EQ(drawn({.top_k = 1, .seed = 3}), largest);
  EXPECT_EQ(drawn({.top_p = 1e-6, .seed = 3}), largest);
  EXPECT_EQ(drawn({.temperature = 1e-4}), largest);
  EXPECT_EQ(drawn({.temperature = 0.0, .top_k = 5}), largest);
  EXPECT_NE(drawn({.top_k = 5}), largest);
}

// A token's logits, whatever was before; the state counts the tokens.
constexpr const char* kTable =
    "g (int64[b, s] input_ids, float[b, p] past_0)"
    " => (float[b, s, 4] logits, float[b, t] present_0) {"
    "  table = Constant<value = float[4, 4] {4, 3, 2, 1, -4, -3, -2, -1, 0, 0, 0, 0, 0, 0, 0, 0}>()"
    "  logits = Gather(table, input_ids)"
    "  counted = Cast<to = 1>(input_ids)"
    "  present_0 = Concat<axis = 1>(past_0, counted) }";

Model parsed(const std::string& graph) {
  return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
}

class TableDecoder : public testing::Test {
 protected:
  // How often each token was drawn first after the prompt {0}.
  std::vector<int> counts(GenerateOptions options, int64_t draws = 2000) {
    options.max_tokens = 1;
    const Tensor zeros = integers({draws, 1}, std::vector<int64_t>(static_cast<size_t>(draws)));
    std::vector<int> result(4);
    for (const auto& row : generator.generate(zeros, options).tokens) ++result[row[0]];
    return result;
  }
  std::string error(const Tensor& ids, const Tensor& mask, const GenerateOptions& options = {}) {
    return error_of([&] { generator.generate(ids, mask, options); });
  }

  Model model = parsed(kTable);
  Session session{compile(model)};
  Generator generator{session, model};
};

TEST_F(TableDecoder, DrawsHaveTheProbabilitiesOfTheLogits) {
  const std::vector<int> all = counts({.temperature = 1.0, .seed = 7});
  double total = 0;
  for (int i = 0; i < 4; ++i) total += std::exp(-i);
  for (int i = 0; i < 4; ++i) {
    const double p = std::exp(-i) / total;
    EXPECT_NEAR(all[i], 2000 * p, 5 * std::sqrt(2000 * p * (1 - p))) << i;
  }
  const std::vector<int> two = counts({.top_k = 2});
  EXPECT_TRUE(two[0] > 0 && two[1] > 0 && two[2] == 0 && two[3] == 0);
  // The first two have 0.88 of the sum, the first three 0.97.
  const std::vector<int> most = counts({.top_p = 0.9});
  EXPECT_TRUE(most[1] > 0 && most[2] > 0 && most[3] == 0);
  const std::vector<int> cold = counts({.temperature = 0.1});
  EXPECT_GT(cold[0], 1990);
}

TEST_F(TableDecoder, PenalisesTokensThatWereThere) {
  const auto next = [&](const std::vector<int64_t>& ids, double penalty) {
    const Tensor prompt = integers({1, static_cast<int64_t>(ids.size())}, ids);
    return generator.generate(prompt, {.max_tokens = 1, .repetition_penalty = penalty})
        .tokens[0][0];
  };
  EXPECT_EQ(next({0}, 1), 0);
  EXPECT_EQ(next({0}, 1.3), 0);
  EXPECT_EQ(next({0}, 1.5), 1);
  EXPECT_EQ(next({0, 0, 0}, 1.3), 0);  // once for each token, not for each place
  EXPECT_EQ(next({3, 1}, 2.5), 2);     // -1 · 2.5 below -2
  const Tensor padded = integers({1, 2}, {3, 1}), mask = integers({1, 2}, {0, 1});
  expect_mentions(error(padded, mask), "row 0 is padded");
}

TEST_F(TableDecoder, ReadsThePromptByTheTokenWhereTheModelDoes) {
  std::string text = kTable;
  text.replace(text.find("int64[b, s]"), 11, "int64[b, 1]");
  const Model single = parsed(text);
  Session other(compile(single));
  Generator one(other, single);
  const Tensor prompt = integers({2, 4}, {0, 3, 2, 1, 3, 3, 0, 0});
  for (const int64_t chunk : {0, 3}) {
    const GenerateOptions options{.max_tokens = 3, .prompt_chunk = chunk};
    EXPECT_EQ(one.generate(prompt, options).tokens, generator.generate(prompt, options).tokens);
    EXPECT_EQ(one.states().length(), 6);
  }
}

TEST_F(TableDecoder, RefusesWrongPromptsAndOptions) {
  const Tensor one = integers({1, 1}, {0}), two = integers({1, 2}, {0, 0});
  const Tensor real(DType::Float32, {1, 1});
  expect_mentions(error(real, {}), "integers, not float32[1,1]");
  expect_mentions(error(integers({1}, {0}), {}), "the prompt is int64[1]");
  expect_mentions(error(Tensor(DType::Int64, {1, 0}), {}), "the prompt is int64[1,0]");
  expect_mentions(error(two, one), "the mask is int64[1,1], but the prompt is int64[1,2]");
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{1, 0}, {0, 0}, {1, 2}}) {
    expect_mentions(error(two, integers({1, 2}, wrong)), "row 0 of the mask");
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<GenerateOptions, const char*> wrong[] = {
      {{.max_tokens = 0}, "max_tokens is 0"},
      {{.prompt_chunk = -1}, "prompt_chunk is -1"},
      {{.repetition_penalty = 0}, "repetition penalty is 0"},
      {{.repetition_penalty = nan}, "repetition penalty is nan"},
      {{.temperature = -1.0}, "temperature is -1"},
      {{.top_k = -1}, "top_k is -1"},
      {{.top_p = 0}, "top_p is 0"},
      {{.top_p = 1.5}, "top_p is 1.5"},
  };
  for (const auto& [options, part] : wrong) expect_mentions(error(one, {}, options), part);
}

TEST_F(TableDecoder, TheCapacityEndsIt) {
  Generator small(session, model, {{}, 3});
  const Tensor one = integers({1, 2}, {0, 0});
  EXPECT_EQ(small.generate(one, {.max_tokens = 2}).tokens[0].size(), 2u);
  expect_mentions(error_of([&] { small.generate(one, {.max_tokens = 3}); }),
                  "state \"past_0\" holds 3 positions of its capacity of 3");
}

TEST_F(TableDecoder, RefusesLogitsThatAreNaN) {
  std::string text = kTable;
  text.replace(text.find("logits = Gather"), 15, "rows = Gather");
  text.replace(text.find("  counted"), 2, "  logits = Sqrt(rows)  ");
  const Model roots = parsed(text);
  Session other(compile(roots));
  Generator failing(other, roots);
  EXPECT_EQ(failing.generate(integers({1, 1}, {0}), {.max_tokens = 1}).tokens[0][0], 0);
  expect_mentions(error_of([&] {
                    failing.generate(integers({2, 1}, {0, 1}));
                  }),
                  "the logits of row 1 are NaN");
}

// The logits say which number v a run had: v is the token.
struct Filled {
  const char *input, *v;  // [batch, 1]
  Rows tokens;            // of a prompt of two rows of 3 positions, the first with one of padding
};

TEST(Generate, FillsWhatExportersDeclare) {
  const char* last = "l = Constant<value = int64 {-1}>() c = Gather<axis = 1>(x, l) ";
  const Filled cases[] = {
      {"int64[b, s] position_ids", "v = Unsqueeze(c, a)", {{1, 2, 3}, {2, 3, 4}}},
      {"int32[b, q] attention_mask", "v = ReduceSum(x, a)", {{2, 3, 4}, {3, 4, 5}}},
      {"bool[b, q] attention_mask",
       "w = Cast<to = 7>(x) v = ReduceSum(w, a)",
       {{2, 3, 4}, {3, 4, 5}}},
      {"int64[s] cache_position", "w = ReduceMax(x) v = Reshape(w, o)", {{2, 3, 4}, {2, 3, 4}}},
      {"bool[1] use_cache_branch", "w = Cast<to = 7>(x) v = Reshape(w, o)", {{0, 1, 1}, {0, 1, 1}}},
      {"int64 num_logits_to_keep", "v = Reshape(x, o)", {{1, 1, 1}, {1, 1, 1}}},
      {"int32[1] logits_to_keep", "v = Reshape(x, o)", {{1, 1, 1}, {1, 1, 1}}},
      {"int64[b] write_indices", "v = Unsqueeze(x, a)", {{0, 3, 4}, {0, 3, 4}}},
      {"int64[b] nonpad_kv_seqlen", "v = Unsqueeze(x, a)", {{3, 4, 5}, {3, 4, 5}}},
      {"int32[b] seqlens_k", "v = Unsqueeze(x, a)", {{2, 3, 4}, {2, 3, 4}}},
      {"int64[1] past_sequence_length", "v = Reshape(x, o)", {{0, 3, 4}, {0, 3, 4}}},
      {"int32 total_sequence_length", "v = Reshape(x, o)", {{3, 4, 5}, {3, 4, 5}}},
  };
  for (const Filled& filled : cases) {
    const std::string input(filled.input), name = input.substr(input.rfind(' ') + 1);
    const bool masked = name == "attention_mask";
    const Model model = parsed(
        "g (int64[b, s] input_ids, " + input + (masked ? "" : ", int64[b, q] attention_mask") +
        ", float[b, p] past_0) => (float[b, 16] logits, float[b, t] present_0) {"
        "  a = Constant<value = int64[1] {1}>()  o = Constant<value = int64[2] {1, 1}>()"
        "  x = Identity(" +
        name + ")  " + (name == "position_ids" ? last : "") + filled.v +
        "  known = Cast<to = 1>(v)  y = Cast<to = 1>(input_ids)"
        "  present_0 = Concat<axis = 1>(past_0, y)  zero = Constant<value = float {0}>()"
        "  none = Mul(y, zero)  nones = ReduceSum(none, a)  rows = Add(known, nones)"
        "  r = Constant<value = float[16] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}>()"
        "  e = Equal(rows, r)  logits = Cast<to = 1>(e) }");
    Session session(compile(model));
    Generator generator(session, model);
    const Tensor ids = integers({2, 3}, {0, 5, 6, 7, 8, 9});
    const Tensor mask = integers({2, 3}, {0, 1, 1, 1, 1, 1});
    EXPECT_EQ(generator.generate(ids, mask, {.max_tokens = 3}).tokens, filled.tokens) << input;
  }
}

struct Unfit {
  const char *inputs, *output, *part;
};

TEST(Generate, NamesWhatItCannotFill) {
  const Unfit cases[] = {
      {"int64[b, s] ids", "logits", "nothing fills input \"ids\", int64[b,s]"},
      {"float[b, s] input_ids", "logits", "\"input_ids\" is float32[b,s], which does not fit"},
      {"int64[b, s] input_ids, int64[b, 1, 1, q] attention_mask", "logits",
       "input \"attention_mask\" is int64[b,1,1,q]"},
      {"int64[b, s] position_ids", "logits", "no input \"input_ids\""},
      {"int64[b, s] input_ids", "one, float[b, p] two", "no output \"logits\", and 2 floating"},
  };
  for (const Unfit& unfit : cases) {
    const std::string outputs(unfit.output);
    const Model model =
        parsed("g (" + std::string(unfit.inputs) +
               ", float[b, p] past_0) => (float[b, t] present_0, float[b, p] " + outputs +
               ") { present_0 = Concat<axis = 1>(past_0, past_0) " +
               outputs.substr(0, outputs.find(',')) + " = Neg(past_0)" +
               (outputs.find("two") < outputs.size() ? " two = Abs(past_0)" : "") + " }");
    Session session(compile(model));
    expect_mentions(error_of([&] { Generator(session, model); }), unfit.part);
  }
}

}  // namespace
}  // namespace redfuser
