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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redfuser/error.h"
#include "redfuser/step_facts.h"
#include "redfuser/tensor.h"
#include "redfuser/timing.h"

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
    // The name of an open dimension in the file; empty where `symbol` is made up or computed.
    std::string declared = {};
  };
  std::string name;
  DType dtype = DType::Undefined;
  std::vector<Dimension> dims;
  bool any_shape = false;  // unknown rank, or not a tensor: dims is empty
  // Of an output that the file declares as maps by class (ai.onnx.ml.ZipMap): the classes of the
  // tensor's columns, in order. Integers stand as text.
  std::vector<std::string> classes;
};

// What a caller gives in place of what the file has.
struct LoadOptions {
  // An initializer whose name is here is that tensor, whose memory the model shares; the file need
  // not hold its data. UserError for a name that no initializer has, and for another type or other
  // sizes than the initializer's.
  NamedTensors weights = {};
  // The bytes of files of external data, by their location as the model names it: any tensor of
  // that many bytes. UserError for a location that no initializer has, and for too few bytes. A
  // model with weights or files of the caller cannot be written to a file.
  NamedTensors files = {};
  // Sizes of open dimensions of inputs, by the dimension's name and by its denotation. Names that
  // no open dimension has are passed over. UserError for a size below 0.
  std::map<std::string, int64_t> sizes = {}, denoted_sizes = {};
};

class Model {
 public:
  Model() = default;
  explicit Model(std::shared_ptr<const onnx::LoadedModel> handle) : impl_(std::move(handle)) {}
  // Reads, checks and expands an ONNX file. External data is mapped, not copied.
  static Model load(const std::string& path, const LoadOptions& options = {});
  // The same for the bytes of such a file, which may be freed afterwards. Errors call it `name`;
  // external data lies in the folder of `name`.
  static Model from_bytes(std::string_view bytes, const std::string& name = "model",
                          const LoadOptions& options = {});
  // As load, also for a file with operators that are not supported: save() writes it as it is, and
  // a run throws the error of load.
  static Model load_to_save(const std::string& path);
  // The same for a model in ONNX's text syntax, such as
  // `<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }`.
  static Model parse(const std::string& text);

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  // Inputs of the file that have an initializer and that a run may give in its place: from version
  // 4 of ONNX's IR on, all that have one. They are not among inputs().
  const std::vector<ValueInfo>& overridable() const;
  // The same model with these of overridable() among inputs(): a run must give them. UserError for
  // another name. Such a model cannot be written to a file.
  Model with_inputs(const std::vector<std::string>& names) const;
  // Where values decide the structure of the model (the axes of a sum, the iterations of a Loop) or
  // its sizes, the small ones of these inputs that may. A session on a GPU compiles programs for
  // their values.
  std::vector<std::string> deciding_inputs(const NamedTensors& inputs) const;
  // The same model for runs in which these of inputs() have these values. UserError for another
  // name or type. Such a model cannot be written to a file.
  Model with_values(const NamedTensors& values) const;
  // Operator counts of the original file ("MatMul" -> 16).
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
  std::vector<std::string> values;  // that the step computes, by their names in the file
};

class Program {
 public:
  // The steps in the order in which they run.
  const std::vector<StepInfo>& steps() const;
  // The fusion report as JSON text: accepted regions, and refused ones with reasons (schema:
  // docs/cli.md). With facts of the steps, one each, also what computes them on `device`.
  std::string explain(const std::vector<StepFacts>& steps = {},
                      const std::string& device = "") const;
  // What computes the steps on a GPU of the target, such as "sm_80", with estimated times where the
  // sizes are known. No GPU is needed. Empty for a program without steps. UserError for an unknown
  // target.
  std::vector<StepFacts> step_facts(const std::string& target) const;
  // The plan as text, one step per line.
  std::string text() const;
  // A stage of the pipeline as text: "import", "passes", "graph", "cascade", "streaming", "plan",
  // "kernels" or "cuda"; the last two for a GPU of the target, such as "sm_80". No GPU is needed.
  // UserError for an unknown stage or target.
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
  // "cpu", "cuda" (UserError without a GPU), "auto" (cuda if a GPU can run the program, else cpu),
  // or "reference": the unoptimised graph, node by node in fp64 (UserError for operators that the
  // reference does not cover).
  std::string device = "cpu";
  int threads = 0;  // 0: one per core
  // In bytes; 0: the machine's memory. On the CPU it bounds intermediate and output tensors but for
  // those in the caller's memory, on a GPU all memory of the session.
  int64_t memory_limit = 0;
  bool tf32 = false;  // GPU: fp32 products may round their operands to TF32
  // GPU: products, attention and convolutions of fp32 operands multiply them as they are, not in
  // two parts by tensor cores, where an infinite operand gives NaN.
  bool exact_products = false;
  // GPU: masked attention gives the unfused graph's results for NaN and infinities behind a mask
  // too, as the CPU always does. This costs one more read of all values (and of queries and keys,
  // if the mask is added to the scores); if one of them is not finite or a score might overflow,
  // the kernel visits hidden tiles as well. Without this option the kernel assumes that hidden
  // keys, values and scores are finite and skips hidden tiles: if one is not finite, a row that
  // hides it has either the unfused graph's NaN or the result for finite values.
  bool exact_masks = false;
  // GPU: sets of sizes whose launches stay prepared, each with a CUDA graph from its second run on.
  int kept_shapes = 8;
  KernelCacheMode kernel_cache = KernelCacheMode::On;
  std::string kernel_cache_folder;  // empty: $XDG_CACHE_HOME or ~/.cache, redfuser/kernels
  // If several kernels can compute a step, the first run of a shape measures the best few by
  // estimate and takes the fastest. On a GPU the choices are stored in the folder of compiled
  // kernels, as kernel_cache allows, and read by later sessions that tune.
  bool tune = false;
};

// The measurements of SessionOptions::tune for a step of the last run.
struct StepTuning {
  size_t step = 0;                     // of Program::steps
  std::string label, kind;             // as in StepInfo
  std::string default_choice, choice;  // such as "attention_split warps=4 keys=32 stages=3"
  // Medians with a cold cache, on the CPU the least of some runs; equal where the default is kept.
  double default_us = 0, us = 0;
  std::vector<std::pair<std::string, double>> measured;  // every choice, the default first
  std::map<std::string, double> estimated_us;            // of those with an estimate
  bool remembered = false;  // found by an earlier session, or for an equal step
};

class Session {
 public:
  explicit Session(const Program& program, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;

  // Runs the program and returns every output of the model. Inputs are checked by name, dtype and
  // shape; they are read in place and must stay unchanged until run returns. The outputs share
  // their memory with nothing else.
  //
  // Here, in enqueue() and the like, inputs may also be some of Model::overridable. The first run
  // of such a set compiles the program of Model::with_inputs for them. What the session tells of a
  // last run, such as step_times(), is then of that program's steps.
  NamedTensors run(const NamedTensors& inputs);
  // The same with the outputs of these names in the caller's memory: the tensors that are given are
  // written to and returned. On the CPU a step writes its result there; a copy is made where the
  // output is an input, a constant or another output, and where it has memory of an input that the
  // program reads while or after it writes the output (redfuser/device.h). Memory of several
  // outputs may not overlap. UserError for a name that no output has, for another type or other
  // sizes than the run's, and for strings and lists.
  NamedTensors run(const NamedTensors& inputs, const NamedTensors& outputs);
  // GPU only: runs on the caller's memory and stream; see redfuser/device.h.
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream = nullptr);
  // Prepares the next enqueue() of such tensors while the GPU still computes: those in host memory
  // need no data yet. Outputs in the session's own memory are void from then on for what is not
  // enqueued yet. Another run makes it void. Without effect on the CPU, and where
  // SessionOptions::tune measures. UserError as from enqueue().
  void prepare(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs);
  // The sizes of every output for inputs of these sizes. UserError if they depend on data.
  NamedDims output_dims(const NamedDims& inputs) const;
  // GPU only (UserError otherwise): tensors of the session's GPU, which their owners keep, and
  // copies of such tensors, made when the session's own stream has got there.
  NamedDeviceTensors to_device(const NamedTensors& tensors);
  NamedTensors to_host(const NamedDeviceTensors& tensors);
  // GPU only (UserError otherwise): uninitialised memory of the session's GPU, kept by its owner.
  DeviceTensor allocate(DType dtype, const Dims& dims);
  // Copies positions [begin, begin + n) of `axis`, where `to` has n positions and the other sizes
  // of `from`, in order on the session's own stream. Returns after the copy if one of them is in
  // host memory, as both must be without a GPU. UserError where `to` is no such part of `from`.
  void copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                      const DeviceTensor& to);
  // Whether enqueue() on a GPU appends output `present` to memory with room that input `past` is in
  // (redfuser/device.h).
  bool appends(const std::string& past, const std::string& present) const;
  // The session's own stream, a CUstream; null on the CPU.
  void* stream() const;
  // GPU: work that is enqueued on `after` from here on waits for the work that `before` holds; null
  // is the session's own stream. Nothing on the CPU.
  void order(void* before, void* after);
  // Waits for the session's own stream. Nothing to wait for on the CPU.
  void synchronize();
  // GPU: keeps the times of the following runs. Nothing on the CPU.
  void time_runs(bool on);
  // Of the last run or enqueue, for whose end it waits; nothing where no times are kept.
  std::optional<RunTiming> run_timing() const;
  // Of the session's GPU, now; nothing on the CPU.
  std::optional<DeviceState> device_state() const;
  // Keeps the time of every step of the following runs. On a GPU such a run, or enqueue, replays a
  // CUDA graph with an event after every kernel, so the times are the device's, and waits for it.
  void profile(bool on);
  const std::vector<StepTime>& step_times() const;
  // Called by the run's thread with (step, total): before each step or node of the CPU and at the
  // end, on a GPU and by the reference at the beginning as well. For progress lines, and to end
  // a run: an exception from the callback leaves run(), after which the session may run again.
  // Null turns it off.
  void on_progress(std::function<void(int, int)> callback);
  // The largest number of bytes of intermediate and output tensors alive at once in the last run,
  // those in the caller's memory not counted; on a GPU, of everything that the session keeps there.
  int64_t peak_bytes() const;
  // GPU only: the number of allocations of GPU memory and of pinned host memory so far.
  int64_t allocations() const;
  // "cpu", or the GPU's name.
  const std::string& device() const;
  // As they were given.
  const SessionOptions& options() const;
  // GPU only: versions of the libraries in use: "driver" -> "13.0", "nvrtc", "cublaslt"; and the
  // "target" of Program::dump that has the GPU's architecture, where there is one.
  const std::map<std::string, std::string>& versions() const;
  // With SessionOptions::tune: the steps of the last run that several kernels can compute.
  const std::vector<StepTuning>& tunings() const;
  // What computes each step of the last run; empty before it and where nodes are evaluated one by
  // one.
  std::vector<StepFacts> step_facts() const;
  // Remarks for the user, one line each: compiled kernels, why "auto" took the CPU, damaged entries
  // of the kernel cache. Runs that tune may add some.
  const std::vector<std::string>& notes() const;
  // GPU only: launches of kernels and calls of the product library in a run of the last shape.
  int launches() const;
  // GPU only (UserError otherwise): the median time of a run on these inputs. Replays a CUDA graph
  // 10 to 100 times, for about `budget_s` seconds, and overwrites the L2 cache before every replay.
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s = 0.4);
  // Makes kept_values() hold the values at the fusion boundaries of the last run, by name, so that
  // two programs of one model can be compared value by value. Results of a step that a GPU may
  // compute with the next one, without writing them, are not among them.
  void keep_values(bool on);
  // Keeps only the values of these names; the others are freed as usual.
  void keep_values(const std::vector<std::string>& names);
  const NamedTensors& kept_values() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redfuser
