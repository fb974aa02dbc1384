#include "runtime/program/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace redfuser::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json to_json(const cascade::StageReport& stage) {
  return {{"reduce", stage.reduce}, {"form", stage.form}, {"F", stage.F},
          {"G", stage.G},           {"H", stage.H},       {"rho", stage.rho}};
}

Json to_json(const cascade::FusedReport& region) {
  Json stages = Json::array();
  for (const cascade::StageReport& stage : region.stages) stages.push_back(to_json(stage));
  return {{"id", region.id},
          {"class", region.region_class},
          {"nodes", region.nodes},
          {"stages", std::move(stages)},
          {"strategy", region.strategy},
          {"verified", {{"cases", region.cases}, {"max_error", number(region.max_error)}}}};
}

}  // namespace

std::string report_to_json(const cascade::Report& report) {
  Json fused = Json::array(), unfused = Json::array();
  for (const cascade::FusedReport& region : report.fused) fused.push_back(to_json(region));
  for (const cascade::UnfusedReport& region : report.unfused) {
    unfused.push_back(
        {{"nodes", region.nodes}, {"reason", region.reason}, {"blame", region.blame}});
  }
  const Json root = {{"fused", std::move(fused)},
                     {"unfused", std::move(unfused)},
                     {"ops_before", Json(report.ops_before)},
                     {"ops_after", Json(report.ops_after)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redfuser::runtime
