// Tensor data stored beside a model file.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "redfuser/redfuser.h"

namespace onnx {
class TensorProto;
}

namespace redfuser::onnx {

// The external data files of one model, each mapped once.
class ExternalData {
 public:
  // `given` has the bytes of files of the caller, by location, which are not looked for.
  explicit ExternalData(const std::string& model_path, const NamedTensors& given = {});

  // The tensor's bytes in the mapped file; the tensor keeps the mapping alive. Throws UserError
  // when the location is absolute, leaves the model's folder ("..", symbolic links included), is
  // not there, or does not hold exactly the bytes that dtype and dims ask for.
  Tensor read(const ::onnx::TensorProto& proto, DType dtype, const Dims& dims);

 private:
  struct File {
    std::span<const uint8_t> bytes;
    std::shared_ptr<const void> owner;
  };

  const File& file(const std::string& tensor, const std::string& location);

  std::string model_path_;
  std::map<std::string, File> files_;
};

}  // namespace redfuser::onnx
