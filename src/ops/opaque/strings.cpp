// Shape rules of opaque operators on strings. Copies and comparisons of strings have lowerings,
// since elements are numbers of interned strings.
#include <limits>

#include "base/error.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

void require_strings(const NodeView& view, int input) {
  if (view.dtype(input) != DType::String) {
    view.fail(fmt::format("input {} is {}, not string", input, name_of(view.dtype(input))));
  }
}

void infer_string_concat(InferContext& context) {
  require_strings(context, 0);
  require_strings(context, 1);
  context.set(0, DType::String, context.broadcast(context.shape(0), context.shape(1)));
}

void infer_string_split(InferContext& context) {
  require_strings(context, 0);
  Shape shape = context.shape(0);
  context.set(1, DType::Int64, shape);
  shape.push_back(context.fresh_size("pieces"));
  context.set(0, DType::String, std::move(shape));
}

void infer_regex_full_match(InferContext& context) {
  require_strings(context, 0);
  context.set(0, DType::Bool, context.shape(0));
}

void infer_string_normalizer(InferContext& context) {
  require_strings(context, 0);
  Shape shape = context.shape(0);
  const bool row = shape.size() == 2 && shape[0]->is_constant(1);
  if (shape.size() == 2 && !shape[0]->is_constant()) {
    context.fail_unknown("the number of rows is known only at run time");
  }
  if (shape.size() != 1 && !row) context.fail("the input must be [C] or [1,C]");
  shape.back() = context.fresh_size("kept");
  context.set(0, DType::String, std::move(shape));
}

void infer_tokenizer(InferContext& context) {
  require_strings(context, 0);
  Shape shape = context.shape(0);
  if (shape.empty() || shape.size() > 2) context.fail("the input must be [C] or [N,C]");
  for (const char* name : {"mark", "pad_value", "mincharnum"}) {
    if (!context.has(name)) context.fail(fmt::format("it has no {}", name));
  }
  shape.push_back(context.fresh_size("pieces"));
  context.set(0, DType::String, std::move(shape));
}

// Elements of 4 and 8 bytes, and texts.
void infer_murmur_hash(InferContext& context) {
  const DType dtype = context.dtype(0);
  const bool fits = size_of(dtype) == 4 || (size_of(dtype) == 8 && bits_of(dtype) == 64);
  if (!fits && dtype != DType::String) context.fail(fmt::format("input 0 is {}", name_of(dtype)));
  const bool positive = context.integer("positive", 1) != 0;
  context.set(0, positive ? DType::UInt32 : DType::Int32, context.shape(0));
}

void infer_tf_idf(InferContext& context) {
  constexpr int64_t kMaxColumns = std::numeric_limits<int32_t>::max();
  const auto indexes = context.integers("ngram_indexes", {});
  int64_t width = 0;
  for (const int64_t index : indexes) {
    if (index < 0 || index > kMaxColumns) context.fail(fmt::format("ngram_indexes has {}", index));
    width = std::max(width, index + 1);
  }
  const int64_t shortest = context.integer("min_gram_length", 1);
  const int64_t longest = context.integer("max_gram_length", 1);
  if (shortest < 1 || longest < shortest) {
    context.fail(fmt::format("n-grams of {} to {} elements", shortest, longest));
  }
  if (const int64_t skips = context.integer("max_skip_count", 0); skips < 0) {
    context.fail(fmt::format("max_skip_count {}", skips));
  }
  Shape shape = context.shape(0);
  if (shape.empty() || shape.size() > 2) context.fail("the input must be [C] or [N,C]");
  shape.back() = context.pool().integer(width);
  context.set(0, DType::Float32, std::move(shape));
}

constexpr OpDef kOps[] = {
    {"StringConcat", "", 20, infer_string_concat, nullptr},
    {"StringSplit", "", 20, infer_string_split, nullptr},
    {"RegexFullMatch", "", 20, infer_regex_full_match, nullptr},
    {"StringNormalizer", "", 10, infer_string_normalizer, nullptr},
    {"TfIdfVectorizer", "", 9, infer_tf_idf, nullptr},
    {"Tokenizer", "com.microsoft", 1, infer_tokenizer, nullptr},
    {"MurmurHash3", "com.microsoft", 1, infer_murmur_hash, nullptr},
};

}  // namespace

std::span<const OpDef> string_ops() { return kOps; }

}  // namespace redfuser::ops
