#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

extern const KernelTable& table();

const KernelTable& table() {
  static const KernelTable* const built = [] {
    static KernelTable t{};
    t.name = RF_ISA_NAME;
    add_unary_float(t);
    add_unary_double(t);
    add_unary_integer(t);
    add_binary(t);
    add_chain(t);
    add_select(t);
    add_reduce(t);
    add_convert(t);
    add_moves(t);
    add_gathers(t);
    add_byte_tables(t);
    add_rank(t);
    add_running(t);
    add_gemm(t);
    add_integer_gemm(t);
    add_filter(t);
    add_window(t);
    add_window_rows(t);
    add_overlap(t);
    add_pool(t);
    add_weighted_rows(t);
    add_lanes(t);
    add_recurrent(t);
    add_fourier(t);
    return &t;
  }();
  return *built;
}

}  // namespace redfuser::cpu::RF_ISA
