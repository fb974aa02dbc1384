#include "codegen/maps/map_forms.h"

#include <cmath>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/maps/box_map.h"
#include "codegen/maps/tiled_map.h"

namespace redfuser::codegen {
namespace {

template <class Map>
MapForm form_of(const char* family, std::variant<Map, std::string> made) {
  if (const auto* refusal = std::get_if<std::string>(&made)) return {family, *refusal};
  const Map map = std::get<Map>(std::move(made));
  MapForm form{family, ""};
  form.time = [map](const StepBuilder& builder, const KnownSizes& sizes) {
    return map.time(builder, sizes);
  };
  form.add = [map](StepBuilder& builder, const std::string& equations, ir::Expr when) {
    map.add(builder, equations, when);
  };
  return form;
}

MapForm plain_form(const StepBuilder& builder, const MapShape& shape) {
  MapForm form{kMapFamily, ""};
  KernelText kernel = builder.kernel();
  const MapBody body = map_body(kernel, shape);
  form.time = [body](const StepBuilder& of, const KnownSizes& sizes) {
    return body.time(of, sizes);
  };
  form.add = [shape](StepBuilder& to, const std::string& equations, ir::Expr when) {
    const ir::Expr where = when && when->is_constant(1) ? nullptr : when;
    add_map(to, kMapFamily, shape.axes, shape.stores, "map\n" + equations, where);
  };
  return form;
}

}  // namespace

std::vector<MapForm> map_forms(const StepBuilder& builder, const MapShape& shape) {
  const KernelText kernel = builder.kernel();
  std::vector<MapForm> forms = {plain_form(builder, shape),
                                form_of(kTiledMapFamily, tiled_map(kernel, shape)),
                                form_of(kBoxMapFamily, box_map(kernel, shape))};
  for (MapForm& form : forms) {
    if (builder.leaves_out(form.family) || builder.leaves_out_offer(form.family)) {
      form.refusal = "it fails";
    }
  }
  return forms;
}

size_t least_form(const std::vector<MapForm>& forms, const StepBuilder& builder,
                  const KnownSizes& sizes) {
  size_t least = 0;
  double time = HUGE_VAL;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (!forms[i].refusal.empty()) continue;
    const double own = forms[i].time(builder, sizes);
    if (own < time) {
      time = own;
      least = i;
    }
  }
  return least;
}

}  // namespace redfuser::codegen
