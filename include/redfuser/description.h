// What a file says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "redfuser/redfuser.h"

namespace redfuser {

// Texts that the file does not have are empty.
struct ModelDescription {
  std::string producer_name, producer_version, domain, doc_string;
  std::string graph_name, graph_doc_string;
  int64_t model_version = 0;
  std::map<std::string, std::string> metadata;  // metadata_props
};

ModelDescription describe(const Model& model);

}  // namespace redfuser
