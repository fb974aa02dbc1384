#include "runtime/load/fallback.h"

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// Of a choice as text, such as "row lanes=32".
std::string family_of(const std::string& choice) { return choice.substr(0, choice.find(' ')); }

// What fails of a form, whose kernel of the family did: that family at first, and the configuration
// that was taken; if that has made no difference, the offer as a whole.
void leave_out(codegen::LeftOut& left_out, const codegen::Offer& taken, const std::string& family,
               const std::string& reason) {
  if (left_out.families.count(family)) {
    left_out.offers[taken.family] = reason;
    return;
  }
  left_out.families[family] = reason;
  if (!taken.divides && !taken.choice.empty()) left_out.families[family_of(taken.choice)] = reason;
}

}  // namespace

std::string summary_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    std::string summary = text.substr(0, text.find('\n'));
    const size_t problem = text.find("error", summary.size());
    if (problem == std::string::npos) return summary;
    const size_t start = text.rfind('\n', problem) + 1;
    return summary + ": " + text.substr(start, text.find('\n', start) - start);
  }
}

codegen::GpuStep Fallback::without(size_t step, const codegen::GpuStep& failed,
                                   const std::string& family, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception&) {
  }
  RF_CHECK(!failed.offers.empty(), "a step without offers failed");
  const std::string reason = summary_of(error);
  codegen::LeftOut left_out = failed.left_out;
  leave_out(left_out, failed.offers.front(), family, reason);
  const ir::Graph own = clone(program_.graph());  // the program's takes no new expressions
  codegen::GpuStep form =
      joined_.generate(own, program_.plan, step, target_, select::KnownSizes(), left_out);
  failures_[{family, reason, form.offers.front().family}].push_back(program_.steps[step].label);
  return form;
}

void Fallback::replace(std::vector<LoadedGpuStep>& steps) {
  for (;;) {
    std::vector<size_t> failed;
    std::vector<codegen::GpuStep> forms;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].error) continue;
      failed.push_back(i);
      forms.push_back(without(i, steps[i].form, steps[i].family, steps[i].error));
    }
    if (failed.empty()) return;
    std::vector<LoadedGpuStep> loaded = loader_.load(std::move(forms));
    for (size_t i = 0; i < failed.size(); ++i) steps[failed[i]] = std::move(loaded[i]);
  }
}

LoadedGpuStep Fallback::next(size_t step, const codegen::GpuStep& failed, const std::string& family,
                             const std::exception_ptr& error) {
  LoadedGpuStep result;
  result.form = failed;
  result.family = family;
  result.error = error;
  while (result.error) {
    std::vector<codegen::GpuStep> forms;
    forms.push_back(without(step, result.form, result.family, result.error));
    result = std::move(loader_.load(std::move(forms)).front());
  }
  return result;
}

std::vector<std::string> Fallback::take_notes() {
  std::vector<std::string> notes;
  for (const auto& [failure, labels] : failures_) {
    const auto& [family, reason, taken] = failure;
    notes.push_back(fmt::format(
        "warning: {} fails and is left out of \"{}\"{}, which {} computes: {}", family,
        labels.front(), labels.size() == 1 ? "" : fmt::format(" and {} more", labels.size() - 1),
        taken, reason));
  }
  failures_.clear();
  return notes;
}

}  // namespace redfuser::runtime
