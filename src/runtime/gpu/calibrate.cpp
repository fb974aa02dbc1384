// The rates of a GPU, by the kernels of src/device/calibrate.cuh and the product library.
#include "redfuser/calibrate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "codegen/core/device_text.h"
#include "cuda/cublaslt.h"
#include "cuda/nvml.h"
#include "cuda/nvrtc.h"
#include "runtime/gpu/bound/program.h"

namespace redfuser {
namespace {

using runtime::machine_of;

constexpr unsigned kThreads = 256;
// As the kernels have them.
constexpr double kChains = 8, kSteps = 16;

class Calibrator {
 public:
  Calibrator()
      : device_(cuda::Device::open()),
        machine_(machine_of(device_->info())),
        stream_(device_),
        module_(device_, text(), "calibrate"),
        sink_(device_, 256, "results") {}

  Calibration run() {
    const cuda::DeviceInfo& info = device_->info();
    Calibration result;
    result.device = info.name;
    result.architecture = cuda::architecture_name(info.architecture);
    result.multiprocessors = info.multiprocessors;
    result.clock_mhz = machine_.clock;
    const double clocks = 1.0 * machine_.multiprocessors * machine_.clock;
    const auto add = [&](const char* name, const char* unit, double per, double measured,
                         double table) {
      result.rates.push_back({name, unit, measured / per, table / per});
      return measured / per;
    };
    add("copies in DRAM", "GB/s", 1e3, copy_rate(), machine_.dram_rate);
    const double l2 =
        add("reads from L2", "bytes per SM and clock", clocks, l2_rate(), machine_.l2_rate());
    const double half = add("products of fp16", "operations per SM and clock", clocks,
                            product_rate(DType::Float16), machine_.tensor_rate(DType::Float16));
    result.load_clock_mhz = cuda::read_clocks(info.pci_bus).sm_mhz;
    add("products of TF32", "operations per SM and clock", clocks, product_rate(DType::Float32),
        machine_.tensor_rate(DType::Float32));
    const double scalar = add("fp32 multiply-adds", "operations per SM and clock", clocks,
                              chain_rate("calibrate_fma", 2), machine_.scalar_rate());
    const double special = add("2^x", "operations per SM and clock", clocks,
                               chain_rate("calibrate_exp2", 1), machine_.special_rate());
    add("launch within a graph", "us", 1, launch_time(), select::kLaunchTime);
    // The table has peaks, of which products reach a part.
    const double peak = half / select::kTensorEfficiency;
    result.rows = {
        fmt::format("{{{}, {:.0f}, {:.0f}, {:.0f}, {:.0f}}},", info.architecture, peak, scalar,
                    special, l2),
        fmt::format("{{\"{}\", \"{}\", {{{}, {}, {} * kKilo, {} * kMega, {}, {:.3g}}}}},",
                    result.architecture, info.name, info.architecture, info.multiprocessors,
                    info.shared_bytes >> 10, machine_.l2_bytes >> 20, machine_.clock,
                    result.rates[0].measured * 1e3)};
    return result;
  }

 private:
  std::string text() const {
    static constexpr std::string_view kHeaders[] = {"device/calibrate.cuh"};
    return cuda::compile(codegen::device_prelude(kHeaders),
                         cuda::compile_options(device_->info().architecture), "calibrate.cu");
  }

  // Fills the multiprocessors.
  cuda::LaunchShape everywhere() const {
    cuda::LaunchShape shape;
    shape.block = kThreads;
    shape.grid[0] = static_cast<uint32_t>(machine_.multiprocessors) *
                    (select::kThreadsOfMultiprocessor / kThreads);
    return shape;
  }

  void launch(const char* name, const cuda::LaunchShape& shape,
              const std::vector<uint64_t>& arguments) {
    const cuda::FunctionHandle function =
        module_.function(name, static_cast<int>(shape.block), 0, 1);
    stream_.launch({function, shape, {}, arguments}, name);
  }

  // The median of a few runs, in microseconds.
  double time(const std::function<void()>& run) {
    constexpr size_t kRuns = 7;
    const cuda::Event before(device_), after(device_);
    std::vector<double> times;
    for (size_t i = 0; i <= kRuns; ++i) {
      before.record(stream_);
      run();
      after.record(stream_);
      after.synchronize();
      if (i > 0) times.push_back(after.microseconds_since(before));
    }
    std::sort(times.begin(), times.end());
    return times[kRuns / 2];
  }

  // Bytes read and written per microsecond.
  double copy_rate() {
    constexpr int64_t kBytes = int64_t{256} << 20, kVector = 16;
    const cuda::Buffer from(device_, kBytes, "a copy"), to(device_, kBytes, "a copy");
    const double us = time([&] {
      launch("calibrate_copy", everywhere(), {from.address(), to.address(), kBytes / kVector});
    });
    return 2.0 * kBytes / us;
  }

  double l2_rate() {
    constexpr int64_t kLeast = 1 << 20, kVector = 16, kRounds = 40;
    // GPUs with two parts of the cache keep what is read in both.
    const int64_t bytes = std::max(machine_.l2_bytes / 4, kLeast) / kVector * kVector;
    const cuda::Buffer data(device_, bytes, "what is read");
    const double us = time([&] {
      launch("calibrate_read", everywhere(),
             {data.address(), sink_.address(), static_cast<uint64_t>(bytes / kVector), kRounds});
    });
    return static_cast<double>(bytes * kRounds) / us;
  }

  // Operations per microsecond; `each` are those of a step.
  double chain_rate(const char* name, double each) {
    constexpr uint64_t kRounds = 2000;
    const cuda::LaunchShape shape = everywhere();
    const double us = time([&] { launch(name, shape, {sink_.address(), kRounds}); });
    return each * kChains * kSteps * kRounds * shape.grid[0] * kThreads / us;
  }

  double product_rate(DType dtype) {
    constexpr int64_t kSize = 8192, kWord = 4;
    const auto bytes = kSize * kSize * static_cast<int64_t>(size_of(dtype));
    std::vector<cuda::Buffer> matrices;
    cuda::Product product;
    product.dtype = product.result = dtype;
    product.m = product.n = product.k = kSize;
    product.tf32 = true;
    product.name = "calibration";
    for (cuda::Matrix* matrix : {&product.a, &product.b, &product.c}) {
      matrices.emplace_back(device_, bytes, "a matrix");
      *matrix = {matrices.back().address(), kSize, 1, 0};
      launch("calibrate_fill", everywhere(), {matrix->data, static_cast<uint64_t>(bytes / kWord)});
    }
    const cuda::ProductLibrary library(device_);
    const cuda::ProductLibrary::Prepared prepared = library.prepare(product);
    const cuda::Buffer workspace(device_, cuda::ProductLibrary::kWorkspaceBytes, "a workspace");
    const double us = time([&] { prepared.run(stream_, workspace.address()); });
    return 2.0 * kSize * kSize * kSize / us;
  }

  // Of one of many kernels of a graph.
  double launch_time() {
    constexpr int kKernels = 200;
    cuda::LaunchShape shape;
    shape.block = 32;
    launch("calibrate_nothing", shape, {sink_.address(), 0});
    stream_.begin_capture();
    for (int i = 0; i < kKernels; ++i) launch("calibrate_nothing", shape, {sink_.address(), 0});
    const cuda::Graph graph = stream_.end_capture();
    return time([&] { stream_.launch(graph); }) / kKernels;
  }

  const cuda::DevicePtr device_;
  const select::Machine machine_;
  const cuda::Stream stream_;
  const cuda::Module module_;
  const cuda::Buffer sink_;
};

}  // namespace

Calibration calibrate_gpu() { return Calibrator().run(); }

}  // namespace redfuser
