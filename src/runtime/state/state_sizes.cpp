#include "runtime/state/state_sizes.h"

#include "base/error.h"

namespace redfuser::runtime {

StateSizes::StateSizes(const Model& model, const NamedDims& inputs) {
  for (const ValueInfo& info : model.inputs()) {
    const auto found = inputs.find(info.name);
    if (found == inputs.end() || found->second.size() != info.dims.size()) continue;
    for (size_t axis = 0; axis < info.dims.size(); ++axis) {
      if (info.dims[axis].size >= 0) continue;
      sizes_.emplace(info.dims[axis].symbol, Size{found->second[axis], info.name, axis});
    }
  }
}

Dims StateSizes::empty_dims(const StateValue& state) const {
  Dims dims;
  const ValueInfo& declared = state.declared();
  for (size_t axis = 0; axis < declared.dims.size(); ++axis) {
    const ValueInfo::Dimension& dim = declared.dims[axis];
    const auto found = sizes_.find(dim.symbol);
    if (state.pair().axis == static_cast<int64_t>(axis)) {
      dims.push_back(0);
    } else if (dim.size >= 0) {
      dims.push_back(dim.size);
    } else if (found != sizes_.end()) {
      dims.push_back(found->second.size);
    } else if (!state.pair().axis && state.capacity() > 0) {
      dims.push_back(state.capacity());
    } else {
      user_error("state \"{}\": no input of the run has the size \"{}\" of its dimension {}",
                 declared.name, dim.symbol, axis);
    }
  }
  return dims;
}

void StateSizes::check(const StateValue& state) const {
  const ValueInfo& declared = state.declared();
  const Dims dims = state.value().dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const auto found = sizes_.find(declared.dims[axis].symbol);
    if (state.pair().axis == static_cast<int64_t>(axis) || found == sizes_.end()) continue;
    if (found->second.size == dims[axis]) continue;
    user_error(
        "state \"{}\" has {} = {}, but input \"{}\" has {} in dimension {}; reset the states "
        "before a run of another batch",
        declared.name, declared.dims[axis].symbol, dims[axis], found->second.input,
        found->second.size, found->second.axis);
  }
}

}  // namespace redfuser::runtime
