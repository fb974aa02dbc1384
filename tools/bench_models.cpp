// Whole models, each a folder with model.onnx, inputs.npz and outputs.npz.
#include <algorithm>
#include <filesystem>

#include "bench_workload.h"
#include "redfuser/io.h"
#include "tool.h"

namespace redfuser::tools {

std::vector<WorkloadMaker> model_workloads(const std::string& folder) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(folder)) fail("--models: \"{}\" is no folder", folder);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<WorkloadMaker> makers;
  for (const std::string& name : names) {
    makers.push_back({name, [=] {
                        const fs::path path = fs::path(folder) / name;
                        Workload workload;
                        workload.suite = "e2e";
                        workload.name = name;
                        workload.path = (path / "model.onnx").string();
                        const Model model = Model::load(workload.path);
                        workload.inputs =
                            load_tensors((path / "inputs.npz").string(), model, Role::Inputs);
                        workload.expected =
                            load_tensors((path / "outputs.npz").string(), model, Role::Outputs);
                        return workload;
                      }});
  }
  return makers;
}

}  // namespace redfuser::tools
