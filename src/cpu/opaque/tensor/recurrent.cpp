#include <algorithm>
#include <cctype>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "cpu/opaque/opaque_gemm.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// y = φ(x) of one gate, with the parameters that φ has.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  template <typename T>
  T operator()(T x) const {
    const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
    if (name == "sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "tanh") return std::tanh(x);
    if (name == "relu") return std::max(x, T(0));
    if (name == "affine") return a * x + b;
    if (name == "leakyrelu") return x < 0 ? a * x : x;
    if (name == "thresholdedrelu") return x > a ? x : T(0);
    if (name == "scaledtanh") return a * std::tanh(b * x);
    if (name == "hardsigmoid") return std::clamp(a * x + b, T(0), T(1));
    if (name == "elu") return x < 0 ? a * std::expm1(x) : x;
    if (name == "softsign") return x / (1 + std::abs(x));
    return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
  }
};

struct Parameters {
  const char* name;
  bool alpha, beta;
  double default_alpha, default_beta;
};
constexpr Parameters kActivations[] = {
    {"sigmoid", false, false, 0, 0},     {"tanh", false, false, 0, 0},
    {"relu", false, false, 0, 0},        {"affine", true, true, 1, 0},
    {"leakyrelu", true, false, 0.01, 0}, {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1},    {"hardsigmoid", true, true, 0.2, 0.5},
    {"elu", true, false, 1, 0},          {"softsign", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
};

template <typename T>
T attribute_of(const OpaqueCall& call, const std::string& name) {
  if (!call.has(name)) return {};
  const auto* value = std::get_if<T>(&call.node().attributes.at(name));
  if (!value) call.fail(fmt::format("attribute \"{}\" has the wrong kind", name));
  return *value;
}

// The activations of every direction; parameters are listed in the order of those that have them.
std::vector<Activation> activations_of(const OpaqueCall& call, int directions,
                                       const std::vector<std::string>& defaults) {
  auto names = attribute_of<std::vector<std::string>>(call, "activations");
  const auto alphas = attribute_of<std::vector<float>>(call, "activation_alpha");
  const auto betas = attribute_of<std::vector<float>>(call, "activation_beta");
  for (int d = 0; call.has("activations") == false && d < directions; ++d) {
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * static_cast<size_t>(directions)) {
    call.fail(fmt::format("{} activations, {} are needed", names.size(),
                          defaults.size() * static_cast<size_t>(directions)));
  }
  std::vector<Activation> result;
  size_t next_alpha = 0, next_beta = 0;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const Parameters& p) { return p.name == name; });
    if (known == std::end(kActivations)) {
      call.fail(fmt::format("activation \"{}\" is not supported", name));
    }
    Activation activation{name, known->default_alpha, known->default_beta};
    if (known->alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (known->beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    result.push_back(std::move(activation));
  }
  return result;
}

struct Sizes {
  int64_t steps, batch, input, hidden, gates;
  int directions;
  bool batch_first;
};

// The layer in one direction over all steps. States are [batch, hidden].
template <typename T>
class Direction {
 public:
  Direction(const OpaqueCall& call, const Sizes& sizes, int number,
            std::vector<Activation> activations)
      : call_(call), sizes_(sizes), number_(number), act_(std::move(activations)) {
    const std::string direction = call.text("direction", "forward");
    reverse_ = direction == "reverse" || number == 1;
    clip_ = static_cast<T>(call.real("clip", 0));
    const int64_t rows = sizes.gates * sizes.hidden;
    w_ = transposed(1, rows, sizes.input);
    r_ = transposed(2, rows, sizes.hidden);
    bias_.assign(static_cast<size_t>(2 * rows), 0);
    if (call.has_input(3)) copy(3, number * 2 * rows, bias_);
    lengths_.assign(static_cast<size_t>(sizes.batch), sizes.steps);
    if (call.has_input(4)) lengths_ = call.integers_of(4);
    if (static_cast<int64_t>(lengths_.size()) != sizes.batch) call.fail("one length per sequence");
    for (int64_t length : lengths_) {
      if (length < 0 || length > sizes.steps) call.fail("a sequence length is out of range");
    }
    h_ = state(5);
    if (sizes.gates == 4) c_ = state(6);
    peephole_.assign(static_cast<size_t>(3 * sizes.hidden), 0);
    if (sizes.gates == 4 && call.has_input(7)) copy(7, number * 3 * sizes.hidden, peephole_);
  }

  // Fills its part of y, whose elements are zero.
  void run(const T* x, T* y) {
    const int64_t hidden = sizes_.hidden, rows = sizes_.gates * hidden;
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      from_x_.assign(static_cast<size_t>(sizes_.batch * rows), 0);
      from_h_.assign(from_x_.size(), 0);
      for (int64_t b = 0; b < sizes_.batch; ++b) {
        if (step >= length(b)) continue;
        gemm_accumulate<T>(1, rows, sizes_.input, x + at(b, step) * sizes_.input, sizes_.input,
                           false, w_.data(), rows, from_x_.data() + b * rows, rows);
      }
      gemm_accumulate<T>(sizes_.batch, rows, hidden, h_.data(), hidden, false, r_.data(), rows,
                         from_h_.data(), rows);
      for (int64_t b = 0; b < sizes_.batch; ++b) {
        if (step >= length(b)) continue;
        T* gx = from_x_.data() + b * rows;
        T* gh = from_h_.data() + b * rows;
        for (int64_t i = 0; i < rows; ++i) {
          gx[i] += bias_[static_cast<size_t>(i)];
          gh[i] += bias_[static_cast<size_t>(rows + i)];
        }
        T* h = h_.data() + b * hidden;
        if (sizes_.gates == 1) plain(gx, gh, h);
        if (sizes_.gates == 3) gated(gx, gh, h);
        if (sizes_.gates == 4) cell(gx, gh, h, c_.data() + b * hidden);
        if (y) std::copy(h, h + hidden, y + result_at(b, step) * hidden);
      }
    }
  }

  const ChargedVector<T>& h() const { return h_; }
  const ChargedVector<T>& c() const { return c_; }

 private:
  int64_t length(int64_t b) const { return lengths_[static_cast<size_t>(b)]; }
  int64_t time(int64_t b, int64_t step) const { return reverse_ ? length(b) - 1 - step : step; }
  // The row of x, and of y's [.., direction, ..] rows.
  int64_t at(int64_t b, int64_t step) const {
    const int64_t t = time(b, step);
    return sizes_.batch_first ? b * sizes_.steps + t : t * sizes_.batch + b;
  }
  int64_t result_at(int64_t b, int64_t step) const {
    const int64_t t = time(b, step);
    if (sizes_.batch_first) return (b * sizes_.steps + t) * sizes_.directions + number_;
    return (t * sizes_.directions + number_) * sizes_.batch + b;
  }

  void copy(int input, int64_t offset, ChargedVector<T>& to) const {
    const Tensor tensor = call_.widened(input);
    if (tensor.size() < offset + static_cast<int64_t>(to.size())) {
      call_.fail(fmt::format("input {} has too few elements", input));
    }
    std::copy_n(tensor.as<T>() + offset, to.size(), to.begin());
  }

  ChargedVector<T> transposed(int input, int64_t rows, int64_t columns) const {
    ChargedVector<T> source(static_cast<size_t>(rows * columns)), result(source.size());
    copy(input, number_ * rows * columns, source);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        result[static_cast<size_t>(c * rows + r)] = source[static_cast<size_t>(r * columns + c)];
      }
    }
    return result;
  }

  ChargedVector<T> state(int input) const {
    const int64_t hidden = sizes_.hidden;
    ChargedVector<T> result(static_cast<size_t>(sizes_.batch * hidden));
    if (!call_.has_input(input)) return result;
    const Tensor tensor = call_.widened(input);
    for (int64_t b = 0; b < sizes_.batch; ++b) {
      const int64_t row =
          sizes_.batch_first ? b * sizes_.directions + number_ : number_ * sizes_.batch + b;
      std::copy_n(tensor.as<T>() + row * hidden, hidden, result.begin() + b * hidden);
    }
    return result;
  }

  T clipped(T x) const { return clip_ > 0 ? std::clamp(x, -clip_, clip_) : x; }

  // h = f(x·W + h·R)
  void plain(const T* gx, const T* gh, T* h) const {
    for (int64_t i = 0; i < sizes_.hidden; ++i) h[i] = act_[0](clipped(gx[i] + gh[i]));
  }

  // z, r = f(..); n = g(x·W + (r ∘ h)·R), or g(x·W + r ∘ (h·R)); h = (1 - z) ∘ n + z ∘ h
  void gated(const T* gx, T* gh, T* h) const {
    const int64_t n = sizes_.hidden;
    ChargedVector<T> z(static_cast<size_t>(n)), r(z), reset(z), candidate(z);
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      z[k] = act_[0](clipped(gx[i] + gh[i]));
      r[k] = act_[0](clipped(gx[n + i] + gh[n + i]));
      reset[k] = r[k] * h[i];
    }
    if (call_.integer("linear_before_reset", 0) != 0) {
      for (int64_t i = 0; i < n; ++i) {
        candidate[static_cast<size_t>(i)] = r[static_cast<size_t>(i)] * gh[2 * n + i];
      }
    } else {
      std::copy_n(bias_.begin() + 5 * n, n, candidate.begin());
      gemm_accumulate<T>(1, n, n, reset.data(), n, false, r_.data() + 2 * n, 3 * n,
                         candidate.data(), n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      const T next = act_[1](clipped(gx[2 * n + i] + candidate[k]));
      h[i] = (1 - z[k]) * next + z[k] * h[i];
    }
  }

  // Gates i, o, f, c: C = f ∘ C + i ∘ c; h = o ∘ tanh(C)
  void cell(const T* gx, const T* gh, T* h, T* c) const {
    const int64_t n = sizes_.hidden;
    const bool coupled = call_.integer("input_forget", 0) != 0;
    auto gate = [&](int64_t number, int64_t i, T memory) {
      T sum = gx[number * n + i] + gh[number * n + i];
      if (number < 3) sum += peephole_[static_cast<size_t>(number * n + i)] * memory;
      return clipped(sum);
    };
    for (int64_t i = 0; i < n; ++i) {
      const T input = act_[0](gate(0, i, c[i]));
      const T forget = coupled ? 1 - input : act_[0](gate(2, i, c[i]));
      c[i] = forget * c[i] + input * act_[1](gate(3, i, 0));
      h[i] = act_[0](gate(1, i, c[i])) * act_[2](c[i]);
    }
  }

  const OpaqueCall& call_;
  const Sizes& sizes_;
  int number_;
  std::vector<Activation> act_;
  bool reverse_ = false;
  T clip_ = 0;
  ChargedVector<T> w_, r_, bias_, peephole_, h_, c_, from_x_, from_h_;
  std::vector<int64_t> lengths_;
};

template <typename T>
void store_state(const OpaqueCall& call, int output, const Sizes& sizes, int number,
                 const ChargedVector<T>& state, std::vector<Tensor>& results) {
  if (!call.has_output(output)) return;
  T* to = results[static_cast<size_t>(output)].as<T>();
  for (int64_t b = 0; b < sizes.batch; ++b) {
    const int64_t row =
        sizes.batch_first ? b * sizes.directions + number : number * sizes.batch + b;
    std::copy_n(state.begin() + b * sizes.hidden, sizes.hidden, to + row * sizes.hidden);
  }
}

template <typename T>
void run_layer(OpaqueCall& call, const Sizes& sizes, const std::vector<std::string>& defaults) {
  const Tensor x = call.widened(0);
  const auto activations = activations_of(call, sizes.directions, defaults);
  const Dims state = sizes.batch_first ? Dims{sizes.batch, sizes.directions, sizes.hidden}
                                       : Dims{sizes.directions, sizes.batch, sizes.hidden};
  const Dims all = sizes.batch_first
                       ? Dims{sizes.batch, sizes.steps, sizes.directions, sizes.hidden}
                       : Dims{sizes.steps, sizes.directions, sizes.batch, sizes.hidden};
  std::vector<Tensor> results{Tensor(x.dtype(), all), Tensor(x.dtype(), state),
                              Tensor(x.dtype(), state)};
  std::fill_n(results[0].as<T>(), results[0].size(), T(0));
  for (int d = 0; d < sizes.directions; ++d) {
    const auto first = activations.begin() + d * static_cast<int64_t>(defaults.size());
    Direction<T> direction(call, sizes, d, {first, first + static_cast<int64_t>(defaults.size())});
    direction.run(x.as<T>(), results[0].as<T>());
    store_state(call, 1, sizes, d, direction.h(), results);
    if (sizes.gates == 4) store_state(call, 2, sizes, d, direction.c(), results);
  }
  for (int i = 0; i < call.output_count() && i < 3; ++i) {
    if (call.has_output(i)) call.set(i, std::move(results[static_cast<size_t>(i)]));
  }
}

void run_recurrent(OpaqueCall& call, int64_t gates, const std::vector<std::string>& defaults) {
  const Dims &x = call.dims(0), &r = call.dims(2);
  Sizes sizes;
  sizes.batch_first = call.integer("layout", 0) != 0;
  sizes.steps = x[sizes.batch_first ? 1 : 0];
  sizes.batch = x[sizes.batch_first ? 0 : 1];
  sizes.input = x[2];
  sizes.hidden = r[2];
  sizes.gates = gates;
  sizes.directions = static_cast<int>(r[0]);
  if (call.dtype(0) == DType::Float64) return run_layer<double>(call, sizes, defaults);
  run_layer<float>(call, sizes, defaults);
}

}  // namespace

void run_rnn(OpaqueCall& call) { run_recurrent(call, 1, {"Tanh"}); }
void run_gru(OpaqueCall& call) { run_recurrent(call, 3, {"Sigmoid", "Tanh"}); }
void run_lstm(OpaqueCall& call) { run_recurrent(call, 4, {"Sigmoid", "Tanh", "Tanh"}); }

}  // namespace redfuser::cpu
