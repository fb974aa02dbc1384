// The kernel cache, the search for CUDA's libraries, and the arena; no GPU needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "cuda/kernel_cache.h"
#include "cuda/library.h"
#include "redfuser/error.h"
#include "redfuser/libraries.h"
#include "runtime/gpu/bound/arena.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;
using cuda::CacheMode;
using cuda::KernelCache;

class KernelCacheTest : public testing::Test {
 protected:
  KernelCacheTest() {
    folder_ = (fs::path(testing::TempDir()) / fmt::format("redfuser_cache_{}", getpid())).string();
    fs::remove_all(folder_);
  }
  ~KernelCacheTest() override { fs::remove_all(folder_); }

  cuda::KernelCache cache(cuda::CacheMode mode = cuda::CacheMode::On,
                          const std::string& identity = "sm_90a") const {
    return cuda::KernelCache({mode, folder_}, {identity});
  }
  static std::string compile(const std::string& source, const std::string&) {
    return "cubin of " + source;
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // Runs get() for "a" and "b" and expects so many of them to be compiled.
  void expect(cuda::KernelCache cache, int compiled, size_t warnings = 0) {
    EXPECT_EQ(cache.get({{"a"}, {"b"}}, compile, 2),
              (std::vector<std::string>{"cubin of a", "cubin of b"}));
    EXPECT_EQ(cache.compiled(), compiled);
    EXPECT_EQ(cache.cached(), 2 - compiled);
    EXPECT_EQ(cache.warnings().size(), warnings);
  }

  std::string folder_;
};

TEST_F(KernelCacheTest, CompilesOnce) {
  expect(cache(), 2);
  expect(cache(), 0);
  const fs::path entry = fs::path(folder_) / cache().entry({"a"});
  for (const char* file : {"source.cu", "kernel.cubin", "meta.json"}) {
    EXPECT_TRUE(fs::exists(entry / file)) << file;
  }
  // Nothing is left of the writing.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(KernelCacheTest, KeyCoversTextAndIdentity) {
  EXPECT_EQ(cache().key("a"), cache().key("a"));
  EXPECT_NE(cache().key("a"), cache().key("b"));
  EXPECT_NE(cache().key("a"), cache(cuda::CacheMode::On, "sm_80").key("a"));
  EXPECT_NE(cuda::KernelCache({}, {"x", "y"}).key("a"), cuda::KernelCache({}, {"xy"}).key("a"));
  expect(cache(), 2);
  expect(cache(cuda::CacheMode::On, "sm_80"), 2);
}

TEST_F(KernelCacheTest, RebuildsADamagedEntry) {
  for (const char* file : {"kernel.cubin", "meta.json", "source.cu"}) {
    expect(cache(), fs::exists(folder_) ? 0 : 2);
    write(fs::path(folder_) / cache().entry({"a"}) / file, "damaged");
    expect(cache(), 1, 1);
    expect(cache(), 0);
    fs::remove(fs::path(folder_) / cache().entry({"b"}) / file);
    expect(cache(), 1, 1);
    expect(cache(), 0);
  }
}

TEST_F(KernelCacheTest, ReadOnlyAndOffWriteNothing) {
  expect(cache(cuda::CacheMode::ReadOnly), 2);
  expect(cache(cuda::CacheMode::Off), 2);
  EXPECT_FALSE(fs::exists(folder_));
  expect(cache(), 2);
  expect(cache(cuda::CacheMode::ReadOnly), 0);
  expect(cache(cuda::CacheMode::Off), 2);
}

TEST_F(KernelCacheTest, AFolderThatCannotBeWrittenIsAWarning) {
  write(folder_, "a file");
  expect(cache(), 2, 1);
}

TEST_F(KernelCacheTest, KeepsASourceThatDoesNotCompile) {
  std::string kept;
  cuda::KernelCache broken = cache();
  EXPECT_THROW(broken.get({{"text"}},
                          [&](const std::string&, const std::string& path) -> std::string {
                            kept = path;
                            internal_error("no");
                          }),
               InternalError);
  std::ifstream file(kept);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "text");
}

TEST(CudaLibrary, SaysWhatIsMissingAndWhereItLooked) {
  const fs::path folder = fs::path(testing::TempDir()) / "redfuser_no_cuda";
  fs::create_directories(folder);
  setenv("REDFUSER_CUDA_LIBRARIES", folder.c_str(), 1);
  try {
    cuda::Library({"the library of dreams", {"libredfuser-none.so.1"}});
    ADD_FAILURE() << "it opened";
  } catch (const UserError& error) {
    const std::string text = error.what();
    for (const std::string& part :
         {std::string("the library of dreams"), folder.string(),
          std::string("libredfuser-none.so.1"), std::string("REDFUSER_CUDA_LIBRARIES")}) {
      EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
    }
  }
  unsetenv("REDFUSER_CUDA_LIBRARIES");
}

TEST(CudaLibrary, FindsTheWheelsOfAPython) {
  const fs::path prefix = fs::path(testing::TempDir()) / "redfuser_python";
  const fs::path wheel = prefix / "lib/python3.12/site-packages/nvidia/cublas/lib";
  fs::create_directories(wheel);
  fs::create_directories(prefix / "bin");
  std::ofstream(prefix / "bin/python3");
  setenv("REDFUSER_CUDA_LIBRARIES", (prefix / "bin/python3").c_str(), 1);
  const std::vector<std::string> folders = cuda::library_folders();
  unsetenv("REDFUSER_CUDA_LIBRARIES");
  ASSERT_FALSE(folders.empty());
  EXPECT_EQ(fs::path(folders[0]), wheel);
  const auto finds = [&] {
    const std::vector<std::string> found = cuda::library_folders();
    return std::find(found.begin(), found.end(), wheel.string()) != found.end();
  };
  EXPECT_FALSE(finds());
  search_cuda_libraries((prefix / "lib/python3.12/site-packages").string());
  EXPECT_TRUE(finds());
  fs::remove_all(prefix);
}

bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST(Arena, BuffersThatLiveTogetherDoNotOverlap) {
  std::vector<runtime::BufferLife> lives;
  uint64_t state = 7;
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int first = static_cast<int>(state >> 33) % 60;
    lives.push_back({static_cast<int64_t>(state >> 40) % 5000, first,
                     first + static_cast<int>(state >> 20) % 6});
  }
  const runtime::Arena arena = plan_arena(lives);
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(arena.offsets[i] % runtime::kArenaAlignment, 0);
    EXPECT_LE(arena.offsets[i] + lives[i].bytes, arena.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (lives[i].first > lives[j].last || lives[j].first > lives[i].last) continue;
      EXPECT_FALSE(overlap(arena.offsets[i], lives[i].bytes, arena.offsets[j], lives[j].bytes))
          << i << " and " << j;
    }
  }
}

TEST(Arena, ReusesWhatIsFree) {
  // A chain: two buffers live at a time.
  std::vector<runtime::BufferLife> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_arena(chain).bytes, 2048);
  EXPECT_EQ(runtime::plan_arena({}).bytes, 0);
  EXPECT_EQ(runtime::plan_arena({{0, 0, 5}, {1, 0, 5}}).bytes, runtime::kArenaAlignment);
  EXPECT_THROW(runtime::plan_arena({{INT64_MAX, 0, 1}}), UserError);
}

}  // namespace
}  // namespace redfuser
