// Optimizers of ai.onnx.preview.training. Their inputs are a rate R, a step count T, then the lists
// of tensors X, gradients G and states; the outputs are the lists of new tensors and new states.
#include "base/error.h"
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// The body's head: `lists` name the input lists, `results` the output lists.
std::string head(int count, const std::vector<std::string>& lists,
                 const std::vector<std::string>& results, const std::string& attributes) {
  const auto names = [count](const std::vector<std::string>& kinds) {
    std::string text;
    for (const auto& kind : kinds) {
      for (int i = 0; i < count; ++i)
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", kind, i);
    }
    return text;
  };
  return fmt::format("<{}> (R, T, {}) => ({}) {{", attributes, names(lists), names(results));
}

// The number of tensors; 0 unless the inputs are whole lists.
int tensors_of(const ExpansionCall& call, int lists) {
  const int rest = call.input_count() - 2;
  return rest > 0 && rest % lists == 0 ? rest / lists : 0;
}

constexpr const char* kConstants = R"(
    One = Constant<value_float = 1.0>()
    Zero = Constant<value_float = 0.0>()
    NormC = Constant<value_float: float = @norm_coefficient>()
    Steps = Cast<to = 1>(T)
    RF = Cast<to = 1>(R)
  )";

// The gradient with the derivative of the norm of X added, and coefficients of X's type.
std::string regularized(int i) {
  return fmt::format(
      "NC{0} = CastLike(NormC, X{0}) NX{0} = Mul(NC{0}, X{0}) GR{0} = Add(NX{0}, G{0}) ", i);
}

}  // namespace

std::string training_adagrad(const ExpansionCall& call) {
  const int count = tensors_of(call, 3);
  call.refuse_if(count == 0, "an incomplete list of tensors");
  std::string body = head(count, {"X", "G", "H"}, {"XN", "HN"},
                          "decay_factor: float = 0.0, epsilon: float = 0.000001, "
                          "norm_coefficient: float = 0.0");
  body += kConstants;
  body += R"(
    Decay = Constant<value_float: float = @decay_factor>()
    EpsC = Constant<value_float: float = @epsilon>()
    Decayed = Mul(Steps, Decay)
    Divisor = Add(One, Decayed)
    Rate = Div(RF, Divisor)
  )";
  for (int i = 0; i < count; ++i) {
    body += regularized(i);
    body += fmt::format(R"(
      Sq{0} = Mul(GR{0}, GR{0})
      HN{0} = Add(H{0}, Sq{0})
      Root{0} = Sqrt(HN{0})
      Eps{0} = CastLike(EpsC, X{0})
      Scale{0} = Add(Root{0}, Eps{0})
      Rate{0} = CastLike(Rate, X{0})
      Step{0} = Mul(Rate{0}, GR{0})
      Move{0} = Div(Step{0}, Scale{0})
      XN{0} = Sub(X{0}, Move{0})
    )",
                        i);
  }
  return body + "}";
}

std::string training_momentum(const ExpansionCall& call) {
  const int count = tensors_of(call, 3);
  const std::string mode = call.text("mode", "");
  call.refuse_if(count == 0, "an incomplete list of tensors");
  call.refuse_if(mode != "standard" && mode != "nesterov", "the mode \"" + mode + "\"");
  std::string body = head(count, {"X", "G", "V"}, {"XN", "VN"},
                          "alpha, beta, mode, norm_coefficient: float = 0.0");
  body += kConstants;
  body += R"(
    AlphaC = Constant<value_float: float = @alpha>()
    BetaC = Constant<value_float: float = @beta>()
    Later = Greater(Steps, Zero)
    BetaNow = Where(Later, BetaC, One)
  )";
  for (int i = 0; i < count; ++i) {
    body += regularized(i);
    body += fmt::format(R"(
      Alpha{0} = CastLike(AlphaC, X{0})
      Beta{0} = CastLike(BetaNow, X{0})
      Rate{0} = CastLike(RF, X{0})
      AV{0} = Mul(Alpha{0}, V{0})
      BG{0} = Mul(Beta{0}, GR{0})
      VN{0} = Add(AV{0}, BG{0})
    )",
                        i);
    body += mode == "standard"
                ? fmt::format("Direction{0} = Identity(VN{0}) ", i)
                : fmt::format(
                      "Ahead{0} = Mul(Alpha{0}, VN{0}) Direction{0} = Add(GR{0}, Ahead{0}) ", i);
    body += fmt::format("Move{0} = Mul(Rate{0}, Direction{0}) XN{0} = Sub(X{0}, Move{0}) ", i);
  }
  return body + "}";
}

std::string training_adam(const ExpansionCall& call) {
  const int count = tensors_of(call, 4);
  call.refuse_if(count == 0, "an incomplete list of tensors");
  std::string body = head(count, {"X", "G", "V", "H"}, {"XN", "VN", "HN"},
                          "alpha: float = 0.9, beta: float = 0.999, epsilon: float = 0.000001, "
                          "norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0");
  body += kConstants;
  body += R"(
    AlphaC = Constant<value_float: float = @alpha>()
    BetaC = Constant<value_float: float = @beta>()
    EpsC = Constant<value_float: float = @epsilon>()
    PostC = Constant<value_float: float = @norm_coefficient_post>()
    AlphaT = Pow(AlphaC, Steps)
    BetaT = Pow(BetaC, Steps)
    AlphaRest = Sub(One, AlphaT)
    BetaRest = Sub(One, BetaT)
    BetaRoot = Sqrt(BetaRest)
    Corrected = Mul(RF, BetaRoot)
    CorrectedRate = Div(Corrected, AlphaRest)
    Later = Greater(Steps, Zero)
    Rate = Where(Later, CorrectedRate, RF)
    AlphaOther = Sub(One, AlphaC)
    BetaOther = Sub(One, BetaC)
    PostOther = Sub(One, PostC)
  )";
  for (int i = 0; i < count; ++i) {
    body += regularized(i);
    body += fmt::format(R"(
      Alpha{0} = CastLike(AlphaC, X{0})
      AlphaO{0} = CastLike(AlphaOther, X{0})
      Beta{0} = CastLike(BetaC, X{0})
      BetaO{0} = CastLike(BetaOther, X{0})
      Eps{0} = CastLike(EpsC, X{0})
      Rate{0} = CastLike(Rate, X{0})
      Post{0} = CastLike(PostOther, X{0})
      AV{0} = Mul(Alpha{0}, V{0})
      AG{0} = Mul(AlphaO{0}, GR{0})
      VN{0} = Add(AV{0}, AG{0})
      BH{0} = Mul(Beta{0}, H{0})
      Sq{0} = Mul(GR{0}, GR{0})
      BG{0} = Mul(BetaO{0}, Sq{0})
      HN{0} = Add(BH{0}, BG{0})
      Root{0} = Sqrt(HN{0})
      Scale{0} = Add(Root{0}, Eps{0})
      Step{0} = Mul(Rate{0}, VN{0})
      Move{0} = Div(Step{0}, Scale{0})
      Moved{0} = Sub(X{0}, Move{0})
      XN{0} = Mul(Post{0}, Moved{0})
    )",
                        i);
  }
  return body + "}";
}

}  // namespace redfuser::onnx
