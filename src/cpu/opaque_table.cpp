#include <algorithm>
#include <iterator>

#include "cpu/opaque_kernels.h"

namespace redfuser {
namespace {

struct Entry {
  std::string_view name;
  OpaqueFunction function;
};

// Operators of the ONNX domain, sorted by name.
constexpr Entry kKernels[] = {
    {"AveragePool", run_average_pool},
    {"Compress", run_compress},
    {"Conv", run_conv},
    {"ConvInteger", run_conv_integer},
    {"ConvTranspose", run_conv_transpose},
    {"CumSum", run_cumsum},
    {"GRU", run_gru},
    {"LSTM", run_lstm},
    {"LpPool", run_lp_pool},
    {"MaxPool", run_max_pool},
    {"NonMaxSuppression", run_non_max_suppression},
    {"NonZero", run_nonzero},
    {"QLinearConv", run_qlinear_conv},
    {"QLinearMatMul", run_qlinear_matmul},
    {"RNN", run_rnn},
    {"Resize", run_resize},
    {"Scatter", run_scatter_elements},
    {"ScatterElements", run_scatter_elements},
    {"ScatterND", run_scatter_nd},
    {"Unique", run_unique},
    {"Upsample", run_upsample},
};

constexpr bool by_name(const Entry& a, const Entry& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kKernels), std::end(kKernels), by_name));

}  // namespace

OpaqueFunction find_opaque(std::string_view domain, std::string_view name) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  auto found =
      std::lower_bound(std::begin(kKernels), std::end(kKernels), Entry{name, nullptr}, by_name);
  return found != std::end(kKernels) && found->name == name ? found->function : nullptr;
}

}  // namespace redfuser
