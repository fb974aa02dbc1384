#include "command_line.h"

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
                  "With --dump or --report: the GPU that kernels are for, such as sm_80")
      ->type_name("SM")
      ->capture_default_str();
}

void check_target_option(const CLI::App& app) {
  if (app.count("--target") > 0 && app.count("--dump") + app.count("--report") == 0) {
    fail("--target goes with --dump or --report");
  }
}

}  // namespace redfuser::tools
