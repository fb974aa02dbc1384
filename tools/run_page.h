// What redfuser-run measured, for the page of redfuser/report.h.
#pragma once

#include "redfuser/report.h"
#include "run_report.h"

namespace redfuser::tools {

ReportOptions page_options(const Program& program, const ReportView& report,
                           const RunOptions& options, const RunResult& result);

}  // namespace redfuser::tools
