// Times of workloads on the CPU, and the table of the gate there.
#pragma once

#include <string>

#include "bench_workload.h"
#include "report_view.h"

namespace redfuser::tools {

// Adds to `row` the least times of a run by default ("us") and by the unfused program
// ("unfused_us"), taken in turns for about `budget_s` seconds, and what the families of each step
// take ("steps").
void measure_on_cpu(const Model& model, const Workload& workload, const SessionOptions& session,
                    double budget_s, Json& row);

// How far the default is from the best family, and from the unfused program, graph by graph: shares
// within 1.15 and 1.5 of the best, and those slower than unfused by more than 5 %.
std::string cpu_table(const Json& rows);

}  // namespace redfuser::tools
