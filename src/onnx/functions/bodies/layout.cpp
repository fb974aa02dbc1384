// com.microsoft operators that are now in ai.onnx, perhaps under another name; operators of ai.onnx
// that are short compositions of others.
#include <fmt/ranges.h>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

std::string microsoft_gather_nd(const ExpansionCall&) {
  return "(X, Indices) => (Y) { I = Cast<to = 7>(Indices) Y = GatherND(X, I) }";
}

std::string microsoft_expand_dims(const ExpansionCall&) {
  return "(X, Axis) => (Y) { Line = Constant<value_ints = [-1]>() A64 = Cast<to = 7>(Axis) "
         "Axes = Reshape(A64, Line) Y = Unsqueeze(X, Axes) }";
}

std::string microsoft_range(const ExpansionCall& call) {
  std::string text =
      "(Start, Limit, Delta) => (Y) { None = Constant<value = int64[0] {}>() "
      "From = Reshape(Start, None) To = Reshape(Limit, None) ";
  text += call.has(2) ? "Step = Reshape(Delta, None) "
                      : "One = Constant<value_int = 1>() Step = CastLike(One, Start) ";
  return text + "Y = Range(From, To, Step) }";
}

std::string microsoft_trilu(const ExpansionCall& call) {
  return fmt::format("(X, K) => (Y) {{ Y = Trilu<upper: int = @upper>(X{}) }}",
                     call.has(1) ? ", K" : "");
}

std::string microsoft_unique(const ExpansionCall&) {
  return "(X) => (Y, Inverse, Counts) { Y, First, Inverse, Counts = Unique<sorted = 0>(X) }";
}

std::string microsoft_pad(const ExpansionCall& call) {
  std::string text =
      "(X, Pads, Value) => (Y) { Line = Constant<value_ints = [-1]>() "
      "P = Reshape(Pads, Line) None = Constant<value = int64[0] {}>() ";
  if (!call.has(2)) return text + "Y = Pad<mode: string = @mode>(X, P) }";
  return text + "V = Reshape(Value, None) Y = Pad<mode: string = @mode>(X, P, V) }";
}

std::string microsoft_grid_sample(const ExpansionCall& call) {
  const std::string mode = call.text("mode", "bilinear");
  const bool nearest = mode == "nearest", cubic = mode == "bicubic";
  call.refuse_if(!nearest && !cubic && mode != "bilinear", "the mode " + mode);
  return fmt::format(
      "<padding_mode, align_corners> (X, Grid) => (Y) {{ Y = GridSample<mode = \"{}\", "
      "padding_mode: string = @padding_mode, align_corners: int = @align_corners>(X, Grid) }}",
      nearest ? "nearest" : (cubic ? "cubic" : "linear"));
}

std::string microsoft_nhwc_max_pool(const ExpansionCall& call) {
  call.refuse_if(call.rank(0) != 4, "an input of this rank");
  return "<auto_pad, ceil_mode, dilations, kernel_shape, pads, strides> (X) => (Y) { "
         "XC = Transpose<perm = [0, 3, 1, 2]>(X) T = MaxPool<auto_pad: string = @auto_pad, "
         "ceil_mode: int = @ceil_mode, dilations: ints = @dilations, "
         "kernel_shape: ints = @kernel_shape, pads: ints = @pads, strides: ints = @strides>(XC) "
         "Y = Transpose<perm = [0, 2, 3, 1]>(T) }";
}

std::string global_lp_pool(const ExpansionCall& call) {
  if (call.rank(0) < 3) call.fail("the input must be [N,C,sizes]");
  // Opset 1 has a floating p.
  const int64_t whole = call.integer("p", 2);
  const double p = whole != 0 ? static_cast<double>(whole) : static_cast<double>(call.real("p", 2));
  if (!(p > 0)) call.fail("p must be positive");
  std::string axes;
  for (int i = 2; i < call.rank(0); ++i) axes += fmt::format("{}{}", i == 2 ? "" : ", ", i);
  const char* head = "(X) => (Y)";
  const std::string start = fmt::format("Axes = Constant<value_ints = [{}]>()", axes);
  if (p == 1) return fmt::format("{} {{ {} Y = ReduceL1(X, Axes) }}", head, start);
  if (p == 2) return fmt::format("{} {{ {} Y = ReduceL2(X, Axes) }}", head, start);
  return fmt::format(R"({} {{ {}
    XF = Cast<to = {}>(X)
    P = Constant<value = double {{{:.17g}}}>()
    Root = Constant<value = double {{{:.17g}}}>()
    PF = CastLike(P, XF)
    RootF = CastLike(Root, XF)
    A = Abs(XF)
    Powers = Pow(A, PF)
    Sum = ReduceSum(Powers, Axes)
    YF = Pow(Sum, RootF)
    Y = CastLike(YF, X)
  }})",
                     head, start,
                     call.type(0) == ::onnx::TensorProto::DOUBLE ? ::onnx::TensorProto::DOUBLE
                                                                 : ::onnx::TensorProto::FLOAT,
                     p, 1 / p);
}

namespace {

// `{1, -1, 1}`: the axis among `rank` dimensions.
std::string along(int axis, int rank) {
  std::vector<int> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  return fmt::format("Constant<value_ints = [{}]>()", fmt::join(sizes, ", "));
}

}  // namespace

// A scatter of rows: row t of an update goes to position t of the cache after the batch element's
// own, by its indices along the dimensions up to the axis. A scatter counts positions below 0 from
// the end; here p - min(p, 0)·(size + 1) is out of range with p. Integers alone, so that a run on a
// GPU can inspect the positions.
std::string tensor_scatter(const ExpansionCall& call) {
  const int rank = call.rank(0);
  int64_t axis = call.integer("axis", -2);
  if (axis < 0) axis += rank;
  if (axis < 1 || axis >= rank) call.fail("the axis is that of the batch, or none of the cache's");
  if (call.rank(1) != rank) call.fail("cache and update differ in rank");
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular") call.fail(fmt::format("mode \"{}\"", mode));
  const int places = static_cast<int>(axis) + 1;
  std::string text = fmt::format(R"((Cache, Update, At) => (Y) {{
    First = Constant<value_ints = [0]>()
    Last = Constant<value_ints = [-1]>()
    Zero = Constant<value_int = 0>()
    One = Constant<value_int = 1>()
    Outer = Shape<start = 0, end = {0}>(Cache)
    Size = Shape<start = {0}, end = {1}>(Cache)
    Count = Shape<start = {0}, end = {1}>(Update)
    Places = Concat<axis = 0>(Outer, Count)
    Counted = Squeeze(Count, First)
    Steps = Range(Zero, Counted, One)
    StepsForm = {2}
    Rows = Reshape(Steps, StepsForm)
  )",
                                 axis, places, along(places - 1, places));
  if (call.has(2)) {
    text += fmt::format(R"(
      Batch = Shape<start = 0, end = 1>(Cache)
      Ones = Constant<value_ints = [{}]>()
      AtForm = Concat<axis = 0>(Batch, Ones)
      Starts = Reshape(At, AtForm)
      Wanted = Add(Starts, Rows)
    )",
                        fmt::join(std::vector<int>(static_cast<size_t>(axis), 1), ", "));
  } else {
    text += "Wanted = Identity(Rows) ";
  }
  text += mode == "circular" ? "Row = Mod(Wanted, Size) "
                             : "Below = Min(Wanted, Zero) Beyond = Add(Size, One) "
                               "Far = Mul(Below, Beyond) Row = Sub(Wanted, Far) ";
  std::string parts;
  for (int d = 0; d < axis; ++d) {
    text += fmt::format(R"(
      Size{0} = Shape<start = {0}, end = {1}>(Cache)
      Counted{0} = Squeeze(Size{0}, First)
      Steps{0} = Range(Zero, Counted{0}, One)
      Form{0} = {2}
      Line{0} = Reshape(Steps{0}, Form{0})
      Wide{0} = Expand(Line{0}, Places)
      Part{0} = Unsqueeze(Wide{0}, Last)
    )",
                        d, d + 1, along(d, places));
    parts += fmt::format("Part{}, ", d);
  }
  return text + fmt::format(R"(
    WideRow = Expand(Row, Places)
    PartRow = Unsqueeze(WideRow, Last)
    Indices = Concat<axis = -1>({}PartRow)
    Y = ScatterND(Cache, Indices, Update)
  }})",
                            parts);
}

namespace {

// Points of a grid along the coordinate j of `axes` (W is coordinate 0), by column j of theta. A
// point in the middle of its pixel, or at the corners: 2·i/(n - 1) - 1.
std::string moved_axis(int64_t j, int64_t axes, bool corners) {
  std::vector<int64_t> form(static_cast<size_t>(axes) + 2, 1);
  form[static_cast<size_t>(axes - j)] = -1;
  const char* const gaps = corners ? "Fewer{0} = Sub(Count{0}, One) Least{0} = Max(Fewer{0}, One) "
                                     "Gaps{0} = CastLike(Least{0}, TF) Start{0} = Identity(OneF)"
                                   : "Gaps{0} = CastLike(Count{0}, TF) Half{0} = "
                                     "Div(OneF, Gaps{0}) Start{0} = Sub(OneF, Half{0})";
  return fmt::format(R"(
      At{0} = Constant<value_ints = [{2}]>()
      Behind{0} = Constant<value_ints = [{3}]>()
      Part{0} = Slice(Size, At{0}, Behind{0})
      Count{0} = Squeeze(Part{0}, First)
      Index{0} = Range(Zero, Count{0}, One)
      Steps{0} = CastLike(Index{0}, TF)
      {4}
      Double{0} = Mul(Steps{0}, Two)
      Placed{0} = Div(Double{0}, Gaps{0})
      Point{0} = Sub(Placed{0}, Start{0})
      Form{0} = Constant<value_ints = [{5}]>()
      Line{0} = Reshape(Point{0}, Form{0})
      From{0} = Constant<value_ints = [{0}]>()
      To{0} = Constant<value_ints = [{1}]>()
      Column{0} = Slice(TF, From{0}, To{0}, Last)
      Flat{0} = Squeeze(Column{0}, Last)
      Spread{0} = Unsqueeze(Flat{0}, Wide)
      Term{0} = Mul(Spread{0}, Line{0})
      Sum{0} = Add(Sum{1}, Term{0})
    )",
                     j, j + 1, axes + 1 - j, axes + 2 - j, fmt::format(fmt::runtime(gaps), j),
                     fmt::join(form, ", "));
}

}  // namespace

// ONNX's own body drops the images' axis where there is one image, and divides by 0 where an axis
// of one point has align_corners; that point is at -1 here, as there along D.
std::string affine_grid(const ExpansionCall& call) {
  if (call.rank(0) != 3 || call.rank(1) != 1) call.fail("theta has 3 dimensions, and size has one");
  const int64_t rows = call.size(0, 1), sizes = call.size(1, 0);
  if (rows < 0 && sizes < 0) call.wait_for("the number of rows of theta");
  const int64_t axes = rows >= 0 ? rows : sizes - 2;
  if (axes != 2 && axes != 3) call.fail("theta has neither 2 nor 3 rows for each image");
  const bool wide = call.type(0) == ::onnx::TensorProto::DOUBLE;
  std::string text =
      fmt::format(R"((Theta, Size) => (Grid) {{
    TF = Cast<to = {0}>(Theta)
    First = Constant<value_ints = [0]>()
    Last = Constant<value_ints = [2]>()
    Zero = Constant<value_int = 0>()
    One = Constant<value_int = 1>()
    OneF = CastLike(One, TF)
    Two = Add(OneF, OneF)
    Wide = Constant<value_ints = [{1}]>()
    From{2} = Constant<value_ints = [{2}]>()
    To{2} = Constant<value_ints = [{3}]>()
    Column{2} = Slice(TF, From{2}, To{2}, Last)
    Flat{2} = Squeeze(Column{2}, Last)
    Sum{2} = Unsqueeze(Flat{2}, Wide)
  )",
                  static_cast<int>(wide ? ::onnx::TensorProto::DOUBLE : ::onnx::TensorProto::FLOAT),
                  axes == 2 ? "1, 2" : "1, 2, 3", axes, axes + 1);
  const bool corners = call.integer("align_corners", 0) != 0;
  for (int64_t j = axes - 1; j >= 0; --j) text += moved_axis(j, axes, corners);
  return text + "Grid = CastLike(Sum0, Theta) }";
}

}  // namespace redfuser::onnx
