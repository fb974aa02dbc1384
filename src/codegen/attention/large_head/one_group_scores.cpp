// The schedule if one warpgroup, the scorer, computes all scores of a tile: products of 64 keys run
// at the full rate of the tensor cores, and the reductions need no exchange. The other warpgroup
// follows with the weights and references from shared memory. Values are columns of the K tiles
// (wide_scorers).
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/text/loop.h"

namespace redfuser::codegen {

std::string LargeHeadText::scorer() {
  emitter_.open();
  emitter_.line("constexpr int use = 0;");
  place_tile();
  emitter_.line(start_scores(0, parts_, true));
  emitter_.line("wait_products<0>(s);");
  emitter_.line(fold_wide_tile());
  leave_weights(true);
  const std::string first = fmt::format("{{\n{}}}\n", emitter_.close());
  emitter_.open();
  place_tile();
  emitter_.line(start_all_values("use - 1", "p"));
  emitter_.line(start_scores(0, 1, false));
  emitter_.line("wait_products<1>(o);");
  emitter_.line(release_keys("(use - 1)"));
  emitter_.line(start_scores(1, parts_, false));
  emitter_.line("wait_products<0>(s);");
  emitter_.line(fold_wide_tile());
  leave_weights(false);
  return fmt::format(
      "if (own_tiles > 0) {{\n{}for (int use = 1; use < own_tiles; ++use) {{\n{}}}\n{}"
      "wait_products<0>(o);\n}}\n",
      first, emitter_.close(), start_all_values("own_tiles - 1", "p"));
}

// Rescales its values while the other warpgroup starts its product.
void LargeHeadText::leave_weights(bool first) {
  std::string references;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    references += fmt::format("{}[tile_row + h * 8] = w{}[h];\n", reference_place(r), r);
  }
  if (!first) emitter_.line("ptx_named_sync(kWideReduced, kWideThreads);");
  emitter_.line(fmt::format(
      "if (pair == 0) {{\n{}}}\npack_weights<{}, {}>(p, s);\n"
      "store_weights<{}>(weights_tile, p, tile_row, 0, pair);\nptx_async_proxy_fence();\n"
      "ptx_named_arrive(kWideWeighed, kWideThreads);",
      unrolled("h", 2, references), type_, config_.keys, config_.keys));
  if (!first) emitter_.line(move_values());
  emitter_.line(adopt_state());
  emitter_.line("folded += tile_valid;");
}

// The follower keeps only the rescale references.
std::string LargeHeadText::follower() {
  emitter_.open();
  place_tile();
  std::string references, adopted;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    references += fmt::format("w{}[h] = {}[tile_row + h * 8];\n", r, reference_place(r));
    adopted += fmt::format("r{0}[h] = w{0}[h];\n", r);
  }
  emitter_.line("ptx_named_sync(kWideWeighed, kWideThreads);\n" + unrolled("h", 2, references));
  emitter_.line(fmt::format("if (use > 0) {{\n{}}}", move_values()));
  emitter_.line(unrolled("h", 2, adopted) + "\nfolded += tile_valid;");
  for (int p = 0; p < parts_; ++p) {
    emitter_.line(fmt::format("k_ring.wait_full(use * {} + {});", parts_, p));
  }
  emitter_.line(start_all_values("use", "weights") + "wait_products<0>(o);");
  emitter_.line(release_keys("use"));
  emitter_.line("if (use + 1 < own_tiles) ptx_named_arrive(kWideReduced, kWideThreads);");
  return fmt::format("for (int use = 0; use < own_tiles; ++use) {{\n{}}}\n", emitter_.close());
}

std::string LargeHeadText::reference_place(size_t r) const {
  return fmt::format("(reduced + {})", (2 * r + 1) * LargeHeadLayout::kRows);
}

std::string LargeHeadText::start_all_values(const std::string& use,
                                            const std::string& weights) const {
  return fmt::format(
      "{{\n{}ptx_product_fence();\nadd_values<{}, {}, {}>(o, {}, values, {});\n"
      "ptx_product_commit();\n}}\n",
      place_values(use), type_, columns_, wide_.keys, weights, TmaTile{wide_.keys}.slab_bytes());
}

// Passes the scorer's accumulators to both warpgroups.
void LargeHeadText::share_accumulators() {
  std::string store, load;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k)) continue;
    const size_t place = 2 * k * LargeHeadLayout::kRows;
    store += fmt::format("reduced[{} + tile_row + h * 8] = a{}[h];\n", place, k);
    load += fmt::format("a{}[h] = reduced[{} + tile_row + h * 8];\n", k, place);
  }
  emitter_.line(fmt::format(
      "if (group == 1 && pair == 0) {{\n{}}}\nptx_named_sync(kWideReduced, kWideThreads);\n{}",
      unrolled("h", 2, store), unrolled("h", 2, load)));
}

}  // namespace redfuser::codegen
