#include "base/tensors/lists.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"

namespace redfuser {
namespace {

constexpr size_t kLeastRoom = 4;

// Elements that several lists show. An element that is there does not change, and the one behind
// the last is written by whoever has counted it.
struct Storage {
  explicit Storage(size_t room) : items(room) {}
  std::vector<Tensor> items;
  std::atomic<size_t> used{0};
};

// The data of a list: a part of a storage.
struct View {
  std::shared_ptr<Storage> storage;
  size_t begin = 0, count = 0;
  ListFormRef form;

  const Tensor* items() const { return storage->items.data() + begin; }
};

Tensor list_of(DType dtype, View view) {
  auto owner = std::make_shared<const View>(std::move(view));
  return Tensor::wrap(dtype, {static_cast<int64_t>(owner->count)}, owner.get(), owner);
}

const View& view_of(const Tensor& list) {
  RF_CHECK(is_list(list.dtype()), "elements of {}", describe(list));
  return *list.as<View>();
}

Tensor list_of(DType dtype, std::vector<Tensor> elements) {
  View view{std::make_shared<Storage>(0), 0, elements.size(), empty_form()};
  for (const Tensor& element : elements) view.form = joined(view.form, form_of_one(element));
  view.storage->items = std::move(elements);
  view.storage->used = view.count;
  return list_of(dtype, std::move(view));
}

// A copy with room for as many elements again.
View with_room(const View& view) {
  View copy{std::make_shared<Storage>(std::max(kLeastRoom, 2 * view.count)), 0, view.count,
            view.form};
  std::copy_n(view.items(), view.count, copy.storage->items.begin());
  copy.storage->used = view.count;
  return copy;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims dims = a;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (a[k] != b[k]) dims[k] = -1;
  }
  return dims;
}

}  // namespace

bool ListForm::operator==(const ListForm& other) const {
  if (dtype != other.dtype || shapes != other.shapes || dims != other.dims) return false;
  if (inner == nullptr || other.inner == nullptr) return inner == other.inner;
  return inner == other.inner || *inner == *other.inner;
}

ListFormRef empty_form(DType dtype) {
  static const ListFormRef any = std::make_shared<const ListForm>();
  if (dtype == DType::Undefined) return any;
  return std::make_shared<const ListForm>(ListForm{dtype, ListForm::Shapes::None, {}, nullptr});
}

ListFormRef open_form() {
  static const ListFormRef open = std::make_shared<const ListForm>(
      ListForm{DType::Undefined, ListForm::Shapes::Differ, {}, nullptr});
  return open;
}

ListFormRef form_of_one(const Tensor& element) {
  ListForm form{element.dtype(), ListForm::Shapes::Alike, element.dims(), nullptr};
  if (is_list(element.dtype())) {
    form.dims = {-1};
    form.inner = form_of(element);
  }
  return std::make_shared<const ListForm>(std::move(form));
}

ListFormRef joined(const ListFormRef& a, const ListFormRef& b) {
  using Shapes = ListForm::Shapes;
  const bool typed = a->dtype != DType::Undefined;
  if (a == b || *a == *b || (b->shapes == Shapes::None && (typed || a->shapes != Shapes::None))) {
    return a;
  }
  if (a->shapes == Shapes::None) return b;
  if (a->dtype != b->dtype) return open_form();
  ListForm form{a->dtype, Shapes::Differ, {}, nullptr};
  if (a->inner != nullptr && b->inner != nullptr) form.inner = joined(a->inner, b->inner);
  if (a->shapes == Shapes::Alike && b->shapes == Shapes::Alike &&
      a->dims.size() == b->dims.size()) {
    form.shapes = Shapes::Alike;
    form.dims = joined(a->dims, b->dims);
  }
  if (form == *a) return a;
  return std::make_shared<const ListForm>(std::move(form));
}

bool covers(const ListFormRef& a, const ListFormRef& b) {
  return b->shapes == ListForm::Shapes::None || joined(a, b) == a;
}

std::span<const Tensor> elements_of(const Tensor& list) {
  const View& view = view_of(list);
  return {view.items(), view.count};
}

const ListFormRef& form_of(const Tensor& list) { return view_of(list).form; }

Tensor with_element(const Tensor& sequence, int64_t at, Tensor element) {
  View view = view_of(sequence);
  ListFormRef form = joined(view.form, form_of_one(element));
  size_t end = view.begin + view.count;
  const bool last = at == sequence.size();
  const bool shares = last && end < view.storage->items.size() &&
                      view.storage->used.compare_exchange_strong(end, end + 1);
  if (!shares) {
    view = with_room(view);
    const auto place = view.storage->items.begin() + at;
    std::move_backward(place, view.storage->items.begin() + sequence.size(),
                       view.storage->items.begin() + sequence.size() + 1);
    ++view.storage->used;
    end = static_cast<size_t>(at);
  }
  view.storage->items[end] = std::move(element);
  ++view.count;
  view.form = std::move(form);
  return list_of(DType::Sequence, std::move(view));
}

Tensor without_element(const Tensor& sequence, int64_t at) {
  View view = view_of(sequence);
  if (at == 0) {
    ++view.begin;
  } else if (at != sequence.size() - 1) {
    view = with_room(view);
    const auto begin = view.storage->items.begin();
    std::move(begin + at + 1, begin + sequence.size(), begin + at);
    view.storage->items[view.count - 1] = Tensor();
    --view.storage->used;
  }
  --view.count;
  return list_of(DType::Sequence, std::move(view));
}

Tensor Tensor::sequence(std::vector<Tensor> elements) {
  return list_of(DType::Sequence, std::move(elements));
}

Tensor Tensor::optional(Tensor value) {
  std::vector<Tensor> elements;
  if (value.defined()) elements.push_back(std::move(value));
  return list_of(DType::Optional, std::move(elements));
}

std::vector<Tensor> Tensor::elements() const {
  const std::span<const Tensor> shared = elements_of(*this);
  return {shared.begin(), shared.end()};
}

}  // namespace redfuser
