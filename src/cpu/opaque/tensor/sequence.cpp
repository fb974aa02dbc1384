// Sequences and optionals: lists of tensors.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/tensors/lists.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

int64_t position_of(const OpaqueCall& call, int input, int64_t count) {
  const std::vector<int64_t> given = call.integers_of(input);
  if (given.size() != 1) call.fail("the position must have one element");
  const int64_t at = given[0] < 0 ? given[0] + count : given[0];
  if (at < 0 || at > count) {
    call.fail(fmt::format("position {} in a sequence of {}", given[0], count));
  }
  return at;
}

// Elements [begin, begin + count) of an axis, in the tensor's memory where they lie together.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t count) {
  const AxisView view = around_axis(x.dims(), axis);
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = count;
  const auto width = static_cast<int64_t>(size_of(x.dtype()));
  const int64_t row = view.inner * width;
  if (view.outer == 1) {
    return Tensor::wrap(x.dtype(), std::move(dims), x.as<char>() + begin * row,
                        std::make_shared<const Tensor>(x));
  }
  Tensor part(x.dtype(), dims);
  for (int64_t o = 0; o < view.outer; ++o) {
    std::memcpy(part.as<char>() + o * count * row, x.as<char>() + (o * view.size + begin) * row,
                static_cast<size_t>(count * row));
  }
  return part;
}

std::vector<int64_t> split_sizes(const OpaqueCall& call, int64_t size) {
  if (!call.has_input(1)) return std::vector<int64_t>(static_cast<size_t>(size), 1);
  const std::vector<int64_t> given = call.integers_of(1);
  if (call.dims(1).size() == 1) {
    int64_t total = 0;
    for (const int64_t part : given) {
      if (part < 0 || part > size) call.fail(fmt::format("a part of {} elements", part));
      total += part;
    }
    if (total != size) call.fail(fmt::format("the parts add up to {}, not {}", total, size));
    return given;
  }
  if (given.size() != 1 || given[0] < 1) call.fail("the split must be a positive number");
  std::vector<int64_t> sizes;
  for (int64_t left = size; left > 0; left -= given[0]) sizes.push_back(std::min(left, given[0]));
  return sizes;
}

// The sizes of the elements one behind another along the axis, a new one where it is `fresh`.
Dims joined_dims(const OpaqueCall& call, std::span<const Tensor> elements, int axis, bool fresh) {
  Dims dims = elements[0].dims();
  if (fresh) dims.insert(dims.begin() + axis, 1);
  const auto at = static_cast<size_t>(axis);
  int64_t total = 0;
  for (const Tensor& element : elements) {
    Dims own = element.dims();
    if (fresh) own.insert(own.begin() + std::min<std::ptrdiff_t>(axis, std::ssize(own)), 1);
    if (own.size() != dims.size() || element.dtype() != elements[0].dtype()) {
      call.fail("the elements differ in rank or type");
    }
    if (__builtin_add_overflow(total, own[at], &total)) call.fail("the result is too large");
    own[at] = dims[at];
    if (own != dims) call.fail("the elements differ in shape");
  }
  dims[at] = total;
  return dims;
}

}  // namespace

void run_sequence_construct(OpaqueCall& call) {
  std::vector<Tensor> elements;
  for (int i = 0; i < call.input_count(); ++i) elements.push_back(call.tensor(i));
  call.set(0, Tensor::sequence(std::move(elements)));
}

void run_sequence_empty(OpaqueCall& call) { call.set(0, Tensor::sequence({})); }

void run_sequence_insert(OpaqueCall& call) {
  const Tensor& list = call.tensor(0);
  const int64_t at = call.has_input(2) ? position_of(call, 2, list.size()) : list.size();
  call.set(0, with_element(list, at, call.tensor(1)));
}

void run_sequence_erase(OpaqueCall& call) {
  const Tensor& list = call.tensor(0);
  const int64_t at = call.has_input(1) ? position_of(call, 1, list.size()) : list.size() - 1;
  if (at < 0 || at >= list.size()) call.fail("no such element in the sequence");
  call.set(0, without_element(list, at));
}

void run_sequence_at(OpaqueCall& call) {
  const std::span<const Tensor> elements = elements_of(call.tensor(0));
  const auto count = static_cast<int64_t>(elements.size());
  const int64_t at = position_of(call, 1, count);
  if (at == count) call.fail(fmt::format("position {} in a sequence of {}", at, count));
  call.set(0, elements[static_cast<size_t>(at)]);
}

void run_sequence_length(OpaqueCall& call) {
  *call.allocate(0, {}).as<int64_t>() = call.tensor(0).size();
}

void run_split_to_sequence(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 0), static_cast<int>(x.dims().size()));
  const bool keep = call.has_input(1) || call.integer("keepdims", 1) != 0;
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t size : split_sizes(call, x.dims()[static_cast<size_t>(axis)])) {
    Tensor part = slice(x, axis, begin, size);
    Dims dims = part.dims();
    if (!keep) dims.erase(dims.begin() + axis);
    parts.push_back(part.reshaped(dims));
    begin += size;
  }
  call.set(0, Tensor::sequence(std::move(parts)));
}

void run_concat_from_sequence(OpaqueCall& call) {
  const std::span<const Tensor> elements = elements_of(call.tensor(0));
  if (elements.empty()) call.fail("the sequence is empty");
  const bool fresh = call.integer("new_axis", 0) != 0;
  const int rank = static_cast<int>(elements[0].dims().size()) + (fresh ? 1 : 0);
  const int axis = call.axis(call.integer("axis", 0), rank);
  const Dims dims = joined_dims(call, elements, axis, fresh);
  Tensor& y = call.allocate(0, dims);
  const AxisView view = around_axis(dims, axis);
  const auto width = static_cast<int64_t>(size_of(y.dtype()));
  int64_t begin = 0;
  for (const Tensor& e : elements) {
    const int64_t size = fresh ? 1 : e.dims()[static_cast<size_t>(axis)];
    const int64_t bytes = size * view.inner * width;
    for (int64_t o = 0; o < view.outer; ++o) {
      if (bytes == 0) continue;
      std::memcpy(y.as<char>() + (o * view.size + begin) * view.inner * width,
                  e.as<char>() + o * bytes, static_cast<size_t>(bytes));
    }
    begin += size;
  }
}

void run_optional(OpaqueCall& call) {
  call.set(0, Tensor::optional(call.has_input(0) ? call.tensor(0) : Tensor()));
}

void run_optional_has_element(OpaqueCall& call) {
  const bool has = call.has_input(0) &&
                   (call.tensor(0).dtype() != DType::Optional || call.tensor(0).size() == 1);
  *call.allocate(0, {}).as<bool>() = has;
}

void run_optional_get_element(OpaqueCall& call) {
  const Tensor& value = call.tensor(0);
  if (value.dtype() != DType::Optional) return call.set(0, value);
  const std::span<const Tensor> elements = elements_of(value);
  if (elements.empty()) call.fail("the optional is empty");
  call.set(0, elements[0]);
}

void run_identity(OpaqueCall& call) { call.set(0, call.tensor(0)); }

}  // namespace redfuser::cpu
