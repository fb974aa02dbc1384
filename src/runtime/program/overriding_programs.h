// Programs for runs that give initializers of the model.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser::runtime {

// One program for each set of Model::overridable that runs give, compiled when a run first does. In
// the program without them they are constants, which fold and fuse. Thread-safe; a program lives as
// long as this.
class OverridingPrograms {
 public:
  OverridingPrograms(std::shared_ptr<const onnx::LoadedModel> model, const CompileOptions& options);

  // Those of the names that are overridable and no inputs of the model, sorted.
  template <typename Named>
  std::vector<std::string> overridden(const std::map<std::string, Named>& inputs) const {
    std::vector<std::string> names;
    if (overridable_.empty()) return names;
    for (const auto& [name, input] : inputs) {
      if (overridable_.count(name) > 0) names.push_back(name);
    }
    return names;
  }
  // `names` are as overridden() returns them, and not empty. UserError as compile() throws it.
  Program of(const std::vector<std::string>& names) const;

 private:
  const std::shared_ptr<const onnx::LoadedModel> model_;
  const CompileOptions options_;
  std::set<std::string> overridable_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::string>, Program> programs_;
};

}  // namespace redfuser::runtime
