// Threads that run one session of ONNX Runtime at once, with every node of its model in RedFuser's
// provider. tools/sanitize.sh provider runs this under ThreadSanitizer.
//
//   redfuser_provider_threads ONNXRUNTIME PROVIDER NAME MODEL...
//
// ONNXRUNTIME and PROVIDER are shared libraries, NAME is a provider's. Exit code 1 where a run
// fails, or where its outputs are not those of a run alone; those of the provider for a GPU are not
// compared, since the driver of tests/fake_cuda runs no kernel.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ep/ort_graph.h"
#include "redfuser/tensor.h"

namespace redfuser::ep {
namespace {

constexpr int kThreads = 8, kRuns = 5, kSizes = 3;

void* loaded(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

Api interface_of(const char* path) {
  using Base = const OrtApiBase*(ORT_API_CALL*)();
  const auto base = reinterpret_cast<Base>(dlsym(loaded(path), "OrtGetApiBase"));
  if (base == nullptr) throw std::runtime_error(std::string(path) + " is not ONNX Runtime");
  return negotiate(*base());
}

// ONNX Runtime with the provider's library.
class Runtime {
 public:
  Runtime(const char* onnxruntime, const char* provider, const char* name)
      : api(interface_of(onnxruntime)), name_(name), env_(nullptr, api.ort->ReleaseEnv) {
    OrtEnv* env = nullptr;
    check(api, api.ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "threads", &env));
    env_.reset(env);
    check(api, api.ort->RegisterExecutionProviderLibrary(env, kProviderName, provider));
  }
  ~Runtime() {
    OrtStatus* status = api.ort->UnregisterExecutionProviderLibrary(env_.get(), kProviderName);
    if (status != nullptr) api.ort->ReleaseStatus(status);
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // ONNX Runtime's own provider is turned off.
  Released<OrtSession> session(const char* model) const {
    const Released<OrtSessionOptions> options(
        answer<OrtSessionOptions*>(api, &OrtApi::CreateSessionOptions),
        api.ort->ReleaseSessionOptions);
    check(api, api.ort->SetIntraOpNumThreads(options.get(), 1));
    check(api,
          api.ort->AddSessionConfigEntry(options.get(), "session.disable_cpu_ep_fallback", "1"));
    const std::vector<const OrtEpDevice*> devices = own_devices();
    const char *keys[] = {"threads", "kernel_cache"}, *values[] = {"2", "off"};
    check(api, api.ort->SessionOptionsAppendExecutionProvider_V2(
                   options.get(), env_.get(), devices.data(), devices.size(), keys, values, 2));
    OrtSession* session = nullptr;
    check(api, api.ort->CreateSession(env_.get(), model, options.get(), &session));
    return {session, api.ort->ReleaseSession};
  }

  // Whether outputs are what the model computes.
  bool has_results() const { return name_ == kProviderName; }

  const Api api;

 private:
  std::vector<const OrtEpDevice*> own_devices() const {
    const OrtEpDevice* const* all = nullptr;
    size_t count = 0;
    check(api, api.ort->GetEpDevices(env_.get(), &all, &count));
    std::vector<const OrtEpDevice*> own;
    for (size_t i = 0; i < count; ++i) {
      if (name_ == api.ort->EpDevice_EpName(all[i])) own.push_back(all[i]);
    }
    return own;
  }

  const std::string name_;
  Released<OrtEnv> env_;
};

struct Input {
  std::string name;
  ONNXTensorElementDataType type;
  Dims dims;  // -1: open
};

class Model {
 public:
  Model(const Runtime& runtime, const char* path)
      : api_(runtime.api), session_(runtime.session(path)) {
    OrtAllocator* allocator = answer<OrtAllocator*>(api_, &OrtApi::GetAllocatorWithDefaultOptions);
    const OrtSession* session = session_.get();
    const auto taken = [&](char* name) {
      const std::string copy = name;
      allocator->Free(allocator, name);
      return copy;
    };
    for (size_t i = 0; i < answer<size_t>(api_, &OrtApi::SessionGetInputCount, session); ++i) {
      inputs_.push_back(described(i));
      inputs_.back().name =
          taken(answer<char*>(api_, &OrtApi::SessionGetInputName, session, i, allocator));
    }
    for (size_t i = 0; i < answer<size_t>(api_, &OrtApi::SessionGetOutputCount, session); ++i) {
      outputs_.push_back(
          taken(answer<char*>(api_, &OrtApi::SessionGetOutputName, session, i, allocator)));
    }
  }

  // The bytes of all outputs, for inputs of ones with this size along every open dimension.
  std::string run(int64_t size) const {
    std::vector<Tensor> tensors;
    std::vector<Released<OrtValue>> values;
    std::vector<const OrtValue*> given;
    std::vector<const char*> names, wanted;
    for (const Input& input : inputs_) {
      tensors.push_back(ones(input, size));
      values.push_back(value_of(tensors.back()));
      given.push_back(values.back().get());
      names.push_back(input.name.c_str());
    }
    for (const std::string& name : outputs_) wanted.push_back(name.c_str());
    std::vector<OrtValue*> results(wanted.size(), nullptr);
    check(api_, api_.ort->Run(session_.get(), nullptr, names.data(), given.data(), given.size(),
                              wanted.data(), wanted.size(), results.data()));
    std::string bytes;
    for (OrtValue* result : results) {
      const Released<OrtValue> owner(result, api_.ort->ReleaseValue);
      const auto* data = answer<const void*>(api_, &OrtApi::GetTensorData, result);
      bytes.append(static_cast<const char*>(data),
                   answer<size_t>(api_, &OrtApi::GetTensorSizeInBytes, result));
    }
    return bytes;
  }

 private:
  Input described(size_t index) const {
    const Released<OrtTypeInfo> info(
        answer<OrtTypeInfo*>(api_, &OrtApi::SessionGetInputTypeInfo, session_.get(), index),
        api_.ort->ReleaseTypeInfo);
    const auto* tensor = answer<const OrtTensorTypeAndShapeInfo*>(
        api_, &OrtApi::CastTypeInfoToTensorInfo, info.get());
    Dims dims(answer<size_t>(api_, &OrtApi::GetDimensionsCount, tensor));
    check(api_, api_.ort->GetDimensions(tensor, dims.data(), dims.size()));
    return {"", answer<ONNXTensorElementDataType>(api_, &OrtApi::GetTensorElementType, tensor),
            dims};
  }

  static Tensor ones(const Input& input, int64_t size) {
    Dims dims = input.dims;
    for (int64_t& dim : dims) dim = dim < 0 ? size : dim;
    // Both count element types as ONNX does.
    Tensor tensor(static_cast<DType>(input.type), dims);
    std::memset(tensor.mutable_data(), 0, tensor.bytes());
    const float one = 1;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      char* element = static_cast<char*>(tensor.mutable_data()) + i * size_of(tensor.dtype());
      if (tensor.dtype() == DType::Float32) std::memcpy(element, &one, sizeof(one));
      if (!is_float(tensor.dtype())) *element = 1;
    }
    return tensor;
  }

  Released<OrtValue> value_of(Tensor& tensor) const {
    const Released<OrtMemoryInfo> memory(
        answer<OrtMemoryInfo*>(api_, &OrtApi::CreateCpuMemoryInfo, OrtArenaAllocator,
                               OrtMemTypeDefault),
        api_.ort->ReleaseMemoryInfo);
    OrtValue* value = nullptr;
    check(api_, api_.ort->CreateTensorWithDataAsOrtValue(
                    memory.get(), tensor.mutable_data(), tensor.bytes(), tensor.dims().data(),
                    tensor.dims().size(), static_cast<ONNXTensorElementDataType>(tensor.dtype()),
                    &value));
    return {value, api_.ort->ReleaseValue};
  }

  const Api api_;
  const Released<OrtSession> session_;
  std::vector<Input> inputs_;
  std::vector<std::string> outputs_;
};

// The number of runs that fail, or that differ from a run alone where they are compared.
int wrong_runs(const Model& model, bool compared) {
  std::map<int64_t, std::string> alone;
  for (int64_t size = 1; size <= kSizes; ++size) alone[size] = model.run(size);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int run = 0; run < kRuns; ++run) {
        const int64_t size = 1 + (number + run) % kSizes;
        try {
          if (model.run(size) != alone.at(size) && compared) ++wrong;
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

}  // namespace
}  // namespace redfuser::ep

int main(int count, char** arguments) {
  using namespace redfuser::ep;
  if (count < 5) {
    std::fprintf(stderr, "usage: %s ONNXRUNTIME PROVIDER NAME MODEL...\n", arguments[0]);
    return 2;
  }
  int wrong = 0;
  try {
    const Runtime runtime(arguments[1], arguments[2], arguments[3]);
    for (int i = 4; i < count; ++i) {
      const int found = wrong_runs(Model(runtime, arguments[i]), runtime.has_results());
      std::printf("%s, %s: %d of %d runs are wrong\n", arguments[i], arguments[3], found,
                  kThreads * kRuns);
      std::fflush(stdout);
      wrong += found;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    wrong = 1;
  }
  // A thread of ONNX Runtime's own reads what its static destructors free.
  _exit(wrong == 0 ? 0 : 1);
}
