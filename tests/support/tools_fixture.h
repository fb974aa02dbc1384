// The command-line tools, run in a folder of the test's own.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "support/folder_test.h"

namespace redfuser {

struct Finished {
  int code = -1;
  std::string output, errors;
};

class ToolsTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    // The tests are built one folder below the tools.
    tools_ = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    if (!fs::exists(tools_ / "redfuser-run")) GTEST_SKIP() << "the tools are not built";
  }

  Finished run(const std::string& tool, const std::string& arguments) const {
    const std::string command =
        (tools_ / tool).string() + " " + arguments + " >" + path("stdout") + " 2>" + path("stderr");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(path("stdout")),
            read(path("stderr"))};
  }

  fs::path tools_;
};

}  // namespace redfuser
