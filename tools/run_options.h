// The command line of redfuser-run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate_options.h"
#include "redfuser/compare.h"
#include "redfuser/inputs.h"

namespace redfuser::tools {

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs;  // FILE, DIR or NAME=FILE
  RandomOptions random;
  std::string outputs;
  std::string compare;
  Tolerance tolerance;
  bool verify = false;
  int iterations = 1, warmup = 0;
  bool timed = false;  // --iterations or --warmup was given
  bool resident = false;
  std::string profile;
  bool fuse = true, certify = true;
  std::optional<std::string> explain;  // empty: as text on stdout
  std::string json;
  SessionOptions session;
  std::vector<std::string> assert_fused;
  std::string dump, target = "sm_90a", report;
  bool target_given = false;
  // Whether the times of the steps are wanted.
  bool profiles() const { return !profile.empty() || !report.empty(); }
  double time_limit = 0;  // seconds; 0: none
  GenerationOptions generation;
};

// nullopt when there is nothing more to do (--help). UserError for a wrong command line.
std::optional<RunOptions> parse_run_options(int argc, char** argv);

}  // namespace redfuser::tools
