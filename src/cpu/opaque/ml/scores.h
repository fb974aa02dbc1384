// What the models of ai.onnx.ml share: lists among attributes, and transforms of their scores.
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

// The labels of classes, by the names of the two lists of which a node has one.
Tensor class_labels(const OpaqueCall& call, const std::string& integers, const std::string& words);
// Copies element `from` of a tensor to element `to` of another of its type.
void copy_element(const Tensor& source, int64_t from, Tensor& target, int64_t to);

// In the numbering of TreeEnsemble.
enum class ScoreTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

ScoreTransform score_transform(const OpaqueCall& call);  // of the attribute post_transform

// Transforms a row of scores. A single score is no distribution: only Probit changes it.
void transform_scores(ScoreTransform transform, double* row, int64_t count);

// Two scores from the one that a model of two classes has for its second class. `share`: the score
// is a part of 1, so that the other class has the rest; else it is signed. As ONNX Runtime does,
// except for Probit, of which it leaves the second score open.
void transform_pair(ScoreTransform transform, bool share, double score, double* row);

}  // namespace redfuser::cpu
