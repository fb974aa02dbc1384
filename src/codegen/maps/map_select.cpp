#include "codegen/maps/map_select.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/core/size_classes.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

struct MapForms {
  std::string equations;
  ir::Expr points;
  std::vector<MapForm> forms;

  std::vector<size_t> usable() const {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < forms.size(); ++i) {
      if (forms[i].refusal.empty()) numbers.push_back(i);
    }
    if (numbers.empty()) numbers.push_back(0);
    return numbers;
  }
};

MapForms forms_of(StepBuilder& builder, MapStores map) {
  const MapShape shape = simplified(builder.pool(), std::move(map.shape));
  return {std::move(map.equations),
          product_of(builder.pool(), extents_of(builder.pool(), shape.axes)),
          map_forms(builder, shape)};
}

// The sizes at which a form takes the least time; null: none.
ir::Expr where_least(const MapForms& forms, size_t number, const StepBuilder& builder) {
  if (forms.usable().size() == 1) return builder.pool().boolean(true);
  return sizes_where(builder.pool(), forms.points, [&](const KnownSizes& sizes) {
    return least_form(forms.forms, builder, sizes) == number;
  });
}

// Each form where it takes the least time; the number of the one at the builder's sizes.
size_t add_forms(StepBuilder& builder, const MapForms& made) {
  const std::vector<size_t> usable = made.usable();
  size_t taken = usable.front();
  for (const size_t i : usable) {
    const ir::Expr when = where_least(made, i, builder);
    if (!when) continue;
    made.forms[i].add(builder, made.equations, when);
    if (builder.sizes.of(when) > 0) taken = i;
  }
  return taken;
}

}  // namespace

void add_least_map(StepBuilder& builder, MapStores map) {
  add_forms(builder, forms_of(builder, std::move(map)));
}

void choose_map(StepBuilder& builder, const fuse::MapStep& step) {
  const MapForms made = forms_of(builder, stores_of(builder, step));
  const std::vector<size_t> usable = made.usable();
  const size_t taken = add_forms(builder, made);
  for (size_t i = 0; i < made.forms.size(); ++i) {
    const MapForm& form = made.forms[i];
    Offer offer{form.family, "", 0, form.refusal};
    if (form.refusal.empty()) offer.time = form.time(builder, builder.sizes);
    if (usable.size() > 1 && form.refusal.empty()) offer.choice = form.family;
    builder.result.offers.push_back(std::move(offer));
  }
  std::rotate(builder.result.offers.begin(),
              builder.result.offers.begin() + static_cast<long>(taken),
              builder.result.offers.begin() + static_cast<long>(taken) + 1);
  builder.result.time = made.forms[taken].time(builder, builder.sizes);
}

std::vector<Candidate> map_configs(StepBuilder& builder, const fuse::MapStep& step) {
  const MapForms made = forms_of(builder, stores_of(builder, step));
  const std::vector<size_t> usable = made.usable();
  if (usable == std::vector<size_t>{0}) return {};
  std::vector<Candidate> choices;
  for (const size_t i : usable) {
    choices.push_back({{made.forms[i].family, {}}, made.forms[i].time(builder, builder.sizes)});
  }
  return select::by_time(std::move(choices));
}

void generate_map(StepBuilder& builder, const fuse::MapStep& step, const KernelConfig& choice) {
  const MapForms made = forms_of(builder, stores_of(builder, step));
  const auto form = std::find_if(made.forms.begin(), made.forms.end(), [&](const MapForm& each) {
    return each.family == choice.family && each.add;
  });
  RF_CHECK(form != made.forms.end(), "{} computes no such map", to_string(choice));
  form->add(builder, made.equations, builder.pool().boolean(true));
}

}  // namespace redfuser::codegen
