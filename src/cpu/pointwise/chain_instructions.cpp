#include "cpu/pointwise/chain_instructions.h"

#include <algorithm>

namespace redfuser::cpu {

std::optional<ChainType> chain_type(DType storage) {
  switch (storage) {
    case DType::Undefined:
      return ChainType::Own;
    case DType::UInt8:
      return ChainType::UInt8;
    case DType::Int8:
      return ChainType::Int8;
    case DType::Int32:
      return ChainType::Int32;
    case DType::Float16:
      return ChainType::Float16;
    case DType::BFloat16:
      return ChainType::BFloat16;
    default:
      return std::nullopt;
  }
}

namespace {

// With `operands` as the memory of its links, without the output.
ChainArgs args_of(const TileContext& machine, const Register& result, RegisterId first,
                  const std::vector<PointwiseChain::Link>& links, ChainLink* operands) {
  const Extents e = extents_of(machine, result);
  ChainArgs args;
  args.rows = e.rows;
  args.cols = e.columns;
  args.first = operand(machine, first, result.shape);
  args.first_type = *chain_type(info(machine, first).storage);
  args.out_type = *chain_type(result.storage);
  args.links = operands;
  for (const PointwiseChain::Link& link : links) {
    ChainLink& to = operands[args.count++];
    to = {link.op, false, {}};
    if (link.operand == kNoRegister) continue;
    to.vector = is_vector(info(machine, link.operand).shape, result.shape);
    to.operand = operand(machine, link.operand, result.shape);
  }
  return args;
}

}  // namespace

PointwiseChain::PointwiseChain(RegisterId out, RegisterId first, std::vector<Link> links)
    : first(first), links(std::move(links)) {
  reads = {first};
  for (const Link& link : this->links) {
    if (link.operand != kNoRegister) reads.push_back(link.operand);
  }
  writes = {out};
  elementwise = bindable = true;
}

void PointwiseChain::run(TileContext& machine) const {
  const Register& r = info(machine, writes[0]);
  ChainLink operands[kMostLinks];
  ChainArgs args = args_of(machine, r, first, links, operands);
  args.cols = padded_columns(machine, writes[0], args.cols, reads);
  args.out = slot(machine, writes[0]).data;
  args.out_stride = slot(machine, writes[0]).stride;
  (r.elem == Elem::F64 ? kernels().chain_f64 : kernels().chain_f32)(args);
}

FoldedChain::FoldedChain(RegisterId value, RegisterId first,
                         std::vector<PointwiseChain::Link> links, bool kept)
    : value(value), first(first), links(std::move(links)), kept(kept) {
  std::fill_n(accumulators, kReduceOps, kNoRegister);
  reads = {first};
  for (const PointwiseChain::Link& link : this->links) {
    if (link.operand != kNoRegister) reads.push_back(link.operand);
  }
  if (kept) writes = {value};
}

void FoldedChain::add(ReduceOp op, RegisterId accumulator) {
  accumulators[static_cast<int>(op)] = accumulator;
  reads.push_back(accumulator);
  writes.push_back(accumulator);
}

void FoldedChain::run(TileContext& machine) const {
  ChainLink operands[kMostLinks];
  ChainArgs args = args_of(machine, info(machine, value), first, links, operands);
  if (kept) {
    args.out = slot(machine, value).data;
    args.out_stride = slot(machine, value).stride;
  }
  const auto memory = [&](ReduceOp op) -> float* {
    const RegisterId r = accumulators[static_cast<int>(op)];
    return r == kNoRegister ? nullptr : reinterpret_cast<float*>(slot(machine, r).data);
  };
  args.folds = {memory(ReduceOp::Max), memory(ReduceOp::Min), memory(ReduceOp::Sum)};
  kernels().chain_f32(args);
}

}  // namespace redfuser::cpu
