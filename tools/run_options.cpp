#include "run_options.h"

#include <cmath>

#include "assertion.h"
#include "command_line.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

// Option values as the command line has them.
struct StringPool {
  std::vector<std::string> shapes, dims, ranges;
  std::string memory_limit, kernel_cache = "on";
  std::vector<std::string> explain;
  bool no_fuse = false, no_certify = false;
};

void add_input_options(CLI::App& app, RunOptions& options, StringPool& texts) {
  const char* group = "Inputs (random where none are given)";
  app.add_option("-i,--inputs", options.inputs,
                 ".npz, .npy, .pb or .json file, test_data_set folder, or NAME=FILE; repeatable")
      ->type_name("FILE|DIR|NAME=FILE")
      ->group(group);
  app.add_option("--shape", texts.shapes, "Shape of a random input, such as ids:1,128")
      ->type_name("NAME:SIZES")
      ->group(group);
  app.add_option(
         "--dim", texts.dims,
         "Size of a symbolic dimension, such as seq=128, or x.dim2=128 where the model names "
         "none (else 1)")
      ->type_name("NAME=SIZE")
      ->group(group);
  app.add_option(
         "--range", texts.ranges,
         "Range of a random input, such as ids:0,50257 (else N(0,1), or [0,2) for integers)")
      ->type_name("NAME:LOW,HIGH")
      ->group(group);
  app.add_option("--seed", options.random.seed,
                 "Seed of random inputs, and of the tokens that --generate draws")
      ->type_name("N")
      ->group(group);
}

void add_check_options(CLI::App& app, RunOptions& options) {
  const char* group = "Outputs and checks";
  app.add_option("-o,--outputs", options.outputs,
                 "Write the outputs: .npz, .npy, .pb or .json file, or a folder of output_K.pb")
      ->type_name("FILE|DIR")
      ->group(group);
  app.add_option(
         "-c,--compare", options.compare,
         "Compare the outputs with these; exit 1 if wrong. Floats of two types are compared "
         "by value, and the report says so")
      ->type_name("FILE|DIR")
      ->group(group);
  app.add_option("--rtol", options.tolerance.relative, "Relative tolerance")
      ->capture_default_str()
      ->group(group);
  app.add_option("--atol", options.tolerance.absolute, "Absolute tolerance")
      ->capture_default_str()
      ->group(group);
  app.add_flag(
         "--verify", options.verify,
         "Also run unfused, give every step the unfused values, and compare what it computes "
         "of them; exit 1 if a step differs by more than the tolerances and its types explain")
      ->group(group);
  app.add_option("--assert-fused", options.assert_fused,
                 "Number of fused regions, such as attention>=12; exit 1 if it does not hold")
      ->type_name("CLASS>=COUNT")
      ->group(group);
}

void add_run_options(CLI::App& app, RunOptions& options, StringPool& texts) {
  const char* group = "Running";
  app.add_option("--device", options.session.device,
                 "cpu, cuda, auto, or reference (node by node in fp64)")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", options.session.threads, "Threads (0: one per core)")
      ->check(CLI::Range(0, 4096).description(""))
      ->type_name("N")
      ->group(group);
  app.add_option("--iterations", options.iterations, "Timed runs; reports percentiles")
      ->check(CLI::Range(1, 1 << 30).description(""))
      ->type_name("N")
      ->group(group);
  app.add_option("--warmup", options.warmup, "Runs before the timed ones")
      ->check(CLI::Range(0, 1 << 30).description(""))
      ->type_name("N")
      ->group(group);
  app.add_flag("--resident", options.resident,
               "GPU: inputs and outputs stay on the device during the timed runs")
      ->group(group);
  app.add_option(
         "--memory-limit", texts.memory_limit,
         "Bytes of tensors and working memory at once, such as 512M (else the machine's memory)")
      ->type_name("BYTES")
      ->group(group);
  app.add_option("--time-limit", options.time_limit, "Give up after so many seconds")
      ->type_name("SECONDS")
      ->group(group);
  app.add_flag("--tf32", options.session.tf32, "GPU: products of fp32 may round to TF32")
      ->group(group);
  app.add_flag("--exact-products", options.session.exact_products,
               "GPU: products and attention multiply fp32 exactly, not in parts of TF32")
      ->group(group);
  app.add_flag("--exact-masks", options.session.exact_masks,
               "GPU: keys and values that a mask hides may be NaN or infinite")
      ->group(group);
  app.add_option("--cache-dir", options.session.kernel_cache_folder,
                 "Where compiled kernels are kept (else ~/.cache/redfuser/kernels)")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--cache", texts.kernel_cache,
                 "Compiled kernels and measured choices: on, off or readonly")
      ->type_name("MODE")
      ->capture_default_str()
      ->group(group);
  app.add_flag(
         "--tune", options.session.tune,
         "Time the best few kernels of a step and take the fastest; on a GPU it is remembered "
         "beside the compiled ones")
      ->group(group);
  app.add_flag("--no-fuse", texts.no_fuse, "Run every operator on its own")->group(group);
  app.add_flag("--no-certify", texts.no_certify, "Do not test fusions on adversarial data")
      ->group(group);
}

void add_report_options(CLI::App& app, RunOptions& options, StringPool& texts) {
  const char* group = "Reports";
  app.add_option("--explain", texts.explain,
                 "What was fused, what not and why: as text, or as JSON to a file (- for stdout)")
      ->expected(0, 1)
      ->type_name("[FILE.json]")
      ->group(group);
  app.add_option("--profile", options.profile,
                 "Tell the times of the steps, on a GPU of every kernel by the device's clock, and "
                 "write them as a Chrome trace (Perfetto)")
      ->type_name("FILE.json")
      ->group(group);
  app.add_option("--json", options.json, "Write the whole result as JSON (- for stdout)")
      ->type_name("FILE|-")
      ->group(group);
  add_report_option(app, options.report)->group(group);
  app.add_option("--dump", options.dump,
                 "Print a stage and stop: import, passes, graph, cascade, streaming, plan, kernels "
                 "or cuda")
      ->type_name("STAGE")
      ->group(group);
  add_target_option(app, options.target)->group(group);
}

void parse_random_options(const StringPool& texts, RandomOptions& random) {
  for (const std::string& text : texts.shapes) {
    const auto [name, sizes] = split_assignment(text, ':', "--shape");
    random.shapes[name] = parse_integers(sizes, "--shape");
  }
  for (const std::string& text : texts.dims) {
    const auto [name, size] = split_assignment(text, '=', "--dim");
    random.symbols[name] = parse_integer(size, "--dim");
  }
  for (const std::string& text : texts.ranges) {
    const auto [name, bounds] = split_assignment(text, ':', "--range");
    const auto [low, high] = split_assignment(bounds, ',', "--range");
    random.ranges[name] = {parse_real(low, "--range"), parse_real(high, "--range")};
  }
}

void check_tolerance(double value, const char* option) {
  if (std::isfinite(value) && value >= 0) return;
  fail("{} is a finite number that is not negative, not {}", option, value);
}

void check_device(const std::string& device) {
  for (const char* known : {"cpu", "cuda", "auto", "reference"}) {
    if (device == known) return;
  }
  fail("--device is cpu, cuda, auto or reference, not \"{}\"", device);
}

KernelCacheMode parse_cache_mode(const std::string& mode) {
  if (mode == "on") return KernelCacheMode::On;
  if (mode == "off") return KernelCacheMode::Off;
  if (mode == "readonly") return KernelCacheMode::ReadOnly;
  fail("--cache is on, off or readonly, not \"{}\"", mode);
}

// An option with several values takes a MODEL that follows it.
void reclaim_model(std::vector<std::string>& values, std::string& model) {
  if (!model.empty() || values.empty() || !values.back().ends_with(".onnx")) return;
  model = values.back();
  values.pop_back();
}

}  // namespace

std::optional<RunOptions> parse_run_options(int argc, char** argv) {
  CLI::App app("Runs an ONNX model.", "redfuser-run");
  RunOptions options;
  options.session.device = "auto";
  StringPool texts;
  app.add_option("model", options.model, "The ONNX file")->type_name("MODEL");
  app.set_version_flag("--version", "redfuser-run 0.1.0");
  add_input_options(app, options, texts);
  add_check_options(app, options);
  add_run_options(app, options, texts);
  add_generate_options(app, options.generation);
  add_report_options(app, options, texts);
  if (parse_command_line(app, argc, argv)) return std::nullopt;
  check_target_option(app, {"--dump", "--report"});
  reclaim_model(options.inputs, options.model);
  reclaim_model(texts.explain, options.model);
  check_generate_options(app, options.generation);
  if (options.model.empty()) fail("MODEL is missing (--help lists the options)");
  if (options.outputs == "-") {
    fail("--outputs: stdout (-) has no format; name a file (.npz, .npy, .pb, .json) or a folder");
  }
  check_device(options.session.device);
  check_tolerance(options.tolerance.relative, "--rtol");
  check_tolerance(options.tolerance.absolute, "--atol");
  options.session.kernel_cache = parse_cache_mode(texts.kernel_cache);
  parse_random_options(texts, options.random);
  for (const std::string& text : options.assert_fused) parse_assertion(text);
  options.target_given = app.count("--target") > 0;
  options.timed = app.count("--iterations") + app.count("--warmup") > 0;
  options.fuse = !texts.no_fuse;
  options.certify = !texts.no_certify;
  if (!texts.memory_limit.empty()) {
    options.session.memory_limit = parse_bytes(texts.memory_limit, "--memory-limit");
  }
  if (app.count("--explain") > 0) {
    options.explain = texts.explain.empty() ? "" : texts.explain.front();
  }
  return options;
}

}  // namespace redfuser::tools
