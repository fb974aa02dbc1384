// Operators that move elements to or from positions that are data.
#include "reference/operators/moves.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "reference/expressions/lanes.h"
#include "reference/expressions/word_operations.h"

namespace redfuser::reference {
namespace {

const Tensor& tensor(const ops::NodeView& view, int input) { return view.input(input).constant; }

std::vector<int64_t> strides_of(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

int64_t from_end(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

// The position in the data of each update.
Words targets_of_elements(const ops::NodeView& view) {
  const Dims &data = tensor(view, 0).dims(), &dims = tensor(view, 1).dims();
  const auto axis = static_cast<size_t>(view.axis(view.integer("axis", 0), view.rank(0)));
  const auto strides = strides_of(data), own = strides_of(dims);
  Words targets = all_elements(tensor(view, 1)).words;
  for (int64_t i = 0; i < targets.size(); ++i) {
    int64_t target = from_end(targets[i], data[axis]) * strides[axis];
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != axis) target += i / own[d] % dims[d] * strides[d];
    }
    targets[i] = target;
  }
  return targets;
}

// The last dimension of the indices holds tuples, one for every slice of updates.
Words targets_of_slices(const ops::NodeView& view) {
  const Dims& data = tensor(view, 0).dims();
  const auto strides = strides_of(data);
  const Words indices = all_elements(tensor(view, 1)).words;
  const auto length = static_cast<size_t>(tensor(view, 1).dims().back());
  const int64_t slice = length == 0 ? 1 : strides[length - 1];
  Words targets(tensor(view, 2).size());
  for (int64_t i = 0; i < targets.size(); ++i) {
    targets[i] = i % slice;
    for (size_t d = 0; d < length; ++d) {
      const int64_t index =
          indices[i / slice * static_cast<int64_t>(length) + static_cast<int64_t>(d)];
      targets[i] += from_end(index, data[d]) * strides[d];
    }
  }
  return targets;
}

// One update after another: y[target] = combine(y[target], update).
template <typename Array, typename Combine>
void update(Array& y, const Words& targets, const Array& updates, const Combine& combine) {
  for (int64_t i = 0; i < targets.size(); ++i) y[targets[i]] = combine(y[targets[i]], updates[i]);
}

void scatter_numbers(const ops::NodeView& view, Numbers& y, const Words& targets,
                     const Numbers& u) {
  const std::string reduction = view.text("reduction", "none");
  const auto by = [&](auto combine) { update(y, targets, u, combine); };
  if (reduction == "none") return by([](double, double b) { return b; });
  if (reduction == "add") return by([](double a, double b) { return a + b; });
  if (reduction == "mul") return by([](double a, double b) { return a * b; });
  if (reduction == "max") {
    return by([](double a, double b) { return std::isnan(a) || a > b ? a : b; });
  }
  if (reduction == "min") {
    return by([](double a, double b) { return std::isnan(a) || a < b ? a : b; });
  }
  view.fail("unknown reduction \"" + reduction + "\"");
}

void scatter_words(const ops::NodeView& view, Words& y, const Words& targets, const Words& u) {
  const std::string reduction = view.text("reduction", "none");
  const DType dtype = view.dtype(0);
  const auto by = [&](auto combine) { update(y, targets, u, combine); };
  const auto bits = [](int64_t word) { return static_cast<uint64_t>(word); };
  const auto back = [dtype](uint64_t word) { return wrapped(dtype, static_cast<int64_t>(word)); };
  if (reduction == "none") return by([](int64_t, int64_t b) { return b; });
  if (reduction == "add") return by([&](int64_t a, int64_t b) { return back(bits(a) + bits(b)); });
  if (reduction == "mul") return by([&](int64_t a, int64_t b) { return back(bits(a) * bits(b)); });
  if (reduction == "max") {
    return by([&](int64_t a, int64_t b) { return less_words(dtype, a, b) ? b : a; });
  }
  if (reduction == "min") {
    return by([&](int64_t a, int64_t b) { return less_words(dtype, b, a) ? b : a; });
  }
  view.fail("unknown reduction \"" + reduction + "\"");
}

template <Words (*targets_of)(const ops::NodeView&)>
std::vector<Tensor> scatter(const ops::NodeView& view) {
  const Tensor& data = tensor(view, 0);
  Lanes y = all_elements(data);
  const Lanes updates = all_elements(tensor(view, 2));
  const Words targets = targets_of(view);
  if (is_float(data.dtype())) {
    scatter_numbers(view, y.numbers, targets, updates.numbers);
  } else {
    scatter_words(view, y.words, targets, updates.words);
  }
  return {filled(y, data.dtype(), data.dims())};
}

// Positions of the elements that are not zero, a row for every dimension.
std::vector<Tensor> non_zero(const ops::NodeView& view) {
  const Tensor& x = tensor(view, 0);
  const Lanes lanes = all_elements(x);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (is_float(x.dtype()) ? lanes.numbers[i] != 0 : lanes.words[i] != 0) found.push_back(i);
  }
  const auto count = static_cast<int64_t>(found.size()),
             rank = static_cast<int64_t>(x.dims().size());
  const auto strides = strides_of(x.dims());
  Words words(rank * count);
  for (int64_t i = 0; i < words.size(); ++i) {
    const auto d = static_cast<size_t>(i / count);
    words[i] = found[static_cast<size_t>(i % count)] / strides[d] % x.dims()[d];
  }
  return {filled({{}, words}, DType::Int64, {rank, count})};
}

// The slices along the axis, or without one the elements, where the condition holds.
std::vector<Tensor> compress(const ops::NodeView& view) {
  const Tensor& x = tensor(view, 0);
  Dims dims = {x.size()};
  size_t axis = 0;
  if (view.has("axis")) {
    dims = x.dims();
    axis = static_cast<size_t>(view.axis(view.integer("axis", 0), view.rank(0)));
  }
  const Words condition = all_elements(tensor(view, 1)).words;
  const int64_t size = dims[axis], inner = strides_of(dims)[axis];
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t at = i / inner % size;
    if (at < condition.size() && condition[at] != 0) taken.push_back(i);
  }
  dims[axis] = (condition.head(std::min<int64_t>(size, condition.size())) != 0).count();
  const Words positions = Eigen::Map<const Words>(taken.data(), static_cast<int64_t>(taken.size()));
  return {filled(elements_at(x, positions), x.dtype(), std::move(dims))};
}

}  // namespace

Direct move_function(std::string_view op) {
  if (op == "NonZero") return non_zero;
  if (op == "Compress") return compress;
  if (op == "ScatterElements" || op == "Scatter") return scatter<targets_of_elements>;
  if (op == "ScatterND") return scatter<targets_of_slices>;
  return nullptr;
}

}  // namespace redfuser::reference
