#include "cpu/pointwise/merge_chains.h"

#include <algorithm>
#include <optional>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/pointwise/fold_chains.h"
#include "cpu/pointwise/output_registers.h"
#include "cpu/pointwise/typed_ends.h"

namespace redfuser::cpu {
namespace {

std::optional<ChainOp> chain_op(BinaryOp op, bool reversed) {
  switch (op) {
    case BinaryOp::Add:
      return ChainOp::Add;
    case BinaryOp::Sub:
      return reversed ? ChainOp::SubFrom : ChainOp::Sub;
    case BinaryOp::Mul:
      return ChainOp::Mul;
    case BinaryOp::Div:
      return reversed ? ChainOp::DivInto : ChainOp::Div;
    case BinaryOp::Max:
      return reversed ? ChainOp::MaxOf : ChainOp::Max;
    case BinaryOp::Min:
      return reversed ? ChainOp::MinOf : ChainOp::Min;
    default:
      return std::nullopt;
  }
}

std::optional<ChainOp> chain_op(UnaryOp op, Elem elem) {
  switch (op) {
    case UnaryOp::Neg:
      return ChainOp::Neg;
    case UnaryOp::Abs:
      return ChainOp::Abs;
    case UnaryOp::Round:
      return ChainOp::Round;
    case UnaryOp::Exp:
      return elem == Elem::F32 ? std::optional(ChainOp::Exp) : std::nullopt;
    case UnaryOp::Erf:
      return elem == Elem::F32 ? std::optional(ChainOp::Erf) : std::nullopt;
    case UnaryOp::Tanh:
      return elem == Elem::F32 ? std::optional(ChainOp::Tanh) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool squares(const Instruction& instruction) {
  const auto* binary = dynamic_cast<const Binary*>(&instruction);
  return binary != nullptr && binary->op == BinaryOp::Mul && binary->reads[0] == binary->reads[1];
}

class ChainMerger {
 public:
  explicit ChainMerger(TileProgram& program)
      : program_(program),
        reads_(program.registers.size()),
        writes_(program.registers.size()),
        shared_(program.registers.size()) {
    count(program.block);
    for (size_t i = 0; i < program.registers.size(); ++i) {
      const RegisterId alias = program.registers[i].alias;
      if (alias == kNoRegister) continue;
      shared_[i] = shared_[static_cast<size_t>(alias)] = true;
    }
  }

  void run(Block& block) {
    for (size_t i = 0; i < block.size();) {
      std::optional<size_t> reader;
      if (link_of(*block[i], kNoRegister) && merges(*block[i])) reader = reader_of(block, i);
      if (!reader && folds(block, i)) become_chain(block[i]);
      reader ? join(block, i, *reader) : void(++i);
    }
  }

 private:
  // An operation as part of a chain: of `value` and the links' operands.
  struct Part {
    RegisterId value;
    std::vector<PointwiseChain::Link> links;
  };

  void count(const Block& block) {
    for (const auto& instruction : block) {
      for (const RegisterId r : instruction->reads) ++reads_[static_cast<size_t>(r)];
      if (squares(*instruction)) --reads_[static_cast<size_t>(instruction->reads[0])];
      for (const RegisterId r : instruction->writes) ++writes_[static_cast<size_t>(r)];
      if (instruction->body() != nullptr) count(*instruction->body());
    }
  }

  const Register& info(RegisterId r) const { return program_.registers[static_cast<size_t>(r)]; }

  // With `value` as the value that the links begin with, or any vector for kNoRegister.
  std::optional<Part> link_of(const Instruction& instruction, RegisterId value) const {
    if (instruction.writes.size() != 1) return std::nullopt;
    const Register& out = info(instruction.writes[0]);
    if (out.elem != Elem::F32 && out.elem != Elem::F64) return std::nullopt;
    const auto begins = [&](RegisterId r) {
      return value == kNoRegister ? is_vector(info(r).shape, out.shape) : r == value;
    };
    if (const auto* chain = dynamic_cast<const PointwiseChain*>(&instruction)) {
      if (!begins(chain->first)) return std::nullopt;
      return Part{chain->first, chain->links};
    }
    if (const auto* unary = dynamic_cast<const Unary*>(&instruction)) {
      const auto op = chain_op(unary->op, out.elem);
      if (!op || !begins(unary->reads[0])) return std::nullopt;
      return Part{unary->reads[0], {{*op, kNoRegister}}};
    }
    const auto* binary = dynamic_cast<const Binary*>(&instruction);
    if (binary == nullptr) return std::nullopt;
    for (const bool reversed : {false, true}) {
      const RegisterId first = binary->reads[reversed ? 1 : 0];
      if (!begins(first)) continue;
      const RegisterId operand = binary->reads[reversed ? 0 : 1];
      if (binary->op == BinaryOp::ExpSub && out.elem == Elem::F32) {
        const ChainOp difference = reversed ? ChainOp::SubFrom : ChainOp::Sub;
        return Part{first, {{difference, operand}, {ChainOp::Exp, kNoRegister}}};
      }
      if (squares(*binary)) return Part{first, {{ChainOp::Square, kNoRegister}}};
      if (const auto op = chain_op(binary->op, reversed)) return Part{first, {{*op, operand}}};
    }
    return std::nullopt;
  }

  // Its result is read once and written once, by this instruction.
  bool merges(const Instruction& instruction) const {
    const auto out = static_cast<size_t>(instruction.writes[0]);
    return reads_[out] == 1 && writes_[out] == 1 && !shared_[out] &&
           info(instruction.writes[0]).dense;
  }

  // The operation on the result of instruction i, up to which nothing that it reads changes.
  std::optional<size_t> reader_of(const Block& block, size_t i) const {
    const Instruction& producer = *block[i];
    const RegisterId value = producer.writes[0];
    for (size_t k = i + 1; k < block.size(); ++k) {
      const Instruction& next = *block[k];
      if (next.body() != nullptr) return std::nullopt;
      if (std::find(next.reads.begin(), next.reads.end(), value) == next.reads.end()) {
        for (const RegisterId written : next.writes) {
          if (changes(written, producer)) return std::nullopt;
        }
        continue;
      }
      const auto part = link_of(next, value), before = link_of(producer, kNoRegister);
      if (!part || part->links.size() + before->links.size() > kMostLinks) return std::nullopt;
      const Register &from = info(value), &to = info(next.writes[0]);
      // Of a result without rows every row is the same one.
      const bool shape = from.shape == to.shape || (from.shape == (to.shape | Shape::Rows));
      const bool same = shape && from.scope == to.scope && from.elem == to.elem;
      return same && gains(producer, next) ? std::optional(k) : std::nullopt;
    }
    return std::nullopt;
  }

  // A reduction of its row's elements follows, which a chain takes in (fold_chains).
  bool folds(const Block& block, size_t i) const {
    if (!link_of(*block[i], kNoRegister) || !gains(*block[i], *block[i])) return false;
    const RegisterId value = block[i]->writes[0];
    return std::any_of(block.begin() + static_cast<std::ptrdiff_t>(i), block.end(),
                       [&](const auto& next) { return fold_of(*next, value).has_value(); });
  }

  void become_chain(std::unique_ptr<Instruction>& instruction) const {
    if (dynamic_cast<const PointwiseChain*>(instruction.get()) != nullptr) return;
    Part part = *link_of(*instruction, kNoRegister);
    instruction =
        std::make_unique<PointwiseChain>(instruction->writes[0], part.value, std::move(part.links));
  }

  // A chain prepares its links for every row, unless all rows are one: too often for short rows
  // with operands of their own.
  bool gains(const Instruction& producer, const Instruction& reader) const {
    constexpr int64_t kShortRow = 64;
    const Register& out = info(reader.writes[0]);
    if (out.shape != Shape::Tile ||
        program_.scopes[static_cast<size_t>(out.scope)].extent >= kShortRow) {
      return true;
    }
    const auto one_row = [&](RegisterId r) {
      return info(r).shape == Shape::Tile || info(r).shape == Shape::Scalar;
    };
    return std::all_of(producer.reads.begin(), producer.reads.end(), one_row) &&
           std::all_of(reader.reads.begin(), reader.reads.end(), one_row);
  }

  bool changes(RegisterId written, const Instruction& reader) const {
    return std::any_of(reader.reads.begin(), reader.reads.end(), [&](RegisterId r) {
      return r == written ||
             (shared_[static_cast<size_t>(r)] && shared_[static_cast<size_t>(written)]);
    });
  }

  void join(Block& block, size_t i, size_t k) const {
    Part part = *link_of(*block[i], kNoRegister);
    const Part next = *link_of(*block[k], block[i]->writes[0]);
    part.links.insert(part.links.end(), next.links.begin(), next.links.end());
    block[k] =
        std::make_unique<PointwiseChain>(block[k]->writes[0], part.value, std::move(part.links));
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
  }

  TileProgram& program_;
  std::vector<int> reads_, writes_;  // by register
  std::vector<char> shared_;         // its memory with another register
};

}  // namespace

void merge_chains(TileProgram& program) {
  convert_in_chains(program);
  ChainMerger(program).run(program.block);
  fold_chains(program);
  compute_in_outputs(program);
}

}  // namespace redfuser::cpu
