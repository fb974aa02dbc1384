// Command lines by CLI11, a heavy header that only the files with options include.
#pragma once

#include <CLI/CLI.hpp>

namespace redfuser::tools {

// Parses the command line; UserError for a wrong one. Returns true if the tool has nothing more to
// do, because help or the version was printed.
bool parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace redfuser::tools
