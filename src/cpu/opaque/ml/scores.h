// Shared parts of the models of ai.onnx.ml: attributes that are lists, and transforms of scores.
#pragma once

#include <string>
#include <vector>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// A list of floats, or a tensor of any type, as doubles; empty without it.
std::vector<double> reals_attribute(const OpaqueCall& call, const std::string& name);
std::vector<std::string> words_attribute(const OpaqueCall& call, const std::string& name);
// A tensor attribute; UserError if it is anything else.
Tensor tensor_attribute(const OpaqueCall& call, const std::string& name);
Tensor tensor_of_integers(const std::vector<int64_t>& list);

// The labels of classes, from one of two lists by their attribute names.
Tensor class_labels(const OpaqueCall& call, const std::string& integers, const std::string& words);
// Copies element `from` of a tensor to element `to` of another of its type.
void copy_element(const Tensor& source, int64_t from, Tensor& target, int64_t to);

// In the numbering of TreeEnsemble.
enum class ScoreTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

ScoreTransform score_transform(const OpaqueCall& call);  // of the attribute post_transform

// Transforms a row of scores. Of the transforms only Probit changes a single score.
void transform_scores(ScoreTransform transform, double* row, int64_t count);

// Both scores of a model with two classes and one score, that of the second class. `share`: the
// scores add up to 1; else the score is signed. As in ONNX Runtime, except for Probit, for which it
// does not set the second score.
void transform_pair(ScoreTransform transform, bool share, double score, double* row);

}  // namespace redfuser::cpu
