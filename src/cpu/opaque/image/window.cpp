#include "cpu/opaque/image/window.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace redfuser::cpu {
namespace {

// An attribute with one entry per spatial dimension, aligned to the last dimensions of a Size3.
Size3 spatial_attribute(const ops::NodeView& node, const char* name, int rank, int64_t fallback) {
  std::vector<int64_t> values =
      node.integers(name, std::vector<int64_t>(static_cast<size_t>(rank), fallback));
  if (static_cast<int>(values.size()) != rank) {
    node.fail(fmt::format("attribute {} = [{}] must have {} entries", name, fmt::join(values, ","),
                          rank));
  }
  Size3 result{fallback, fallback, fallback};
  std::copy(values.begin(), values.end(), result.end() - rank);
  return result;
}

void read_pads(const ops::NodeView& node, Window& window) {
  std::vector<int64_t> pads =
      node.integers("pads", std::vector<int64_t>(2 * static_cast<size_t>(window.rank), 0));
  if (static_cast<int>(pads.size()) != 2 * window.rank) {
    node.fail(fmt::format("attribute pads = [{}] must have {} entries", fmt::join(pads, ","),
                          2 * window.rank));
  }
  std::copy(pads.begin(), pads.begin() + window.rank, window.pad_begin.end() - window.rank);
  std::copy(pads.begin() + window.rank, pads.end(), window.pad_end.end() - window.rank);
}

Window read_window(const ops::NodeView& node, std::span<const int64_t> input,
                   std::span<const int64_t> kernel) {
  if (input.empty() || input.size() > 3 || input.size() != kernel.size()) {
    node.fail(fmt::format("{} spatial dimensions with a kernel of {}; 1 to 3 are supported",
                          input.size(), kernel.size()));
  }
  Window window;
  window.rank = static_cast<int>(input.size());
  std::copy(input.begin(), input.end(), window.input.end() - window.rank);
  std::copy(kernel.begin(), kernel.end(), window.kernel.end() - window.rank);
  window.stride = spatial_attribute(node, "strides", window.rank, 1);
  window.dilation = spatial_attribute(node, "dilations", window.rank, 1);
  for (int i = 0; i < 3; ++i) {
    if (window.stride[i] <= 0 || window.dilation[i] <= 0 || window.kernel[i] <= 0) {
      node.fail(fmt::format("kernel [{}], strides [{}] and dilations [{}] must be positive",
                            fmt::join(window.kernel, ","), fmt::join(window.stride, ","),
                            fmt::join(window.dilation, ",")));
    }
  }
  return window;
}

int64_t extent_of_kernel(const Window& window, int i) {
  return (window.kernel[i] - 1) * window.dilation[i] + 1;
}

// Halves `total` padding; SAME_UPPER puts the odd one at the end.
void split_padding(Window& window, int i, int64_t total, bool upper) {
  int64_t small = total / 2, large = total - total / 2;
  window.pad_begin[i] = upper ? small : large;
  window.pad_end[i] = upper ? large : small;
}

int64_t output_size(const Window& window, int i, bool ceil_mode) {
  int64_t span =
      window.input[i] + window.pad_begin[i] + window.pad_end[i] - extent_of_kernel(window, i);
  auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  if (!ceil_mode) return floor_div(span, window.stride[i]) + 1;
  // A further window counts only if it starts within the input or the padding before it.
  int64_t last = -floor_div(-span, window.stride[i]);
  return last * window.stride[i] < window.input[i] + window.pad_begin[i] ? last + 1 : last;
}

}  // namespace

Dims Window::dims(int64_t batch, int64_t channels, const Size3& size) const {
  Dims result{batch, channels};
  result.insert(result.end(), size.end() - rank, size.end());
  return result;
}

Window make_window(const ops::NodeView& node, std::span<const int64_t> input,
                   std::span<const int64_t> kernel) {
  Window window = read_window(node, input, kernel);
  std::string auto_pad = node.text("auto_pad", "NOTSET");
  bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (auto_pad == "NOTSET" || auto_pad.empty()) {
    read_pads(node, window);
  } else if (!same && auto_pad != "VALID") {
    node.fail("unknown auto_pad \"" + auto_pad + "\"");
  }
  bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  for (int i = 3 - window.rank; i < 3; ++i) {
    if (same) {
      int64_t size = (window.input[i] + window.stride[i] - 1) / window.stride[i];
      int64_t total = (size - 1) * window.stride[i] + extent_of_kernel(window, i) - window.input[i];
      split_padding(window, i, std::max<int64_t>(total, 0), auto_pad == "SAME_UPPER");
    }
    window.output[i] = output_size(window, i, ceil_mode && !same);
    if (window.output[i] <= 0) {
      node.fail(fmt::format("a kernel of [{}] does not fit into the input [{}] with its padding",
                            fmt::join(kernel, ","), fmt::join(input, ",")));
    }
    if (window.output[i] == 1) window.stride[i] = 1;  // a step that is never taken
    // Under ceil_mode a kernel may be larger than the input: taps behind the padding count nowhere.
    const int64_t padded = window.input[i] + window.pad_begin[i] + window.pad_end[i];
    window.kernel[i] =
        std::clamp<int64_t>((padded - 1) / window.dilation[i] + 1, 1, window.kernel[i]);
  }
  return window;
}

Window make_transposed_window(const ops::NodeView& node, std::span<const int64_t> input,
                              std::span<const int64_t> kernel) {
  Window window = read_window(node, input, kernel);
  read_pads(node, window);
  std::string auto_pad = node.text("auto_pad", "NOTSET");
  bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (same || auto_pad == "VALID") window.pad_begin = window.pad_end = {0, 0, 0};
  Size3 extra = spatial_attribute(node, "output_padding", window.rank, 0);
  std::vector<int64_t> wanted = node.integers("output_shape", {});
  if (static_cast<int>(wanted.size()) > window.rank) {  // some exporters give batch and channels
    wanted.erase(wanted.begin(), wanted.end() - window.rank);
  }
  for (int i = 3 - window.rank; i < 3; ++i) {
    int64_t full =
        (window.input[i] - 1) * window.stride[i] + extra[i] + extent_of_kernel(window, i);
    if (!wanted.empty() || same) {
      window.output[i] =
          wanted.empty() ? window.input[i] * window.stride[i] : wanted[i - (3 - window.rank)];
      // The specification crops the odd element at the begin unless SAME_UPPER asks otherwise.
      split_padding(window, i, std::max<int64_t>(full - window.output[i], 0),
                    auto_pad == "SAME_UPPER");
    } else {
      window.output[i] = full - window.pad_begin[i] - window.pad_end[i];
    }
    if (window.output[i] <= 0)
      node.fail(
          fmt::format("output size {} in dimension {}", window.output[i], i - (3 - window.rank)));
  }
  return window;
}

}  // namespace redfuser::cpu
