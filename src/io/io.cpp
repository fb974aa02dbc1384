#include "redfuser/io.h"
#include "io/zip_reader.h"
#include "io/zip_writer.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/output_file.h"
#include "base/memory_budget.h"
#include "io/data_set.h"
#include "io/json_tensors.h"
#include "io/npy.h"
#include "onnx/proto/tensor_file.h"
#include "redfuser/memory_limit.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

NamedTensors load_npz(const std::string& path) {
  const io::InputFile file(path);
  NamedTensors tensors;
  for (const io::ZipEntry& entry : read_zip_directory(file)) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const std::string what = fmt::format("\"{}\" array \"{}\"", path, name);
    const std::unique_ptr<io::ByteSource> source = open_zip_entry(file, entry);
    tensors[name] = read_npy(*source, what);
  }
  return tensors;
}

Tensor load_npy(const std::string& path) {
  const io::InputFile file(path);
  io::FileSource source(file, 0, file.size());
  return read_npy(source, fmt::format("\"{}\"", path));
}

void save_npz(const std::string& path, const NamedTensors& tensors) {
  io::ZipWriter writer(path);
  for (const auto& [name, tensor] : tensors) {
    const io::NpyFile file = io::npy_file(tensor);
    writer.add(name + ".npy", file.header, file.elements.data(), file.elements.bytes());
  }
  writer.finish();
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const io::NpyFile array = io::npy_file(tensor);
  OutputFile file(path);
  file.write(array.header);
  file.write(array.elements.data(), array.elements.bytes());
  file.commit();
}

const std::pair<const std::string, Tensor>& only_tensor(const std::string& path,
                                                        const NamedTensors& tensors) {
  if (tensors.size() != 1) {
    user_error("\"{}\" holds one tensor, but there are {} to write; use .npz", path,
               tensors.size());
  }
  return *tensors.begin();
}

// Files that are parsed in memory.
void require_room(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes <= static_cast<uintmax_t>(MemoryLimit::left())) return;
  user_error("\"{}\": its {} bytes do not fit into the memory limit", path, bytes);
}

NamedTensors load(const std::string& path, std::span<const ValueInfo> values) {
  const fs::path file(path);
  const std::string suffix = file.extension().string();
  const std::string only_name = values.size() == 1 ? values[0].name : file.stem().string();
  if (suffix == ".npz") return load_npz(path);
  if (suffix == ".npy") return {{only_name, load_npy(path)}};
  if (suffix == ".json" || suffix == ".pb") require_room(path);
  if (suffix == ".json") return io::tensors_from_json(io::read_text(path), path, values);
  if (suffix == ".pb") {
    auto [name, tensor] = onnx::read_tensor_file(path);
    if (values.size() == 1 || name.empty()) name = only_name;
    return {{name, tensor}};
  }
  user_error("\"{}\": tensors are read from .npz, .npy, .pb and .json files", path);
}

NamedTensors load_within_limit(const std::string& path, std::span<const ValueInfo> values) {
  try {
    return load(path, values);
  } catch (const MemoryLimitError& error) {
    user_error("\"{}\": {}", path, error.what());
  }
}

}  // namespace

NamedTensors load_tensors(const std::string& path) { return load_within_limit(path, {}); }

NamedTensors load_tensors(const std::string& path, const Model& model, Role role) {
  const std::vector<ValueInfo>& values = role == Role::Inputs ? model.inputs() : model.outputs();
  if (std::error_code ignored; fs::is_directory(path, ignored)) {
    return io::load_data_set(path, values, role);
  }
  return load_within_limit(path, values);
}

void save_tensors(const std::string& path, const NamedTensors& tensors) {
  const std::string suffix = fs::path(path).extension().string();
  if (suffix == ".npz") {
    save_npz(path, tensors);
  } else if (suffix == ".npy") {
    save_npy(path, only_tensor(path, tensors).second);
  } else if (suffix == ".json") {
    write_text(path, io::tensors_to_json(tensors));
  } else if (suffix == ".pb") {
    const auto& [name, tensor] = only_tensor(path, tensors);
    onnx::write_tensor_file(path, {name, tensor});
  } else {
    user_error("\"{}\": tensors are written to .npz, .npy, .pb and .json files", path);
  }
}

void save_text(const std::string& path, const std::string& text) { write_text(path, text); }

}  // namespace redfuser
