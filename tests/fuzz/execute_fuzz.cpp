// A model that loads compiles and runs, fused, or is refused with a UserError. Open dimensions are
// three; tensors together stay under a limit; a run ends at the step after a second.
#include <chrono>

#include "fuzz/model_input.h"
#include "redfuser/redfuser.h"

namespace {

constexpr int64_t kMemory = 16 << 20, kElements = 1 << 16;
constexpr int64_t kOpenDimension = 3;

// Small counting values; false if an input is of a type or size that is not made here.
bool make_inputs(const redfuser::Model& model, redfuser::NamedTensors& inputs) {
  for (const redfuser::ValueInfo& info : model.inputs()) {
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (const auto& dim : info.dims) {
      shape.push_back(dim.size >= 0 ? dim.size : kOpenDimension);
      if (shape.back() > kElements) return false;
      elements *= shape.back();
      if (elements > kElements) return false;
    }
    if (info.dtype == redfuser::DType::String) {
      std::vector<std::string> texts;
      for (int64_t i = 0; i < elements; ++i) texts.push_back(std::string(i % 4, 'a'));
      inputs.emplace(info.name, redfuser::Tensor::strings(shape, texts));
      continue;
    }
    redfuser::Tensor tensor(info.dtype, shape);
    auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
    for (size_t i = 0; i < tensor.bytes(); ++i) {
      bytes[i] = static_cast<unsigned char>(info.dtype == redfuser::DType::Bool ? i % 2 : i % 7);
    }
    inputs.emplace(info.name, std::move(tensor));
  }
  return true;
}

void run(const redfuser::Model& model) {
  redfuser::NamedTensors inputs;
  if (!make_inputs(model, inputs)) return;
  const redfuser::Program program = redfuser::compile(model);
  redfuser::SessionOptions options;
  options.threads = 1;
  options.memory_limit = kMemory;
  redfuser::Session session(program, options);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  session.on_progress([&](int, int) {
    if (std::chrono::steady_clock::now() > end) throw redfuser::UserError("time is out");
  });
  session.run(inputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const redfuser::MemoryFile file(data, size);
  try {
    run(redfuser::Model::load(file.path()));
  } catch (const redfuser::UserError&) {
  }
  return 0;
}
