// Machine code of generated kernels, kept in a folder between runs.
//
// An entry is a folder, <kernel>.<key>, that holds source.cu, kernel.cubin and meta.json; the last
// says what the kernel was compiled for. It is written to a temporary folder and renamed, so it
// appears whole or not at all, and processes may share a cache. A damaged or foreign entry is
// rebuilt with a warning.
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
// Fills in the default folder. Without any folder the mode becomes Off; with mode Off the folder is
// empty.
CacheOptions resolved(CacheOptions options);

// A launch of a kernel's text: the user's nodes, the family's configuration, and a line per
// argument.
struct KernelUse {
  std::string nodes, choice;
  std::vector<std::string> parameters;
};

// Only `text` is compiled; the other fields are written to meta.json.
struct KernelSource {
  std::string text;
  std::string name = "kernel";
  std::vector<KernelUse> uses = {};
};

// Compiles text; `path` names the file that keeps the text, for the log.
using Compiler = std::function<std::string(const std::string& source, const std::string& path)>;

// The machine code of a text, or the error of its compilation.
struct CompiledText {
  std::string cubin;
  std::exception_ptr error;
};

class KernelCache {
 public:
  // `identity` is everything else that machine code depends on: NVRTC's version and its options
  // with the architecture.
  KernelCache(CacheOptions options, std::vector<std::string> identity);

  // The machine code of every source, in order. Sources that are not in the cache are compiled on
  // `threads` threads (0: one per core).
  std::vector<std::string> get(const std::vector<KernelSource>& sources, const Compiler& compiler,
                               int threads = 0);
  // The same; a text that does not compile does not affect the others.
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
