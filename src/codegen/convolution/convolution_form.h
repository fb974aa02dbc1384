// A convolution as the kernel of src/device/convolution/convolution.cuh takes it.
#pragma once

#include <string>
#include <variant>

#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {

// Images of [batch, height, width, pitch] in memory by filters of [filter, kernel, channels]; the
// height of a convolution over one dimension is 1. Along y, then x: kernel, stride, dilation, pad.
struct ConvolutionForm {
  DType dtype = DType::Float16;
  ir::Expr batch = nullptr, height = nullptr, width = nullptr, channels = nullptr, pitch = nullptr;
  ir::Expr filters = nullptr, out_height = nullptr, out_width = nullptr;  // filters of a group
  int64_t groups = 1;
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  ir::Expr pad[2] = {nullptr, nullptr};
  // Whether the value is not yet in memory as above: then it is copied.
  bool copies_input = false, copies_filters = false;

  ir::Expr positions(ir::ExprPool& pool) const {
    return pool.mul(batch, pool.mul(out_height, out_width));
  }
  ir::Expr depth(ir::ExprPool& pool) const {
    return pool.mul(channels, pool.integer(kernel[0] * kernel[1]));
  }
};

// The sizes and windows alone, or why the kernels take no such ones.
std::variant<ConvolutionForm, std::string> window_form(const ConvolutionStep& convolution);
// The form, or why there is none.
std::variant<ConvolutionForm, std::string> convolution_form(const ConvolutionStep& convolution);

}  // namespace redfuser::codegen
