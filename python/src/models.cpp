// Model and Program.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>

#include "redfuser/description.h"
#include "redfuser/export.h"
#include "redfuser/libraries.h"
#include "redfuser/report.h"
#include "value.h"

namespace redfuser::python {
namespace {

using Released = nb::call_guard<nb::gil_scoped_release>;

// Sizes by number or name; None: unknown rank, or not a tensor.
nb::object shape_of(const ValueInfo& info) {
  if (info.any_shape) return nb::none();
  nb::list sizes;
  for (const ValueInfo::Dimension& dim : info.dims) {
    if (dim.size >= 0) {
      sizes.append(dim.size);
    } else {
      sizes.append(dim.symbol);
    }
  }
  return sizes;
}

// Sizes by number or by the file's name; None: an open one that the file does not name.
nb::object declared_shape_of(const ValueInfo& info) {
  if (info.any_shape) return nb::none();
  nb::list sizes;
  for (const ValueInfo::Dimension& dim : info.dims) {
    if (dim.size >= 0) {
      sizes.append(dim.size);
    } else if (!dim.declared.empty()) {
      sizes.append(dim.declared);
    } else {
      sizes.append(nb::none());
    }
  }
  return sizes;
}

using Values = std::map<std::string, Value>;
using Sizes = std::map<std::string, int64_t>;

NamedTensors on_host(const Values& values) {
  NamedTensors tensors;
  for (const auto& [name, value] : values) {
    if (!value.on_host()) throw UserError("\"" + name + "\" lies on the GPU, not in host memory");
    tensors[name] = value.host;
  }
  return tensors;
}

Model model_of_file(const std::string& path, const Values& weights, const Values& files,
                    const Sizes& sizes, const Sizes& denoted_sizes) {
  const LoadOptions options{on_host(weights), on_host(files), sizes, denoted_sizes};
  const nb::gil_scoped_release release;
  return Model::load(path, options);
}

Model model_of_bytes(nb::bytes bytes, const std::string& name, const Values& weights,
                     const Values& files, const Sizes& sizes, const Sizes& denoted_sizes) {
  const std::string_view view(bytes.c_str(), bytes.size());
  const LoadOptions options{on_host(weights), on_host(files), sizes, denoted_sizes};
  const nb::gil_scoped_release release;
  return Model::from_bytes(view, name, options);
}

Program compiled(const Model& model, bool fuse, bool certify) {
  return compile(model, {fuse, certify});
}

Emit emit_named(const std::string& name) {
  if (name == "function") return Emit::Function;
  if (name == "inline") return Emit::Inline;
  if (name == "standard") return Emit::Standard;
  throw UserError("emit is function, inline or standard, not \"" + name + "\"");
}

nb::bytes optimized(const Model& model, const Program& program, const std::string& emit) {
  std::string bytes;
  {
    const nb::gil_scoped_release release;
    save_to_bytes(model, &program, emit_named(emit), bytes);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

void save_optimized(const Model& model, const Program& program, const std::string& path) {
  save(model, &program, {}, path);
}

std::string explained(const Program& program, const std::string& target) {
  if (target.empty()) return program.explain();
  return program.explain(program.step_facts(target), target);
}

std::string page(const Program& program, const std::string& title, const std::string& target) {
  ReportOptions options;
  options.title = title;
  options.target = target;
  return report_page(program, options);
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<ValueInfo>(module, "ValueInfo", "An input or output of a model.")
      .def_ro("name", &ValueInfo::name)
      .def_prop_ro("dtype", [](const ValueInfo& info) { return std::string(name_of(info.dtype)); })
      .def_ro("classes", &ValueInfo::classes,
              "Of an output that the file declares as maps by class: the classes of its columns.")
      .def_prop_ro("shape", shape_of, nb::sig("def shape(self) -> list[int | str] | None"))
      .def_prop_ro("declared_shape", declared_shape_of,
                   nb::sig("def declared_shape(self) -> list[int | str | None] | None"),
                   "As shape, but None for open sizes that the file does not name.");
  nb::class_<ModelDescription>(module, "ModelDescription", "What a file says of itself.")
      .def_ro("producer_name", &ModelDescription::producer_name)
      .def_ro("producer_version", &ModelDescription::producer_version)
      .def_ro("domain", &ModelDescription::domain)
      .def_ro("doc_string", &ModelDescription::doc_string)
      .def_ro("graph_name", &ModelDescription::graph_name)
      .def_ro("graph_doc_string", &ModelDescription::graph_doc_string)
      .def_ro("model_version", &ModelDescription::model_version)
      .def_ro("metadata", &ModelDescription::metadata);
  nb::class_<Model>(module, "Model", "An ONNX file as it was read. Immutable.")
      .def_static("load", model_of_file, nb::arg("path"), nb::kw_only(),
                  nb::arg("weights") = Values(), nb::arg("files") = Values(),
                  nb::arg("sizes") = Sizes(), nb::arg("denoted_sizes") = Sizes(),
                  "A file, with what is given in place of its parts (redfuser.load).")
      .def_static("from_bytes", model_of_bytes, nb::arg("data"), nb::arg("name") = "model",
                  nb::kw_only(), nb::arg("weights") = Values(), nb::arg("files") = Values(),
                  nb::arg("sizes") = Sizes(), nb::arg("denoted_sizes") = Sizes())
      .def_static("parse", &Model::parse, nb::arg("text"), Released(),
                  "A model in ONNX's text syntax.")
      .def_prop_ro("inputs", &Model::inputs)
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("overridable", &Model::overridable,
                   "Inputs of the file that have an initializer and that a run may give.")
      .def("with_inputs", &Model::with_inputs, nb::arg("names"), Released(),
           "The model with these of `overridable` among its inputs, which a run must give.")
      .def_prop_ro("operator_counts", &Model::operator_counts)
      .def_prop_ro("description", [](const Model& model) { return describe(model); });
  nb::class_<Program>(module, "Program", "A compiled model. Immutable; threads may share it.")
      .def("explain_json", explained, nb::arg("target") = "", Released())
      .def("text", &Program::text, "The plan, one step per line.")
      .def("dump", &Program::dump, nb::arg("stage"), nb::arg("target") = "sm_90a", Released())
      .def("dot", to_dot, Released(), "The fused graph in the DOT language.")
      .def("svg", picture, Released(), "The fused graph, drawn by Graphviz.")
      .def("page", page, nb::arg("title") = "", nb::arg("target") = "", Released(),
           "An HTML page of the graph before and after, its equations and kernels.");
  module.def("compile", compiled, nb::arg("model"), nb::kw_only(), nb::arg("fuse") = true,
             nb::arg("certify") = true, Released());
  module.def("optimized", optimized, nb::arg("model"), nb::arg("program"), nb::arg("emit"),
             "The bytes of the optimised ONNX file.");
  module.def("save_optimized", save_optimized, nb::arg("model"), nb::arg("program"),
             nb::arg("path"), Released(), "Writes the optimised ONNX file.");
  module.def("search_cuda_libraries", search_cuda_libraries, nb::arg("entry"));
}

}  // namespace redfuser::python
