// The module redfuser._core: the C++ API, one class each. The package's Python files give it the
// habits of the ecosystem.
#include <nanobind/stl/string.h>

#include <string>

#include "value.h"

namespace redfuser::python {
namespace {

// UserError is a ValueError too, and InternalError a RuntimeError.
void bind_errors(nb::module_& module) {
  const std::string name = nb::cast<std::string>(module.attr("__name__")) + ".Error";
  const nb::object error = nb::steal(PyErr_NewException(name.c_str(), PyExc_Exception, nullptr));
  module.attr("Error") = error;
  nb::exception<UserError>(module, "UserError",
                           nb::make_tuple(error, nb::handle(PyExc_ValueError)));
  nb::exception<InternalError>(module, "InternalError",
                               nb::make_tuple(error, nb::handle(PyExc_RuntimeError)));
}

}  // namespace

NB_MODULE(_core, module) {
  module.attr("VERSION") = REDFUSER_PACKAGE_VERSION;
  bind_errors(module);
  bind_values(module);
  bind_models(module);
  bind_sessions(module);
  bind_generators(module);
}

}  // namespace redfuser::python
