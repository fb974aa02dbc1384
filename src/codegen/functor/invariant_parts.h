// Values of a row that its elements share: what a functor computes once and its elements read.
#pragma once

#include <string>
#include <vector>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// Members of a struct in their order, those of one type in a line.
class Members {
 public:
  void add(std::string_view type, const std::string& name);
  std::string text() const { return text_.empty() ? "" : text_ + ";\n"; }

 private:
  std::string text_, type_;
};

struct InvariantPart {
  ir::Expr expr;
  bool divides = false;  // a divisor of elements, which have a Divisor (src/device/math.cuh) of it
};

// What a part must have to be worth a member: a read; or also leaves; or also coordinates alone.
enum class PartsWith { Reads, ReadsAndCoordinates, ReadsAndLeaves, Anything };

// The largest parts of `roots` that depend on none of `axes`. `fast`: quotients are computed by
// Divisors.
std::vector<InvariantPart> invariant_parts(const std::vector<ir::Expr>& roots,
                                           const std::vector<ir::Expr>& axes, PartsWith what,
                                           bool fast);

// Parts as members of a struct: <name><i> is part i, by<i> its Divisor where elements have one.
// declare_parts: the members; set_parts: statements that set those of `object`; bind_parts: makes
// them the values of the parts in the emitter's scope.
std::string declare_parts(const std::vector<InvariantPart>& parts, const std::string& name);
void set_parts(Emitter& emitter, const std::vector<InvariantPart>& parts, const std::string& object,
               const std::string& name);
void bind_parts(Emitter& emitter, const std::vector<InvariantPart>& parts,
                const std::string& object, const std::string& name);

}  // namespace redfuser::codegen
