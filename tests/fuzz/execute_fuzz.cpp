// A model that loads compiles and runs, fused, or is refused with a UserError. Open dimensions are
// three, inputs small numbers, edges of their types or bytes as the model's bytes decide; tensors
// together stay under a limit; a run ends at the step after a second.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>

#include "fuzz/model_input.h"
#include "redfuser/memory_limit.h"
#include "redfuser/redfuser.h"

namespace {

constexpr int64_t kElements = 1 << 16;
constexpr int64_t kOpenDimension = 3;

// The values of the inputs.
enum class Contents { Small, Edges, Bytes };

Contents contents_of(const uint8_t* data, size_t size) {
  constexpr Contents kChoices[] = {Contents::Small, Contents::Small, Contents::Edges,
                                   Contents::Bytes};
  return kChoices[std::accumulate(data, data + size, size_t{0}) % std::size(kChoices)];
}

// Of the model and the run together, and of the run.
int64_t memory_of(const uint8_t* data, size_t size) {
  constexpr int64_t kChoices[] = {16 << 20, 16 << 20, 1 << 20, 64 << 10, 1 << 10};
  return kChoices[std::accumulate(data, data + size, size / 7) % std::size(kChoices)];
}

double number_of(Contents contents, size_t i) {
  constexpr double kEdges[] = {0, -1, 1, 1e30, -1e30, INFINITY, NAN};
  return contents == Contents::Small ? static_cast<double>(i % 7) - 1 : kEdges[i % 7];
}

int64_t integer_of(Contents contents, size_t i) {
  constexpr int64_t kEdges[] = {0, -1, 1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN};
  return contents == Contents::Small ? static_cast<int64_t>(i % 3) : kEdges[i % 7];
}

void fill(redfuser::Tensor& tensor, Contents contents) {
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  const size_t width = redfuser::size_of(tensor.dtype());
  for (size_t i = 0; i < tensor.bytes() / width; ++i) {
    const double number = number_of(contents, i);
    const auto single = static_cast<float>(number);
    const int64_t integer = tensor.dtype() == redfuser::DType::Bool ? static_cast<int64_t>(i % 2)
                                                                    : integer_of(contents, i);
    const void* source =
        tensor.dtype() == redfuser::DType::Float64   ? static_cast<const void*>(&number)
        : tensor.dtype() == redfuser::DType::Float32 ? &single
                                                     : static_cast<const void*>(&integer);
    std::memcpy(bytes + i * width, source, width);
  }
}

void fill_bytes(redfuser::Tensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(tensor.dtype() == redfuser::DType::Bool ? i % 2 : i % 7);
  }
}

// False if an input is of a type or size that is not made here.
bool make_inputs(const redfuser::Model& model, Contents contents, redfuser::NamedTensors& inputs) {
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
    if (contents == Contents::Bytes) {
      fill_bytes(tensor);
    } else if (tensor.bytes() > 0) {
      fill(tensor, contents);
    }
    inputs.emplace(info.name, std::move(tensor));
  }
  return true;
}

void run(const redfuser::Model& model, Contents contents, int64_t memory) {
  redfuser::NamedTensors inputs;
  if (!make_inputs(model, contents, inputs)) return;
  const redfuser::Program program = redfuser::compile(model);
  redfuser::SessionOptions options;
  options.threads = 1;
  options.memory_limit = memory;
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
  const int64_t memory = memory_of(data, size);
  const redfuser::MemoryLimit limit(memory);
  try {
    run(redfuser::Model::load(file.path()), contents_of(data, size), memory);
  } catch (const redfuser::UserError&) {
  }
  return 0;
}
