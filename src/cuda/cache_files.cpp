#include "cuda/cache_files.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files/output_file.h"
#include "base/hash.h"

namespace redfuser::cuda {

std::string library_version() { return REDFUSER_VERSION; }

bool read_file(const std::filesystem::path& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream text;
  text << file.rdbuf();
  bytes = std::move(text).str();
  return true;
}

bool write_file(const std::filesystem::path& path, const std::string& bytes) {
  try {
    write_text(path.string(), bytes);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::string digest(const std::string& bytes) {
  return fmt::format("{:016x}{:016x}", hash_text(bytes, 1), hash_text(bytes, 2));
}

std::string cache_key(const std::vector<std::string>& identity, const std::string& text) {
  std::string all = library_version();
  for (const std::string& part : identity) all += '\0' + part;
  return digest(all + '\0' + text);
}

}  // namespace redfuser::cuda
