#include "cpu/pointwise/output_registers.h"

#include <algorithm>
#include <optional>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/tile/tile_memory.h"

namespace redfuser::cpu {
namespace {

bool reads(const Instruction& i, RegisterId r) {
  return std::find(i.reads.begin(), i.reads.end(), r) != i.reads.end();
}
bool writes(const Instruction& i, RegisterId r) {
  return std::find(i.writes.begin(), i.writes.end(), r) != i.writes.end();
}

class OutputRegisters {
 public:
  explicit OutputRegisters(TileProgram& program)
      : program_(program), uses_(program.registers.size()) {
    count(program.block);
    for (const Register& r : program.registers) {
      if (r.alias != kNoRegister) ++uses_[static_cast<size_t>(r.alias)];
    }
  }

  void run(Block& block) const {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i]->body() != nullptr) run(const_cast<Block&>(*block[i]->body()));
      const auto* bound = dynamic_cast<const BindOutput*>(block[i].get());
      if (bound == nullptr) continue;
      const std::optional<RegisterId> found = operand_of(block, bound->writes[0]);
      if (!found) continue;
      program_.registers[static_cast<size_t>(*found)].dense = false;
      block.insert(block.begin(), std::make_unique<BindOutput>(*found, bound->access));
      ++i;
    }
  }

 private:
  void count(const Block& block) {
    for (const auto& i : block) {
      for (const RegisterId r : i->reads) ++uses_[static_cast<size_t>(r)];
      for (const RegisterId r : i->writes) ++uses_[static_cast<size_t>(r)];
      if (i->body() != nullptr) count(*i->body());
    }
  }

  // Of the instruction that computes the output.
  std::optional<RegisterId> operand_of(const Block& block, RegisterId output) const {
    std::optional<size_t> last;
    for (size_t i = 0; i < block.size(); ++i) {
      if (dynamic_cast<const BindOutput*>(block[i].get()) != nullptr) continue;
      if (!writes(*block[i], output)) continue;
      if (last || !block[i]->elementwise) return std::nullopt;
      last = i;
    }
    if (!last) return std::nullopt;
    for (const RegisterId r : block[*last]->reads) {
      if (serves(block, *last, r, output)) return r;
    }
    return std::nullopt;
  }

  // A register like the output's, which one instruction of the block computes, and which none
  // reads after `last`.
  bool serves(const Block& block, size_t last, RegisterId id, RegisterId output) const {
    const Register &r = program_.registers[static_cast<size_t>(id)],
                   &o = program_.registers[static_cast<size_t>(output)];
    if (!r.dense || r.alias != kNoRegister || r.matrix_rows > 0) return false;
    if (r.shape != o.shape || r.scope != o.scope || r.elem != o.elem) return false;
    if (o.storage != DType::Undefined) return false;
    int uses = 0, computed = 0;
    for (size_t i = 0; i <= last; ++i) {
      uses += static_cast<int>(std::count(block[i]->reads.begin(), block[i]->reads.end(), id));
      if (!writes(*block[i], id)) continue;
      const bool whole =
          block[i]->bindable || dynamic_cast<const FoldedChain*>(block[i].get()) != nullptr;
      if (!whole || reads(*block[i], id)) return false;
      ++uses, ++computed;
    }
    return computed == 1 && uses == uses_[static_cast<size_t>(id)];
  }

  TileProgram& program_;
  std::vector<int> uses_;  // by register
};

}  // namespace

void compute_in_outputs(TileProgram& program) { OutputRegisters(program).run(program.block); }

}  // namespace redfuser::cpu
