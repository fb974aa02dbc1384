// Matrix products by cuBLASLt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/cublaslt_api.h"
#include "cuda/driver.h"
#include "redfuser/error.h"
#include "redfuser/tensor.h"

namespace redfuser::cuda {

// A matrix in device memory: element [i, j] of batch b is at b * batch + i * row + j * column,
// counted in elements. Either `row` or `column` is 1, unless the dimension it steps over is 1.
struct Matrix {
  DevicePointer data = 0;
  int64_t row = 0, column = 1, batch = 0;
};

// c[b, i, j] = (Σ_k a[b, i, k] · b[b, k, j]) · a_scale · b_scale + bias[j] + addend[b, i, j].
struct Product {
  // Of a and b: the floats, int8 into int32, and E4M3FN, where a's rows and b's columns are
  // contiguous, multiples of 16 elements, and aligned to 16 bytes.
  DType dtype = DType::Float32;
  DType result = DType::Float32;  // of c; sums are kept in fp32 (fp64, int32)
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a, b, c;            // c.column is 1
  DevicePointer bias = 0;    // n elements of dtype `result`; 0: none
  DevicePointer addend = 0;  // laid out as c; 0: none
  // fp32, for E4M3FN; 0: 1. With line_scales m and n numbers, by rows and by columns.
  DevicePointer a_scale = 0, b_scale = 0;
  bool line_scales = false;
  // How many of the library's proposals are before it; all keep partial sums in the precision of
  // the whole sum.
  int algorithm = 0;
  bool tf32 = false;
  std::string name;  // the user's nodes, for errors
};

// The library has fewer proposals than the requested number.
class NoSuchAlgorithm : public UserError {
 public:
  using UserError::UserError;
};

// cuBLASLt on one GPU. Opens the library at the first use; UserError if there is none.
class ProductLibrary {
 public:
  explicit ProductLibrary(DevicePtr device);
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;

  static std::string version();   // such as "13.0.2"
  static bool has_line_scales();  // since 12.9
  // The workspace of the fastest algorithms.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

  // A product with a chosen algorithm.
  class Prepared {
   public:
    ~Prepared();
    Prepared(Prepared&&) noexcept;
    Prepared& operator=(Prepared&&) = delete;
    // Enqueues it. One workspace serves all products of one stream.
    void run(const Stream& stream, DevicePointer workspace) const;
    const Product& product() const;

   private:
    friend class ProductLibrary;
    struct Impl;
    explicit Prepared(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };
  // Throws UserError naming the product if the library cannot compute it, NoSuchAlgorithm if it
  // can, but not by the requested algorithm.
  Prepared prepare(const Product& product) const;
  // Makes the library load the code of its first proposal ahead of `prepare`.
  void load_proposals() const;

 private:
  DevicePtr device_;
  BlasHandle handle_ = nullptr;
};

}  // namespace redfuser::cuda
