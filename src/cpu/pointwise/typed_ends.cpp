#include "cpu/pointwise/typed_ends.h"

#include <algorithm>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/tile/tile_memory.h"

namespace redfuser::cpu {
namespace {

class TypedEnds {
 public:
  explicit TypedEnds(TileProgram& program) : program_(program), uses_(program.registers.size()) {
    count(program.block);
    for (const Register& r : program.registers) {
      if (r.alias != kNoRegister) ++uses_[static_cast<size_t>(r.alias)].writes;
    }
  }

  void run(Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (const auto* load = dynamic_cast<const LoadCopy*>(block[i].get())) {
        begin(block, i, *load);
      } else if (const auto* store = dynamic_cast<const Store*>(block[i].get())) {
        end(block, i, *store);
      } else if (const auto* convert = dynamic_cast<const Convert*>(block[i].get())) {
        if (!begin_view(block, i, *convert)) end_bound(block, i, *convert);
      }
      if (block[i]->body() != nullptr) run(const_cast<Block&>(*block[i]->body()));
    }
  }

 private:
  struct Uses {
    int reads = 0, writes = 0, views = 0;
    bool bound = false;  // to an output
  };

  void count(const Block& block) {
    for (const auto& i : block) {
      const bool binds = dynamic_cast<const BindOutput*>(i.get()) != nullptr;
      const bool views = dynamic_cast<const LoadView*>(i.get()) != nullptr;
      for (const RegisterId r : i->reads) ++uses_[static_cast<size_t>(r)].reads;
      for (const RegisterId r : i->writes) {
        Uses& uses = uses_[static_cast<size_t>(r)];
        binds ? void(uses.bound = true) : void(++(views ? uses.views : uses.writes));
      }
      if (i->body() != nullptr) count(*i->body());
    }
  }

  Register& info(RegisterId r) { return program_.registers[static_cast<size_t>(r)]; }
  const Uses& uses(RegisterId r) const { return uses_[static_cast<size_t>(r)]; }

  static bool side_by_side(const Access& access, Shape shape) {
    if (access.whole != kNoRegister || !access.in_range) return false;
    if (has_columns(shape)) {
      return access.column_stride == 1 && access.column_offsets == kNoRegister;
    }
    return access.row_stride == 1 && access.row_offsets == kNoRegister;
  }

  // The one instruction of a block that reads a register, after instruction i.
  static std::optional<size_t> reader_of(const Block& block, size_t i, RegisterId r) {
    for (size_t k = i + 1; k < block.size(); ++k) {
      const auto& reads = block[k]->reads;
      if (std::find(reads.begin(), reads.end(), r) != reads.end()) return k;
    }
    return std::nullopt;
  }

  // load r; x = float(r) becomes x = chain(view), where the view is r.
  void begin(Block& block, size_t i, const LoadCopy& load) {
    const RegisterId r = load.writes[0];
    const Access access = load.access;
    if (!chain_type(access.dtype) || !side_by_side(access, info(r).shape) || uses(r).writes != 1) {
      return;
    }
    if (info(r).elem == Elem::F32) {  // converts itself
      const RegisterId view = renewed(r);
      block[i] = std::make_unique<PointwiseChain>(r, view, std::vector<PointwiseChain::Link>{});
      become_view(view, access);
      block.insert(block.begin() + static_cast<std::ptrdiff_t>(i),
                   std::make_unique<LoadView>(view, access));
      return;
    }
    if (info(r).elem != Elem::I32 || uses(r).reads != 1 || uses(r).bound) return;
    const std::optional<size_t> k = reader_of(block, i, r);
    if (!k || !converts(*block[*k], Elem::F32, Elem::I32)) return;
    const RegisterId x = block[*k]->writes[0];
    become_view(r, access);
    block[i] = std::make_unique<LoadView>(r, access);
    block[*k] = std::make_unique<PointwiseChain>(x, r, std::vector<PointwiseChain::Link>{});
  }

  bool converts(const Instruction& i, Elem to, Elem from) {
    return dynamic_cast<const Convert*>(&i) != nullptr && info(i.writes[0]).elem == to &&
           info(i.reads[0]).elem == from && uses(i.writes[0]).writes == 1;
  }

  RegisterId renewed(RegisterId r) {
    Register copy = info(r);
    program_.registers.push_back(copy);
    uses_.emplace_back();
    return static_cast<RegisterId>(program_.registers.size() - 1);
  }

  void become_view(RegisterId id, const Access& access) {
    Register& r = info(id);
    r.elem = Elem::F32;
    r.dense = false;
    r.storage = access.dtype;
    r.offsets = r.shape == Shape::Tile ? access.row_offsets : kNoRegister;
  }

  // r = int32(x); store r, or a store of x that rounds it, becomes a chain of x into the output.
  void end(Block& block, size_t i, const Store& store) {
    RegisterId from = store.reads.back();
    const Access access = store.access;
    if (same_storage(access.dtype) && access.dtype != DType::Int32) return;
    if (!chain_type(access.dtype) || !side_by_side(access, store.shape) ||
        access.row_offsets != kNoRegister) {
      return;
    }
    std::optional<size_t> conversion;
    for (size_t k = 0; info(from).elem == Elem::I32 && k < i; ++k) {
      if (block[k]->writes == std::vector<RegisterId>{from}) conversion = k;
    }
    if (info(from).elem == Elem::I32) {
      if (!conversion || !converts(*block[*conversion], Elem::I32, Elem::F32)) return;
      if (uses(from).reads != 1 || uses(from).bound) return;
      from = block[*conversion]->reads[0];
    }
    if (info(from).elem != Elem::F32 || info(from).storage != DType::Undefined ||
        !is_vector(info(from).shape, store.shape)) {
      return;
    }
    Register out;
    out.shape = store.shape, out.scope = has_columns(store.shape) ? store.scope : kNoScope;
    out.depth = info(from).depth;
    out.dense = false;
    out.storage = access.dtype;
    program_.registers.push_back(out);
    uses_.emplace_back();
    const auto written = static_cast<RegisterId>(program_.registers.size() - 1);
    const size_t at = conversion.value_or(i);
    block[at] =
        std::make_unique<PointwiseChain>(written, from, std::vector<PointwiseChain::Link>{});
    if (at != i) block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    block.insert(block.begin(), std::make_unique<BindOutput>(written, access));
  }

  // x = float(view), where the view is of int32 and read by nothing else, becomes a chain.
  bool begin_view(Block& block, size_t i, const Convert& convert) {
    const RegisterId view = convert.reads[0];
    if (info(view).dense || info(view).storage != DType::Undefined || uses(view).reads != 1 ||
        uses(view).writes != 0 || uses(view).views > 1 ||
        !converts(convert, Elem::F32, Elem::I32)) {
      return false;
    }
    info(view).elem = Elem::F32;
    info(view).storage = DType::Int32;
    block[i] = std::make_unique<PointwiseChain>(convert.writes[0], view,
                                                std::vector<PointwiseChain::Link>{});
    return true;
  }

  // A conversion into an output's memory.
  void end_bound(Block& block, size_t i, const Convert& convert) {
    const RegisterId out = convert.writes[0], from = convert.reads[0];
    if (!uses(out).bound || !converts(convert, Elem::I32, Elem::F32) || uses(out).reads != 0 ||
        info(from).storage != DType::Undefined) {
      return;
    }
    info(out).elem = Elem::F32;
    info(out).storage = DType::Int32;
    block[i] = std::make_unique<PointwiseChain>(out, from, std::vector<PointwiseChain::Link>{});
  }

  TileProgram& program_;
  std::vector<Uses> uses_;  // by register
};

}  // namespace

void convert_in_chains(TileProgram& program) { TypedEnds(program).run(program.block); }

}  // namespace redfuser::cpu
