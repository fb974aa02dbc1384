#include "codegen/select/rows_select.h"

#include "base/error.h"
#include "codegen/columns/column_select.h"
#include "codegen/rows/single_pass_select.h"

namespace redfuser::codegen {

void add_row_folds(StepBuilder& builder, const FlatStreaming& form) {
  const auto columns = column_form(builder, form);
  if (const auto* accepted = std::get_if<ColumnForm>(&columns)) {
    add_columns(builder, *accepted);
  } else {
    add_folds(builder, form);
  }
}

void add_row_folds(StepBuilder& builder, const FlatStreaming& form, const KernelConfig& choice) {
  if (choice.family != kColumnFamily) return add_fold(builder, form, choice);
  const auto columns = column_form(builder, form);
  const auto* accepted = std::get_if<ColumnForm>(&columns);
  RF_CHECK(accepted, "{}: {}", to_string(choice), std::get<std::string>(columns));
  add_columns(builder, *accepted, choice);
}

std::vector<Candidate> row_fold_configs(StepBuilder& builder, const FlatStreaming& form,
                                        const KnownSizes& sizes) {
  const auto columns = column_form(builder, form);
  if (const auto* accepted = std::get_if<ColumnForm>(&columns)) {
    return column_configs(builder, *accepted, sizes);
  }
  return single_pass_configs(builder, form, sizes);
}

}  // namespace redfuser::codegen
