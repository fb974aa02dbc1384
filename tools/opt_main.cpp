// redfuser-opt: optimises an ONNX model and writes it back, explains or draws it.
#include <optional>

#include "assertion.h"
#include "command_line.h"
#include "redfuser/convert.h"
#include "redfuser/export.h"
#include "redfuser/memory_limit.h"
#include "redfuser/operators.h"
#include "redfuser/report.h"
#include "resource_limits.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

struct OptOptions {
  std::string input, output;
  SaveOptions save;
  bool fuse = true, certify = true, verbose = false, list_operators = false;
  std::string listed_device = "cpu";
  std::optional<ConvertOptions> convert;
  std::optional<std::string> explain;  // empty: as text on stdout
  std::string dump, target = "sm_90a", svg, report;
  std::vector<std::string> assert_fused;
  int64_t memory_limit = 0;  // 0: none
  double time_limit = 0;
};

Emit parse_emit(const std::string& text) {
  if (text == "function") return Emit::Function;
  if (text == "inline") return Emit::Inline;
  if (text == "standard") return Emit::Standard;
  fail("--emit is function, inline or standard, not \"{}\"", text);
}

DType parse_type(const std::string& text) {
  if (text == "fp16") return DType::Float16;
  if (text == "bf16") return DType::BFloat16;
  fail("--to is fp16 or bf16, not \"{}\"", text);
}

void add_options(CLI::App& app, OptOptions& options) {
  app.add_option("in", options.input, "The ONNX file to read")->type_name("IN");
  app.add_option("out", options.output,
                 "The ONNX file to write (- for stdout); not needed with a report")
      ->type_name("OUT");
  app.add_option(
         "--svg", options.svg,
         "Draw the graph with its fused regions outlined (.dot: as Graphviz text; - for stdout)")
      ->type_name("FILE");
  app.add_option("--dump", options.dump,
                 "Print a stage: import, passes, graph, cascade, streaming, plan, kernels or cuda")
      ->type_name("STAGE");
  add_report_option(app, options.report);
  add_target_option(app, options.target);
  app.add_option("--assert-fused", options.assert_fused,
                 "Number of fused regions, such as attention>=12; exit 1 if it does not hold")
      ->type_name("CLASS>=COUNT");
}

bool has_reports(const OptOptions& options) {
  return options.explain || !options.dump.empty() || !options.svg.empty() ||
         !options.report.empty() || !options.assert_fused.empty();
}

std::optional<OptOptions> parse_options(int argc, char** argv) {
  CLI::App app("Optimises an ONNX model: finds cascaded reductions and fuses them.",
               "redfuser-opt");
  OptOptions options;
  std::string emit = "function", threshold, memory_limit, to;
  std::vector<std::string> explain;
  bool no_fuse = false, no_certify = false, keep_io = false;
  app.set_version_flag("--version", "redfuser-opt 0.1.0");
  add_options(app, options);
  app.add_option("--emit", emit,
                 "Fused regions as calls of model-local functions (function), in place (inline), "
                 "or in place with operators of the ONNX standard only (standard)")
      ->capture_default_str();
  app.add_option("--to", to, "Store fp32 weights and activations as fp16 or bf16")
      ->type_name("fp16|bf16");
  app.add_flag("--keep-io", keep_io, "With --to: inputs and outputs stay fp32");
  app.add_option("--external-data-threshold", threshold,
                 "More bytes of weights than this go to OUT.data, such as 64M (else 1G)")
      ->type_name("BYTES");
  app.add_option("--explain", explain,
                 "What was fused, what not and why: as text, or as JSON to a file (- for stdout)")
      ->expected(0, 1)
      ->type_name("[FILE.json]");
  app.add_option("--memory-limit", memory_limit,
                 "Bytes that the process may allocate, such as 512M (mapped files do not count)")
      ->type_name("BYTES");
  app.add_option("--time-limit", options.time_limit, "Give up after so many seconds")
      ->type_name("SECONDS");
  app.add_flag("--no-fuse", no_fuse, "Only clean the graph up");
  app.add_flag("--no-certify", no_certify, "Do not test fusions on adversarial data");
  app.add_flag("--verbose", options.verbose,
               "Also say which nodes a written function leaves out, and why");
  app.add_flag("--list-ops", options.list_operators, "Print the table of operators");
  app.add_option("--device", options.listed_device,
                 "With --list-ops: cpu, or cuda for what a GPU computes")
      ->needs("--list-ops")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  if (parse_command_line(app, argc, argv)) return std::nullopt;
  if (options.list_operators) return options;
  check_target_option(app, {"--explain", "--dump", "--report"});
  options.save.emit = parse_emit(emit);
  if (!to.empty()) options.convert = ConvertOptions{parse_type(to), keep_io};
  if (keep_io && to.empty()) fail("--keep-io needs --to");
  if (!threshold.empty()) {
    if (options.output == "-") {
      fail("--external-data-threshold: stdout (-) has no place for weights beside it");
    }
    options.save.external_data_threshold = parse_bytes(threshold, "--external-data-threshold");
  }
  if (!memory_limit.empty()) options.memory_limit = parse_bytes(memory_limit, "--memory-limit");
  if (app.count("--explain") > 0) options.explain = explain.empty() ? "" : explain.front();
  options.fuse = !no_fuse;
  options.certify = !no_certify;
  if (options.input.empty()) fail("IN is missing (--help lists the options)");
  if (options.output.empty() && !has_reports(options)) {
    fail(
        "OUT is missing (it may be left out with --explain, --dump, --svg, --report or "
        "--assert-fused)");
  }
  for (const std::string& text : options.assert_fused) parse_assertion(text);
  return options;
}

SaveResult write_model(const Model& model, const Program& program, const OptOptions& options) {
  if (options.output != "-") return save(model, &program, options.save, options.output);
  std::string bytes;
  const SaveResult result = save_to_bytes(model, &program, options.save.emit, bytes);
  write_output("-", bytes);
  return result;
}

void describe(const SaveResult& result, const ReportView& report, const OptOptions& options,
              const Words& words) {
  if (!result.kept_because.empty()) {
    tell(fmt::format("note: written as it is: {}\n", result.kept_because));
  }
  words.say(count_table(result.operators_before, result.operators_after));
  words.say(fmt::format("fused: {}\n", fused_summary(report)));
  if (!options.verbose) return;
  for (const std::string& note : result.notes) words.say(fmt::format("note: {}\n", note));
}

void write_reports(const Program& program, const ReportView& report, const OptOptions& options,
                   const Words& words) {
  if (!options.dump.empty()) write_output("-", program.dump(options.dump, options.target));
  if (options.explain) {
    const std::string text = program.explain(program.step_facts(options.target), options.target);
    if (options.explain->empty()) words.say(explanation(ReportView(text)));
    if (!options.explain->empty()) write_output(*options.explain, text);
  }
  if (options.svg == "-") {
    write_output("-", picture(program));
  } else if (!options.svg.empty()) {
    save_picture(program, options.svg);
  }
  if (!options.report.empty()) {
    ReportOptions page;
    page.title = options.input;
    page.target = options.target;
    page.facts = graph_facts(report);
    write_output(options.report, report_page(program, page));
  }
}

// The model to work on. What stays fp32 though it was to be converted goes to stderr.
Model load(const OptOptions& options) {
  const bool writes_only = !options.output.empty() && !options.convert && !has_reports(options);
  Model model = writes_only ? Model::load_to_save(options.input) : Model::load(options.input);
  if (!options.convert) return model;
  ConvertedModel converted = convert(model, *options.convert);
  for (const OverflowingTensor& tensor : converted.overflowing) {
    tell(fmt::format("note: \"{}\" stays float32: its largest magnitude is {:g}\n", tensor.name,
                     tensor.largest));
  }
  return converted.model;
}

int run(int argc, char** argv) {
  const std::optional<OptOptions> parsed = parse_options(argc, argv);
  if (!parsed) return kSuccess;
  const OptOptions& options = *parsed;
  const Words words(takes_stdout({{"OUT", options.output},
                                  {"--explain", options.explain.value_or("")},
                                  {"--svg", options.svg},
                                  {"--report", options.report},
                                  {"--dump", options.dump == "" ? "" : "-"}}));
  if (options.list_operators) {
    write_output("-", options.listed_device == "cuda" ? gpu_operator_table() : operator_table());
    return kSuccess;
  }
  if (options.memory_limit > 0) {
    operator_table();  // makes the tables of every process: they do not count
    limit_process_memory(options.memory_limit);
  }
  const MemoryLimit tensors(options.memory_limit);  // says more than the system's limit
  const TimeLimit time_limit(options.time_limit);
  const Model model = load(options);
  CompileOptions compile_options;
  compile_options.fuse = options.fuse;
  compile_options.certify = options.certify;
  const Program program = compile(model, compile_options);
  const ReportView report(program.explain());
  if (!options.output.empty()) {
    describe(write_model(model, program, options), report, options, words);
  }
  write_reports(program, report, options, words);
  return check_assertions(options.assert_fused, report) ? kSuccess : kFailedCheck;
}

}  // namespace
}  // namespace redfuser::tools

int main(int argc, char** argv) {
  return redfuser::tools::guarded([&] { return redfuser::tools::run(argc, argv); });
}
