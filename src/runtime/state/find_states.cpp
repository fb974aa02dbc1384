#include <algorithm>
#include <set>

#include "base/error.h"
#include "io/did_you_mean.h"
#include "redfuser/state.h"

namespace redfuser {
namespace {

struct Prefixes {
  std::string_view past, present;
};
constexpr Prefixes kPatterns[] = {
    {"past_key_values.", "present."},
    {"past_key_values.", "present_key_values."},
    {"past.", "present."},
    {"past_", "present_"},
    {"key_cache.", "updated_key_cache."},
    {"value_cache.", "updated_value_cache."},
};

const ValueInfo* find(const std::vector<ValueInfo>& values, const std::string& name) {
  for (const ValueInfo& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

const ValueInfo& named(const std::vector<ValueInfo>& values, const std::string& name,
                       const char* role) {
  if (const ValueInfo* found = find(values, name)) return *found;
  std::vector<std::string> names;
  for (const ValueInfo& value : values) names.push_back(value.name);
  user_error("state: the model has no {} \"{}\"{}", role, name, io::did_you_mean(name, names));
}

bool same_size(const ValueInfo::Dimension& a, const ValueInfo::Dimension& b) {
  return a.size == b.size && a.symbol == b.symbol;
}

// The axis of a pair, or none of a recurrent one. `shared`: the symbolic sizes of
// inputs that are not states.
std::optional<int64_t> axis_of(const StatePair& pair, const ValueInfo& past,
                               const ValueInfo& present, const std::set<std::string>& shared) {
  const auto rank = static_cast<int64_t>(past.dims.size());
  if (pair.axis) {
    if (*pair.axis < -rank || *pair.axis >= rank) {
      user_error("state \"{}\": axis {} is not one of its {} dimensions", past.name, *pair.axis,
                 rank);
    }
    const int64_t axis = *pair.axis < 0 ? *pair.axis + rank : *pair.axis;
    const int64_t size = past.dims[static_cast<size_t>(axis)].size;
    if (size < 0) return axis;
    user_error(
        "state \"{}\": its input has the fixed size {} along axis {}, along which it cannot grow",
        past.name, size, axis);
  }
  std::vector<int64_t> different, own;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const ValueInfo::Dimension& before = past.dims[static_cast<size_t>(axis)];
    if (same_size(before, present.dims[static_cast<size_t>(axis)])) continue;
    different.push_back(axis);
    if (before.size < 0 && !shared.count(before.symbol)) own.push_back(axis);
  }
  // The sizes of an output that data decides differ everywhere, also along those that other inputs
  // have, such as the batch.
  if (different.size() > 1 && own.size() == 1) different = own;
  if (different.empty()) return std::nullopt;
  if (different.size() > 1) {
    user_error(
        "state \"{}\": the sizes of output \"{}\" differ along {} axes; name the one that "
        "grows",
        past.name, present.name, different.size());
  }
  // A buffer that the file gives a fixed size: output and input have the sizes of the input.
  if (past.dims[static_cast<size_t>(different[0])].size >= 0) return std::nullopt;
  return different[0];
}

StatePair resolved(const Model& model, const StatePair& pair, const std::set<std::string>& shared) {
  const ValueInfo& past = named(model.inputs(), pair.past, "input");
  const ValueInfo& present = named(model.outputs(), pair.present, "output");
  if (past.any_shape || present.any_shape || past.dims.size() != present.dims.size()) {
    user_error("state \"{}\": input and output \"{}\" do not have the same known rank", past.name,
               present.name);
  }
  if (past.dtype != present.dtype) {
    user_error("state \"{}\" is {}, but output \"{}\" is {}", past.name, name_of(past.dtype),
               present.name, name_of(present.dtype));
  }
  return {past.name, present.name, axis_of(pair, past, present, shared)};
}

// The output that the names pair with an input; null without one.
const ValueInfo* present_of(const Model& model, const std::string& past) {
  for (const Prefixes& pattern : kPatterns) {
    if (!past.starts_with(pattern.past)) continue;
    const std::string name = std::string(pattern.present) + past.substr(pattern.past.size());
    if (const ValueInfo* found = find(model.outputs(), name)) return found;
  }
  return nullptr;
}

std::set<std::string> symbols_beside(const Model& model, const std::set<std::string>& pasts) {
  std::set<std::string> symbols;
  for (const ValueInfo& input : model.inputs()) {
    if (pasts.count(input.name)) continue;
    for (const ValueInfo::Dimension& dim : input.dims) {
      if (dim.size < 0) symbols.insert(dim.symbol);
    }
  }
  return symbols;
}

}  // namespace

std::vector<StatePair> find_states(const Model& model, const std::vector<StatePair>& given) {
  std::vector<StatePair> states = given;
  std::set<std::string> pasts, presents;
  for (const StatePair& pair : given) {
    const bool one_each = pasts.insert(pair.past).second && presents.insert(pair.present).second;
    if (!one_each) {
      user_error("state \"{}\": it or output \"{}\" is given twice", pair.past, pair.present);
    }
  }
  for (const ValueInfo& input : model.inputs()) {
    const ValueInfo* output = present_of(model, input.name);
    if (output == nullptr || presents.count(output->name)) continue;
    if (!pasts.insert(input.name).second) continue;
    states.push_back({input.name, output->name, std::nullopt});
  }
  const std::set<std::string> shared = symbols_beside(model, pasts);
  for (StatePair& pair : states) pair = resolved(model, pair, shared);
  return states;
}

}  // namespace redfuser
