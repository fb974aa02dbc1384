// Any bytes load as a model or are refused with a UserError, in bounded time and memory.
#include "fuzz/model_input.h"
#include "onnx/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const redfuser::MemoryFile file(data, size);
  try {
    redfuser::onnx::load_model(file.path());
  } catch (const redfuser::UserError&) {
  }
  return 0;
}
