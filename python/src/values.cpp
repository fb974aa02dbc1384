// Tensor: construction and contents.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "redfuser/dlpack.h"
#include "value.h"

namespace redfuser::python {
namespace {

Value of_memory(uintptr_t address, const std::string& dtype, const Dims& shape, nb::object owner,
                bool read_only) {
  Value value;
  value.host = Tensor::wrap(dtype_named(dtype), shape, reinterpret_cast<const void*>(address),
                            kept(std::move(owner)));
  value.read_only = read_only;
  return value;
}

Value of_device_memory(uintptr_t address, const std::string& dtype, const Dims& shape,
                       nb::object owner) {
  Value value;
  value.device.dtype = dtype_named(dtype);
  value.device.dims = shape;
  value.device.data = reinterpret_cast<void*>(address);
  value.device.owner = kept(std::move(owner));
  return value;
}

Value of_host(Tensor tensor) {
  Value value;
  value.host = std::move(tensor);
  return value;
}

Value of_strings(const Dims& shape, const std::vector<std::string>& texts) {
  if (element_count(shape) != static_cast<int64_t>(texts.size())) {
    throw UserError("a tensor of strings has other sizes than its texts");
  }
  return of_host(Tensor::strings(shape, texts));
}

const Tensor& host_part(const Value& value) {
  if (!value.on_host()) throw UserError("a sequence or optional holds tensors in host memory only");
  return value.host;
}

Value of_elements(const nb::sequence& elements) {
  std::vector<Tensor> tensors;
  for (nb::handle element : elements) tensors.push_back(host_part(nb::cast<Value&>(element)));
  return of_host(Tensor::sequence(std::move(tensors)));
}

Value of_optional(nb::object element) {
  return of_host(
      Tensor::optional(element.is_none() ? Tensor() : host_part(nb::cast<Value&>(element))));
}

nb::tuple shape_of(const Value& value) {
  nb::list sizes;
  for (const int64_t size : value.dims()) sizes.append(size);
  return nb::tuple(sizes);
}

std::vector<std::string> texts_of(const Value& value) {
  if (value.dtype() != DType::String) throw UserError("the tensor does not hold strings");
  std::vector<std::string> texts;
  for (int64_t i = 0; i < value.host.size(); ++i) texts.push_back(value.host.text(i));
  return texts;
}

std::vector<Value> elements_of(const Value& value) {
  if (value.dtype() != DType::Sequence && value.dtype() != DType::Optional) {
    throw UserError("the tensor is neither a sequence nor an optional");
  }
  std::vector<Value> values;
  for (Tensor& element : value.host.elements()) values.push_back(of_host(std::move(element)));
  return values;
}

// Copies `from` into this tensor's memory.
void assign(Value& to, const Value& from) {
  if (!to.on_host() || !from.on_host()) throw UserError("assign copies between host tensors only");
  if (to.read_only) throw UserError("the memory of the output is read-only");
  if (to.dtype() != from.dtype() || to.dims() != from.dims()) {
    throw UserError("the output is " + describe(from.host) + ", but it is given memory for " +
                    describe(to.host));
  }
  if (from.host.bytes() > 0) std::memcpy(to.data(), from.data(), from.host.bytes());
}

// NumPy's part is Python.
template <typename... Arguments>
nb::object python_call(const char* function, Arguments&&... arguments) {
  return nb::module_::import_("redfuser.tensors")
      .attr(function)(std::forward<Arguments>(arguments)...);
}

nb::object to_numpy(nb::handle tensor) { return python_call("to_numpy", tensor); }

nb::object to_array(nb::handle tensor, nb::object dtype, nb::object copy) {
  return python_call("to_array", tensor, dtype, copy);
}

// Called by Python 3.12 and later.
nb::object to_buffer(nb::handle tensor, int) {
  return nb::steal(PyMemoryView_FromObject(to_array(tensor, nb::none(), nb::none()).ptr()));
}

std::string text_of(const Value& value) {
  const std::string sizes = describe(Tensor::wrap(value.dtype(), value.dims(), nullptr, nullptr));
  return "redfuser.Tensor(" + sizes + (value.on_host() ? ")" : " on cuda)");
}

}  // namespace

DeviceTensor Value::as_device() const { return on_host() ? dlpack::on_host(host) : device; }

DType dtype_named(const std::string& name) {
  for (int code = 0; code < 256; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (size_of(dtype) > 0 && name_of(dtype) == name) return dtype;
  }
  throw UserError("\"" + name + "\" is not an element type of tensors");
}

std::shared_ptr<void> kept(nb::object object) {
  return {object.release().ptr(), [](void* pointer) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire lock;
            Py_DECREF(static_cast<PyObject*>(pointer));
          }};
}

void bind_values(nb::module_& module) {
  nb::class_<Value> value(module, "Tensor", nb::is_weak_referenceable(),
                          "A dense, row-major tensor in host memory or on the GPU.");
  value
      .def_static("from_memory", of_memory, nb::arg("address"), nb::arg("dtype"), nb::arg("shape"),
                  nb::arg("owner").none(), nb::arg("read_only") = false,
                  "Host memory in place; `owner` is kept as long as the tensor needs it.")
      .def_static("from_device_memory", of_device_memory, nb::arg("address"), nb::arg("dtype"),
                  nb::arg("shape"), nb::arg("owner").none(), "The same on GPU 0.")
      .def_static("strings", of_strings, nb::arg("shape"), nb::arg("texts"))
      .def_static("sequence", of_elements, nb::arg("elements"))
      .def_static("optional", of_optional, nb::arg("element").none())
      .def_prop_ro("dtype", [](const Value& v) { return std::string(name_of(v.dtype())); })
      .def_prop_ro("shape", shape_of, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("device", [](const Value& v) { return v.on_host() ? "cpu" : "cuda"; })
      .def_prop_ro("data_ptr", [](const Value& v) { return reinterpret_cast<uintptr_t>(v.data()); })
      .def_prop_ro("nbytes",
                   [](const Value& v) {
                     return static_cast<size_t>(element_count(v.dims())) * size_of(v.dtype());
                   })
      .def_prop_ro("read_only", [](const Value& v) { return v.read_only; })
      .def("texts", texts_of, "The elements of a tensor of strings, row by row.")
      .def("elements", elements_of, "The values of a sequence or optional.")
      .def("assign", assign, nb::arg("source"), "Copies a host tensor of the same type and sizes.")
      .def("numpy", to_numpy, nb::sig("def numpy(self) -> typing.Any"),
           "The host tensor as an array over its memory; a sequence as a list, an optional as its "
           "value or None.")
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) "
                   "-> typing.Any"))
      .def("__buffer__", to_buffer, nb::arg("flags"),
           nb::sig("def __buffer__(self, flags: int, /) -> memoryview"))
      .def("__repr__", text_of);
  bind_dlpack(value);
  module.def(
      "onnx_type", [](const std::string& name) { return static_cast<int>(dtype_named(name)); },
      nb::arg("name"), "The number in onnx.TensorProto.DataType of an element type.");
}

}  // namespace redfuser::python
