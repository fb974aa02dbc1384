#include "bench_calibrate.h"

#include <nlohmann/json.hpp>

#include "redfuser/calibrate.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string table_of(const Calibration& found) {
  std::string text = fmt::format("{}, {}: {} multiprocessors, {} MHz at most", found.device,
                                 found.architecture, found.multiprocessors, found.clock_mhz);
  if (found.load_clock_mhz > 0) text += fmt::format(", {} MHz under load", found.load_clock_mhz);
  text +=
      fmt::format("\n{:<24}{:>12}{:>12}{:>18}  unit\n", "", "measured", "table", "measured/table");
  for (const CalibratedRate& rate : found.rates) {
    text += fmt::format("{:<24}{:>12.4g}{:>12.4g}{:>18.2f}  {}\n", rate.name, rate.measured,
                        rate.table, rate.measured / rate.table, rate.unit);
  }
  text += "rows of src/select/machine.cpp with the measured numbers\n";
  for (const std::string& row : found.rows) text += fmt::format("  {}\n", row);
  return text;
}

Json to_json(const Calibration& found) {
  Json rates = Json::array();
  for (const CalibratedRate& rate : found.rates) {
    rates.push_back({{"name", rate.name},
                     {"unit", rate.unit},
                     {"measured", rate.measured},
                     {"table", rate.table}});
  }
  return {{"device", found.device},
          {"architecture", found.architecture},
          {"multiprocessors", found.multiprocessors},
          {"clock_mhz", found.clock_mhz},
          {"load_clock_mhz", found.load_clock_mhz},
          {"rates", std::move(rates)},
          {"rows", found.rows}};
}

}  // namespace

int run_calibration(const std::string& json) {
  const Calibration found = calibrate_gpu();
  Words(json == "-").say(table_of(found));
  if (!json.empty()) write_output(json, to_json(found).dump(1) + "\n");
  return kSuccess;
}

}  // namespace redfuser::tools
