#include "cpu/pointwise/fold_chains.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/tile/tile_memory.h"

namespace redfuser::cpu {
namespace {

class ChainFolder {
 public:
  explicit ChainFolder(TileProgram& program) : program_(program), reads_(program.registers.size()) {
    count(program.block);
  }

  void run(Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i]->body() != nullptr) run(const_cast<Block&>(*block[i]->body()));
      if (const auto* reduce = dynamic_cast<const ReduceColumns*>(block[i].get())) {
        if (const auto found = folds_of(block, i, reduce->reads[0])) i = join(block, *found);
      }
    }
  }

 private:
  // Of the register `value`: its producer, the reductions that read it, by kind, and the last one.
  struct Folds {
    RegisterId value;
    std::optional<size_t> producer;
    std::array<std::optional<size_t>, kReduceOps> at;
    size_t last = 0;
    int count = 0;
  };

  void count(const Block& block) {
    for (const auto& instruction : block) {
      for (const RegisterId r : instruction->reads) ++reads_[static_cast<size_t>(owner(r))];
      if (instruction->body() != nullptr) count(*instruction->body());
    }
  }

  const Register& info(RegisterId r) const { return program_.registers[static_cast<size_t>(r)]; }
  RegisterId owner(RegisterId r) const {
    while (info(r).alias != kNoRegister) r = info(r).alias;
    return r;
  }

  std::optional<Folds> folds_of(const Block& block, size_t first, RegisterId value) const {
    const Register& v = info(value);
    if (v.elem != Elem::F32 || v.storage != DType::Undefined || v.alias != kNoRegister) {
      return std::nullopt;
    }
    Folds folds{value, {}, {}, first};
    for (size_t i = first; i < block.size(); ++i) {
      const auto op = fold_of(*block[i], value);
      if (!op) continue;
      auto& at = folds.at[static_cast<size_t>(*op)];
      if (at || !fits(v, info(block[i]->writes[0]))) return std::nullopt;
      at = folds.last = i;
      ++folds.count;
    }
    for (size_t i = 0; i < first; ++i) {
      const auto& writes = block[i]->writes;
      if (std::find(writes.begin(), writes.end(), value) == writes.end()) continue;
      const bool binds = dynamic_cast<const BindOutput*>(block[i].get()) != nullptr;
      if (!binds) folds.producer = i;
    }
    return gains(block, folds) && movable(block, folds) ? std::optional(folds) : std::nullopt;
  }

  // One accumulator for each row.
  static bool fits(const Register& value, const Register& accumulator) {
    return accumulator.dense &&
           ((value.shape == Shape::Tile && accumulator.shape == Shape::Rows) ||
            (value.shape == Shape::Columns && accumulator.shape == Shape::Scalar));
  }

  static const PointwiseChain* chain_of(const Block& block, const Folds& folds) {
    if (!folds.producer) return nullptr;
    return dynamic_cast<const PointwiseChain*>(block[*folds.producer].get());
  }

  static bool gains(const Block& block, const Folds& folds) {
    if (folds.count == 0) return false;
    return chain_of(block, folds) != nullptr || folds.count > 1;
  }

  // Nothing between the chain and the last reduction changes what the chain reads, reads its
  // results, or touches an accumulator that has them already.
  bool movable(const Block& block, const Folds& folds) const {
    const PointwiseChain* chain = chain_of(block, folds);
    std::vector<RegisterId> operands{folds.value};
    if (chain != nullptr) operands.insert(operands.end(), chain->reads.begin(), chain->reads.end());
    std::vector<RegisterId> done;
    size_t first = folds.producer ? *folds.producer + 1 : folds.last;
    for (const auto& at : folds.at)
      first = folds.producer ? first : std::min(first, at.value_or(first));
    for (size_t i = first; i <= folds.last; ++i) {
      const Instruction& next = *block[i];
      if (next.body() != nullptr) return false;
      // Another reduction of the same kind keeps the chain where it is.
      const bool reduces = std::find(folds.at.begin(), folds.at.end(), i) != folds.at.end();
      if (chain != nullptr && !reduces && touches(next.reads, {folds.value})) return false;
      if (touches(next.writes, operands)) return false;
      if (touches(next.reads, done) || touches(next.writes, done)) return false;
      if (reduces) done.push_back(next.writes[0]);
    }
    return true;
  }

  bool touches(const std::vector<RegisterId>& registers,
               const std::vector<RegisterId>& others) const {
    return std::any_of(registers.begin(), registers.end(), [&](RegisterId r) {
      return std::any_of(others.begin(), others.end(),
                         [&](RegisterId other) { return owner(r) == owner(other); });
    });
  }

  // The place of the joined instruction.
  size_t join(Block& block, const Folds& folds) const {
    const PointwiseChain* chain = chain_of(block, folds);
    const bool kept =
        chain != nullptr &&
        (!info(folds.value).dense || reads_[static_cast<size_t>(owner(folds.value))] > folds.count);
    auto folded = std::make_unique<FoldedChain>(
        folds.value, chain != nullptr ? chain->first : folds.value,
        chain != nullptr ? chain->links : std::vector<PointwiseChain::Link>{}, kept);
    std::vector<size_t> gone;
    if (chain != nullptr) gone.push_back(*folds.producer);
    for (const ReduceOp op : {ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum}) {
      const auto at = folds.at[static_cast<size_t>(op)];
      if (!at) continue;
      folded->add(op, block[*at]->writes[0]);
      if (*at != folds.last) gone.push_back(*at);
    }
    block[folds.last] = std::move(folded);
    std::sort(gone.begin(), gone.end());
    for (size_t i = gone.size(); i-- > 0;) {
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(gone[i]));
    }
    return folds.last - gone.size();
  }

  TileProgram& program_;
  std::vector<int> reads_;  // by register that has memory of its own
};

}  // namespace

std::optional<ReduceOp> fold_of(const Instruction& instruction, RegisterId value) {
  const auto* reduce = dynamic_cast<const ReduceColumns*>(&instruction);
  if (reduce == nullptr || reduce->reads[0] != value) return std::nullopt;
  for (const ReduceOp op : {ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum}) {
    const ReduceFn f32 = kernels().reduce[static_cast<int>(Elem::F32)][static_cast<int>(op)];
    if (reduce->function == f32) return op;
  }
  return std::nullopt;
}

void fold_chains(TileProgram& program) { ChainFolder(program).run(program.block); }

}  // namespace redfuser::cpu
