// Command lines by CLI11, a heavy header that only the files with options include.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace redfuser::tools {

// Parses the command line; UserError for a wrong one. Returns true if the tool has nothing more to
// do, because help or the version was printed.
bool parse_command_line(CLI::App& app, int argc, char** argv);

// --report and --target of the tools that have both. The second goes with one of `others`, such as
// --dump, which check_target_option() makes sure of after parsing.
CLI::Option* add_report_option(CLI::App& app, std::string& report);
CLI::Option* add_target_option(CLI::App& app, std::string& target);
void check_target_option(const CLI::App& app, const std::vector<std::string>& others);

}  // namespace redfuser::tools
