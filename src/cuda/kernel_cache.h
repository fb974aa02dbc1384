// Machine code of generated kernels, kept in a folder between runs.
//
// An entry is a folder, <kernel>.<key>, that holds source.cu, kernel.cubin and meta.json; the last
// says what the kernel was compiled for. It is written aside and renamed, so it appears whole or
// not at all, and processes may share a cache. An entry that is not whole or not ours is rebuilt,
// with a warning.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace redfuser::cuda {

enum class CacheMode { On, Off, ReadOnly };

struct CacheOptions {
  CacheMode mode = CacheMode::On;
  std::string folder;  // empty: default_cache_folder()
};

// $XDG_CACHE_HOME/redfuser/kernels, else ~/.cache/redfuser/kernels; empty without either.
std::string default_cache_folder();
// With the folder that is used: none, and no cache, where there is none; none if the mode is off.
CacheOptions resolved(CacheOptions options);

// What a launch makes of a kernel's text: the user's nodes, the family's configuration, and a line
// per argument.
struct KernelUse {
  std::string nodes, choice;
  std::vector<std::string> parameters;
};

// Only `text` decides what is compiled; the rest is for the reader of the cache.
struct KernelSource {
  std::string text;
  std::string name = "kernel";
  std::vector<KernelUse> uses = {};
};

// Compiles text; `path` is where the text is kept if it does not compile.
using Compiler = std::function<std::string(const std::string& source, const std::string& path)>;

// Machine code of a text, or why there is none.
struct CompiledText {
  std::string cubin;
  std::exception_ptr error;
};

class KernelCache {
 public:
  // `identity` is everything besides the text that machine code depends on: NVRTC's version and the
  // options with the architecture.
  KernelCache(CacheOptions options, std::vector<std::string> identity);

  // Machine code of every source, in order; what is not in the cache is compiled, on `threads`
  // threads (0: one per core).
  std::vector<std::string> get(const std::vector<KernelSource>& sources, const Compiler& compiler,
                               int threads = 0);
  // The same, where a text that does not compile leaves the others as they are.
  std::vector<CompiledText> try_get(const std::vector<KernelSource>& sources,
                                    const Compiler& compiler, int threads = 0);

  // 32 hexadecimal digits of text, identity and RedFuser's version.
  std::string key(const std::string& text) const;
  // The name of the entry's folder.
  std::string entry(const KernelSource& source) const;

  // Of the last get().
  int compiled() const { return compiled_; }
  int cached() const { return cached_; }
  double seconds() const { return seconds_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  bool load(const KernelSource& source, std::string& cubin);
  void store(const KernelSource& source, const std::string& cubin);
  std::string build(const KernelSource& source, const Compiler& compiler) const;

  CacheOptions options_;
  std::vector<std::string> identity_;
  int compiled_ = 0, cached_ = 0;
  double seconds_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace redfuser::cuda
