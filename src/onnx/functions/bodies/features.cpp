// Operators of ai.onnx.ml that prepare the columns of a table [rows, features], and GlobalLpPool.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

constexpr int64_t kWidest = std::numeric_limits<int32_t>::max();
constexpr int kFloat = ::onnx::TensorProto::FLOAT, kDouble = ::onnx::TensorProto::DOUBLE;

// The size of the last dimension; -1 where it is open.
int64_t features_of(const ExpansionCall& call) {
  if (call.rank(0) < 1) call.fail("the input has no dimension");
  return call.size(0, call.rank(0) - 1);
}

// A list that holds one value for all features, or one for each.
void check_per_feature(const ExpansionCall& call, const char* name) {
  const int64_t length = call.length(name), features = features_of(call);
  if (length > 1 && features >= 0 && length != features) {
    call.fail(fmt::format("{} has {} values for {} features", name, length, features));
  }
}

}  // namespace

// A row over its maximum or its norm; a row whose divisor is 0 stays.
std::string learning_normalizer(const ExpansionCall& call) {
  features_of(call);
  const std::string norm = call.text("norm", "MAX");
  const char* reduce = norm == "MAX"  ? "ReduceMax"
                       : norm == "L1" ? "ReduceL1"
                       : norm == "L2" ? "ReduceL2"
                                      : nullptr;
  if (reduce == nullptr) call.fail(fmt::format("norm \"{}\" is none of MAX, L1 and L2", norm));
  return fmt::format(R"(<norm> (X) => (Y) {{
    XF = Cast<to = 1>(X)
    Last = Constant<value_ints = [-1]>()
    Zero = Constant<value_float = 0.0>()
    One = Constant<value_float = 1.0>()
    Norm = {}(XF, Last)
    IsZero = Equal(Norm, Zero)
    Divisor = Where(IsZero, One, Norm)
    Y = Div(XF, Divisor)
  }})",
                     reduce);
}

std::string learning_scaler(const ExpansionCall& call) {
  check_per_feature(call, "offset");
  check_per_feature(call, "scale");
  std::string body =
      fmt::format("XF = Cast<to = {}>(X) ", call.type(0) == kDouble ? kDouble : kFloat);
  body +=
      call.length("offset") > 0
          ? "O = Constant<value_floats: floats = @offset>() OF = CastLike(O, XF) D = Sub(XF, OF) "
          : "D = Identity(XF) ";
  body += call.length("scale") > 0
              ? "S = Constant<value_floats: floats = @scale>() SF = CastLike(S, XF) M = Mul(D, SF) "
              : "M = Identity(D) ";
  return fmt::format("<offset, scale> (X) => (Y) {{ {} Y = Cast<to = 1>(M) }}", body);
}

std::string learning_imputer(const ExpansionCall& call) {
  const bool real = call.type(0) == kFloat || call.type(0) == kDouble;
  const char* list = real ? "imputed_value_floats" : "imputed_value_int64s";
  if (call.length(list) == 0) call.fail(fmt::format("it has no {}", list));
  check_per_feature(call, list);
  const char* head =
      "<imputed_value_floats, imputed_value_int64s, replaced_value_float: float = 0.0, "
      "replaced_value_int64: int = 0> (X) => (Y)";
  const char* missing = R"(
    Old = Constant<value_int: int = @replaced_value_int64>()
    Wide = Cast<to = 7>(X)
    Missing = Equal(Wide, Old))";
  if (real && std::isnan(call.real("replaced_value_float", 0))) {
    missing = "Missing = IsNaN(X)";
  } else if (real) {
    missing = R"(
    Old = Constant<value_float: float = @replaced_value_float>()
    OldX = CastLike(Old, X)
    Missing = Equal(X, OldX))";
  }
  return fmt::format(R"({} {{ {}
    New = Constant<{}: {} = @{}>()
    NewX = CastLike(New, X)
    Y = Where(Missing, NewX, X)
  }})",
                     head, missing, real ? "value_floats" : "value_ints", real ? "floats" : "ints",
                     list);
}

// Columns of all inputs, each cut or filled with zeros to its width.
std::string learning_feature_vectorizer(const ExpansionCall& call) {
  const int64_t widths = call.length("inputdimensions");
  if (widths != 0 && widths != call.input_count()) {
    call.fail(fmt::format("{} inputdimensions for {} inputs", widths, call.input_count()));
  }
  std::string inputs, parts, body = "Front = Constant<value_ints = [0]>() ";
  body += "Last = Constant<value_ints = [1]>() ";
  for (int i = 0; i < call.input_count(); ++i) {
    if (call.rank(i) < 1) call.fail(fmt::format("input {} has no dimension", i));
    inputs += fmt::format("{}X{}", i == 0 ? "" : ", ", i);
    parts += fmt::format("{}P{}", i == 0 ? "" : ", ", i);
    body += fmt::format("F{0} = Cast<to = 1>(X{0}) ", i);
    body += call.rank(i) == 1 ? fmt::format("M{0} = Unsqueeze(F{0}, Front) ", i)
                              : fmt::format("M{0} = Flatten<axis = 1>(F{0}) ", i);
    if (widths == 0) {
      body += fmt::format("P{0} = Identity(M{0}) ", i);
      continue;
    }
    const int64_t width = call.element("inputdimensions", i);
    if (width < 0 || width > kWidest) call.fail(fmt::format("inputdimensions: {}", width));
    body += fmt::format(
        "A{0} = Constant<value_ints = [0, 0, 0, {1}]>() W{0} = Constant<value_ints = [{1}]>() "
        "L{0} = Pad(M{0}, A{0}) P{0} = Slice(L{0}, Front, W{0}, Last) ",
        i, width);
  }
  return fmt::format("<inputdimensions> ({}) => (Y) {{ {} Y = Concat<axis = 1>({}) }}", inputs,
                     body, parts);
}

// A list of maps from classes to the columns of each row: the columns stay a tensor, whose
// description names the classes. The split checks a number of columns that is open.
std::string learning_zip_map(const ExpansionCall& call) {
  const int64_t words = call.length("classlabels_strings"),
                numbers = call.length("classlabels_int64s");
  if ((words > 0) == (numbers > 0)) {
    call.fail("it needs one of classlabels_strings and classlabels_int64s");
  }
  if (call.rank(0) != 1 && call.rank(0) != 2) call.fail("the input must be [C] or [N,C]");
  const int64_t columns = features_of(call);
  if (columns >= 0 && columns != words + numbers) {
    call.fail(fmt::format("{} classes for {} columns", words + numbers, columns));
  }
  const std::string sizes = fmt::format("Sizes = Constant<value_ints = [{}]>()", words + numbers);
  return fmt::format("<classlabels_int64s, classlabels_strings> (X) => (Z) {{ {} }}",
                     columns >= 0 ? "Z = Identity(X)" : sizes + " Z = Split<axis = -1>(X, Sizes)");
}

// Unknown categories give zeros; the kernel computes the form in which they are an error.
std::string learning_one_hot_encoder(const ExpansionCall& call) {
  const bool words = call.type(0) == ::onnx::TensorProto::STRING;
  const char* list = words ? "cats_strings" : "cats_int64s";
  if (call.length(list) == 0) call.fail(fmt::format("it has no {}", list));
  if (call.integer("zeros", 1) == 0) return "";
  return fmt::format(
      R"(<cats_int64s, cats_strings, zeros> (X) => (Y) {{
    {}
    Last = Constant<value_ints = [-1]>()
    Column = Unsqueeze(Key, Last)
    Categories = Constant<{}>()
    Same = Equal(Column, Categories)
    Y = Cast<to = 1>(Same)
  }})",
      words ? "Key = Identity(X)" : "Key = Cast<to = 7>(X)",
      words ? "value_strings: strings = @cats_strings" : "value_ints: ints = @cats_int64s");
}

}  // namespace redfuser::onnx
