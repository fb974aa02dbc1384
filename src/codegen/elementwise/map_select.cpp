#include "codegen/elementwise/map_select.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/tiled_map.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

struct MapForms {
  std::string equations;
  MapBody plain;
  std::variant<TiledMap, std::string> tiles;  // or why there are none
};

MapForms forms_of(StepBuilder& builder, const fuse::MapStep& step) {
  MapStores map = stores_of(builder, step);
  MapShape shape = simplified(builder.pool(), std::move(map.shape));
  KernelText kernel = builder.kernel();
  MapForms forms{std::move(map.equations), map_body(kernel, shape), "it fails"};
  if (!builder.leaves_out(kTiledMapFamily) && !builder.leaves_out_offer(kTiledMapFamily)) {
    forms.tiles = tiled_map(kernel, std::move(shape));
  }
  return forms;
}

void add_plain(StepBuilder& builder, const MapForms& forms, ir::Expr when) {
  add_map(builder, kMapFamily, forms.plain.shape.axes, forms.plain.shape.stores,
          "map\n" + forms.equations, when);
}

// Where the tiles take less time; null: nowhere.
ir::Expr where_tiled(const MapForms& forms, const StepBuilder& builder) {
  const auto* tiles = std::get_if<TiledMap>(&forms.tiles);
  if (tiles == nullptr) return nullptr;
  if (builder.leaves_out(kMapFamily)) return builder.pool().boolean(true);
  ir::Expr points = product_of(builder.pool(), extents_of(builder.pool(), tiles->shape.axes));
  return sizes_where(builder.pool(), points, [&](const KnownSizes& sizes) {
    return tiles->time(builder, sizes) < forms.plain.time(builder, sizes);
  });
}

}  // namespace

void choose_map(StepBuilder& builder, const fuse::MapStep& step) {
  const MapForms forms = forms_of(builder, step);
  const auto* tiles = std::get_if<TiledMap>(&forms.tiles);
  ir::Expr tiled = where_tiled(forms, builder);
  if (tiled) tiles->add(builder, forms.equations, tiled);
  const bool everywhere = tiled && tiled->is_constant();
  if (!everywhere) {
    ir::Expr rest = tiled ? builder.pool().make(ir::ExprOp::Not, {tiled}) : nullptr;
    add_plain(builder, forms, rest);
  }
  Offer plain{kMapFamily, "", 0, builder.leaves_out(kMapFamily) ? "it fails" : ""};
  plain.time = forms.plain.time(builder, builder.sizes);
  Offer other{kTiledMapFamily, "", 0, ""};
  if (tiles == nullptr) {
    other.refusal = std::get<std::string>(forms.tiles);
  } else {
    other.time = tiles->time(builder, builder.sizes);
  }
  for (Offer* offer : {&plain, &other}) {
    if (tiles != nullptr && offer->refusal.empty()) offer->choice = offer->family;
  }
  const bool takes_tiles = tiled && (everywhere || builder.sizes.of(tiled) > 0);
  if (takes_tiles) std::swap(plain, other);
  builder.result.time = plain.time;
  builder.result.offers = {std::move(plain), std::move(other)};
}

std::vector<Candidate> map_configs(StepBuilder& builder, const fuse::MapStep& step) {
  const MapForms forms = forms_of(builder, step);
  const auto* tiles = std::get_if<TiledMap>(&forms.tiles);
  if (tiles == nullptr) return {};
  std::vector<Candidate> choices = {{{kMapFamily, {}}, forms.plain.time(builder, builder.sizes)},
                                    {{kTiledMapFamily, {}}, tiles->time(builder, builder.sizes)}};
  if (builder.leaves_out(kMapFamily)) choices.erase(choices.begin());
  return select::by_time(std::move(choices));
}

void generate_map(StepBuilder& builder, const fuse::MapStep& step, const KernelConfig& choice) {
  const MapForms forms = forms_of(builder, step);
  if (choice.family == kMapFamily) return add_plain(builder, forms, nullptr);
  const auto* tiles = std::get_if<TiledMap>(&forms.tiles);
  RF_CHECK(tiles != nullptr && choice.family == kTiledMapFamily, "{} computes no such map",
           to_string(choice));
  tiles->add(builder, forms.equations, builder.pool().boolean(true));
}

}  // namespace redfuser::codegen
