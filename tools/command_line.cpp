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

}  // namespace redfuser::tools
