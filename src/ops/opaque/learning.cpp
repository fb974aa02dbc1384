// Operators of ai.onnx.ml.
#include <algorithm>

#include "base/error.h"
#include "ops/arguments.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/reindex.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

void infer_binarizer(InferContext& context) {
  check_operand(context, 0, Operand::Number);
  context.set(0, context.dtype(0), context.shape(0));
}

ir::Expr lower_binarizer(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr x = context.read_broadcast(0);
  ir::Expr above =
      pool.make(ir::ExprOp::Less, {pool.number(context.real("threshold", 0), x->dtype), x});
  return pool.select(above, pool.number(1, x->dtype), pool.number(0, x->dtype));
}

// Elements of the last dimension at a list of positions of any shape.
void infer_array_feature_extractor(InferContext& context) {
  Shape shape = context.shape(0);
  if (shape.empty()) context.fail("the input has no dimension");
  if (shape.size() == 1) shape.insert(shape.begin(), context.pool().integer(1));
  check_indices(context, 1, {&context.shape(0).back(), 1});
  shape.back() = product_of(context.pool(), context.shape(1));
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_array_feature_extractor(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Shape listed{product_of(pool, context.shape(1))};
  std::vector<ir::Expr> position =
      reshape_index(pool, listed, context.shape(1), context.index().last(1));
  ir::Expr at = pool.cast(DType::Int64, context.read(1, std::move(position)));
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  if (context.rank(0) == 1) index.erase(index.begin());
  index.back() = data_index(pool, at, context.shape(0).back());
  return context.read(0, std::move(index));
}

std::vector<Positions> extracted_positions(const LowerContext& context) {
  return {index_positions(context, 1, context.shape(0).back())};
}

// The result type of a LabelEncoder, by the attribute that holds its values.
void infer_label_encoder(InferContext& context) {
  static constexpr std::pair<const char*, DType> kKinds[] = {{"values_strings", DType::String},
                                                             {"values_int64s", DType::Int64},
                                                             {"values_floats", DType::Float32}};
  for (const auto& [name, dtype] : kKinds) {
    if (context.has(name)) return context.set(0, dtype, context.shape(0));
  }
  if (context.has("values_tensor")) {
    const auto* tensor = std::get_if<Tensor>(&context.node().attributes.at("values_tensor"));
    if (tensor == nullptr) context.fail("values_tensor is no tensor");
    return context.set(0, tensor->dtype(), context.shape(0));
  }
  context.fail("it has no values");
}

// Strings to integers, or integers to strings.
void infer_category_mapper(InferContext& context) {
  const DType dtype = context.dtype(0);
  if (dtype != DType::String && dtype != DType::Int64) {
    context.fail(fmt::format("the input is {}, not string or int64", name_of(dtype)));
  }
  context.set(0, dtype == DType::String ? DType::Int64 : DType::String, context.shape(0));
}

int64_t length_of(const NodeView& view, const std::string& list) {
  if (!view.has(list)) return 0;
  const ir::Attribute& attribute = view.node().attributes.at(list);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    return static_cast<int64_t>(texts->size());
  }
  return static_cast<int64_t>(view.integers(list, {}).size());
}

void infer_one_hot_encoder(InferContext& context) {
  Shape shape = context.shape(0);
  const char* list = context.dtype(0) == DType::String ? "cats_strings" : "cats_int64s";
  shape.push_back(context.pool().integer(length_of(context, list)));
  context.set(0, DType::Float32, std::move(shape));
}

// The number of rows of a table; a single row has one dimension.
ir::Expr rows_of(const InferContext& context) {
  check_operand(context, 0, Operand::Number);
  const Shape& shape = context.shape(0);
  if (shape.empty() || shape.size() > 2) context.fail("the input must be [N,features]");
  return shape.size() == 1 ? context.pool().integer(1) : shape[0];
}

int64_t targets_of(const InferContext& context) {
  const int64_t targets = context.integer("n_targets", 1);
  if (targets < 1) context.fail(fmt::format("n_targets is {}", targets));
  return targets;
}

void require_table(const InferContext& context) {
  if (context.rank(0) != 2) context.fail("the input must be [N,features]");
}

void infer_regressor(InferContext& context) {
  require_table(context);
  context.set(0, DType::Float32, {rows_of(context), context.pool().integer(targets_of(context))});
}

// Labels, and `columns(classes)` scores.
template <typename Columns>
void infer_classes(InferContext& context, const std::string& integers, const Columns& columns) {
  const int64_t words = length_of(context, "classlabels_strings");
  const int64_t classes = words != 0 ? words : length_of(context, integers);
  if (classes == 0) context.fail("it has no class labels");
  context.set(0, words != 0 ? DType::String : DType::Int64, {rows_of(context)});
  context.set(1, DType::Float32, {rows_of(context), context.pool().integer(columns(classes))});
}

void infer_tree_classifier(InferContext& context) {
  require_table(context);
  infer_classes(context, "classlabels_int64s", [](int64_t classes) { return classes; });
}

// One-versus-one machines give a score per pair of classes, or a probability per class.
void infer_svm_classifier(InferContext& context) {
  infer_classes(context, "classlabels_ints", [&](int64_t classes) {
    const auto vectors = context.integers("vectors_per_class", {});
    const bool pairs =
        std::any_of(vectors.begin(), vectors.end(), [](int64_t n) { return n != 0; });
    const auto* slopes =
        context.has("prob_a")
            ? std::get_if<std::vector<float>>(&context.node().attributes.at("prob_a"))
            : nullptr;
    const bool probable = slopes != nullptr && !slopes->empty();
    return pairs && !probable && classes > 2 ? classes * (classes - 1) / 2 : classes;
  });
}

void infer_tree_ensemble(InferContext& context) {
  require_table(context);
  context.set(0, context.dtype(0),
              {context.shape(0)[0], context.pool().integer(targets_of(context))});
}

constexpr OpDef kOps[] = {
    {"Binarizer", kDomain, 1, infer_binarizer, lower_binarizer},
    with_positions({"ArrayFeatureExtractor", kDomain, 1, infer_array_feature_extractor,
                    lower_array_feature_extractor},
                   extracted_positions),
    {"CategoryMapper", kDomain, 1, infer_category_mapper, nullptr},
    {"LabelEncoder", kDomain, 1, infer_category_mapper, nullptr},
    {"LabelEncoder", kDomain, 2, infer_label_encoder, nullptr},
    {"OneHotEncoder", kDomain, 1, infer_one_hot_encoder, nullptr},
    {"SVMClassifier", kDomain, 1, infer_svm_classifier, nullptr},
    {"TreeEnsemble", kDomain, 5, infer_tree_ensemble, nullptr},
    {"TreeEnsembleClassifier", kDomain, 1, infer_tree_classifier, nullptr},
    {"TreeEnsembleRegressor", kDomain, 1, infer_regressor, nullptr},
};

}  // namespace

std::span<const OpDef> learning_ops() { return kOps; }

}  // namespace redfuser::ops
