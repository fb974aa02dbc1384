// Files and keys of the entries of a cache folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace redfuser::cuda {

// RedFuser's version; entries of other versions are not used.
std::string library_version();

// False if there is no such file.
bool read_file(const std::filesystem::path& path, std::string& bytes);
// Replaces the file only when the new one is whole. False if it cannot be written.
bool write_file(const std::filesystem::path& path, const std::string& bytes);

// 32 hexadecimal digits.
std::string digest(const std::string& bytes);
// The digest of a text, RedFuser's version and `identity`, which has everything else that the entry
// depends on.
std::string cache_key(const std::vector<std::string>& identity, const std::string& text);

}  // namespace redfuser::cuda
