#include "fuzz/model_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "fuzz/model_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace redfuser {

MemoryFile::MemoryFile(const uint8_t* data, size_t size)
    : descriptor_(memfd_create("fuzz.onnx", 0)) {
  if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
    std::abort();
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

static size_t write_model(const ::onnx::ModelProto& model, uint8_t* data, size_t max_size) {
  const std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

}  // namespace redfuser

// One edit in eight is of the bytes, for what no message holds.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  redfuser::Random random(seed + 1);
  ::onnx::ModelProto model;
  if (random() % 8 == 0 || !model.ParsePartialFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  redfuser::mutate(model, random);
  const size_t written = redfuser::write_model(model, data, max_size);
  return written ? written : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size,
                                            unsigned seed) {
  redfuser::Random random(seed + 1);
  ::onnx::ModelProto to, from;
  if (!to.ParsePartialFromArray(data, static_cast<int>(size)) ||
      !from.ParsePartialFromArray(other, static_cast<int>(other_size))) {
    return 0;
  }
  redfuser::cross_over(to, from, random);
  return redfuser::write_model(to, out, max_size);
}
