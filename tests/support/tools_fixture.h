// The command-line tools, run in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace redfuser {

namespace fs = std::filesystem;

struct Finished {
  int code = -1;
  std::string output, errors;
};

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ToolsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("redfuser_tools_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // The tests are built one folder below the tools.
    tools_ = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    if (!fs::exists(tools_ / "redfuser-run")) GTEST_SKIP() << "the tools are not built";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Finished run(const std::string& tool, const std::string& arguments) const {
    const std::string command =
        (tools_ / tool).string() + " " + arguments + " >" + path("stdout") + " 2>" + path("stderr");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(path("stdout")),
            read(path("stderr"))};
  }

  fs::path folder_, tools_;
};

}  // namespace redfuser
