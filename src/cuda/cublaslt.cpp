#include "cuda/cublaslt.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "cuda/library.h"

namespace redfuser::cuda {
namespace {

BlasApi load_blas() {
  const Library library({"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}});
  BlasApi api;
#define RF_BIND(name) library.bind(api.name, #name)
  RF_BIND(cublasLtGetVersion);
  RF_BIND(cublasLtGetStatusString);
  RF_BIND(cublasLtCreate);
  RF_BIND(cublasLtDestroy);
  RF_BIND(cublasLtMatmulDescCreate);
  RF_BIND(cublasLtMatmulDescDestroy);
  RF_BIND(cublasLtMatmulDescSetAttribute);
  RF_BIND(cublasLtMatrixLayoutCreate);
  RF_BIND(cublasLtMatrixLayoutDestroy);
  RF_BIND(cublasLtMatrixLayoutSetAttribute);
  RF_BIND(cublasLtMatmulPreferenceCreate);
  RF_BIND(cublasLtMatmulPreferenceDestroy);
  RF_BIND(cublasLtMatmulPreferenceSetAttribute);
  RF_BIND(cublasLtMatmulAlgoGetHeuristic);
  RF_BIND(cublasLtMatmul);
#undef RF_BIND
  return api;
}

const BlasApi& blas() {
  static const BlasApi api = load_blas();
  return api;
}

void check(BlasStatus status, const char* what, const std::string& name) {
  if (status != 0) {
    internal_error("cuBLASLt, {} for \"{}\": {}", what, name,
                   blas().cublasLtGetStatusString(status));
  }
}

BlasType blas_type(DType dtype, const std::string& name) {
  switch (dtype) {
    case DType::Float16:
      return kReal16;
    case DType::BFloat16:
      return kRealBrain16;
    case DType::Float32:
      return kReal32;
    case DType::Float64:
      return kReal64;
    case DType::Int8:
      return kInteger8;
    case DType::Int32:
      return kInteger32;
    case DType::Float8E4M3FN:
      return kReal8E4M3;
    case DType::Float8E5M2:
      return kReal8E5M2;
    default:
      user_error("\"{}\": cuBLASLt has no products of {}", name, name_of(dtype));
  }
}

BlasCompute compute_type(const Product& product) {
  switch (product.dtype) {
    case DType::Float64:
      return kCompute64;
    case DType::Int8:
      return kComputeInteger32;
    case DType::Float32:
      return product.tf32 ? kCompute32FastTf32 : kCompute32;
    default:
      return kCompute32;
  }
}

// cuBLASLt is column-major, so it computes cᵀ = bᵀ · aᵀ. An operand for it:
struct Operand {
  bool transposed = false;                     // of the stored matrix
  int64_t rows = 0, columns = 0, leading = 0;  // of the stored matrix, by columns
};

// `outer` is the number of rows and `inner` that of columns of the transposed matrix.
Operand operand(int64_t outer, int64_t inner, int64_t outer_stride, int64_t inner_stride,
                const std::string& name) {
  Operand result;
  if (outer_stride == 1 || outer == 1) {
    result = {false, outer, inner, inner == 1 ? outer : inner_stride};
  } else {
    RF_CHECK(inner_stride == 1 || inner == 1, "\"{}\": a product's operand has strides {} and {}",
             name, outer_stride, inner_stride);
    result = {true, inner, outer, outer_stride};
  }
  if (outer == 1 && inner_stride == 1 && outer_stride != 1) result = {true, inner, outer, inner};
  RF_CHECK(result.leading >= result.rows, "\"{}\": a product's operand overlaps itself", name);
  return result;
}

uint32_t alignment(DevicePointer address) {
  constexpr int kMax = 256;
  return address == 0 ? kMax : 1u << std::min(std::countr_zero(address), 8);
}

}  // namespace

struct ProductLibrary::Prepared::Impl {
  ~Impl() {
    for (MatrixLayout layout : layouts) {
      if (layout != nullptr) blas().cublasLtMatrixLayoutDestroy(layout);
    }
    if (descriptor != nullptr) blas().cublasLtMatmulDescDestroy(descriptor);
    if (preference != nullptr) blas().cublasLtMatmulPreferenceDestroy(preference);
  }

  void describe(const Operand& first, const Operand& second);
  void describe_scales();
  void set_layout(int which, DType dtype, const Operand& matrix, int64_t batch_stride);
  void choose();
  void fill_zero(const Stream& stream) const;

  BlasHandle handle = nullptr;
  Product product;
  ProductDescriptor descriptor = nullptr;
  MatrixLayout layouts[3] = {};  // of bᵀ, aᵀ, cᵀ
  ProductPreference preference = nullptr;
  BlasHeuristic heuristic{};
};

void ProductLibrary::Prepared::Impl::set_layout(int which, DType dtype, const Operand& matrix,
                                                int64_t batch_stride) {
  const std::string& name = product.name;
  MatrixLayout& layout = layouts[which];
  check(blas().cublasLtMatrixLayoutCreate(&layout, blas_type(dtype, name),
                                          static_cast<uint64_t>(matrix.rows),
                                          static_cast<uint64_t>(matrix.columns), matrix.leading),
        "describing a matrix", name);
  const int32_t batch = static_cast<int32_t>(product.batch);
  check(blas().cublasLtMatrixLayoutSetAttribute(layout, kLayoutBatchCount, &batch, sizeof batch),
        "describing a batch", name);
  check(blas().cublasLtMatrixLayoutSetAttribute(layout, kLayoutBatchStride, &batch_stride,
                                                sizeof batch_stride),
        "describing a batch", name);
}

void ProductLibrary::Prepared::Impl::describe(const Operand& first, const Operand& second) {
  const std::string& name = product.name;
  const BlasType scale = product.dtype == DType::Float64 ? kReal64
                         : product.dtype == DType::Int8  ? kInteger32
                                                         : kReal32;
  check(blas().cublasLtMatmulDescCreate(&descriptor, compute_type(product), scale),
        "describing a product", name);
  const int32_t transposes[] = {first.transposed ? 1 : 0, second.transposed ? 1 : 0};
  check(blas().cublasLtMatmulDescSetAttribute(descriptor, kDescriptorTransposeA, &transposes[0],
                                              sizeof(int32_t)),
        "describing a product", name);
  check(blas().cublasLtMatmulDescSetAttribute(descriptor, kDescriptorTransposeB, &transposes[1],
                                              sizeof(int32_t)),
        "describing a product", name);
  if (product.bias != 0) {
    const int32_t epilogue = kEpilogueBias;
    check(blas().cublasLtMatmulDescSetAttribute(descriptor, kDescriptorEpilogue, &epilogue,
                                                sizeof epilogue),
          "describing a bias", name);
    check(blas().cublasLtMatmulDescSetAttribute(descriptor, kDescriptorBiasPointer, &product.bias,
                                                sizeof product.bias),
          "describing a bias", name);
  }
  describe_scales();
  set_layout(0, product.dtype, first, product.b.batch);
  set_layout(1, product.dtype, second, product.a.batch);
  const Operand result{false, product.n, product.m, product.m == 1 ? product.n : product.c.row};
  set_layout(2, product.result, result, product.c.batch);
}

// The library's first operand is b.
void ProductLibrary::Prepared::Impl::describe_scales() {
  const auto set = [&](int attribute, const auto& value) {
    check(blas().cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof value),
          "describing scales", product.name);
  };
  if (product.b_scale != 0) set(kDescriptorScaleA, product.b_scale);
  if (product.a_scale != 0) set(kDescriptorScaleB, product.a_scale);
  if (!product.line_scales) return;
  set(kDescriptorScaleModeA, kScaleLines);
  set(kDescriptorScaleModeB, kScaleLines);
}

void ProductLibrary::Prepared::Impl::choose() {
  const std::string& name = product.name;
  check(blas().cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm", name);
  const uint64_t workspace = kWorkspaceBytes;
  check(blas().cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceWorkspaceBytes,
                                                    &workspace, sizeof workspace),
        "choosing an algorithm", name);
  const uint32_t alignments[] = {alignment(product.b.data), alignment(product.a.data),
                                 alignment(product.addend != 0 ? product.addend : product.c.data),
                                 alignment(product.c.data)};
  for (int i = 0; i < 4; ++i) {
    check(blas().cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceAlignmentA + i,
                                                      &alignments[i], sizeof alignments[i]),
          "choosing an algorithm", name);
  }
  const uint32_t reductions = kReduceInComputeType;
  check(blas().cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceReductions, &reductions,
                                                    sizeof reductions),
        "choosing an algorithm", name);
  const int wanted = product.algorithm + 1;
  std::vector<BlasHeuristic> proposals(static_cast<size_t>(wanted));
  int found = 0;
  const BlasStatus status = blas().cublasLtMatmulAlgoGetHeuristic(
      handle, descriptor, layouts[0], layouts[1], layouts[2], layouts[2], preference, wanted,
      proposals.data(), &found);
  heuristic = proposals.back();
  if (product.algorithm > 0 && (status != 0 || found < wanted || heuristic.state != 0)) {
    throw NoSuchAlgorithm(
        fmt::format("\"{}\": cuBLASLt proposes {} algorithms, not {}", name, found, wanted));
  }
  if (status != 0 || found == 0 || heuristic.state != 0) {
    user_error(
        "\"{}\": cuBLASLt has no algorithm for the product {}x{}x{} (batch {}) of {} into {}: "
        "{}",
        name, product.m, product.n, product.k, product.batch, name_of(product.dtype),
        name_of(product.result), blas().cublasLtGetStatusString(status));
  }
}

void ProductLibrary::Prepared::Impl::fill_zero(const Stream& stream) const {
  const int64_t width = static_cast<int64_t>(size_of(product.result));
  for (int64_t i = 0; i < product.batch; ++i) {
    const DevicePointer start = product.c.data + static_cast<uint64_t>(i * product.c.batch * width);
    const int64_t pitch = product.m == 1 ? product.n : product.c.row;
    stream.fill_rows(start, pitch * width, 0, product.n * width, product.m);
  }
}

ProductLibrary::Prepared::Prepared(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProductLibrary::Prepared::~Prepared() = default;
ProductLibrary::Prepared::Prepared(Prepared&&) noexcept = default;

const Product& ProductLibrary::Prepared::product() const { return impl_->product; }

void ProductLibrary::Prepared::run(const Stream& stream, DevicePointer workspace) const {
  const Product& product = impl_->product;
  if (product.batch == 0 || product.m == 0 || product.n == 0) return;
  if (product.k == 0) {
    RF_CHECK(product.bias == 0 && product.addend == 0, "\"{}\": an empty sum with an addend",
             product.name);
    return impl_->fill_zero(stream);
  }
  const bool adds = product.addend != 0;
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const int32_t one32 = 1, zero32 = 0;
  const void *alpha = &one, *beta = adds ? &one : &zero;
  if (product.dtype == DType::Float64) alpha = &one64, beta = adds ? &one64 : &zero64;
  if (product.dtype == DType::Int8) alpha = &one32, beta = adds ? &one32 : &zero32;
  auto pointer = [](DevicePointer address) { return reinterpret_cast<void*>(address); };
  void* c = pointer(product.c.data);
  check(blas().cublasLtMatmul(impl_->handle, impl_->descriptor, alpha, pointer(product.b.data),
                              impl_->layouts[0], pointer(product.a.data), impl_->layouts[1], beta,
                              adds ? pointer(product.addend) : c, impl_->layouts[2], c,
                              impl_->layouts[2], &impl_->heuristic.algorithm, pointer(workspace),
                              kWorkspaceBytes, stream.handle()),
        "launching a product", product.name);
}

ProductLibrary::ProductLibrary(DevicePtr device) : device_(std::move(device)) {
  const BlasStatus status = blas().cublasLtCreate(&handle_);
  if (status != 0) {
    user_error("cuBLASLt does not start on {}: {}", device_->info().name,
               blas().cublasLtGetStatusString(status));
  }
}

ProductLibrary::~ProductLibrary() {
  if (handle_ != nullptr) blas().cublasLtDestroy(handle_);
}

std::string ProductLibrary::version() {
  const size_t version = blas().cublasLtGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

bool ProductLibrary::has_line_scales() {
  constexpr size_t kFirst = 120900;
  return blas().cublasLtGetVersion() >= kFirst;
}

ProductLibrary::Prepared ProductLibrary::prepare(const Product& product) const {
  auto impl = std::make_unique<Prepared::Impl>();
  impl->handle = handle_;
  impl->product = product;
  if (product.batch > 0 && product.m > 0 && product.n > 0 && product.k > 0) {
    RF_CHECK(product.c.column == 1, "\"{}\": a product's result has column stride {}", product.name,
             product.c.column);
    impl->describe(operand(product.n, product.k, product.b.column, product.b.row, product.name),
                   operand(product.k, product.m, product.a.column, product.a.row, product.name));
    impl->choose();
  }
  return Prepared(std::move(impl));
}

void ProductLibrary::load_proposals() const {
  constexpr int64_t kSize = 128;
  Product product;
  product.dtype = product.result = DType::Float16;
  product.m = product.n = product.k = kSize;
  product.a = product.b = product.c = {0, kSize, 1, 0};
  product.name = "a product of halves";
  prepare(product);
}

}  // namespace redfuser::cuda
