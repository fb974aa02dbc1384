// A recurrent layer as the kernels of src/device/recurrent compute it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "codegen/core/step_builder.h"
#include "ops/recurrent/recurrent_layer.h"

namespace redfuser::codegen {

struct RecurrentForm {
  ops::RecurrentLayer layer;
  DType dtype;         // of all floats
  int64_t hidden = 0;  // units
  ir::Expr steps, batch, input;

  int64_t gates() const {
    return layer.cell == ops::Cell::Lstm ? 4 : layer.cell == ops::Cell::Gru ? 3 : 1;
  }
  // Of a GRU whose r multiplies h: the products with r ∘ h follow an exchange of their own.
  bool two_phases() const { return layer.cell == ops::Cell::Gru && !layer.linear_before_reset; }
  // Of all directions: the columns of x · Wᵀ.
  int64_t columns() const { return layer.directions * gates() * hidden; }
};

bool is_recurrent(std::string_view domain, std::string_view name);

// Or why the kernels do not take the layer. UserError for attributes that nothing supports.
std::variant<RecurrentForm, std::string> recurrent_form(const ops::NodeView& view);

// Adds the product x · Wᵀ of all steps; returns the scratch buffer of fp32, whose rows are the
// steps and sequences in the order of x.
int64_t add_input_product(StepBuilder& builder, const ops::NodeView& view,
                          const RecurrentForm& form);

}  // namespace redfuser::codegen
