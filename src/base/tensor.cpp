#include "redfuser/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/deferred_contents.h"
#include "base/error.h"
#include "base/memory_budget.h"
#include "base/memory_pool.h"
#include "base/string_pool.h"

namespace redfuser {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAlignsByHand = false;  // AddressSanitizer then sees accesses just beside a tensor
#else
constexpr bool kAlignsByHand = true;
#endif

// Memory outside of pools; `base` is what give_aligned takes. The allocator caches small blocks for
// each thread, but not aligned ones.
void* take_aligned(size_t bytes, void*& base) {
  if (!kAlignsByHand || bytes >= MemoryPool::kLeastBytes) {
    return base = ::operator new (std::max<size_t>(bytes, 1), std::align_val_t{kTensorAlignment},
                                  std::nothrow);
  }
  size_t room = bytes + kTensorAlignment;
  base = ::operator new(room, std::nothrow);
  void* memory = base;
  return base == nullptr ? nullptr : std::align(kTensorAlignment, bytes, memory, room);
}

void give_aligned(void* base, size_t bytes) {
  if (!kAlignsByHand || bytes >= MemoryPool::kLeastBytes) {
    return ::operator delete (base, std::align_val_t{kTensorAlignment});
  }
  ::operator delete(base);
}

struct FreeMemory {
  void operator()(void*) const {
    if (pool) {
      pool->give(block);
    } else {
      give_aligned(block.data, bytes);
    }
    if (budget) give_back(*budget, bytes);
  }
  std::shared_ptr<MemoryBudget> budget;
  size_t bytes;
  std::shared_ptr<MemoryPool> pool;  // null for memory of no pool
  MemoryPool::Block block;           // without a pool: `data` is the memory to free
};

#if defined(__SANITIZE_ADDRESS__)
// Blocks are larger than tensors and used again, which hides accesses out of place.
std::shared_ptr<MemoryPool> pool_for(size_t) { return nullptr; }
#else
std::shared_ptr<MemoryPool> pool_for(size_t bytes) {
  return bytes < MemoryPool::kLeastBytes ? nullptr : current_pool();
}
#endif

std::shared_ptr<void> allocate(size_t bytes) {
  FreeMemory free{current_budget(), bytes, pool_for(bytes), {}};
  if (free.budget) take(*free.budget, bytes);
  void* memory = nullptr;
  if (free.pool) {
    free.block = free.pool->take(bytes);
    memory = free.block.data;
  } else {
    memory = take_aligned(bytes, free.block.data);
  }
  if (memory == nullptr) {
    if (free.budget) give_back(*free.budget, bytes);
    throw std::bad_alloc();
  }
  return {memory, free};
}

}  // namespace

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::Int8:
    case DType::UInt8:
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
    case DType::Float4E2M1:
    case DType::UInt4:
    case DType::Int4:
    case DType::UInt2:
    case DType::Int2:
      return 1;
    case DType::Int16:
    case DType::UInt16:
    case DType::Float16:
    case DType::BFloat16:
      return 2;
    case DType::Int32:
    case DType::UInt32:
    case DType::Float32:
      return 4;
    case DType::Int64:
    case DType::UInt64:
    case DType::Float64:
    case DType::String:
      return 8;
    case DType::Undefined:
    case DType::Sequence:
    case DType::Optional:
      return 0;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::Undefined:
      return "undefined";
    case DType::Float32:
      return "float32";
    case DType::UInt8:
      return "uint8";
    case DType::Int8:
      return "int8";
    case DType::UInt16:
      return "uint16";
    case DType::Int16:
      return "int16";
    case DType::Int32:
      return "int32";
    case DType::Int64:
      return "int64";
    case DType::String:
      return "string";
    case DType::Bool:
      return "bool";
    case DType::Float16:
      return "float16";
    case DType::Float64:
      return "float64";
    case DType::UInt32:
      return "uint32";
    case DType::UInt64:
      return "uint64";
    case DType::BFloat16:
      return "bfloat16";
    case DType::Float8E4M3FN:
      return "float8e4m3fn";
    case DType::Float8E4M3FNUZ:
      return "float8e4m3fnuz";
    case DType::Float8E5M2:
      return "float8e5m2";
    case DType::Float8E5M2FNUZ:
      return "float8e5m2fnuz";
    case DType::UInt4:
      return "uint4";
    case DType::Int4:
      return "int4";
    case DType::Float4E2M1:
      return "float4e2m1";
    case DType::Float8E8M0:
      return "float8e8m0";
    case DType::UInt2:
      return "uint2";
    case DType::Int2:
      return "int2";
    case DType::Sequence:
      return "sequence";
    case DType::Optional:
      return "optional";
  }
  return "unknown";
}

bool is_float(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 || dtype == DType::Float32 ||
         dtype == DType::Float64;
}

bool is_low_bit_float(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
    case DType::Float4E2M1:
      return true;
    default:
      return false;
  }
}

bool is_integer(DType dtype) {
  return size_of(dtype) > 0 && !is_float(dtype) && !is_low_bit_float(dtype) &&
         dtype != DType::Bool && dtype != DType::String;
}

int bits_of(DType dtype) {
  switch (dtype) {
    case DType::UInt4:
    case DType::Int4:
    case DType::Float4E2M1:
      return 4;
    case DType::UInt2:
    case DType::Int2:
      return 2;
    case DType::String:
      return 0;
    default:
      return static_cast<int>(8 * size_of(dtype));
  }
}

int64_t element_count(const Dims& dims) {
  for (int64_t dim : dims) {
    if (dim < 0) user_error("negative dimension in shape [{}]", fmt::join(dims, ","));
    if (dim == 0) return 0;
  }
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (__builtin_mul_overflow(count, dim, &count)) {
      user_error("shape [{}] has more than 2^63 elements", fmt::join(dims, ","));
    }
  }
  return count;
}

Tensor::Tensor(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)) {
  size_ = element_count(dims_);
  size_t width = size_of(dtype_);
  if (width == 0) user_error("a tensor of dtype {} has no elements to hold", name_of(dtype_));
  constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max() / 2;
  if (size_ > kMaxBytes / static_cast<int64_t>(width)) {
    user_error("tensor {} does not fit into memory", describe(*this));
  }
  try {
    std::shared_ptr<void> memory = allocate(bytes());
    data_ = memory.get();
    owner_ = std::move(memory);
  } catch (const std::bad_alloc&) {
    user_error("out of memory: tensor {} needs {} bytes", describe(*this), bytes());
  }
}

Tensor Tensor::wrap(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.size_ = element_count(dims);
  tensor.dims_ = std::move(dims);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::deferred(DType dtype, Dims dims, std::shared_ptr<const DeferredContents> contents) {
  Tensor tensor = wrap(dtype, std::move(dims), nullptr, nullptr);
  tensor.contents_ = std::move(contents);
  return tensor;
}

const void* Tensor::deferred_data() const { return contents_->data(bytes()); }

Tensor Tensor::strings(Dims dims, const std::vector<std::string>& texts) {
  Tensor tensor(DType::String, std::move(dims));
  RF_CHECK(tensor.size() == static_cast<int64_t>(texts.size()), "{} of {} texts", describe(tensor),
           texts.size());
  for (size_t i = 0; i < texts.size(); ++i) tensor.as<uint64_t>()[i] = number_of_text(texts[i]);
  return tensor;
}

const std::string& Tensor::text(int64_t index) const {
  RF_CHECK(dtype_ == DType::String && index >= 0 && index < size_, "text {} of {}", index,
           describe(*this));
  return text_of_number(as<uint64_t>()[index]);
}

Tensor Tensor::reshaped(Dims dims) const {
  int64_t count = element_count(dims);
  if (count != size_) {
    user_error("cannot view {} as shape [{}]", describe(*this), fmt::join(dims, ","));
  }
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.dtype()), fmt::join(tensor.dims(), ","));
}

}  // namespace redfuser
