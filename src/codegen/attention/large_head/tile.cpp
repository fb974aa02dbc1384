// A K/V tile in both warpgroups: products, weights and barriers.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/attention/large_head/text.h"

namespace redfuser::codegen {

std::string LargeHeadText::first_key(const std::string& tile) const {
  return fmt::format("{} * {}", visible_.tile(tile), wide_.keys);
}

std::string LargeHeadText::first_tile() {
  emitter_.open();
  emitter_.line("constexpr int use = 0;");
  place_tile();
  emitter_.line(start_scores(0, parts_, true));
  emitter_.line("wait_products<0>(s);");
  if (values_apart()) emitter_.line(release_keys("use"));
  emitter_.line(fold_wide_tile());
  publish_weights();
  return fmt::format("{{\n{}}}\n", emitter_.close());
}

// The tensor cores multiply the values of one tile, then start the scores of the next.
std::string LargeHeadText::next_tiles() {
  emitter_.open();
  place_tile();
  emitter_.line(start_values("use - 1"));
  emitter_.line(start_scores(0, 1, false));
  emitter_.line("wait_products<1>(o);");
  emitter_.line(values_apart() ? "v_ring.release(use - 1);" : release_keys("(use - 1)"));
  emitter_.line(start_scores(1, parts_, false));
  emitter_.line("wait_products<0>(s);");
  if (values_apart()) emitter_.line(release_keys("use"));
  emitter_.line(fold_wide_tile());
  emitter_.line(move_values());
  publish_weights();
  const std::string loop =
      fmt::format("for (int use = 1; use < own_tiles; ++use) {{\n{}}}\n", emitter_.close());
  return loop + start_values("own_tiles - 1") + "wait_products<0>(o);\n";
}

void LargeHeadText::place_tile() {
  emitter_.line(
      fmt::format("const int tile_first = {}, first = tile_first + group_key;\n"
                  "const int tile_valid = static_cast<int>(min_of({} - tile_first, {}ll));",
                  first_key("tiles_before + use"), keys_, wide_.keys));
}

// One part after the other, as K (and for the first tile Q) arrives.
std::string LargeHeadText::start_scores(int begin, int end, bool first) const {
  const int slab = TmaTile{wide_.keys}.slab_bytes();
  const int query_slab = TmaTile{LargeHeadLayout::kRows}.slab_bytes();
  const int columns = wide_.part_slabs * TmaTile::kSlabColumns;
  std::string text;
  for (int p = begin; p < end; ++p) {
    if (first) text += fmt::format("q_ring.wait_full({});\n", p);
    text += fmt::format(
        "k_ring.wait_full(use * {} + {});\nptx_product_fence();\n"
        "add_scores<{}, {}, {}>(s, rows + {}, {}, keys + {}, {}, {});\n",
        parts_, p, type_, std::min(columns, depth_ - p * columns), config_.keys,
        p * wide_.part_slabs * query_slab, query_slab, p * wide_.part_slabs * slab, slab, p > 0);
  }
  if (text.empty()) return text;
  return fmt::format(
      "{{\nconst unsigned keys = opaque_address(k_tiles + use % {} * {} + group_key * {}), rows = "
      "opaque_address(q_tile);\n"
      "{}ptx_product_commit();\n}}\n",
      wide_.key_stages, layout_.key, TmaTile::kSlabRowBytes, text);
}

std::string LargeHeadText::release_keys(const std::string& use) const {
  std::string text;
  for (int p = 0; p < parts_; ++p) {
    text += fmt::format("k_ring.release({} * {} + {});\n", use, parts_, p);
  }
  return text;
}

// Stores the new state and the weights for both warpgroups.
void LargeHeadText::publish_weights() {
  emitter_.line(adopt_state());
  emitter_.line(
      fmt::format("folded += tile_valid;\npack_weights<{0}, {1}>(p, s);", type_, config_.keys));
  // Once both warpgroups have reduced this tile, the weights of the tile before are free.
  if (!exchanges()) emitter_.line("ptx_named_sync(kWideReduced, kWideThreads);");
  emitter_.line(fmt::format(
      "store_weights<{0}>(weights_tile, p, tile_row, group_key, pair);\nptx_async_proxy_fence();",
      config_.keys));
}

// Multiplies the warpgroup's own weights first, while those of the other arrive.
std::string LargeHeadText::start_values(const std::string& use) const {
  return fmt::format(
      "{{\n{0}ptx_product_fence();\n"
      "add_values<{1}, {2}, {3}>(o, p, values + group_key * {4}, {5});\n"
      "ptx_named_sync(kWideWeighed, kWideThreads);\n"
      "add_values<{1}, {2}, {3}>(o, weights + other_key * 2, values + other_key * {4}, {5});\n"
      "ptx_product_commit();\n}}\n",
      place_values(use), type_, columns_, config_.keys, TmaTile::kSlabRowBytes,
      TmaTile{wide_.keys}.slab_bytes());
}

// Declares `values`, the address of the warpgroup's value columns.
std::string LargeHeadText::place_values(const std::string& use) const {
  const int slab = TmaTile{wide_.keys}.slab_bytes();
  const std::string tile =
      values_apart()
          ? fmt::format("v_tiles + ({}) % {} * {}", use, wide_.value_stages, layout_.value)
          : fmt::format("k_tiles + ({}) % {} * {} + {}", use, wide_.key_stages, layout_.key,
                        wide_.value_slab * slab);
  return fmt::format("{}const unsigned values = opaque_address({} + group_column / {} * {});\n",
                     values_apart() ? fmt::format("v_ring.wait_full({});\n", use) : std::string(),
                     tile, TmaTile::kSlabColumns, slab);
}

}  // namespace redfuser::codegen
