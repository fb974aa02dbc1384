// A page for people that shows what became of a model: one HTML file that needs nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser {

struct ReportOptions {
  std::string title;   // such as the model's path
  std::string target;  // the GPU whose kernels are named where `steps` name none; "": none are
  std::vector<std::pair<std::string, std::string>> facts;  // lines of the page's head
  std::vector<StepFacts> steps;                            // empty, or one per step of the program
};

// The page shows the file's graph beside the program's steps and outlines the fused regions. It
// lists the equations, forms, kernels and times of each region, and each refusal with the user's
// node that caused it. UserError for an unknown target.
std::string report_page(const Program& program, const ReportOptions& options);
// Writes it; a file is replaced only when the new one is whole.
void save_report(const Program& program, const ReportOptions& options, const std::string& path);

}  // namespace redfuser
