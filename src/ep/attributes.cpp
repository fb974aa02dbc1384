#include "ep/attributes.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {
namespace {

using Type = ::onnx::AttributeProto;

// The bytes of an attribute's value. A first call without room tells how many there are.
std::string bytes_of(const Api& api, const OrtOpAttr& attribute, OrtOpAttrType type) {
  size_t size = 0;
  if (OrtStatus* status = api.ort->ReadOpAttr(&attribute, type, nullptr, 0, &size)) {
    api.ort->ReleaseStatus(status);
  }
  std::string bytes(size, '\0');
  if (size > 0) check(api, api.ort->ReadOpAttr(&attribute, type, bytes.data(), size, &size));
  return bytes;
}

template <typename T>
std::vector<T> numbers_of(const Api& api, const OrtOpAttr& attribute, OrtOpAttrType type) {
  const std::string bytes = bytes_of(api, attribute, type);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

template <typename T>
T number_of(const Api& api, const OrtOpAttr& attribute, OrtOpAttrType type) {
  T number = 0;
  size_t size = 0;
  check(api, api.ort->ReadOpAttr(&attribute, type, &number, sizeof(T), &size));
  return number;
}

void write_strings(const std::string& texts, Type& proto) {
  for (size_t at = 0; at < texts.size();) {
    const std::string_view text(texts.data() + at);  // each ends with a zero
    proto.add_strings(std::string(text));
    at += text.size() + 1;
  }
}

void write_tensor_attribute(const Api& api, const OrtOpAttr& attribute, Type& proto) {
  const Released<OrtValue> value(
      answer<OrtValue*>(api, &OrtApi::OpAttr_GetTensorAttributeAsOrtValue, &attribute),
      api.ort->ReleaseValue);
  proto.set_type(Type::TENSOR);
  write_tensor(api, *value, true, *proto.mutable_t());
}

void write_attribute(const Api& api, const OrtOpAttr& attribute, OrtOpAttrType type, Type& proto) {
  switch (type) {
    case ORT_OP_ATTR_INT:
      proto.set_type(Type::INT);
      return proto.set_i(number_of<int64_t>(api, attribute, type));
    case ORT_OP_ATTR_FLOAT:
      proto.set_type(Type::FLOAT);
      return proto.set_f(number_of<float>(api, attribute, type));
    case ORT_OP_ATTR_STRING:
      proto.set_type(Type::STRING);
      return proto.set_s(bytes_of(api, attribute, type));
    case ORT_OP_ATTR_INTS:
      proto.set_type(Type::INTS);
      for (const int64_t i : numbers_of<int64_t>(api, attribute, type)) proto.add_ints(i);
      return;
    case ORT_OP_ATTR_FLOATS:
      proto.set_type(Type::FLOATS);
      for (const float f : numbers_of<float>(api, attribute, type)) proto.add_floats(f);
      return;
    case ORT_OP_ATTR_STRINGS:
      proto.set_type(Type::STRINGS);
      return write_strings(bytes_of(api, attribute, type), proto);
    case ORT_OP_ATTR_TENSOR:
      return write_tensor_attribute(api, attribute, proto);
    default:
      return;
  }
}

bool is_default(const ::onnx::OpSchema& schema, const Type& written) {
  const auto found = schema.attributes().find(written.name());
  if (found == schema.attributes().end()) return false;
  Type usual = found->second.default_value;
  usual.set_name(written.name());
  usual.clear_doc_string();
  return usual.type() == written.type() && usual.SerializeAsString() == written.SerializeAsString();
}

void write_texts(const Api& api, const OrtValue& value, ::onnx::TensorProto& proto) {
  const int64_t count = element_count(tensor_type(api, value).dims);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::string text(answer<size_t>(api, &OrtApi::GetStringTensorElementLength, &value, i), '\0');
    check(api, api.ort->GetStringTensorElement(&value, text.size(), i, text.data()));
    proto.add_string_data(std::move(text));
  }
}

}  // namespace

void write_tensor(const Api& api, const OrtValue& value, bool with_data,
                  ::onnx::TensorProto& proto) {
  const TensorType type = tensor_type(api, value);
  proto.set_data_type(static_cast<int>(type.dtype));
  for (const int64_t dim : type.dims) proto.add_dims(dim);
  if (!with_data) return;
  if (type.dtype == DType::String) return write_texts(api, value, proto);
  const auto bytes = answer<size_t>(api, &OrtApi::GetTensorSizeInBytes, &value);
  const auto* data = answer<const void*>(api, &OrtApi::GetTensorData, &value);
  proto.set_raw_data(bytes > 0 ? data : "", bytes);
}

void write_attributes(const Api& api, const OrtNode& node, ::onnx::NodeProto& proto) {
  const auto version = answer<int>(api, &OrtApi::Node_GetSinceVersion, &node);
  const auto* schema = ::onnx::OpSchemaRegistry::Schema(proto.op_type(), version, proto.domain());
  for (const OrtOpAttr* attribute : attributes_of(api, node)) {
    if (attribute == nullptr) continue;
    const auto type = answer<OrtOpAttrType>(api, &OrtApi::OpAttr_GetType, attribute);
    if (type == ORT_OP_ATTR_GRAPH) continue;
    Type& written = *proto.add_attribute();
    written.set_name(answer<const char*>(api, &OrtApi::OpAttr_GetName, attribute));
    write_attribute(api, *attribute, type, written);
    if (schema != nullptr && is_default(*schema, written)) proto.mutable_attribute()->RemoveLast();
  }
}

}  // namespace redfuser::ep
