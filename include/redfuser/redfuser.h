// RedFuser: load an ONNX model, compile it, run it.
//
//   redfuser::Model model = redfuser::Model::load("model.onnx");
//   redfuser::Program program = redfuser::compile(model);
//   redfuser::Session session(program);
//   redfuser::NamedTensors outputs = session.run({{"x", x}});
//
// A Model and a Program are immutable and may be shared by threads; a Session belongs to one
// thread. Every function throws UserError for the caller's faults and InternalError for ours.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redfuser/error.h"
#include "redfuser/tensor.h"

namespace redfuser {

namespace onnx {
struct LoadedModel;  // defined inside the library
}
namespace runtime {
struct CompiledProgram;
}

using NamedTensors = std::map<std::string, Tensor>;
using NamedDims = std::map<std::string, Dims>;
struct DeviceTensor;  // redfuser/device.h
using NamedDeviceTensors = std::map<std::string, DeviceTensor>;

// One graph input or output. A dimension is a number or, where the model leaves it open, a name.
struct ValueInfo {
  struct Dimension {
    int64_t size = -1;  // -1: symbolic
    std::string symbol;
  };
  std::string name;
  DType dtype = DType::Undefined;
  std::vector<Dimension> dims;
  bool any_shape =
      false;  // the model leaves the rank open, or the value is no tensor: dims is empty
};

class Model {
 public:
  Model() = default;
  explicit Model(std::shared_ptr<const onnx::LoadedModel> handle) : impl_(std::move(handle)) {}
  // Reads, checks and expands an ONNX file. External data is mapped, not copied.
  static Model load(const std::string& path);
  // The same for a model in ONNX's text syntax, such as
  // `<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }`.
  static Model parse(const std::string& text);

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  // Operator counts of the file as it was written ("MatMul" -> 16).
  const std::map<std::string, int>& operator_counts() const;
  const std::shared_ptr<const onnx::LoadedModel>& handle() const { return impl_; }

 private:
  std::shared_ptr<const onnx::LoadedModel> impl_;
};

struct CompileOptions {
  bool fuse = true;     // false: every operator on its own, the reference
  bool certify = true;  // run every fusion against its unfused body on adversarial data
};

// One step of a program.
struct StepInfo {
  std::string label;                // the user's nodes that it covers
  std::string kind;                 // the class of a fused region ("attention", "row", ...), else
                                    // "product", "map", "reduce", "opaque" or "alias"
  bool fused = false;               // a region of the report
  std::vector<std::string> values;  // what it computes, by the names in the file
};

class Program {
 public:
  // The steps in the order in which they run.
  const std::vector<StepInfo>& steps() const;
  // The report of what was fused and what was not, as JSON text (docs/cli.md gives the schema).
  std::string explain() const;
  // The plan as text, one step per line.
  std::string text() const;
  // A stage of the pipeline as text: "import", "passes", "graph", "cascade", "streaming", "plan",
  // "kernels" or "cuda"; the last two for a GPU of the target, such as "sm_80". No GPU is needed.
  // UserError if there is no such stage or target.
  std::string dump(const std::string& stage, const std::string& target = "sm_90a") const;
  const std::shared_ptr<const runtime::CompiledProgram>& handle() const { return impl_; }

 private:
  friend Program compile(const Model& model, const CompileOptions& options);
  std::shared_ptr<const runtime::CompiledProgram> impl_;
};

Program compile(const Model& model, const CompileOptions& options = {});

// Compiled GPU kernels kept between runs.
enum class KernelCacheMode { On, Off, ReadOnly };

struct SessionOptions {
  // "cpu", "cuda" (UserError without a GPU), "auto" (cuda where there is one that can run the
  // program), or "reference": as read, node by node in fp64; UserError for operators not covered.
  std::string device = "cpu";
  int threads = 0;  // 0: one per core
  // Bytes; 0: the machine's memory. On the CPU of intermediate and output tensors, on a GPU of
  // everything that the session keeps there.
  int64_t memory_limit = 0;
  bool tf32 = false;  // GPU: fp32 products may round their operands to TF32
  // GPU: every result of a masked attention is the unfused graph's, NaN for NaN, as it always is on
  // the CPU. That takes one more read of all values (of rows and keys too where the mask is added),
  // hidden ones too, and where one is not finite (or a score might overflow) a visit to each.
  // Without it the kernel assumes that hidden keys, values and scores are finite, and does not read
  // tiles of them: where one is not finite, a row that hides it gets either the unfused graph's NaN
  // or its result for finite ones.
  bool exact_masks = false;
  // GPU: sets of sizes whose calls are kept ready, each with a CUDA graph from its second run on.
  int kept_shapes = 8;
  KernelCacheMode kernel_cache = KernelCacheMode::On;
  std::string kernel_cache_folder;  // empty: $XDG_CACHE_HOME or ~/.cache, redfuser/kernels
  // GPU: where several kernels compute a step, the first run of a shape times the best few by
  // estimate and takes the fastest. What it found is kept in the folder of compiled kernels, as
  // kernel_cache allows, and read by later sessions that tune.
  bool tune = false;
};

// A program's time on a GPU, without copies from and to the host.
struct DeviceTiming {
  double median_us = 0, min_us = 0;
  int replays = 0;
};

// What SessionOptions::tune found for a step of the last run.
struct StepTuning {
  std::string label, kind;             // as in StepInfo
  std::string default_choice, choice;  // such as "attention_split warps=4 keys=32 stages=3"
  double default_us = 0, us = 0;       // medians with a cold cache; equal where the default is kept
  std::vector<std::pair<std::string, double>> measured;  // every choice, the default first
  bool remembered = false;  // found by an earlier session, or for an equal step
};

// One step's time in the last run.
struct StepTime {
  std::string label;  // the user's nodes
  std::string kind;   // as in StepInfo
  double start_us = 0, duration_us = 0;
  std::vector<std::string> kernels;  // GPU only: what it launched, by the names in machine code
};

class Session {
 public:
  explicit Session(const Program& program, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;

  // Runs the program. Inputs are checked by name, dtype and shape; every output of the model comes
  // back. Inputs are read in place and must stay unchanged until run returns.
  NamedTensors run(const NamedTensors& inputs);
  // GPU only: runs on memory and on a stream of the caller's; redfuser/device.h describes it.
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream = nullptr);
  // The sizes of every output for inputs of these sizes. UserError if they depend on data.
  NamedDims output_dims(const NamedDims& inputs) const;
  // Keeps the time of every step of the following runs.
  void profile(bool on);
  const std::vector<StepTime>& step_times() const;
  // Called before each step with (done, total); for progress lines. Null turns it off.
  void on_progress(std::function<void(int, int)> callback);
  // The largest number of bytes of intermediate and output tensors alive at once in the last run;
  // on a GPU, of everything that the session keeps there.
  int64_t peak_bytes() const;
  // GPU only: how often memory of the GPU or pinned memory of the host was allocated so far.
  int64_t allocations() const;
  // "cpu", or the GPU's name.
  const std::string& device() const;
  // GPU only: of what runs there, such as "driver" -> "13.0", "nvrtc", "cublaslt".
  const std::map<std::string, std::string>& versions() const;
  // GPU, with SessionOptions::tune: the steps of the last run that several kernels compute.
  const std::vector<StepTuning>& tunings() const;
  // What the user may want to know, one line each: compiled kernels, why "auto" took the CPU,
  // damaged entries of the kernel cache. Runs that tune may add to it.
  const std::vector<std::string>& notes() const;
  // GPU only: calls of kernels and of the product library in a run of the last shape.
  int launches() const;
  // GPU only (UserError otherwise): the median time of a run on these inputs, through a CUDA graph,
  // the GPU's cache overwritten before every replay, over about `budget_s` seconds (10 to 100
  // runs).
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s = 0.4);
  // Values that the program computes at fusion boundaries in the last run, by name; only after
  // keep_values(true). For comparing two programs of one model value by value.
  void keep_values(bool on);
  // Keeps only the values of these names; the others are freed as usual.
  void keep_values(const std::vector<std::string>& names);
  const NamedTensors& kept_values() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redfuser
