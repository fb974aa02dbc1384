// Every opaque kernel, by file. The table in opaque_table.cpp has their operators.
#pragma once

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// image/conv_transpose.cpp
void run_conv_transpose(OpaqueCall& call);

// image/integer_products.cpp
void run_conv_integer(OpaqueCall& call);

// image/pool.cpp
void run_max_pool(OpaqueCall& call);
void run_average_pool(OpaqueCall& call);
void run_lp_pool(OpaqueCall& call);

// tensor/scan.cpp
void run_cumsum(OpaqueCall& call);

// tensor/select.cpp, tensor/unique.cpp
void run_nonzero(OpaqueCall& call);
void run_compress(OpaqueCall& call);
void run_unique(OpaqueCall& call);

// image/nms.cpp
void run_non_max_suppression(OpaqueCall& call);

// tensor/scatter_nd.cpp, tensor/scatter_elements.cpp
void run_scatter_nd(OpaqueCall& call);
void run_scatter_elements(OpaqueCall& call);

// tensor/recurrent.cpp
void run_rnn(OpaqueCall& call);
void run_gru(OpaqueCall& call);
void run_lstm(OpaqueCall& call);
void run_dynamic_quantize_lstm(OpaqueCall& call);

// image/resize.cpp
void run_resize(OpaqueCall& call);
void run_upsample(OpaqueCall& call);
OpaqueCost cost_of_resize(const ops::NodeView& view, std::span<const Dims> inputs,
                          const Dims& output);

// tensor/sequence.cpp
void run_sequence_construct(OpaqueCall& call);
void run_sequence_empty(OpaqueCall& call);
void run_sequence_insert(OpaqueCall& call);
void run_sequence_erase(OpaqueCall& call);
void run_sequence_at(OpaqueCall& call);
void run_sequence_length(OpaqueCall& call);
void run_split_to_sequence(OpaqueCall& call);
void run_concat_from_sequence(OpaqueCall& call);
void run_optional(OpaqueCall& call);
void run_optional_has_element(OpaqueCall& call);
void run_optional_get_element(OpaqueCall& call);
void run_identity(OpaqueCall& call);

// ml/string.cpp
void run_string_concat(OpaqueCall& call);
void run_string_split(OpaqueCall& call);
void run_regex_full_match(OpaqueCall& call);
void run_string_cast(OpaqueCall& call);

// ml/normalizer.cpp
void run_string_normalizer(OpaqueCall& call);

// ml/hashes.cpp
void run_murmur_hash(OpaqueCall& call);

// ml/tokens.cpp
void run_tokenizer(OpaqueCall& call);

// ml/ngrams.cpp
void run_tf_idf(OpaqueCall& call);

// tensor/random.cpp
void run_random_normal(OpaqueCall& call);
void run_random_uniform(OpaqueCall& call);
void run_multinomial(OpaqueCall& call);
void run_dropout(OpaqueCall& call);

// tensor/signal.cpp, tensor/mel.cpp, tensor/matrix.cpp
void run_dft(OpaqueCall& call);
void run_stft(OpaqueCall& call);
void run_mel_weight_matrix(OpaqueCall& call);
void run_det(OpaqueCall& call);
void run_cumprod(OpaqueCall& call);
void run_bit_cast(OpaqueCall& call);

// image/grid_sample.cpp, image/image.cpp, image/col2im.cpp, tensor/max_unpool.cpp
void run_grid_sample(OpaqueCall& call);
void run_roi_align(OpaqueCall& call);
void run_max_roi_pool(OpaqueCall& call);
void run_max_unpool(OpaqueCall& call);
void run_deform_conv(OpaqueCall& call);
void run_col2im(OpaqueCall& call);

// ml/learning.cpp
void run_label_encoder(OpaqueCall& call);
void run_category_mapper(OpaqueCall& call);
void run_one_hot_encoder(OpaqueCall& call);

// ml/trees.cpp, ml/svm.cpp
void run_tree_ensemble(OpaqueCall& call);
void run_tree_ensemble_regressor(OpaqueCall& call);
void run_tree_ensemble_classifier(OpaqueCall& call);
void run_svm_classifier(OpaqueCall& call);

}  // namespace redfuser::cpu
