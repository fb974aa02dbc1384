#include "runtime/load/loader.h"

#include "base/error.h"
#include "codegen/core/kernel_config.h"
#include "cuda/nvrtc.h"

namespace redfuser::runtime {

cuda::CacheOptions cache_options(const SessionOptions& options) {
  static constexpr cuda::CacheMode kModes[] = {cuda::CacheMode::On, cuda::CacheMode::Off,
                                               cuda::CacheMode::ReadOnly};
  return {kModes[static_cast<size_t>(options.kernel_cache)], options.kernel_cache_folder};
}

namespace {

cuda::KernelUse use_of(const codegen::KernelLaunch& launch) {
  return {launch.nodes, to_string(codegen::KernelConfig{launch.family, launch.config}),
          launch.parameters};
}

}  // namespace

KernelLoader::KernelLoader(cuda::DevicePtr device, const SessionOptions& options)
    : device_(std::move(device)), options_(options) {}

std::vector<LoadedGpuStep> KernelLoader::load(std::vector<codegen::GpuStep> forms) {
  compile(forms);
  std::vector<LoadedGpuStep> loaded;
  for (codegen::GpuStep& form : forms) load_step(std::move(form), loaded.emplace_back());
  return loaded;
}

void KernelLoader::compile(const std::vector<codegen::GpuStep>& forms) {
  std::vector<cuda::KernelSource> sources;
  std::map<std::string_view, size_t> numbers;  // of new texts
  for (const codegen::GpuStep& form : forms) {
    for (const codegen::GpuCall& call : form.calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr) continue;
      if (kernels_.try_emplace(launch->source).second) {
        numbers[launch->source] = sources.size();
        sources.push_back({launch->source, launch->name, {}});
      }
      const auto number = numbers.find(launch->source);
      if (number != numbers.end()) sources[number->second].uses.push_back(use_of(*launch));
    }
  }
  if (sources.empty()) return;
  std::vector<std::string> identity = cuda::compile_options(device_->info().architecture);
  const std::vector<std::string> compile_options = identity;
  identity.push_back("nvrtc " + cuda::nvrtc_version());
  cuda::KernelCache cache(cache_options(options_), identity);
  std::vector<cuda::CompiledText> texts = cache.try_get(
      sources,
      [&](const std::string& source, const std::string& path) {
        return cuda::compile(source, compile_options, path);
      },
      options_.threads);
  for (size_t i = 0; i < sources.size(); ++i) kernels_[sources[i].text].text = std::move(texts[i]);
  notes_.push_back(fmt::format("kernels: {} compiled in {:.2f} s, {} from the cache",
                               cache.compiled(), cache.seconds(), cache.cached()));
  for (const std::string& warning : cache.warnings()) notes_.push_back("warning: " + warning);
}

void KernelLoader::release_unused() {
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.module.use_count() < 2; });
}

std::vector<std::string> KernelLoader::take_notes() { return std::exchange(notes_, {}); }

void KernelLoader::load_step(codegen::GpuStep form, LoadedGpuStep& result) {
  auto step = std::make_shared<LoadedStep>();
  for (const codegen::GpuCall& call : form.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    try {
      step->functions.push_back(launch != nullptr ? load_kernel(*launch, *step) : nullptr);
    } catch (...) {
      result.error = std::current_exception();
      result.family = launch->family;
      result.form = std::move(form);
      return;
    }
  }
  step->form = std::move(form);
  result.step = std::move(step);
}

cuda::FunctionHandle KernelLoader::load_kernel(const codegen::KernelLaunch& launch,
                                               LoadedStep& step) {
  Kernel& kernel = kernels_.at(launch.source);
  if (kernel.text.error) std::rethrow_exception(kernel.text.error);
  if (!kernel.module) {
    kernel.module = std::make_shared<const cuda::Module>(device_, kernel.text.cubin, launch.name);
  }
  step.modules.push_back(kernel.module);
  return kernel.module->function(launch.name, launch.block, launch.shared, launch.cluster);
}

}  // namespace redfuser::runtime
