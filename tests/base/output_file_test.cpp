// Files that appear whole or not at all, in a process that a signal ends.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files/output_file.h"
#include "redfuser/signals.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("redfuser_output_") + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, NothingIsThereBeforeTheCommit) {
  write_text(path("a"), "old");
  {
    OutputFile file(path("a"));
    file.write("new");
    file.close();
    EXPECT_EQ(read("a"), "old");
  }
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(files(), 1u);
  write_text(path("a"), "new");
  EXPECT_EQ(read("a"), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, ASignalRemovesWhatIsUnfinished) {
  const auto interrupted = [&] {
    remove_unfinished_files_on_signals();
    write_text(path("whole"), "text");
    OutputFile first(path("a")), second(path("b"));
    first.write("text");
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(interrupted(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read("whole"), "text");
}

TEST_F(OutputFileTest, ASignalWaitsWhileItIsHeld) {
  const auto interrupted = [&] {
    remove_unfinished_files_on_signals();
    OutputFile unfinished(path("b"));
    {
      const HeldSignals outer;
      {
        const HeldSignals inner;
        std::raise(SIGINT);
      }
      write_text(path("a"), "text");
    }
    write_text(path("c"), "text");
  };
  EXPECT_EXIT(interrupted(), testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read("a"), "text");
}

// All temporaries are closed before the first file takes its name, so that a full disk changes
// none.
TEST_F(OutputFileTest, FilesThatBelongTogether) {
  write_text(path("a"), "old");
  OutputFile a(path("a")), full("/dev/full");
  a.write("new");
  EXPECT_THROW(full.write("text"), UserError);
  EXPECT_EQ(read("a"), "old");
  OutputFile b(path("b"));
  b.write("new");
  commit_together({&a, &b});
  EXPECT_EQ(read("a") + read("b"), "newnew");
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, ManyFilesAtOnce) {
  const auto interrupted = [&] {
    remove_unfinished_files_on_signals();
    std::vector<std::unique_ptr<OutputFile>> open;
    for (int i = 0; i < 200; ++i) {
      open.push_back(std::make_unique<OutputFile>(path(std::to_string(i))));
      if (i % 2 == 1) open[static_cast<size_t>(i)]->commit();
    }
    std::raise(SIGHUP);
  };
  EXPECT_EXIT(interrupted(), testing::KilledBySignal(SIGHUP), "");
  EXPECT_EQ(files(), 100u);
}

}  // namespace
}  // namespace redfuser
