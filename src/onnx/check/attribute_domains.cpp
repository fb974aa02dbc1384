#include "onnx/check/attribute_domains.h"

#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "onnx/proto/attributes.h"

namespace redfuser::onnx {
namespace {

// Operators of ai.onnx. Those whose shape rule refuses other values need no entry.
struct AttributeDomain {
  std::string_view op;
  const char* attribute;
  std::vector<std::string> values;  // integers in decimal digits
};

const std::vector<AttributeDomain>& domains() {
  static const std::vector<AttributeDomain> table = {
      {"CumSum", "exclusive", {"0", "1"}},
      {"CumSum", "reverse", {"0", "1"}},
      {"DepthToSpace", "mode", {"DCR", "CRD"}},
      {"GRU", "layout", {"0", "1"}},
      {"Gelu", "approximate", {"none", "tanh"}},
      {"LSTM", "layout", {"0", "1"}},
      {"MaxPool", "storage_order", {"0", "1"}},
      {"Mod", "fmod", {"0", "1"}},
      {"NegativeLogLikelihoodLoss", "reduction", {"none", "mean", "sum"}},
      {"NonMaxSuppression", "center_point_box", {"0", "1"}},
      {"RNN", "layout", {"0", "1"}},
      {"Resize", "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
      {"RoiAlign", "coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}},
      {"RoiAlign", "mode", {"avg", "max"}},
      {"SoftmaxCrossEntropyLoss", "reduction", {"none", "mean", "sum"}},
      {"TfIdfVectorizer", "mode", {"TF", "IDF", "TFIDF"}},
  };
  return table;
}

}  // namespace

void check_attribute_domains(const ::onnx::NodeProto& node, const std::string& domain,
                             const std::string& where) {
  if (!domain.empty()) return;
  for (const AttributeDomain& entry : domains()) {
    if (entry.op != node.op_type()) continue;
    const ::onnx::AttributeProto* attribute = find_attribute(node, entry.attribute);
    if (attribute == nullptr) continue;
    const std::string value = attribute->type() == ::onnx::AttributeProto::STRING
                                  ? attribute->s()
                                  : std::to_string(attribute->i());
    if (std::find(entry.values.begin(), entry.values.end(), value) != entry.values.end()) continue;
    user_error("{}: {} is {}, but it must be one of {}", where, entry.attribute, value,
               fmt::join(entry.values, ", "));
  }
}

}  // namespace redfuser::onnx
