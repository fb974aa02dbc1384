// Shape rules of sequences and optionals. Their element types and lengths are known at run time
// only, so a model with them is evaluated node by node.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

bool is_list(DType dtype) { return dtype == DType::Sequence || dtype == DType::Optional; }

// The values of a list input.
std::vector<Tensor> elements_of(const NodeView& view, int input) {
  const ir::Value& value = view.input(input);
  if (!is_list(value.dtype)) {
    view.fail(fmt::format("input {} is {}, not a list", input, name_of(value.dtype)));
  }
  if (!value.is_constant()) view.fail_unknown("the contents of a list are known only at run time");
  return value.constant.elements();
}

void require_values(InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i) {
    if (context.has_input(i) && !context.input(i).is_constant()) {
      context.fail_unknown("a list is known only at run time");
    }
  }
}

void set_list(InferContext& context, DType dtype) {
  require_values(context);
  context.set(0, dtype, {context.fresh_size("count")});
}

void set_like(InferContext& context, const Tensor& tensor) {
  Shape shape;
  for (const int64_t size : tensor.dims()) shape.push_back(context.pool().integer(size));
  context.set(0, tensor.dtype(), std::move(shape));
}

void infer_sequence(InferContext& context) { set_list(context, DType::Sequence); }

void infer_sequence_empty(InferContext& context) {
  type_argument(context, "dtype", DType::Float32);
  set_list(context, DType::Sequence);
}

void infer_sequence_at(InferContext& context) {
  const std::vector<Tensor> elements = elements_of(context, 0);
  const auto position = context.constant_integers(1);
  if (!position || position->size() != 1) context.fail_unknown("the position is not known");
  const auto count = static_cast<int64_t>(elements.size());
  const int64_t at = position->front() < 0 ? position->front() + count : position->front();
  if (at < 0 || at >= count) {
    context.fail(fmt::format("position {} in a sequence of {}", position->front(), count));
  }
  set_like(context, elements[static_cast<size_t>(at)]);
}

void infer_sequence_length(InferContext& context) {
  elements_of(context, 0);
  context.set(0, DType::Int64, {});
}

void infer_concat_from_sequence(InferContext& context) {
  const std::vector<Tensor> elements = elements_of(context, 0);
  if (elements.empty()) context.fail("the sequence is empty");
  const bool fresh = context.integer("new_axis", 0) != 0;
  const int rank = static_cast<int>(elements[0].dims().size()) + (fresh ? 1 : 0);
  const int axis = context.axis(context.integer("axis", 0), rank);
  Dims dims = elements[0].dims();
  if (fresh) dims.insert(dims.begin() + axis, 1);
  int64_t total = 0;
  for (const Tensor& element : elements) {
    Dims other = element.dims();
    if (fresh && other.size() == elements[0].dims().size()) other.insert(other.begin() + axis, 1);
    if (other.size() != dims.size() || element.dtype() != elements[0].dtype()) {
      context.fail("the elements differ in rank or type");
    }
    total += other[static_cast<size_t>(axis)];
    other[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
    if (other != dims) context.fail("the elements differ in shape");
  }
  dims[static_cast<size_t>(axis)] = total;
  Shape shape;
  for (const int64_t size : dims) shape.push_back(context.pool().integer(size));
  context.set(0, elements[0].dtype(), std::move(shape));
}

void infer_optional(InferContext& context) { set_list(context, DType::Optional); }

void infer_optional_has_element(InferContext& context) { context.set(0, DType::Bool, {}); }

void infer_optional_get_element(InferContext& context) {
  const ir::Value& value = context.input(0);
  if (value.dtype != DType::Optional) {
    if (!value.is_constant()) context.fail_unknown("the input is known only at run time");
    return set_like(context, value.constant);
  }
  const std::vector<Tensor> elements = elements_of(context, 0);
  if (elements.empty()) context.fail("the optional is empty");
  set_like(context, elements[0]);
}

constexpr OpDef kOps[] = {
    {"SequenceConstruct", "", 11, infer_sequence, nullptr},
    {"SequenceEmpty", "", 11, infer_sequence_empty, nullptr},
    {"SequenceInsert", "", 11, infer_sequence, nullptr},
    {"SequenceErase", "", 11, infer_sequence, nullptr},
    {"SplitToSequence", "", 11, infer_sequence, nullptr},
    {"SequenceAt", "", 11, infer_sequence_at, nullptr},
    {"SequenceLength", "", 11, infer_sequence_length, nullptr},
    {"ConcatFromSequence", "", 11, infer_concat_from_sequence, nullptr},
    {"Optional", "", 15, infer_optional, nullptr},
    {"OptionalHasElement", "", 15, infer_optional_has_element, nullptr},
    {"OptionalGetElement", "", 15, infer_optional_get_element, nullptr},
};

}  // namespace

std::span<const OpDef> sequence_ops() { return kOps; }

}  // namespace redfuser::ops
