// com.microsoft operators on quantised tensors: they dequantise, compute and quantise.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// `result` = x as floats; its scale and zero point are the inputs named x + "Scale", x + "Zero".
std::string wide_text(const ExpansionCall& call, const std::string& x, int zero,
                      const std::string& result) {
  return fmt::format("{0} = DequantizeLinear({1}, {1}Scale{2}) ", result, x,
                     call.has(zero) ? fmt::format(", {}Zero", x) : "");
}

// `result` = x quantised to `dtype` by result + "Scale" and, if present, result + "Zero".
std::string narrow_text(const ExpansionCall& call, const std::string& x, int zero, int dtype,
                        const std::string& result) {
  return call.has(zero) ? fmt::format("{0} = QuantizeLinear({1}, {0}Scale, {0}Zero) ", result, x)
                        : fmt::format("{0} = QuantizeLinear<output_dtype = {2}>({1}, {0}Scale) ",
                                      result, x, dtype);
}

std::string unary(const ExpansionCall& call, const std::string& head, const std::string& body) {
  return fmt::format("{} (X, XScale, XZero, YScale, YZero) => (Y) {{ {} {} {} }}", head,
                     wide_text(call, "X", 2, "XF"), body,
                     narrow_text(call, "YF", 4, call.type(0), "Y"));
}

std::string binary(const ExpansionCall& call, const char* op) {
  return fmt::format(
      "(A, AScale, AZero, B, BScale, BZero, C"
      "Scale, CZero) => (C) {{ {} {} CF = {}(AF, BF) {} }}",
      wide_text(call, "A", 2, "AF"), wide_text(call, "B", 5, "BF"), op,
      narrow_text(call, "CF", 7, call.type(0), "C"));
}

// P = the integer product of A and B, as a float.
std::string integer_product(const ExpansionCall& call, int a_zero, int b_zero, const char* a) {
  std::string zeros;
  if (call.has(b_zero)) {
    zeros = call.has(a_zero) || a_zero < 0 ? ", AZero, BZero" : ", \"\", BZero";
  } else if (call.has(a_zero) || a_zero < 0) {
    zeros = ", AZero";
  }
  return fmt::format("PI = MatMulInteger({}, B{}) P = Cast<to = 1>(PI) ", a, zeros);
}

// `result` = round((Σ (x − XZero) (W − WZero) + B) · (XScale · WScale / YScale)) + YZero,
// saturated. WScale and B have an element for each filter, or WScale one for all.
std::string convolution_text(const ExpansionCall& call, const char* x, const char* result) {
  std::string along = "-1";  // the dimension of filters
  for (int d = 2; d < call.rank(3); ++d) along += ", 1";
  const std::string biased =
      call.has(8) ? "BR = Reshape(B, Along) S = Add(P, BR)" : "S = Identity(P)";
  return fmt::format(
      "P = ConvInteger<auto_pad: string = @auto_pad, dilations: ints = @dilations, "
      "group: int = @group, kernel_shape: ints = @kernel_shape, pads: ints = @pads, "
      "strides: ints = @strides>({}, W, XZero, WZero) Along = Constant<value_ints = [{}]>() {} "
      "SF = Cast<to = 1>(S) Both = Mul(XScale, WScale) Ratio = Div(Both, YScale) "
      "Factor = Reshape(Ratio, Along) Scaled = Mul(SF, Factor) "
      "One = Constant<value_float = 1.0>() Zero = Squeeze(YZero) "
      "{} = QuantizeLinear(Scaled, One, Zero)",
      x, along, biased, result);
}

std::string biased_text(const ExpansionCall& call, int bias) {
  return call.has(bias) ? "Y = Add(Scaled, Bias) " : "Y = Identity(Scaled) ";
}

}  // namespace

std::string microsoft_quantize(const ExpansionCall& call) {
  return fmt::format(
      "(X, Scale, Zero) => (Y) {{ Y = QuantizeLinear<axis: int = @axis>(X, Scale{}) }}",
      call.has(2) ? ", Zero" : "");
}

std::string microsoft_dequantize(const ExpansionCall& call) {
  return fmt::format(
      "(X, Scale, Zero) => (Y) {{ Y = DequantizeLinear<axis: int = @axis>(X, Scale{}) }}",
      call.has(2) ? ", Zero" : "");
}

std::string microsoft_dynamic_quantize_matmul(const ExpansionCall& call) {
  return fmt::format(
      "(A, B, BScale, BZero, Bias) => (Y) {{ AQ, AScale, AZero = DynamicQuantizeLinear(A) {} "
      "Both = Mul(AScale, BScale) Scaled = Mul(P, Both) {} }}",
      integer_product(call, -1, 3, "AQ"), biased_text(call, 4));
}

std::string microsoft_matmul_integer_to_float(const ExpansionCall& call) {
  return fmt::format(
      "(A, B, AScale, BScale, AZero, BZero, Bias) => (Y) {{ {} AS = Cast<to = 1>(AScale) "
      "BS = Cast<to = 1>(BScale) Both = Mul(AS, BS) ScaledF = Mul(P, Both) "
      "Scaled = CastLike(ScaledF, AScale) {} }}",
      integer_product(call, 4, 5, "A"), biased_text(call, 6));
}

std::string microsoft_quantized_gemm(const ExpansionCall& call) {
  const auto operand = [&](const char* name, const char* flag) {
    const char* op = call.integer(flag, 0) != 0 ? "Transpose<perm = [1, 0]>" : "Identity";
    return fmt::format("{0}T = {1}({0})", name, op);
  };
  return fmt::format(
      "<alpha: float = 1.0> (A, AScale, AZero, B, BScale, BZero, C, YScale, YZero) => (Y) {{ {} {} "
      "P = MatMulInteger(AT, BT, AZero, BZero) {} PF = Cast<to = 1>(S) Alpha = "
      "Constant<value_float: float = @alpha>() "
      "Both = Mul(AScale, BScale) Factor = Mul(Alpha, Both) YF = Mul(PF, Factor) {} }}",
      operand("A", "transA"), operand("B", "transB"),
      call.has(6) ? "S = Add(P, C)" : "S = Identity(P)",
      call.has(7) ? narrow_text(call, "YF", 8, call.type(0), "Y") : "Y = Identity(YF)");
}

std::string microsoft_quantized_add(const ExpansionCall& call) { return binary(call, "Add"); }
std::string microsoft_quantized_mul(const ExpansionCall& call) { return binary(call, "Mul"); }

std::string microsoft_quantized_sigmoid(const ExpansionCall& call) {
  return unary(call, "", "YF = Sigmoid(XF)");
}

std::string microsoft_quantized_leaky_relu(const ExpansionCall& call) {
  return unary(call, "<alpha: float = 0.01>", "YF = LeakyRelu<alpha: float = @alpha>(XF)");
}

std::string microsoft_quantized_softmax(const ExpansionCall& call) {
  // Before opset 13, all dimensions from the axis on are one.
  const bool coerced = call.integer("opset", 13) < 13;
  const int64_t axis = call.integer("axis", -1);
  if (!coerced) return unary(call, "<axis: int = -1>", "YF = Softmax<axis: int = @axis>(XF)");
  return unary(call, "",
               fmt::format("Flat = Flatten<axis = {}>(XF) Rows = Softmax<axis = 1>(Flat) "
                           "Whole = Shape(XF) YF = Reshape(Rows, Whole)",
                           axis));
}

std::string microsoft_quantized_concat(const ExpansionCall& call) {
  const int count = (call.input_count() - 2) / 3;
  call.refuse_if(call.input_count() != 2 + 3 * count || count < 1, "an incomplete input");
  std::string inputs = "YScale, YZero", body, names;
  for (int i = 0; i < count; ++i) {
    inputs += fmt::format(", X{0}, X{0}Scale, X{0}Zero", i);
    body += wide_text(call, fmt::format("X{}", i), 4 + 3 * i, fmt::format("F{}", i));
    names += fmt::format("{}F{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format("<axis> ({}) => (Y) {{ {} YF = Concat<axis: int = @axis>({}) {} }}", inputs,
                     body, names, narrow_text(call, "YF", 1, 0, "Y"));
}

std::string microsoft_quantized_where(const ExpansionCall& call) {
  return fmt::format(
      "(Condition, X, XScale, XZero, Y, YScale, YZero, ZScale, ZZero) => (Z) {{ "
      "Given = Cast<to = 9>(Condition) {} {} ZF = Where(Given, XF, YF) {} }}",
      wide_text(call, "X", 3, "XF"), wide_text(call, "Y", 6, "YF"),
      narrow_text(call, "ZF", 8, call.type(1), "Z"));
}

std::string microsoft_quantized_pool(const ExpansionCall& call) {
  const bool last = call.integer("channels_last", 0) != 0;
  call.refuse_if(last && call.rank(0) != 4, "channels_last of this rank");
  return unary(
      call, "",
      fmt::format("{} P = AveragePool<auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode, "
                  "count_include_pad: int = @count_include_pad, kernel_shape: ints = "
                  "@kernel_shape, pads: ints = @pads, strides: ints = @strides>(XC) {}",
                  last ? "XC = Transpose<perm = [0, 3, 1, 2]>(XF)" : "XC = Identity(XF)",
                  last ? "YF = Transpose<perm = [0, 2, 3, 1]>(P)" : "YF = Identity(P)"));
}

std::string microsoft_quantized_global_pool(const ExpansionCall& call) {
  const bool last = call.integer("channels_last", 0) != 0;
  std::string axes;
  for (int k = last ? 1 : 2; k < call.rank(0) - (last ? 1 : 0); ++k) {
    axes += fmt::format("{}{}", axes.empty() ? "" : ", ", k);
  }
  call.refuse_if(axes.empty(), "an input of this rank");
  return unary(call, "",
               fmt::format("Axes = Constant<value_ints = [{}]>() YF = ReduceMean(XF, Axes)", axes));
}

std::string quantized_conv(const ExpansionCall& call) {
  return fmt::format("(X, XScale, XZero, W, WScale, WZero, YScale, YZero, B) => (Y) {{ {} }}",
                     convolution_text(call, "X", "Y"));
}

std::string microsoft_quantized_conv(const ExpansionCall& call) {
  const bool last = call.integer("channels_last", 0) != 0;
  call.refuse_if(last && call.rank(0) != 4, "channels_last of this rank");
  return fmt::format("(X, XScale, XZero, W, WScale, WZero, YScale, YZero, B) => (Y) {{ {} {} {} }}",
                     last ? "XC = Transpose<perm = [0, 3, 1, 2]>(X)" : "XC = Identity(X)",
                     convolution_text(call, "XC", "T"),
                     last ? "Y = Transpose<perm = [0, 2, 3, 1]>(T)" : "Y = Identity(T)");
}

}  // namespace redfuser::onnx
