// Runs of a GpuExecutor that append to memory with room.
#include <algorithm>

#include "base/error.h"
#include "runtime/gpu/executor.h"

namespace redfuser::runtime {
namespace {

bool is_place(const Dims& dims, const Dims& room, size_t axis) {
  if (room.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i == axis ? room[i] < dims[i] : room[i] != dims[i]) return false;
  }
  return true;
}

}  // namespace

bool GpuExecutor::appends(const std::string& past, const std::string& present) const {
  const codegen::Appends& appends = *program_->target().appends;
  return std::any_of(appends.begin(), appends.end(), [&](const auto& entry) {
    const fuse::Append& append = entry.second;
    return value_of(append.past).name == past && value_of(append.present).name == present;
  });
}

bool GpuExecutor::appends_to(ir::ValueId past, ir::ValueId present) const {
  const fuse::Append* append = program_->target().append_of(present);
  return append != nullptr && append->past == past;
}

// Kernels take one room and one begin for all outputs of equal sizes.
void GpuExecutor::bind_rooms(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) {
  std::map<int64_t, std::pair<std::string, int64_t>> bound;  // by symbol: the output, and the size
  const auto bind = [&](const ir::Expr symbol, const std::string& output, int64_t size) {
    const auto [found, added] = bound.try_emplace(symbol->integer, output, size);
    if (!added && found->second.second != size) {
      user_error("outputs \"{}\" and \"{}\" grow alike, but not their memory: {} and {} positions",
                 found->second.first, output, found->second.second, size);
    }
    symbols_[static_cast<size_t>(symbol->integer)] = size;
  };
  const codegen::Appends& appends = *program_->target().appends;
  for (const auto& [name, output] : outputs) {
    const auto same = [&, &wanted = name](const auto& entry) {
      return value_of(entry.first).name == wanted;
    };
    if (!output.room.empty() && std::none_of(appends.begin(), appends.end(), same)) {
      user_error("output \"{}\" is given memory with room, but the program does not append to it",
                 name);
    }
  }
  std::set<std::string> in_place;
  appended_.clear();
  for (const auto& [value, append] : appends) {
    const std::string &past = value_of(append.past).name, &present = value_of(value).name;
    const auto output = outputs.find(present);
    if (output == outputs.end() || output->second.on_host) continue;
    const DeviceTensor &before = inputs.at(past), &given = output->second;
    const bool has_room = !given.room.empty();
    if (has_room && !is_place(given.dims, given.room, append.axis)) {
      user_error("output \"{}\" is given memory that has no room along axis {}", present,
                 append.axis);
    }
    const bool same = has_room && before.data == given.data && before.room == given.room;
    if (same) {
      in_place.insert(past);
      const ir::Expr length = value_of(append.past).shape[append.axis];
      appended_.resize(symbols_.size());
      for (const ir::Expr size : {length, append.begin}) {
        if (size->op == ir::ExprOp::Symbol) appended_[static_cast<size_t>(size->integer)] = true;
      }
    }
    bind(append.room, present, (has_room ? given.room : given.dims)[append.axis]);
    bind(append.begin, present, same ? before.dims[append.axis] : 0);
  }
  for (const auto& [name, input] : inputs) {
    if (input.room.empty() || in_place.count(name) > 0) continue;
    user_error("input \"{}\" has room, but no output is given its memory to append to it", name);
  }
}

}  // namespace redfuser::runtime
