// Shape rules of sequences and optionals. A list's elements have a type where all of them have one;
// sizes in which they may differ are known at run time only.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

using Shapes = ListForm::Shapes;

ListFormRef form_of_input(const NodeView& view, int input) {
  const ir::Value& value = view.input(input);
  if (!is_list(value.dtype)) {
    view.fail(fmt::format("input {} is {}, not a list", input, name_of(value.dtype)));
  }
  return value.list_form();
}

// The form of a list of this input alone.
ListFormRef form_with(const NodeView& view, int input) {
  const ir::Value& value = view.input(input);
  ListForm form{value.dtype, Shapes::Alike, {}, nullptr};
  for (const ir::Expr size : value.shape) {
    form.dims.push_back(size->is_constant() ? size->integer : -1);
  }
  if (is_list(value.dtype)) {
    form.dims = {-1};
    form.inner = value.list_form();
  }
  return std::make_shared<const ListForm>(std::move(form));
}

Shape shape_of_element(InferContext& context, const ListForm& form) {
  if (form.shapes != Shapes::Alike) {
    context.fail_unknown(form.shapes == Shapes::None
                             ? "the list has no element"
                             : "the types of a list's elements are known only at run time");
  }
  Shape shape;
  for (size_t k = 0; k < form.dims.size(); ++k) {
    shape.push_back(form.dims[k] < 0 ? context.fresh_size(fmt::format("size{}", k))
                                     : context.pool().integer(form.dims[k]));
  }
  return shape;
}

// Output 0 is an element of the list.
void set_element(InferContext& context, const ListForm& form) {
  Shape shape = shape_of_element(context, form);
  if (form.inner != nullptr) return context.set_list(0, form.dtype, shape[0], form.inner);
  context.set(0, form.dtype, std::move(shape));
}

void infer_sequence_construct(InferContext& context) {
  ListFormRef form = empty_form();
  for (int i = 0; i < context.input_count(); ++i) form = joined(form, form_with(context, i));
  context.set_list(0, DType::Sequence, context.pool().integer(context.input_count()), form);
}

void infer_sequence_empty(InferContext& context) {
  const DType dtype = type_argument(context, "dtype", DType::Float32);
  context.set_list(0, DType::Sequence, context.pool().integer(0), empty_form(dtype));
}

void infer_sequence_insert(InferContext& context) {
  const ListFormRef form = joined(form_of_input(context, 0), form_with(context, 1));
  context.set_list(0, DType::Sequence,
                   context.pool().add(context.shape(0)[0], context.pool().integer(1)), form);
}

void infer_sequence_erase(InferContext& context) {
  const ListFormRef form = form_of_input(context, 0);
  context.set_list(0, DType::Sequence, context.fresh_size("count"), form);
}

void infer_sequence_at(InferContext& context) { set_element(context, *form_of_input(context, 0)); }

void infer_sequence_length(InferContext& context) {
  form_of_input(context, 0);
  context.set(0, DType::Int64, {});
}

// The size of every part of a split, -1 where parts differ or only a run knows it.
int64_t size_of_parts(const InferContext& context) {
  if (!context.has_input(1)) return 1;
  const auto given = context.constant_integers(1);
  if (!given || given->empty()) return -1;
  for (const int64_t part : *given) {
    if (part != given->front()) return -1;
  }
  return given->front();
}

void infer_split_to_sequence(InferContext& context) {
  ListForm form = *form_with(context, 0);
  const int axis = context.axis(context.integer("axis", 0), context.rank(0));
  int64_t& size = form.dims[static_cast<size_t>(axis)];
  const int64_t whole = size, part = size_of_parts(context);
  const bool by_size = context.has_input(1) && context.rank(1) == 0;
  ir::Expr count = context.shape(0)[static_cast<size_t>(axis)];
  if (context.has_input(1)) count = by_size ? nullptr : context.shape(1)[0];
  size = part;
  if (by_size) {
    // The last part may be a shorter one.
    const bool divides = part > 0 && whole >= 0 && whole % part == 0;
    size = divides ? part : -1;
    count = divides ? context.pool().integer(whole / part) : context.fresh_size("count");
  }
  if (!context.has_input(1) && context.integer("keepdims", 1) == 0) {
    form.dims.erase(form.dims.begin() + axis);
  }
  context.set_list(0, DType::Sequence, count, std::make_shared<const ListForm>(std::move(form)));
}

void infer_concat_from_sequence(InferContext& context) {
  const ListFormRef form = form_of_input(context, 0);
  Shape shape = shape_of_element(context, *form);
  const bool fresh = context.integer("new_axis", 0) != 0;
  const int rank = static_cast<int>(shape.size()) + (fresh ? 1 : 0);
  const int axis = context.axis(context.integer("axis", 0), rank);
  const ir::Expr count = context.shape(0)[0];
  if (fresh) {
    shape.insert(shape.begin() + axis, count);
  } else {
    ir::Expr& size = shape[static_cast<size_t>(axis)];
    const bool alike = form->dims[static_cast<size_t>(axis)] >= 0;
    size = alike ? context.pool().mul(count, size) : context.fresh_size("total");
  }
  context.set(0, form->dtype, std::move(shape));
}

void infer_optional(InferContext& context) {
  const bool has = context.has_input(0);
  context.set_list(0, DType::Optional, context.pool().integer(has ? 1 : 0),
                   has ? form_with(context, 0) : empty_form());
}

void infer_optional_has_element(InferContext& context) { context.set(0, DType::Bool, {}); }

void infer_optional_get_element(InferContext& context) {
  const ir::Value& value = context.input(0);
  if (value.dtype == DType::Optional) return set_element(context, *value.list_form());
  if (!is_list(value.dtype)) return context.set(0, value.dtype, value.shape);
  context.set_list(0, value.dtype, value.shape[0], value.list_form());
}

constexpr OpDef kOps[] = {
    {"SequenceConstruct", "", 11, infer_sequence_construct, nullptr},
    {"SequenceEmpty", "", 11, infer_sequence_empty, nullptr},
    {"SequenceInsert", "", 11, infer_sequence_insert, nullptr},
    {"SequenceErase", "", 11, infer_sequence_erase, nullptr},
    {"SplitToSequence", "", 11, infer_split_to_sequence, nullptr},
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
