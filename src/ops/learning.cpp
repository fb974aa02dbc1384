// Operators of ai.onnx.ml.
#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/reindex.h"
#include "ops/sizes.h"

namespace redfuser {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

void infer_binarizer(InferContext& context) {
  check_operand(context, 0, Operand::Number);
  context.set(0, context.dtype(0), context.shape(0));
}

Expr lower_binarizer(LowerContext& context) {
  ExprPool& pool = context.pool();
  Expr x = context.read_broadcast(0);
  Expr above = pool.make(ExprOp::Less, {pool.number(context.real("threshold", 0), x->dtype), x});
  return pool.select(above, pool.number(1, x->dtype), pool.number(0, x->dtype));
}

// Elements of the last dimension by positions, which are a list whatever their shape.
void infer_array_feature_extractor(InferContext& context) {
  Shape shape = context.shape(0);
  if (shape.empty()) context.fail("the input has no dimension");
  if (shape.size() == 1) shape.insert(shape.begin(), context.pool().integer(1));
  shape.back() = product_of(context.pool(), context.shape(1));
  context.set(0, context.dtype(0), std::move(shape));
}

Expr lower_array_feature_extractor(LowerContext& context) {
  ExprPool& pool = context.pool();
  const Shape listed{product_of(pool, context.shape(1))};
  std::vector<Expr> position =
      reshape_index(pool, listed, context.shape(1), context.index().last(1));
  Expr at = pool.cast(DType::Int64, context.read(1, std::move(position)));
  std::vector<Expr> index(context.index().begin(), context.index().end());
  if (context.rank(0) == 1) index.erase(index.begin());
  index.back() = data_index(pool, at, context.shape(0).back());
  return context.read(0, std::move(index));
}

// The type that a LabelEncoder gives, by the attribute that holds its values.
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
  context.fail("it has no values (the form of version 1 is not supported)");
}

void infer_tree_ensemble(InferContext& context) {
  if (context.rank(0) != 2) context.fail("the input must be [N,features]");
  context.set(0, context.dtype(0),
              {context.shape(0)[0], context.pool().integer(context.integer("n_targets", 1))});
}

constexpr OpDef kOps[] = {
    {"Binarizer", kDomain, 1, infer_binarizer, lower_binarizer},
    {"ArrayFeatureExtractor", kDomain, 1, infer_array_feature_extractor,
     lower_array_feature_extractor},
    {"LabelEncoder", kDomain, 2, infer_label_encoder, nullptr},
    {"TreeEnsemble", kDomain, 5, infer_tree_ensemble, nullptr},
};

}  // namespace

std::span<const OpDef> learning_ops() { return kOps; }

}  // namespace redfuser
