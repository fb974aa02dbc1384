// Tensors in files: NumPy (.npy, .npz), ONNX (.pb, test_data_set folders) and JSON.
#pragma once

#include <string>

#include "redfuser/redfuser.h"

namespace redfuser {

// Which side of a model a file's tensors belong to.
enum class Role { Inputs, Outputs };

// Reads every tensor of a file, by its suffix:
//   .npz   arrays by name; stored or deflated, zip64
//   .npy   one array, named after the file
//   .pb    one onnx.TensorProto, under its own name, else the file's
//   .json  {"name": nested lists, or {"dtype": "float32", "shape": [2, 3], "data": [flat list]}};
//          bare lists are bool, int64 or float32, whichever holds every element; "NaN",
//          "Infinity" and "-Infinity" are numbers; texts are of the dtype "string"
// Arrays become row-major. NumPy's raw two-byte type (V2) is read as bfloat16. Throws UserError,
// naming the file and the tensor, for damaged data, sizes that are too large, and unknown types.
NamedTensors load_tensors(const std::string& path);

// The same for the inputs or outputs of a model, which completes the names and types of a file:
//   a folder (ONNX test_data_set_N)  input_K.pb or output_K.pb is the model's K-th input or output
//   .npy, .pb                        belongs to the model's only input (output), if it has one
//   .json                            bare lists take the dtype that the model declares
NamedTensors load_tensors(const std::string& path, const Model& model, Role role);

// Writes tensors by the suffix of `path`: .npz (stored), .npy or .pb (exactly one tensor), .json.
// bfloat16 becomes float32 in NumPy and JSON files, exactly. A file is replaced only when the new
// one is whole. Equal tensors give equal bytes.
void save_tensors(const std::string& path, const NamedTensors& tensors);

// Writes input_0.pb, ... or output_0.pb, ... in the model's order into a folder, as in ONNX's
// test_data_set_N. Creates the folder if it does not exist.
void save_data_set(const std::string& folder, const Model& model, Role role,
                   const NamedTensors& tensors);

// Writes a text file. It is replaced only when the new one is whole.
void save_text(const std::string& path, const std::string& text);

}  // namespace redfuser
