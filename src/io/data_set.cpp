#include "io/data_set.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "onnx/proto/tensor_file.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

std::string prefix_of(Role role) { return role == Role::Inputs ? "input_" : "output_"; }

// K of "input_K.pb"; -1 for other names.
int64_t index_of(const std::string& file, const std::string& prefix) {
  if (!file.starts_with(prefix) || !file.ends_with(".pb")) return -1;
  int64_t index = -1;
  const char* begin = file.data() + prefix.size();
  const char* end = file.data() + file.size() - 3;
  const auto [stop, error] = std::from_chars(begin, end, index);
  return error == std::errc() && stop == end ? index : -1;
}

}  // namespace

namespace io {

NamedTensors load_data_set(const std::string& folder, std::span<const ValueInfo> values,
                           Role role) {
  const std::string prefix = prefix_of(role);
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    files.push_back(entry.path().filename().string());
  }
  if (error) user_error("cannot read folder \"{}\": {}", folder, error.message());
  std::sort(files.begin(), files.end());
  NamedTensors tensors;
  for (const std::string& file : files) {
    const int64_t index = index_of(file, prefix);
    if (index < 0) continue;
    if (index >= static_cast<int64_t>(values.size())) {
      user_error("\"{}/{}\": the model has only {} {}", folder, file, values.size(),
                 role == Role::Inputs ? "inputs" : "outputs");
    }
    tensors[values[static_cast<size_t>(index)].name] =
        onnx::read_tensor_file((fs::path(folder) / file).string(),
                               values[static_cast<size_t>(index)].dtype)
            .tensor;
  }
  if (tensors.empty()) {
    user_error("folder \"{}\" has no file {}0.pb, {}1.pb, ...", folder, prefix, prefix);
  }
  return tensors;
}

}  // namespace io

void save_data_set(const std::string& folder, const Model& model, Role role,
                   const NamedTensors& tensors) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) user_error("cannot create folder \"{}\": {}", folder, error.message());
  const std::vector<ValueInfo>& values = role == Role::Inputs ? model.inputs() : model.outputs();
  std::vector<std::unique_ptr<OutputFile>> files;
  std::vector<OutputFile*> together;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto found = tensors.find(values[i].name);
    if (found == tensors.end()) continue;
    const fs::path path = fs::path(folder) / fmt::format("{}{}.pb", prefix_of(role), i);
    files.push_back(onnx::prepare_tensor_file(path.string(), {values[i].name, found->second}));
    together.push_back(files.back().get());
  }
  commit_together(together);
}

}  // namespace redfuser
