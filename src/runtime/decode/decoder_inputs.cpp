#include "runtime/decode/decoder_inputs.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// Integers in the type of an input.
Tensor integers(DType dtype, const Dims& dims, const std::function<int64_t(int64_t)>& value) {
  Tensor tensor(dtype, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (dtype) {
      case DType::Int64:
        tensor.as<int64_t>()[i] = value(i);
        break;
      case DType::Int32:
        tensor.as<int32_t>()[i] = static_cast<int32_t>(value(i));
        break;
      default:
        tensor.as<bool>()[i] = value(i) != 0;
    }
  }
  return tensor;
}

std::string type_of(const ValueInfo& info) {
  std::string dims;
  for (const ValueInfo::Dimension& dim : info.dims) {
    dims += (dims.empty() ? "" : ",") + (dim.size < 0 ? dim.symbol : std::to_string(dim.size));
  }
  return fmt::format("{}[{}]", name_of(info.dtype), dims);
}

}  // namespace

void TokenRow::push(int64_t id, int64_t mask) {
  ids.push_back(id);
  seen.push_back(mask);
  tokens += mask;
  positions.push_back(std::max<int64_t>(tokens - 1, 0));
}

struct DecoderInputs::Known {
  const char* name;
  Role role;
  size_t least_rank, rank;
  bool integer, boolean;  // takes the type
};

const DecoderInputs::Known DecoderInputs::kKnown[] = {
    {"input_ids", Role::Ids, 2, 2, true, false},
    {"attention_mask", Role::Mask, 2, 2, true, true},
    {"position_ids", Role::Positions, 2, 2, true, false},
    {"cache_position", Role::CachePositions, 1, 1, true, false},
    {"use_cache_branch", Role::UseCache, 1, 1, false, true},
    {"num_logits_to_keep", Role::KeptLogits, 0, 1, true, false},
    {"logits_to_keep", Role::KeptLogits, 0, 1, true, false},
    {"write_indices", Role::RowPast, 1, 1, true, false},
    {"nonpad_kv_seqlen", Role::RowTotal, 1, 1, true, false},
    {"seqlens_k", Role::RowLast, 1, 1, true, false},
    {"past_sequence_length", Role::Past, 0, 1, true, false},
    {"total_sequence_length", Role::Total, 0, 1, true, false},
};

DecoderInputs::Role DecoderInputs::role_of(const ValueInfo& info) {
  std::string names;
  for (const Known& known : kKnown) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
    if (info.name != known.name) continue;
    const bool integer = info.dtype == DType::Int64 || info.dtype == DType::Int32;
    const bool typed = (known.integer && integer) || (known.boolean && info.dtype == DType::Bool);
    const bool ranked = info.dims.size() >= known.least_rank && info.dims.size() <= known.rank;
    if (typed && ranked && !info.any_shape) return known.role;
    user_error("generate: input \"{}\" is {}, which does not fit its name", info.name,
               type_of(info));
  }
  user_error("generate: nothing fills input \"{}\", {}: it is not a state, nor one of {}",
             info.name, type_of(info), names);
}

DecoderInputs::DecoderInputs(const Model& model, const std::vector<StatePair>& states) {
  for (const ValueInfo& info : model.inputs()) {
    const bool state = std::any_of(states.begin(), states.end(),
                                   [&](const StatePair& pair) { return pair.past == info.name; });
    if (!state) inputs_.push_back({info, role_of(info)});
  }
  if (std::none_of(inputs_.begin(), inputs_.end(),
                   [](const Input& input) { return input.role == Role::Ids; })) {
    user_error("generate: the model has no input \"input_ids\" for tokens");
  }
}

bool DecoderInputs::takes_mask() const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const Input& input) { return input.role == Role::Mask; });
}

bool DecoderInputs::takes_single_tokens() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) {
    return input.role == Role::Ids && input.info.dims[1].size == 1;
  });
}

NamedTensors DecoderInputs::fill(const std::vector<TokenRow>& rows, int64_t begin,
                                 int64_t end) const {
  const auto batch = static_cast<int64_t>(rows.size());
  // Element i of a [batch, to - from] part of the rows.
  const auto part = [&](const Input& input, int64_t from, std::vector<int64_t> TokenRow::*values) {
    const int64_t width = end - from;
    return integers(input.info.dtype, {batch, width}, [&](int64_t i) {
      return (rows[static_cast<size_t>(i / width)].*values)[static_cast<size_t>(from + i % width)];
    });
  };
  // One value, of so many elements.
  const auto constant = [](const Input& input, const Dims& dims, int64_t value) {
    return integers(input.info.dtype, dims, [&](int64_t) { return value; });
  };
  NamedTensors result;
  for (const Input& input : inputs_) {
    Tensor& tensor = result[input.info.name];
    const Dims one(input.info.dims.size(), 1);
    switch (input.role) {
      case Role::Ids:
        tensor = part(input, begin, &TokenRow::ids);
        break;
      case Role::Mask:
        tensor = part(input, 0, &TokenRow::seen);
        break;
      case Role::Positions:
        tensor = part(input, begin, &TokenRow::positions);
        break;
      case Role::CachePositions:
        tensor = integers(input.info.dtype, {end - begin}, [&](int64_t i) { return begin + i; });
        break;
      case Role::UseCache:
        tensor = constant(input, one, begin > 0);
        break;
      case Role::KeptLogits:
        tensor = constant(input, one, 1);
        break;
      case Role::RowPast:
        tensor = constant(input, {batch}, begin);
        break;
      case Role::RowTotal:
        tensor = constant(input, {batch}, end);
        break;
      case Role::RowLast:
        tensor = constant(input, {batch}, end - 1);
        break;
      case Role::Past:
        tensor = constant(input, one, begin);
        break;
      case Role::Total:
        tensor = constant(input, one, end);
        break;
    }
  }
  return result;
}

}  // namespace redfuser::runtime
