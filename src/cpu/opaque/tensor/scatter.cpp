#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

enum class Combine { Replace, Add, Mul, Min, Max };

Combine read_reduction(const OpaqueCall& call) {
  std::string text = call.text("reduction", "none");
  if (text == "none") return Combine::Replace;
  if (text == "add") return Combine::Add;
  if (text == "mul") return Combine::Mul;
  if (text == "min") return Combine::Min;
  if (text == "max") return Combine::Max;
  call.fail("unknown reduction \"" + text + "\"");
}

template <typename T>
T combined(Combine combine, T old_value, T update) {
  using A = Arithmetic<T>;
  A a = static_cast<A>(old_value), b = static_cast<A>(update);
  switch (combine) {
    case Combine::Replace:
      return update;
    case Combine::Add:
      return static_cast<T>(wrapping_sum(a, b));
    case Combine::Mul:
      return static_cast<T>(wrapping_product(a, b));
    case Combine::Min:
      return a != a || a < b ? old_value : update;  // NaN wins
    case Combine::Max:
      return a != a || a > b ? old_value : update;
  }
  return update;
}

// Copies the first input, the tensor that updates go into, to the output.
Tensor& start_output(OpaqueCall& call) {
  const Tensor& data = call.tensor(0);
  Tensor& y = call.allocate(0, data.dims());
  // A caller may have the result in the data's place.
  if (y.data() != data.data()) std::memcpy(y.mutable_data(), data.data(), data.bytes());
  return y;
}

int64_t checked_index(const OpaqueCall& call, int64_t index, int64_t size) {
  if (index < -size || index >= size) {
    call.fail(fmt::format("index {} is outside [{}, {})", index, -size, size));
  }
  return index < 0 ? index + size : index;
}

}  // namespace

void run_scatter_nd(OpaqueCall& call) {
  const Tensor &data = call.tensor(0), &indices = call.tensor(1), &updates = call.tensor(2);
  auto rank = static_cast<int64_t>(data.dims().size());
  int64_t depth = indices.dims().empty() ? 0 : indices.dims().back();
  if (indices.dims().empty() || depth > rank) {
    call.fail("indices " + describe(indices) + " do not fit data " + describe(data));
  }
  std::vector<int64_t> strides = strides_of(data.dims());
  int64_t slice = 1, rows = 1;
  for (int64_t d = depth; d < rank; ++d) slice *= data.dims()[d];
  for (size_t d = 0; d + 1 < indices.dims().size(); ++d) rows *= indices.dims()[d];
  if (updates.size() != rows * slice) {
    call.fail("updates " + describe(updates) + " do not fit data " + describe(data) +
              " and indices " + describe(indices));
  }
  std::vector<int64_t> index = call.integers_of(1);
  Combine combine = read_reduction(call);
  Tensor& y = start_output(call);
  dispatch(data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* update = updates.as<T>();
    for (int64_t row = 0; row < rows; ++row, update += slice) {
      int64_t offset = 0;
      for (int64_t d = 0; d < depth; ++d) {
        offset += checked_index(call, index[row * depth + d], data.dims()[d]) * strides[d];
      }
      T* target = y.as<T>() + offset;
      for (int64_t i = 0; i < slice; ++i) target[i] = combined(combine, target[i], update[i]);
    }
  });
}

void run_scatter_elements(OpaqueCall& call) {
  const Tensor &data = call.tensor(0), &indices = call.tensor(1), &updates = call.tensor(2);
  int rank = static_cast<int>(data.dims().size());
  if (indices.dims() != updates.dims() || static_cast<int>(indices.dims().size()) != rank) {
    call.fail("indices " + describe(indices) + " and updates " + describe(updates) +
              " must have one shape, of the rank of data " + describe(data));
  }
  int axis = call.axis(call.integer("axis", 0), rank);
  for (int d = 0; d < rank; ++d) {
    if (d != axis && indices.dims()[d] > data.dims()[d]) {
      call.fail("indices " + describe(indices) + " reach outside data " + describe(data));
    }
  }
  const std::vector<int64_t> strides = strides_of(data.dims()), index = call.integers_of(1);
  const std::vector<int64_t> lines = strides_of(indices.dims());
  const Combine combine = read_reduction(call);
  Tensor& y = start_output(call);
  const int64_t length = rank == 0 ? 1 : indices.dims().back();
  const int64_t step = axis == rank - 1 ? 0 : 1;  // between elements of a line, but for the index
  dispatch(data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* update = updates.as<T>();
    for (int64_t i = 0; i < updates.size(); i += length) {
      int64_t line = 0;
      for (int d = 0; d + 1 < rank; ++d) {
        if (d != axis) line += i / lines[d] % indices.dims()[d] * strides[d];
      }
      for (int64_t k = 0; k < length; ++k) {
        const int64_t at = checked_index(call, index[i + k], data.dims()[axis]) * strides[axis];
        T& target = y.as<T>()[line + at + k * step];
        target = combined(combine, target, update[i + k]);
      }
    }
  });
}

}  // namespace redfuser::cpu
