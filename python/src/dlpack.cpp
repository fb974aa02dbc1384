// Tensor to and from DLPack capsules, with the streams of the Python array API standard.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "redfuser/dlpack.h"
#include "value.h"

namespace redfuser::python {
namespace {

constexpr const char* kOld = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

Value of_device(DeviceTensor tensor) {
  Value value;
  if (tensor.on_host) {
    value.host = dlpack::to_tensor(tensor);
  } else {
    value.device = std::move(tensor);
  }
  return value;
}

template <typename Managed>
Value taken(nb::handle capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  Value value = of_device(dlpack::from_dlpack(managed));
  if constexpr (requires { managed->flags; }) {
    value.read_only = (managed->flags & dlpack::kReadOnly) != 0;
  }
  if (PyCapsule_SetName(capsule.ptr(), used) != 0) nb::raise_python_error();
  return value;
}

Value of_capsule(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    return taken<dlpack::ManagedTensorVersioned>(capsule, kVersioned, "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule.ptr(), kOld)) {
    return taken<dlpack::ManagedTensor>(capsule, kOld, "used_dltensor");
  }
  throw UserError("the DLPack capsule was used before, or is not one: ask for another");
}

template <typename Managed>
void free_capsule(PyObject* capsule) {
  constexpr bool versioned = requires(Managed managed) { managed.flags; };
  const char* name = versioned ? kVersioned : kOld;
  if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer has taken it
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <typename Managed>
nb::object capsule_of(Managed* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, free_capsule<Managed>);
  if (capsule == nullptr) {
    managed->deleter(managed);
    nb::raise_python_error();
  }
  return nb::steal(capsule);
}

// Makes the consumer's stream wait for the run that writes the tensor. -1: the consumer waits by
// itself; null is the legacy default stream.
void order(const Value& value, std::optional<int64_t> consumer) {
  if (value.session == nullptr || consumer == -1) return;
  void* const after = reinterpret_cast<void*>(consumer.value_or(0) == 0 ? 1 : *consumer);
  if (after == value.stream) return;
  const nb::gil_scoped_release release;
  const std::lock_guard lock(value.session->mutex);
  value.session->session.order(value.stream, after);
}

nb::object to_capsule(const Value& value, nb::object stream, nb::object max_version,
                      nb::object dl_device, nb::object copy) {
  const int32_t type = value.on_host() ? dlpack::kCpu : dlpack::kCuda;
  if (!dl_device.is_none() && nb::cast<int32_t>(dl_device[0]) != type) {
    throw nb::buffer_error("the tensor stays on its device; copy it before it is exported");
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    throw nb::buffer_error("tensors are exported without copies");
  }
  std::optional<int64_t> consumer;
  if (!stream.is_none()) consumer = nb::cast<int64_t>(stream);
  order(value, consumer);
  const DeviceTensor tensor = value.as_device();
  if (!max_version.is_none() && nb::cast<int>(max_version[0]) >= 1) {
    dlpack::ManagedTensorVersioned* managed = dlpack::to_dlpack_versioned(tensor);
    if (value.read_only) managed->flags |= dlpack::kReadOnly;
    return capsule_of(managed, kVersioned);
  }
  if (value.read_only) throw nb::buffer_error("read-only tensors need DLPack 1 (max_version)");
  return capsule_of(dlpack::to_dlpack(tensor), kOld);
}

}  // namespace

void bind_dlpack(nb::class_<Value>& value) {
  value
      .def_static("from_capsule", of_capsule, nb::arg("capsule"),
                  "Takes a DLPack capsule over. UserError for one that was taken before.")
      .def("__dlpack__", to_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Value& v) {
            return nb::make_tuple(static_cast<int>(v.on_host() ? dlpack::kCpu : dlpack::kCuda), 0);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

}  // namespace redfuser::python
