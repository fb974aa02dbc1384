#include "runtime/decode/prompt.h"

#include "base/error.h"

namespace redfuser::runtime {
namespace {

int64_t element(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::Int64:
      return tensor.as<int64_t>()[i];
    case DType::Int32:
      return tensor.as<int32_t>()[i];
    case DType::Bool:
      return tensor.as<bool>()[i] ? 1 : 0;
    default:
      user_error("generate: prompts and masks are integers, not {}", describe(tensor));
  }
}

}  // namespace

std::vector<TokenRow> rows_of(const Tensor& prompt, const Tensor& mask) {
  if (prompt.dims().size() != 2 || prompt.size() == 0 || prompt.dtype() == DType::Bool) {
    user_error("generate: the prompt is {}, not int64[batch,length]", describe(prompt));
  }
  if (mask.defined() && mask.dims() != prompt.dims()) {
    user_error("generate: the mask is {}, but the prompt is {}", describe(mask), describe(prompt));
  }
  const int64_t length = prompt.dims()[1];
  std::vector<TokenRow> rows(static_cast<size_t>(prompt.dims()[0]));
  for (int64_t i = 0; i < prompt.size(); ++i) {
    const int64_t row = i / length;
    const int64_t seen = mask.defined() ? element(mask, i) : 1;
    const bool starts = i % length == 0;
    const bool last = i % length == length - 1;
    const int64_t before = starts ? 0 : rows[static_cast<size_t>(row)].seen.back();
    if ((seen != 0 && seen != 1) || seen < before || (last && seen == 0)) {
      user_error("generate: row {} of the mask is not 0 for padding on the left and 1 for tokens",
                 row);
    }
    rows[static_cast<size_t>(row)].push(element(prompt, i), seen);
  }
  return rows;
}

}  // namespace redfuser::runtime
