#include "fuzz/model_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <onnx/defs/schema.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace redfuser {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }

template <typename T>
const T& any_of(Random& random, const std::vector<T>& list) {
  return list[below(random, list.size())];
}

const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& schema : ::onnx::OpSchemaRegistry::get_all_schemas()) {
      list.push_back(schema.Name());
    }
    return list;
  }();
  return names;
}

// Every message and every string inside a message, itself included.
struct Contents {
  std::vector<Message*> messages;
  std::vector<std::string> strings;
};

void collect(Message* message, Contents& contents) {
  contents.messages.push_back(message);
  const Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      if (!field->is_repeated()) {
        contents.strings.push_back(reflection->GetString(*message, field));
      }
      for (int i = 0; field->is_repeated() && i < reflection->FieldSize(*message, field); ++i) {
        contents.strings.push_back(reflection->GetRepeatedString(*message, field, i));
      }
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) collect(reflection->MutableMessage(message, field), contents);
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(*message, field); ++i) {
      collect(reflection->MutableRepeatedMessage(message, field, i), contents);
    }
  }
}

int64_t any_integer(Random& random) {
  static const std::vector<int64_t> kEdges = {0,
                                              1,
                                              -1,
                                              2,
                                              3,
                                              7,
                                              16,
                                              24,
                                              127,
                                              65536,
                                              std::numeric_limits<int32_t>::max(),
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min()};
  return below(random, 4) ? any_of(random, kEdges) : static_cast<int64_t>(random()) - (1 << 30);
}

double any_number(Random& random) {
  static const std::vector<double> kEdges = {0,
                                             1,
                                             -1,
                                             0.5,
                                             1e30,
                                             std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN()};
  return any_of(random, kEdges);
}

std::string any_string(Random& random, const FieldDescriptor* field, const Contents& contents) {
  if (field->name() == "op_type" && below(random, 2)) return any_of(random, operator_names());
  if (!contents.strings.empty() && below(random, 8)) return any_of(random, contents.strings);
  return std::string(below(random, 9), static_cast<char>('a' + below(random, 26)));
}

// A message of that type among them, else null.
const Message* any_of_type(Random& random, const google::protobuf::Descriptor* type,
                           const Contents& contents) {
  std::vector<const Message*> list;
  for (const Message* message : contents.messages) {
    if (message->GetDescriptor() == type) list.push_back(message);
  }
  return list.empty() ? nullptr : any_of(random, list);
}

// Sets a scalar, or adds one to a repeated field.
void write_scalar(Message* message, const FieldDescriptor* field, Random& random,
                  const Contents& contents) {
  const Reflection* reflection = message->GetReflection();
  auto write = [&](auto set, auto add, auto value) {
    if (field->is_repeated()) {
      (reflection->*add)(message, field, value);
    } else {
      (reflection->*set)(message, field, value);
    }
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return write(&Reflection::SetInt32, &Reflection::AddInt32,
                   static_cast<int32_t>(any_integer(random)));
    case FieldDescriptor::CPPTYPE_INT64:
      return write(&Reflection::SetInt64, &Reflection::AddInt64, any_integer(random));
    case FieldDescriptor::CPPTYPE_UINT64:
      return write(&Reflection::SetUInt64, &Reflection::AddUInt64,
                   static_cast<uint64_t>(any_integer(random)));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return write(&Reflection::SetFloat, &Reflection::AddFloat,
                   static_cast<float>(any_number(random)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return write(&Reflection::SetDouble, &Reflection::AddDouble, any_number(random));
    case FieldDescriptor::CPPTYPE_ENUM:
      return write(&Reflection::SetEnumValue, &Reflection::AddEnumValue,
                   static_cast<int>(below(random, 30)));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = any_string(random, field, contents);
      if (field->is_repeated()) return reflection->AddString(message, field, text);
      return reflection->SetString(message, field, text);
    }
    default:
      return;
  }
}

// A copy of a message of the model, or an empty one.
void write_message(Message* message, const FieldDescriptor* field, Random& random,
                   const Contents& contents) {
  constexpr size_t kLargest = 1 << 14;
  // As bytes: it may hold the place that it goes to, and a new member of a oneof ends the old one.
  const Message* like = any_of_type(random, field->message_type(), contents);
  const std::string bytes = like ? like->SerializePartialAsString() : "";
  const Reflection* reflection = message->GetReflection();
  Message* part = field->is_repeated() ? reflection->AddMessage(message, field)
                                       : reflection->MutableMessage(message, field);
  if (bytes.size() < kLargest) part->ParsePartialFromString(bytes);
}

void edit_repeated(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection* reflection = message->GetReflection();
  const int size = reflection->FieldSize(*message, field);
  if (size == 0) return;
  const int a = static_cast<int>(below(random, static_cast<size_t>(size)));
  reflection->SwapElements(message, field, a, size - 1);
  if (below(random, 2)) reflection->RemoveLast(message, field);
}

// Puts another value in the place of one of a repeated field of numbers; false for other fields.
bool replace_number(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection* reflection = message->GetReflection();
  const int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
  if (size == 0) return false;
  const int at = static_cast<int>(below(random, static_cast<size_t>(size)));
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection->SetRepeatedInt32(message, field, at, static_cast<int32_t>(any_integer(random)));
      return true;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection->SetRepeatedInt64(message, field, at, any_integer(random));
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection->SetRepeatedUInt64(message, field, at, static_cast<uint64_t>(any_integer(random)));
      return true;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection->SetRepeatedFloat(message, field, at, static_cast<float>(any_number(random)));
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection->SetRepeatedDouble(message, field, at, any_number(random));
      return true;
    default:
      return false;
  }
}

// Writes a number over some of the bytes that hold a tensor; false for other fields.
bool replace_bytes(Message* message, const FieldDescriptor* field, Random& random) {
  if (field->type() != FieldDescriptor::TYPE_BYTES || field->is_repeated()) return false;
  const Reflection* reflection = message->GetReflection();
  std::string bytes = reflection->GetString(*message, field);
  const size_t width = size_t{1} << below(random, 4);
  if (bytes.size() < width) return false;
  const int64_t number = any_integer(random);
  std::memcpy(bytes.data() + below(random, bytes.size() / width) * width, &number, width);
  reflection->SetString(message, field, bytes);
  return true;
}

// Half of the time one that is set.
const FieldDescriptor* any_field(const Message& message, Random& random) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  if (!fields.empty() && below(random, 2)) return any_of(random, fields);
  const auto* descriptor = message.GetDescriptor();
  const auto count = static_cast<size_t>(descriptor->field_count());
  return count ? descriptor->field(static_cast<int>(below(random, count))) : nullptr;
}

void edit(::onnx::ModelProto& model, Random& random) {
  Contents contents;
  collect(&model, contents);
  Message* message = any_of(random, contents.messages);
  const FieldDescriptor* field = any_field(*message, random);
  if (field == nullptr) return;
  const size_t kind = below(random, 6);
  if (kind > 2 && (replace_number(message, field, random) || replace_bytes(message, field, random)))
    return;
  if (kind == 0) {
    message->GetReflection()->ClearField(message, field);
  } else if (kind <= 2 && field->is_repeated()) {
    edit_repeated(message, field, random);
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    write_message(message, field, random, contents);
  } else {
    if (field->is_repeated()) edit_repeated(message, field, random);
    write_scalar(message, field, random, contents);
  }
}

// Repeats an input of a node.
void widen(::onnx::NodeProto& node, Random& random) {
  constexpr size_t kMax = 1500;
  if (node.input_size() == 0) return;
  const std::string input =
      node.input(static_cast<int>(below(random, static_cast<size_t>(node.input_size()))));
  for (size_t count = below(random, kMax); count > 0; --count) node.add_input(input);
}

// Puts a chain behind a node whose nodes each use their operand twice.
void nest(::onnx::GraphProto& graph, int at, Random& random) {
  static const std::vector<std::string> kOps = {"Add", "Mul", "Sub", "Max", "Min", "And", "Sum"};
  constexpr size_t kMax = 80;
  if (graph.node(at).output_size() == 0) return;
  const std::string result = graph.node(at).output(0);
  const std::string op = any_of(random, kOps);
  std::string value = result + "~";
  graph.mutable_node(at)->set_output(0, value);
  for (size_t left = 1 + below(random, kMax); left > 0; --left) {
    ::onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.add_input(value);
    node.add_input(value);
    value = left == 1 ? result : result + "~" + std::to_string(left);
    node.add_output(value);
  }
}

void grow(::onnx::GraphProto& graph, Random& random) {
  if (graph.node_size() == 0) return;
  const int at = static_cast<int>(below(random, static_cast<size_t>(graph.node_size())));
  if (below(random, 2)) {
    widen(*graph.mutable_node(at), random);
  } else {
    nest(graph, at, random);
  }
}

}  // namespace

void mutate(::onnx::ModelProto& model, Random& random) {
  const size_t edits = 1 + below(random, 4);
  for (size_t i = 0; i < edits; ++i) {
    if (below(random, 16) == 0) {
      grow(*model.mutable_graph(), random);
    } else {
      edit(model, random);
    }
  }
}

void cross_over(::onnx::ModelProto& to, const ::onnx::ModelProto& from, Random& random) {
  Contents into, other;
  ::onnx::ModelProto source = from;
  collect(&to, into);
  collect(&source, other);
  Message* place = any_of(random, into.messages);
  if (const Message* like = any_of_type(random, place->GetDescriptor(), other)) {
    place->CopyFrom(*like);
  }
}

}  // namespace redfuser
