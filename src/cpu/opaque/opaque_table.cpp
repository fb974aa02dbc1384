#include "cpu/opaque/opaque_table.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

struct Entry {
  std::string_view name;
  OpaqueFunction function;
  OpaqueCostFunction cost = nullptr;
};

// By domain and name (the ONNX domain has none), sorted.
constexpr Entry kKernels[] = {
    {"AveragePool", run_average_pool},
    {"BitCast", run_bit_cast},
    {"Cast", run_string_cast},
    {"CastLike", run_string_cast},
    {"Col2Im", run_col2im},
    {"Compress", run_compress},
    {"ConcatFromSequence", run_concat_from_sequence},
    {"ConvInteger", run_conv_integer},
    {"ConvTranspose", run_conv_transpose},
    {"CumProd", run_cumprod},
    {"CumSum", run_cumsum},
    {"DFT", run_dft},
    {"DeformConv", run_deform_conv},
    {"Det", run_det},
    {"Dropout", run_dropout},
    {"GRU", run_gru},
    {"GridSample", run_grid_sample},
    {"Identity", run_identity},
    {"LSTM", run_lstm},
    {"LpPool", run_lp_pool},
    {"MaxPool", run_max_pool},
    {"MaxRoiPool", run_max_roi_pool},
    {"MaxUnpool", run_max_unpool},
    {"MelWeightMatrix", run_mel_weight_matrix},
    {"Multinomial", run_multinomial},
    {"NonMaxSuppression", run_non_max_suppression},
    {"NonZero", run_nonzero},
    {"Optional", run_optional},
    {"OptionalGetElement", run_optional_get_element},
    {"OptionalHasElement", run_optional_has_element},
    {"RNN", run_rnn},
    {"RandomNormal", run_random_normal},
    {"RandomNormalLike", run_random_normal},
    {"RandomUniform", run_random_uniform},
    {"RandomUniformLike", run_random_uniform},
    {"RegexFullMatch", run_regex_full_match},
    {"Resize", run_resize, cost_of_resize},
    {"RoiAlign", run_roi_align},
    {"STFT", run_stft},
    {"Scatter", run_scatter_elements},
    {"ScatterElements", run_scatter_elements},
    {"ScatterND", run_scatter_nd},
    {"SequenceAt", run_sequence_at},
    {"SequenceConstruct", run_sequence_construct},
    {"SequenceEmpty", run_sequence_empty},
    {"SequenceErase", run_sequence_erase},
    {"SequenceInsert", run_sequence_insert},
    {"SequenceLength", run_sequence_length},
    {"SplitToSequence", run_split_to_sequence},
    {"StringConcat", run_string_concat},
    {"StringNormalizer", run_string_normalizer},
    {"StringSplit", run_string_split},
    {"TfIdfVectorizer", run_tf_idf},
    {"Unique", run_unique},
    {"Upsample", run_upsample, cost_of_resize},
    {"ai.onnx.ml.CategoryMapper", run_category_mapper},
    {"ai.onnx.ml.LabelEncoder", run_label_encoder},
    {"ai.onnx.ml.OneHotEncoder", run_one_hot_encoder},
    {"ai.onnx.ml.SVMClassifier", run_svm_classifier},
    {"ai.onnx.ml.TreeEnsemble", run_tree_ensemble},
    {"ai.onnx.ml.TreeEnsembleClassifier", run_tree_ensemble_classifier},
    {"ai.onnx.ml.TreeEnsembleRegressor", run_tree_ensemble_regressor},
    {"com.microsoft.DynamicQuantizeLSTM", run_dynamic_quantize_lstm},
    {"com.microsoft.MurmurHash3", run_murmur_hash},
    {"com.microsoft.Tokenizer", run_tokenizer},
};

constexpr bool by_name(const Entry& a, const Entry& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kKernels), std::end(kKernels), by_name));

const Entry* find_entry(std::string_view domain, std::string_view name) {
  std::string qualified(name);
  if (!domain.empty() && domain != "ai.onnx") qualified = std::string(domain) + "." + qualified;
  const auto* found = std::lower_bound(std::begin(kKernels), std::end(kKernels),
                                       Entry{qualified, nullptr}, by_name);
  return found != std::end(kKernels) && found->name == qualified ? found : nullptr;
}

}  // namespace

OpaqueFunction find_opaque(std::string_view domain, std::string_view name) {
  const Entry* entry = find_entry(domain, name);
  return entry != nullptr ? entry->function : nullptr;
}

OpaqueCostFunction find_opaque_cost(std::string_view domain, std::string_view name) {
  const Entry* entry = find_entry(domain, name);
  return entry != nullptr ? entry->cost : nullptr;
}

}  // namespace redfuser::cpu
