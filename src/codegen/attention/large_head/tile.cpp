// A tile of keys in both groups: products, weights, and what the groups wait for.
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

// The tensor cores go from the values of one tile to the scores of the next.
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

// Part by part, as the keys (and the first time the rows) arrive.
std::string LargeHeadText::start_scores(int begin, int end, bool first) const {
  const int slab = wide_.keys * LargeHeadLayout::kSlabRowBytes;
  const int query_slab = LargeHeadLayout::kRows * LargeHeadLayout::kSlabRowBytes;
  const int columns = wide_.part_slabs * LargeHeadLayout::kSlabColumns;
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
      "{{\nconst unsigned keys = here(k_tiles + use % {} * {} + group_key * {}), rows = "
      "here(q_tile);\n"
      "{}ptx_product_commit();\n}}\n",
      wide_.key_stages, layout_.key, LargeHeadLayout::kSlabRowBytes, text);
}

std::string LargeHeadText::release_keys(const std::string& use) const {
  std::string text;
  for (int p = 0; p < parts_; ++p) {
    text += fmt::format("k_ring.release({} * {} + {});\n", use, parts_, p);
  }
  return text;
}

// The new state, and the weights for both groups.
void LargeHeadText::publish_weights() {
  emitter_.line(adopt_state());
  emitter_.line(
      fmt::format("folded += tile_valid;\npack_weights<{0}, {1}>(p, s);", type_, config_.keys));
  // Weights of the tile before are not read any more once both groups have reduced this one.
  if (!exchanges()) emitter_.line("ptx_named_sync(kWideReduced, kWideThreads);");
  emitter_.line(fmt::format(
      "store_weights<{0}>(weights_tile, p, tile_row, group_key, pair);\nptx_async_proxy_fence();",
      config_.keys));
}

// By the group's own weights first, while the other's arrive.
std::string LargeHeadText::start_values(const std::string& use) const {
  constexpr int kRow = LargeHeadLayout::kSlabRowBytes;
  return fmt::format(
      "{{\n{0}ptx_product_fence();\n"
      "add_values<{1}, {2}, {3}>(o, p, values + group_key * {4}, {5});\n"
      "ptx_named_sync(kWideWeighed, kWideThreads);\n"
      "add_values<{1}, {2}, {3}>(o, weights + other_key * 2, values + other_key * {4}, {5});\n"
      "ptx_product_commit();\n}}\n",
      place_values(use), type_, columns_, config_.keys, kRow, wide_.keys * kRow);
}

// `values`, the address of the group's columns of them.
std::string LargeHeadText::place_values(const std::string& use) const {
  const int slab = wide_.keys * LargeHeadLayout::kSlabRowBytes;
  const std::string tile =
      values_apart()
          ? fmt::format("v_tiles + ({}) % {} * {}", use, wide_.value_stages, layout_.value)
          : fmt::format("k_tiles + ({}) % {} * {} + {}", use, wide_.key_stages, layout_.key,
                        wide_.value_slab * slab);
  return fmt::format("{}const unsigned values = here({} + group_column / {} * {});\n",
                     values_apart() ? fmt::format("v_ring.wait_full({});\n", use) : std::string(),
                     tile, LargeHeadLayout::kSlabColumns, slab);
}

}  // namespace redfuser::codegen
