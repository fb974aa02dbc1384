// TfIdfVectorizer: how often the n-grams of a pool occur in the rows of a tensor.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

using Gram = std::vector<std::string>;

// The elements of a pool or of an input, numbers or texts, as one kind of key.
std::vector<std::string> keys_of(const std::vector<int64_t>& numbers) {
  std::vector<std::string> keys;
  for (const int64_t number : numbers) keys.push_back(std::to_string(number));
  return keys;
}

std::vector<std::string> keys_of(const OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  if (x.dtype() != DType::String) return keys_of(call.integers_of(0));
  std::vector<std::string> keys;
  for (int64_t i = 0; i < x.size(); ++i) keys.push_back(x.text(i));
  return keys;
}

struct Lengths {
  int64_t shortest, longest;
};

// The column that each n-gram of the pool counts in.
std::map<Gram, int64_t> grams_of(const OpaqueCall& call, const Lengths& lengths) {
  const bool words = call.tensor(0).dtype() == DType::String;
  const auto pool =
      words ? words_attribute(call, "pool_strings") : keys_of(call.integers("pool_int64s", {}));
  const auto starts = call.integers("ngram_counts", {}),
             indexes = call.integers("ngram_indexes", {});
  std::map<Gram, int64_t> grams;
  size_t gram = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const auto length = static_cast<int64_t>(n) + 1;
    const auto end = n + 1 < starts.size() ? starts[n + 1] : static_cast<int64_t>(pool.size());
    if (starts[n] < 0 || starts[n] > end || end > static_cast<int64_t>(pool.size())) {
      call.fail(fmt::format("ngram_counts has {} in a pool of {}", starts[n], pool.size()));
    }
    for (int64_t at = starts[n]; at + length <= end; at += length, ++gram) {
      if (gram >= indexes.size()) call.fail("ngram_indexes is too short");
      if (length < lengths.shortest || length > lengths.longest) continue;
      grams[{pool.begin() + at, pool.begin() + at + length}] = indexes[gram];
    }
  }
  return grams;
}

// The weight of every column.
ChargedVector<float> weights_of(const OpaqueCall& call, int64_t width) {
  const auto indexes = call.integers("ngram_indexes", {});
  const std::vector<double> given = reals_attribute(call, "weights");
  ChargedVector<float> weights(static_cast<size_t>(width), 1.0f);
  for (size_t i = 0; i < indexes.size() && i < given.size(); ++i) {
    weights[static_cast<size_t>(indexes[i])] = static_cast<float>(given[i]);
  }
  return weights;
}

// Adds the n-grams of a row, with gaps of up to `skips` between their elements.
void count_grams(std::span<const std::string> row, const Lengths& lengths, int64_t skips,
                 const std::map<Gram, int64_t>& grams, float* counts) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t length = lengths.shortest; length <= std::min(lengths.longest, size); ++length) {
    // Gaps make no difference to single elements; wider ones leave no place in the row.
    const int64_t widest = length == 1 ? 0 : std::min(skips, (size - 1) / (length - 1) - 1);
    for (int64_t gap = 1; gap <= widest + 1; ++gap) {
      for (int64_t begin = 0; begin + (length - 1) * gap < size; ++begin) {
        Gram gram;
        for (int64_t k = 0; k < length; ++k) {
          gram.push_back(row[static_cast<size_t>(begin + k * gap)]);
        }
        const auto found = grams.find(gram);
        if (found != grams.end()) counts[found->second] += 1;
      }
    }
  }
}

}  // namespace

void run_tf_idf(OpaqueCall& call) {
  const Lengths lengths{call.integer("min_gram_length", 1), call.integer("max_gram_length", 1)};
  const std::vector<std::string> items = keys_of(call);
  const auto grams = grams_of(call, lengths);
  const int64_t skips = call.integer("max_skip_count", 0);
  const std::string mode = call.text("mode", "TF");
  Dims dims = call.dims(0);
  const int64_t size = dims.back();
  const Dims outer(dims.begin(), dims.end() - 1);
  const int64_t rows = element_count(outer);
  int64_t width = 0;
  for (const int64_t index : call.integers("ngram_indexes", {})) width = std::max(width, index + 1);
  dims.back() = width;
  Tensor& y = call.allocate(0, dims);
  const ChargedVector<float> weights = weights_of(call, width);
  std::fill_n(y.as<float>(), y.size(), 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    float* counts = y.as<float>() + r * width;
    count_grams({items.data() + r * size, static_cast<size_t>(size)}, lengths, skips, grams,
                counts);
    for (int64_t i = 0; i < width; ++i) {
      const float weight = weights[static_cast<size_t>(i)];
      if (mode == "IDF") counts[i] = counts[i] > 0 ? weight : 0;
      if (mode == "TFIDF") counts[i] *= weight;
    }
  }
}

}  // namespace redfuser::cpu
