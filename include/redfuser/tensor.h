// Dense host tensors, the values that go into and come out of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redfuser {

// Element types, numbered as ONNX numbers them (onnx.TensorProto.DataType).
enum class DType : uint8_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  BFloat16 = 16,
  // Low-bit types take one byte per element in memory (files pack them). The floating ones are held
  // as their codes.
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
  // Not tensors: a list of values, and a list of at most one value.
  Sequence = 64,
  Optional = 65,
};

// Bytes of one element in memory; 0 for Undefined, Sequence and Optional. A String's element is the
// 8-byte number of an interned text.
size_t size_of(DType dtype);
// The name that users know: "float32", "int64", "bool", ...
std::string_view name_of(DType dtype);
// True for Float16, BFloat16, Float32 and Float64.
bool is_float(DType dtype);
// True for the floating types of 8 bits and fewer.
bool is_low_bit_float(DType dtype);
// True for the signed and unsigned integers of 2 to 64 bits (not Bool).
bool is_integer(DType dtype);
// Bits of one element in an ONNX file; 0 for String, Undefined, Sequence and Optional.
int bits_of(DType dtype);

using Dims = std::vector<int64_t>;

// The number of elements of `dims` (1 for a scalar). Throws UserError when it overflows int64.
int64_t element_count(const Dims& dims);

class DeferredContents;

// A contiguous, row-major tensor in host memory. Copies share the storage: treat a tensor as
// immutable once it has been copied.
class Tensor {
 public:
  Tensor() = default;
  // Allocates uninitialised storage, aligned to 64 bytes.
  Tensor(DType dtype, Dims dims);
  // Wraps the caller's memory; `owner` keeps it alive (may be null: the caller then keeps it).
  static Tensor wrap(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner);
  // Storage that is allocated and filled at its first use.
  static Tensor deferred(DType dtype, Dims dims, std::shared_ptr<const DeferredContents> contents);
  // A String tensor. Distinct strings are kept for the life of the process; UserError beyond 1 GiB
  // of them.
  static Tensor strings(Dims dims, const std::vector<std::string>& texts);
  // A Sequence of dims {elements.size()}. Elements may be sequences or optionals themselves.
  static Tensor sequence(std::vector<Tensor> elements);
  // An Optional of dims {0} or, where `value` is defined, {1}.
  static Tensor optional(Tensor value);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }
  bool defined() const { return dtype_ != DType::Undefined; }

  const void* data() const { return contents_ == nullptr ? data_ : deferred_data(); }
  void* mutable_data() { return const_cast<void*>(data()); }
  // The source of a deferred tensor's elements; null for other tensors.
  const std::shared_ptr<const DeferredContents>& contents() const { return contents_; }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  template <typename T>
  T* as() {
    return static_cast<T*>(mutable_data());
  }
  // Element `index` of a String tensor.
  const std::string& text(int64_t index) const;
  // The values of a Sequence or Optional.
  std::vector<Tensor> elements() const;
  // The same elements under other dims; the element counts must be equal.
  Tensor reshaped(Dims dims) const;

 private:
  const void* deferred_data() const;

  DType dtype_ = DType::Undefined;
  Dims dims_;
  int64_t size_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const DeferredContents> contents_;
};

// "float32[2,24,64]"
std::string describe(const Tensor& tensor);

}  // namespace redfuser
