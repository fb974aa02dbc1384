// Drives a fuzz target without libFuzzer: a fixed number of mutations of the seeds, the same in
// every run.
//
//   TARGET_smoke COUNT FILE|FOLDER...
//
// An input that the target does not survive is left in TARGET_smoke.input in the working folder.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/smoke.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

constexpr unsigned kSecondsPerInput = 20;
constexpr size_t kMostMutations = 4;

std::vector<Bytes> read_seeds(char** begin, char** end) {
  std::vector<fs::path> paths;
  for (char** at = begin; at != end; ++at) {
    if (!fs::is_directory(*at)) {
      paths.emplace_back(*at);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(*at)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> seeds;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  if (seeds.empty()) seeds.emplace_back();
  return seeds;
}

// Written first, because what the target does with it may end the process.
void try_input(const Bytes& input, const fs::path& copy) {
  std::ofstream(copy, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()),
             static_cast<std::streamsize>(input.size()));
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t count = std::strtoull(argv[1], nullptr, 10);
  const std::vector<Bytes> seeds = read_seeds(argv + 2, argv + argc);
  const fs::path copy = fs::path(argv[0]).filename().string() + ".input";
  for (const Bytes& seed : seeds) try_input(seed, copy);
  redfuser::Random random(1);
  for (size_t i = 0; i < count; ++i) {
    Bytes input = seeds[random() % seeds.size()];
    for (size_t edits = 1 + random() % kMostMutations; edits > 0; --edits) {
      redfuser::mutate_input(input, seeds[random() % seeds.size()], random);
    }
    try_input(input, copy);
  }
  fs::remove(copy);
  std::printf("%zu inputs\n", count + seeds.size());
  return 0;
}
