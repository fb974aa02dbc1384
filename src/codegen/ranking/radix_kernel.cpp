#include "codegen/ranking/radix_kernel.h"

#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/rank_key.h"
#include "codegen/ranking/ranking_form.h"
#include "codegen/text/function_text.h"
#include "ir/contraction.h"

namespace redfuser::codegen {
namespace {

constexpr int kDigits = 256;

ir::Expr rows_of(ir::ExprPool& pool, const RadixForm& form) {
  return product_of(pool, extents_of(pool, form.rows.cascade.rows));
}

ir::Expr tiles_of(ir::ExprPool& pool, const RadixForm& form) {
  return ceil_div(pool, form.rows.length(), form.tile());
}

// Behind a number for each pass: digits of rows by pass, then digits of tiles by pass.
ir::Expr digits_of_rows(ir::ExprPool& pool, const RadixForm& form) {
  return pool.mul(rows_of(pool, form), pool.integer(int64_t{kDigits} * form.passes()));
}
ir::Expr digits_of_tiles(ir::ExprPool& pool, const RadixForm& form) {
  return pool.mul(pool.mul(rows_of(pool, form), tiles_of(pool, form)), pool.integer(kDigits));
}

// `struct Sort`, whose members are the kernel's parameters so far.
std::string functor_text(KernelText& kernel, const RadixForm& form, bool reads) {
  std::string key = "return 0;\n";
  if (reads) {
    Emitter emitter(kernel);
    bind_coordinates(emitter, form.rows.cascade.rows, "row");
    emitter.bind(form.rows.cascade.stream, "static_cast<long long>(at)");
    emitter.line(fmt::format("return {};", key_text(emitter, form.accumulator())));
    key = emitter.close();
  }
  return struct_text(
      "Sort", fmt::format("using Key = {};\n{}", key_type(form.accumulator()), kernel.members()) +
                  function_text("Key key(long long row, unsigned at) const", key));
}

constexpr std::string_view kHeader = "device/ranking/ranking_radix.cuh";

}  // namespace

RadixForm radix_form(const FlatStreaming& rows) {
  const cascade::Accumulator& a = rows.accumulators.front();
  const int bits = size_of(a.lift->dtype) == 8 ? 64 : 32;
  // As floats, elements in memory of 16 bits have zeros behind their own bits; NaN, which has none,
  // comes first by its other bits.
  int first = 0;
  ir::Expr element = ir::without_float_casts(a.lift);
  if (element->op == ir::ExprOp::Read && bits == 32) {
    if (element->dtype == DType::Float16) first = 8;
    if (element->dtype == DType::BFloat16) first = 16;
  }
  return {rows, first, bits};
}

ir::Expr radix_numbers(ir::ExprPool& pool, const RadixForm& form) {
  ir::Expr passes = pool.integer(form.passes());
  return pool.add(pool.add(passes, digits_of_rows(pool, form)),
                  pool.mul(passes, digits_of_tiles(pool, form)));
}

KernelLaunch radix_count_kernel(StepBuilder& builder, const RadixForm& form,
                                const RadixScratch& scratch) {
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const std::string before = functor_text(kernel, form, true);
  const std::string members = kernel.member_values();
  const std::string body = fmt::format(
      "const Sort sort{{{}}};\nradix_count<Sort, {}, {}, {}>(sort, {}, {} + {});\n", members,
      form.first, RadixForm::kThreads, RadixForm::kCountedElements, kernel.size(form.rows.length()),
      kernel.buffer(scratch.numbers, true), form.passes());
  KernelLaunch launch =
      kernel.launch("sort_count", form.rows.comment, {kHeader}, before, body, RadixForm::kThreads);
  constexpr int64_t kTile = int64_t{RadixForm::kThreads} * RadixForm::kCountedElements;
  launch.grid[0] = pool.mul(rows_of(pool, form), ceil_div(pool, form.rows.length(), kTile));
  launch.static_shared = 4 * kDigits * form.passes();
  return launch;
}

KernelLaunch radix_pass_kernel(StepBuilder& builder, const RadixForm& form,
                               const RadixScratch& scratch, int pass) {
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const bool first = pass == 0, last = pass == form.passes() - 1;
  const std::string before = functor_text(kernel, form, first);
  const std::string members = kernel.member_values();
  const int to = pass % 2, from = 1 - to;
  const auto keys = [&](int64_t buffer, const char* constant) {
    return fmt::format("reinterpret_cast<{}Sort::Key*>({})", constant,
                       kernel.buffer(buffer, *constant == 0));
  };
  const std::string numbers = kernel.buffer(scratch.numbers, true);
  const auto behind = [&](ir::Expr count) {
    return fmt::format("{} + {}", numbers, kernel.size(count));
  };
  ir::Expr row_digits = pool.integer(form.passes());
  ir::Expr tile_digits = pool.add(pool.add(row_digits, digits_of_rows(pool, form)),
                                  pool.mul(pool.integer(pass), digits_of_tiles(pool, form)));
  std::string body = fmt::format("const Sort sort{{{}}};\n", members);
  body += fmt::format(
      "const RadixPass<Sort::Key> pass{{{}, {}, {}, {}, {} + {}, {}, {}, {}}};\n",
      first ? "nullptr" : keys(scratch.keys[from], "const "),
      first ? "nullptr" : kernel.buffer(scratch.positions[from]),
      last ? "nullptr" : keys(scratch.keys[to], ""), kernel.buffer(scratch.positions[to], true),
      numbers, pass, behind(tile_digits),
      behind(pool.add(row_digits, pool.integer(int64_t{kDigits} * pass))), kDigits * form.passes());
  body +=
      fmt::format("radix_scatter<Sort, {}, {}, {}, {}>(sort, {}, pass);\n", form.first + 8 * pass,
                  first, last, form.elements(), kernel.size(form.rows.length()));
  KernelLaunch launch =
      kernel.launch("sort_pass", form.rows.comment, {kHeader}, before, body, RadixForm::kThreads);
  launch.config = {{"bit", form.first + 8 * pass}};
  launch.grid[0] = pool.mul(rows_of(pool, form), tiles_of(pool, form));
  // Keys and positions, digits of warps, of the tile and of the row, and the warps' numbers.
  const int warps = RadixForm::kThreads / 32;
  launch.static_shared = static_cast<int>(form.tile()) * (form.key_bytes() + 4) +
                         4 * kDigits * (warps + 2) + 4 * (warps + 2);
  return launch;
}

}  // namespace redfuser::codegen
