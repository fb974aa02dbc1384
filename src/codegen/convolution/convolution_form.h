// A convolution as the kernel of src/device/convolution/convolution.cuh takes it.
#pragma once

#include <string>
#include <variant>

#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {

// Images of [batch, planes, height, width, pitch] in memory by filters of [filter, kernel,
// channels]. A convolution over fewer dimensions has one plane, over one dimension also one row.
// Along z, y, then x: kernel, stride, dilation, pad.
struct ConvolutionForm {
  DType dtype = DType::Float16;
  int spatial = 2;  // dimensions of the kernel's images: 2 or 3
  int parts = 1;    // of an operand, as the tensor cores multiply it: 2 for fp32's precision
  ir::Expr batch = nullptr, planes = nullptr, height = nullptr, width = nullptr;
  ir::Expr out_planes = nullptr, out_height = nullptr, out_width = nullptr;
  ir::Expr channels = nullptr, pitch = nullptr, filters = nullptr;  // channels, filters: of a group
  int64_t groups = 1;
  // Groups of the node in one group: its filters have zeros for the channels of the others.
  int64_t merged = 1;
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  ir::Expr pad[3] = {nullptr, nullptr, nullptr};
  // Whether the value is not yet in memory as above: then it is copied.
  bool copies_input = false, copies_filters = false;

  ir::Expr positions(ir::ExprPool& pool) const {
    return pool.mul(pool.mul(batch, out_planes), pool.mul(out_height, out_width));
  }
  ir::Expr depth(ir::ExprPool& pool) const {
    return pool.mul(channels, pool.integer(kernel[0] * kernel[1] * kernel[2]));
  }
};

// The sizes and windows alone, or why the kernels take no such ones.
std::variant<ConvolutionForm, std::string> window_form(const ConvolutionStep& convolution);
// The form, or why there is none.
std::variant<ConvolutionForm, std::string> convolution_form(const ConvolutionStep& convolution);

}  // namespace redfuser::codegen
