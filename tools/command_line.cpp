#include "command_line.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tool.h"

namespace redfuser::tools {

bool parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    write_output("-", std::string(version.what()) + "\n");
    return true;
  } catch (const CLI::CallForHelp&) {
    write_output("-", app.help());
    return true;
  } catch (const CLI::ParseError& error) {
    fail("{} (--help lists the options)", error.what());
  }
  return false;
}

CLI::Option* add_report_option(CLI::App& app, std::string& report) {
  return app
      .add_option("--report", report,
                  "Write one HTML page: the graph before and after, fused regions with their "
                  "equations, kernels and times, and what was not fused (- for stdout)")
      ->type_name("FILE.html");
}

CLI::Option* add_target_option(CLI::App& app, std::string& target) {
  return app
      .add_option("--target", target,
                  "With a report of kernels: the GPU that they are for, such as sm_80")
      ->type_name("SM")
      ->capture_default_str();
}

void check_target_option(const CLI::App& app, const std::vector<std::string>& others) {
  const bool wanted = std::any_of(others.begin(), others.end(),
                                  [&](const std::string& name) { return app.count(name) > 0; });
  if (app.count("--target") > 0 && !wanted) {
    fail("--target goes with {}", fmt::join(others, " or "));
  }
}

}  // namespace redfuser::tools
