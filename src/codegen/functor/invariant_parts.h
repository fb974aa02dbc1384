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
  // Of src/device/math.cuh, where elements are divided by it: Divisor or ExactDivisor.
  std::string divisor = {};
};

// What a part must have to be worth a member: a read; or also leaves; or also coordinates alone.
enum class PartsWith { Reads, ReadsAndCoordinates, ReadsAndLeaves, Anything };

// How elements are divided by a part: as they are, by an ExactDivisor of it, or by a Divisor.
enum class Quotients { Plain, Exact, Fast };

// The largest parts of `roots` that depend on none of `axes`.
std::vector<InvariantPart> invariant_parts(const std::vector<ir::Expr>& roots,
                                           const std::vector<ir::Expr>& axes, PartsWith what,
                                           Quotients quotients);

// Parts as members of a struct: <name><i> is part i, by<i> its divisor where elements have one.
// declare_parts: the members; set_parts: statements that set those of `object`; bind_parts: makes
// them the values of the parts in the emitter's scope.
std::string declare_parts(const std::vector<InvariantPart>& parts, const std::string& name);
void set_parts(Emitter& emitter, const std::vector<InvariantPart>& parts, const std::string& object,
               const std::string& name);
void bind_parts(Emitter& emitter, const std::vector<InvariantPart>& parts,
                const std::string& object, const std::string& name);

}  // namespace redfuser::codegen
