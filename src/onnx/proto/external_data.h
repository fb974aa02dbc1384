// Tensor data stored beside a model file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/files/mapped_file.h"
#include "redfuser/tensor.h"

namespace onnx {
class TensorProto;
}

namespace redfuser::onnx {

// The external data files of one model, each mapped once.
class ExternalData {
 public:
  explicit ExternalData(const std::string& model_path);

  // The tensor's bytes in the mapped file; the tensor keeps the mapping alive. Throws UserError
  // when the location is absolute, leaves the model's folder ("..", symbolic links included), is
  // not there, or does not hold exactly the bytes that dtype and dims ask for.
  Tensor read(const ::onnx::TensorProto& proto, DType dtype, const Dims& dims);

 private:
  const MappedFile& file(const std::string& tensor, const std::string& location);

  std::string model_path_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace redfuser::onnx
