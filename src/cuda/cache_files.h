// What the entries of a cache folder are made of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace redfuser::cuda {

// Of RedFuser; entries of another version are not ours.
std::string library_version();

// False if there is no such file.
bool read_file(const std::filesystem::path& path, std::string& bytes);
// Replaces the file only when the new one is whole. False if it cannot be written.
bool write_file(const std::filesystem::path& path, const std::string& bytes);

// 32 hexadecimal digits.
std::string digest(const std::string& bytes);
// The digest of a text with our version and `identity`, everything else that its entry depends on.
std::string cache_key(const std::vector<std::string>& identity, const std::string& text);

}  // namespace redfuser::cuda
