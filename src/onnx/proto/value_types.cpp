#include "onnx/proto/value_types.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

const char* kind_of(const ::onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "a sequence";
  if (type.has_map_type()) return "a map";
  if (type.has_optional_type()) return "an optional";
  if (type.has_sparse_tensor_type()) return "a sparse tensor";
  return "of no type";
}

const ::onnx::TypeProto_Tensor& tensor_type(const ::onnx::ValueInfoProto& info, const char* role,
                                            const std::string& where) {
  if (info.type().has_sequence_type() || info.type().has_optional_type()) {
    needs_values("{}: graph {} \"{}\" is {}", where, role, info.name(), kind_of(info.type()));
  }
  if (!info.type().has_tensor_type()) {
    user_error("{}: graph {} \"{}\" is {}; only tensors are supported", where, role, info.name(),
               kind_of(info.type()));
  }
  return info.type().tensor_type();
}

// Names that exporters write for every unknown dimension: Paddle2ONNX "?", the converters of
// scikit-learn, Keras and Core ML "None". Two such dimensions may have different sizes.
constexpr std::string_view kNoNames[] = {"", "?", "-1", "None"};

// The name of a dimension without a size: its own, or one made of the value's name.
std::string dimension_name(const ::onnx::ValueInfoProto& info, int k) {
  const std::string& name = info.type().tensor_type().shape().dim(k).dim_param();
  const bool named =
      std::find(std::begin(kNoNames), std::end(kNoNames), name) == std::end(kNoNames);
  return named ? name : fmt::format("{}.dim{}", info.name(), k);
}

}  // namespace

bool is_list_of_maps(const ::onnx::TypeProto& type) {
  return type.has_sequence_type() && type.sequence_type().elem_type().has_map_type();
}

void check_element_types(const ::onnx::TypeProto& type, const std::string& where) {
  if (type.has_sequence_type()) check_element_types(type.sequence_type().elem_type(), where);
  if (type.has_optional_type()) check_element_types(type.optional_type().elem_type(), where);
  const int code = type.tensor_type().elem_type();
  if (code != 0 && dtype_of(code) == DType::Undefined) {
    user_error("{}: element type {} is not supported", where, type_name(code));
  }
}

void set_input_type(ir::Graph& graph, ir::ValueId id, const ::onnx::ValueInfoProto& info,
                    const std::string& where) {
  const ::onnx::TypeProto_Tensor& type = tensor_type(info, "input", where);
  ir::Value& value = graph.values[static_cast<size_t>(id)];
  value.dtype = dtype_of(type.elem_type());
  if (size_of(value.dtype) == 0) {
    user_error("{}: graph input \"{}\": element type {} is not supported", where, info.name(),
               type_name(type.elem_type()));
  }
  if (!type.has_shape()) {
    needs_values("{}: graph input \"{}\" has no shape; its rank must be known", where, info.name());
  }
  for (int k = 0; k < type.shape().dim_size(); ++k) {
    const auto& dim = type.shape().dim(k);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      value.shape.push_back(graph.pool->integer(dim.dim_value()));
    } else {
      value.shape.push_back(graph.pool->symbol(dimension_name(info, k)));
    }
  }
  check_size(graph, id);
}

void check_declared_type(const ir::Value& value, const ::onnx::ValueInfoProto& info,
                         const char* role, const std::string& where) {
  // A graph may omit the types of its values.
  if (!info.has_type() || info.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET) return;
  if (is_list(value.dtype)) return;
  if (is_list_of_maps(info.type())) return;
  const int declared = tensor_type(info, role, where).elem_type();
  if (declared == 0 || dtype_of(declared) == value.dtype) return;
  user_error("{}: graph {} \"{}\" is declared {} but its node computes {}", where, role,
             info.name(), type_name(declared), type_name(static_cast<int>(value.dtype)));
}

ListFormRef declared_form(const ::onnx::TypeProto& type) {
  const ::onnx::TypeProto& inner = type.has_sequence_type() ? type.sequence_type().elem_type()
                                                            : type.optional_type().elem_type();
  ListForm form{DType::Undefined, ListForm::Shapes::Differ, {}, nullptr};
  if (inner.has_sequence_type() || inner.has_optional_type()) {
    form = {inner.has_sequence_type() ? DType::Sequence : DType::Optional,
            ListForm::Shapes::Alike,
            {-1},
            declared_form(inner)};
  } else if (inner.has_tensor_type() && size_of(dtype_of(inner.tensor_type().elem_type())) > 0) {
    form.dtype = dtype_of(inner.tensor_type().elem_type());
    if (inner.tensor_type().has_shape()) {
      form.shapes = ListForm::Shapes::Alike;
      form.dims.assign(static_cast<size_t>(inner.tensor_type().shape().dim_size()), -1);
    }
  }
  if (form.dtype == DType::Undefined) return open_form();
  return std::make_shared<const ListForm>(std::move(form));
}

ValueDeclarations declarations_of(const ::onnx::GraphProto& graph) {
  ValueDeclarations types;
  for (const auto* list : {&graph.input(), &graph.value_info(), &graph.output()}) {
    for (const auto& info : *list) types.emplace(info.name(), &info);
  }
  return types;
}

void check_size(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  int64_t bytes = static_cast<int64_t>(size_of(value.dtype));
  for (const ir::Expr size : value.shape) {
    if (!size->is_constant() || size->integer == 0) continue;
    if (!__builtin_mul_overflow(bytes, size->integer, &bytes)) continue;
    if (value.producer < 0) user_error("the size of \"{}\" overflows", value.name);
    const ir::Node& node = graph.nodes[static_cast<size_t>(value.producer)];
    user_error("[{}] node \"{}\": the size of its output \"{}\" overflows", node.op, node.name,
               value.name);
  }
}

namespace {

bool fits_shape(const Tensor& tensor, const ValueInfo& declared) {
  if (declared.any_shape) return true;
  bool fits = tensor.dims().size() == declared.dims.size();
  for (size_t i = 0; fits && i < declared.dims.size(); ++i) {
    fits = declared.dims[i].size < 0 || declared.dims[i].size == tensor.dims()[i];
  }
  return fits;
}

}  // namespace

void check_given(const Tensor& given, const ::onnx::ValueInfoProto& info) {
  const ValueInfo declared = declared_info(info);
  if (declared.dtype != DType::Undefined && given.dtype() != declared.dtype) {
    user_error("input \"{}\" is {}, but the model takes {}", info.name(), describe(given),
               name_of(declared.dtype));
  }
  if (!fits_shape(given, declared)) {
    user_error("input \"{}\" is {}, which is not the shape that the model takes", info.name(),
               describe(given));
  }
}

void check_default(const Tensor& initializer, const ::onnx::ValueInfoProto& info,
                   const std::string& where) {
  const ValueInfo declared = declared_info(info);
  const bool same = declared.dtype == DType::Undefined || declared.dtype == initializer.dtype();
  if (same && fits_shape(initializer, declared)) return;
  user_error("{}: initializer \"{}\" is {}, but the graph input of its name is declared otherwise",
             where, info.name(), describe(initializer));
}

ValueInfo declared_info(const ::onnx::ValueInfoProto& info) {
  ValueInfo result{info.name(), DType::Undefined, {}, true};
  if (info.type().has_sequence_type()) result.dtype = DType::Sequence;
  if (is_list_of_maps(info.type())) result.dtype = DType::Float32;
  if (info.type().has_optional_type()) result.dtype = DType::Optional;
  if (!info.type().has_tensor_type()) return result;
  result.dtype = dtype_of(info.type().tensor_type().elem_type());
  if (!info.type().tensor_type().has_shape()) return result;
  result.any_shape = false;
  for (int k = 0; k < info.type().tensor_type().shape().dim_size(); ++k) {
    const auto& dim = info.type().tensor_type().shape().dim(k);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      result.dims.push_back({dim.dim_value(), ""});
    } else {
      result.dims.push_back({-1, dimension_name(info, k), dim.dim_param()});
    }
  }
  return result;
}

namespace {

// An empty list has no type; float tensors are assumed.
::onnx::TypeProto type_of_list(DType dtype, const ListForm& form) {
  ::onnx::TypeProto type;
  auto* inner = dtype == DType::Sequence ? type.mutable_sequence_type()->mutable_elem_type()
                                         : type.mutable_optional_type()->mutable_elem_type();
  if (form.inner != nullptr) {
    *inner = type_of_list(form.dtype, *form.inner);
    return type;
  }
  const bool typed = form.dtype != DType::Undefined;
  inner->mutable_tensor_type()->set_elem_type(typed ? static_cast<int>(form.dtype)
                                                    : static_cast<int>(::onnx::TensorProto::FLOAT));
  return type;
}

}  // namespace

::onnx::TypeProto type_of(const ir::Graph& graph, ir::ValueId id) {
  ::onnx::TypeProto type;
  if (id == ir::kAbsent) return type;
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  if (is_list(value.dtype)) {
    const ListFormRef form = value.list_form();
    if (form->dtype == DType::Undefined && form->shapes == ListForm::Shapes::Differ) {
      needs_values("only a run knows the types in \"{}\", {}", value.name, name_of(value.dtype));
    }
    return type_of_list(value.dtype, *form);
  }
  type.mutable_tensor_type()->set_elem_type(static_cast<int>(value.dtype));
  auto* shape = type.mutable_tensor_type()->mutable_shape();
  for (const ir::Expr size : value.shape) {
    auto* dim = shape->add_dim();
    if (size->is_constant()) dim->set_dim_value(size->integer);
    if (size->op == ir::ExprOp::Symbol) dim->set_dim_param(graph.pool->symbol_name(size));
  }
  return type;
}

ValueInfo value_info(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  ValueInfo info{value.name, value.dtype, {}};
  for (const ir::Expr size : value.shape) {
    if (size->is_constant()) {
      info.dims.push_back({size->integer, ""});
    } else {
      info.dims.push_back({-1, to_string(*graph.pool, size)});
    }
  }
  return info;
}

}  // namespace redfuser::onnx
