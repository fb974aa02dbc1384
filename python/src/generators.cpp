// Generator: tokens of a decoder with states.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "redfuser/generate.h"
#include "value.h"

namespace redfuser::python {
namespace {

using Pair = std::tuple<std::string, std::string, std::optional<int64_t>>;

// A generator and the session that it runs.
struct SharedGenerator {
  std::shared_ptr<SharedSession> session;
  Generator generator;
};

StateOptions state_options(const std::vector<Pair>& states, int64_t capacity) {
  StateOptions options;
  options.capacity = capacity;
  for (const auto& [past, present, axis] : states) options.pairs.push_back({past, present, axis});
  return options;
}

std::shared_ptr<SharedGenerator> make_generator(const std::shared_ptr<SharedSession>& session,
                                                const Model& model, const std::vector<Pair>& states,
                                                int64_t capacity) {
  const nb::gil_scoped_release release;
  const Turn turn(*session);
  Generator generator(session->session, model, state_options(states, capacity));
  return std::make_shared<SharedGenerator>(SharedGenerator{session, std::move(generator)});
}

const Tensor& ids_of(const Value& value, const char* name) {
  if (!value.on_host()) throw UserError(std::string("the ") + name + " lies on the GPU");
  return value.host;
}

// A Python function that ends the generation by False.
TokenCallback callback_of(const nb::object& function) {
  if (function.is_none()) return nullptr;
  return [&function](int64_t row, int64_t token) {
    const nb::gil_scoped_acquire lock;
    return !function(row, token).is(nb::handle(Py_False));
  };
}

std::tuple<std::vector<std::vector<int64_t>>, double, std::vector<double>> generate(
    SharedGenerator& shared, const Value& prompt, const Value* mask, int64_t max_tokens,
    int64_t prompt_chunk, double repetition_penalty, std::optional<double> temperature,
    int64_t top_k, double top_p, uint64_t seed, const std::vector<int64_t>& stop,
    const nb::object& on_token) {
  const GenerateOptions options{
      max_tokens, prompt_chunk, repetition_penalty, temperature, top_k, top_p, seed, stop};
  const Tensor& ids = ids_of(prompt, "prompt");
  const Tensor hidden = mask == nullptr ? Tensor() : ids_of(*mask, "mask");
  const TokenCallback callback = callback_of(on_token);
  const nb::gil_scoped_release release;
  const Turn turn(*shared.session);
  shared.session->session.on_progress(Interrupts());
  Generation result = shared.generator.generate(ids, hidden, options, callback);
  return {std::move(result.tokens), result.first_token_ms, std::move(result.token_ms)};
}

std::vector<Pair> states(SharedGenerator& shared) {
  std::vector<Pair> pairs;
  for (const StatePair& pair : shared.generator.states().pairs()) {
    pairs.emplace_back(pair.past, pair.present, pair.axis);
  }
  return pairs;
}

Value read(SharedGenerator& shared, const std::string& name) {
  Value value;
  const nb::gil_scoped_release release;
  const Turn turn(*shared.session);
  value.host = shared.generator.states().read(name);
  return value;
}

}  // namespace

void bind_generators(nb::module_& module) {
  nb::class_<SharedGenerator>(module, "Generator", "Tokens of a decoder with states.")
      .def("generate", generate, nb::arg("prompt"), nb::arg("mask").none(), nb::kw_only(),
           nb::arg("max_tokens"), nb::arg("prompt_chunk"), nb::arg("repetition_penalty"),
           nb::arg("temperature").none(), nb::arg("top_k"), nb::arg("top_p"), nb::arg("seed"),
           nb::arg("stop"), nb::arg("on_token").none())
      .def_prop_ro("states", states)
      .def_prop_ro("length", [](SharedGenerator& s) { return s.generator.states().length(); })
      .def("read", read, nb::arg("name"));
  module.def("generator", make_generator, nb::arg("session"), nb::arg("model"), nb::arg("states"),
             nb::arg("capacity"));
}

}  // namespace redfuser::python
