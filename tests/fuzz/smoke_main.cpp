// Drives a fuzz target without libFuzzer: a fixed number of mutations of the seeds, the same in
// every run.
//
//   TARGET_smoke COUNT FILE|FOLDER...
//
// An input that the target does not survive is left in TARGET_smoke.input in the working folder.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/smoke.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

constexpr unsigned kSecondsPerInput = 20;
constexpr size_t kMaxMutations = 4;

std::vector<Bytes> read_seeds(char** begin, char** end) {
  std::vector<fs::path> paths;
  for (char** at = begin; at != end; ++at) {
    if (!fs::is_directory(*at)) {
      paths.emplace_back(*at);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(*at)) paths.push_back(entry.path());
  }
  // By name, so that the order does not depend on the folders' paths.
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename(), a) < std::pair(b.filename(), b);
  });
  std::vector<Bytes> seeds;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  if (seeds.empty()) seeds.emplace_back();
  return seeds;
}

// The current input, and the path to which the handler of a deadly signal writes it.
const Bytes* current = nullptr;
std::string copy_path;

void keep_input(int signal) {
  const int file = open(copy_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && current != nullptr) {
    [[maybe_unused]] const ssize_t written = write(file, current->data(), current->size());
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void try_input(const Bytes& input) {
  current = &input;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t count = std::strtoull(argv[1], nullptr, 10);
  const std::vector<Bytes> seeds = read_seeds(argv + 2, argv + argc);
  copy_path = fs::path(argv[0]).filename().string() + ".input";
  for (const int signal : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    std::signal(signal, keep_input);
  }
  for (const Bytes& seed : seeds) try_input(seed);
  redfuser::Random random(1);
  for (size_t i = 0; i < count; ++i) {
    Bytes input = seeds[random() % seeds.size()];
    for (size_t edits = 1 + random() % kMaxMutations; edits > 0; --edits) {
      redfuser::mutate_input(input, seeds[random() % seeds.size()], random);
    }
    try_input(input);
  }
  std::printf("%zu inputs\n", count + seeds.size());
  return 0;
}
