// Sizes that the host and the headers of src/device both have are the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/cluster_product/cluster_config.h"
#include "codegen/core/device_text.h"
#include "codegen/core/tma_tile.h"
#include "codegen/opaque/scatter_lists.h"
#include "codegen/opaque/selection.h"
#include "codegen/opaque/suppression.h"
#include "codegen/product/product_text.h"

namespace redfuser {
namespace {

using codegen::ProductText;
using codegen::TmaTile;

void expect_in(std::string_view header, const std::string& declaration) {
  const auto headers = codegen::device_headers();
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& each) { return each.name == header; });
  ASSERT_NE(found, headers.end()) << header;
  EXPECT_NE(found->text.find(declaration), std::string_view::npos) << declaration;
}

TEST(DeviceConstants, TmaTiles) {
  expect_in("device/hopper.cuh",
            fmt::format("constexpr int kSlabColumns = {}, kSlabRowBytes = {}, kSwizzleRows = {};",
                        TmaTile::kSlabColumns, TmaTile::kSlabRowBytes,
                        TmaTile::kAlignment / TmaTile::kSlabRowBytes));
}

TEST(DeviceConstants, ScatterLists) {
  constexpr const char* kHeader = "device/scatter/lists.cuh";
  expect_in(kHeader, fmt::format("constexpr int kScatterThreads = {};", codegen::kScatterThreads));
  expect_in(kHeader, fmt::format("constexpr unsigned kScatterLong = {};", codegen::kScatterLong));
}

TEST(DeviceConstants, Selections) {
  constexpr const char* kHeader = "device/selection/selection.cuh";
  expect_in(kHeader,
            fmt::format("constexpr int kSelectionThreads = {};", codegen::kSelectionThreads));
  expect_in(kHeader, "constexpr int kSelectionTile = 8 * kSelectionThreads;");
  EXPECT_EQ(codegen::kSelectionTile, 8 * codegen::kSelectionThreads);
}

TEST(DeviceConstants, Suppressions) {
  constexpr const char* kHeader = "device/selection/suppression.cuh";
  expect_in(kHeader,
            fmt::format("constexpr int kSuppressionThreads = {};", codegen::kSuppressionThreads));
  expect_in(kHeader,
            fmt::format("constexpr int kSuppressionTile = {};", codegen::kSuppressionTile));
}

TEST(DeviceConstants, ProductTiles) {
  expect_in(
      "device/product/product.cuh",
      fmt::format(
          "constexpr int kTileRows = {}, kTileColumns = {}, kTileDepth = {}, kTileStages = {};",
          ProductText::kTileRows, ProductText::kTileColumns, ProductText::kDepth,
          ProductText::kStages));
  expect_in("device/product/product_loop.cuh",
            fmt::format("kProductThreads = {}, ", ProductText::kThreads));
  expect_in("device/product/product_loop.cuh",
            "kStagedBytes = kTileRows * (kTileColumns + 8) * 2;");
}

TEST(DeviceConstants, ClusterTiles) {
  using codegen::ClusterConfig;
  expect_in("device/product/cluster_tile.cuh",
            fmt::format("kRingBytes = (Resident > 1 ? {} : {}) << 10, kMostStages = {};",
                        ClusterConfig::kSharedRing, ClusterConfig::kWholeRing,
                        ClusterConfig::kMostStages));
}

}  // namespace
}  // namespace redfuser
