#include "codegen/scan/scan_functor.h"

#include <fmt/format.h>

#include "codegen/text/function_text.h"
#include "codegen/text/integer_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

std::string ScanFunctor::text() {
  const DType state = form_.state();
  const std::string functions =
      function("fetch", "State (&x)[kWidth]",
               [&](Emitter& emitter, GroupText& group) { fetch(emitter, group); }) +
      function("finish", "const State (&y)[kWidth]",
               [&](Emitter&, GroupText& group) { finish(group); });
  const std::string constants = fmt::format(
      "using State = {};\nusing Op = {};\nstatic constexpr int kWidth = {};\n"
      "static constexpr bool kReverse = {}, kExclusive = {};\n",
      value_type(state), combiner_of(form_.reduction), width_, form_.reverse, form_.exclusive);
  const std::string identity = function_text(
      "static State identity()", fmt::format("return {};\n", identity_of(form_.reduction, state)));
  return struct_text("Scan",
                     constants + kernel_.members() + "bool vector;\n" + identity + functions);
}

std::string ScanFunctor::function(const char* name, const char* values,
                                  const std::function<void(Emitter&, GroupText&)>& write) {
  Emitter emitter(kernel_);
  GroupText group(emitter, {form_.inner()});
  bind_coordinates(emitter, form_.lines, "line");
  if (form_.across) emitter.bind(form_.axis, "position");
  emitter.line(fmt::format("const Group<kWidth> group{{{}, valid, {}, vector && valid >= kWidth}};",
                           form_.across ? "column" : "position",
                           kernel_.size(form_.inner()->extent())));
  write(emitter, group);
  accesses_.add(group.accesses());
  return function_text(
      fmt::format("void {}(long long line, long long position, long long column, long long valid, "
                  "{}) const",
                  name, values),
      emitter.close());
}

void ScanFunctor::fetch(Emitter& emitter, GroupText& group) {
  group.load(form_.element);
  group.each([&] {
    const std::string value = emitter.emit_as(form_.element, form_.state());
    emitter.line(fmt::format("x[v] = v < valid ? {} : identity();", value));
  });
}

void ScanFunctor::finish(GroupText& group) {
  const DType state = form_.state();
  group.bind(form_.running,
             is_integer(state) ? integer_cast_text(state, DType::Int64, "y[v]") : "y[v]");
  group.load(form_.body);
  group.write({{form_.value, form_.body, form_.offset}});
}

}  // namespace redfuser::codegen
