// Configurations of a running reduction, and their times by estimate.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/scan/scan_form.h"

namespace redfuser::codegen {

inline constexpr const char* kScanFamily = "scan";

struct ScanConfig {
  // Threads of a line, a power of two; of lines beside each other, those side by side.
  int team = 32;
  int threads = 128;    // of a block
  int chunks = 4;       // groups of a thread in a tile
  int width = 4;        // elements of a group
  bool shared = false;  // a line's tiles are blocks of their own

  Parameters parameters() const {
    return {{"team", team},
            {"threads", threads},
            {"chunks", chunks},
            {"width", width},
            {"shared", shared ? 1 : 0}};
  }
};

// What of a form decides how fast a configuration is.
struct ScanFacts {
  bool columns = false;  // lines lie beside each other
  int smallest = 4;      // bytes of the smallest element whose neighbours are adjacent
  int state_bytes = 4;
  double bytes = 8;  // read and written for every element
};
ScanFacts scan_facts(StepBuilder& builder, const ScanForm& form);

// Elements of a line in a tile, and lines of a block.
int64_t scan_tile(const ScanFacts& facts, const ScanConfig& config);
int64_t scan_block_lines(const ScanFacts& facts, const ScanConfig& config);
// Tiles of a line whose running value reaches the others through one publication.
int64_t scan_group(const ScanFacts& facts, const ScanConfig& config);
// Static shared memory of a block, and the states of it that run() meets in.
int scan_slots(const ScanFacts& facts, const ScanConfig& config);
int scan_static_bytes(const ScanFacts& facts, const ScanConfig& config);

// Sizes of a scan: `beside` lines are adjacent (1 where elements of a line are), in `lines` rows.
struct ScanSizes {
  int64_t lines = 1, beside = 1, length = 1;
};
std::vector<ScanConfig> scan_configs(const ScanFacts& facts, const ScanSizes& sizes);
// Microseconds, launches included.
double scan_time(const Target& target, const ScanFacts& facts, const ScanConfig& config,
                 const ScanSizes& sizes);

}  // namespace redfuser::codegen
