// Sequences and optionals: lists of values that share their elements.
#pragma once

#include <memory>
#include <span>

#include "redfuser/tensor.h"

namespace redfuser {

// What the elements of a list have in common.
struct ListForm {
  enum class Shapes { None, Alike, Differ };

  DType dtype = DType::Undefined;  // of each; Undefined: they differ, or there is none
  // None: no element is there, so that any may follow. Alike: all are of the rank of `dims`.
  Shapes shapes = Shapes::None;
  Dims dims;                              // -1: a size that differs
  std::shared_ptr<const ListForm> inner;  // of the elements of elements that are lists

  bool operator==(const ListForm& other) const;
};
using ListFormRef = std::shared_ptr<const ListForm>;  // never null

// The form of lists without an element whose elements are of this type, and of lists of which
// nothing is known.
ListFormRef empty_form(DType dtype = DType::Undefined);
ListFormRef open_form();
// The form of a list of this value alone, which may be a list.
ListFormRef form_of_one(const Tensor& element);
// The form of lists of either form; `a` itself where it covers `b`.
ListFormRef joined(const ListFormRef& a, const ListFormRef& b);
// Whether every list of form `b` is one of form `a`.
bool covers(const ListFormRef& a, const ListFormRef& b);

inline bool is_list(DType dtype) { return dtype == DType::Sequence || dtype == DType::Optional; }

// The values of a list, as long as `list` lives.
std::span<const Tensor> elements_of(const Tensor& list);
// A form that covers the list.
const ListFormRef& form_of(const Tensor& list);
// The sequence with one more element, which stands at `at` (0 to its size). Takes constant time on
// average at the end, where both sequences use one memory: each has a prefix of it.
Tensor with_element(const Tensor& sequence, int64_t at, Tensor element);
// The sequence without the element at `at`. Takes constant time at either end.
Tensor without_element(const Tensor& sequence, int64_t at);

}  // namespace redfuser
