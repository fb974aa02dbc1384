#include "fake_cuda/launch_rules.h"

#include <initializer_list>

namespace redfuser::device_tests {
namespace {

using Text = std::string;

Text text_of(uint64_t number) { return std::to_string(number); }

Text over(const Text& what, uint64_t number, uint64_t most) {
  return number > most ? what + " " + text_of(number) + " is over " + text_of(most) : "";
}

// The first that is not empty.
Text first(std::initializer_list<Text> problems) {
  for (const Text& problem : problems) {
    if (!problem.empty()) return problem;
  }
  return "";
}

Text when(bool wrong, const Text& problem) { return wrong ? problem : Text(); }

Text size_problem(const cuda::LaunchConfig& config, const FunctionState& function) {
  static constexpr uint64_t kGrid[] = {0x7fffffff, 65535, 65535}, kBlock[] = {1024, 1024, 64};
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    const Text axis = " along dimension " + text_of(static_cast<uint64_t>(i));
    Text problem = first({when(config.grid[i] == 0, "no blocks" + axis),
                          when(config.block[i] == 0, "no threads" + axis),
                          over("the grid" + axis, config.grid[i], kGrid[i]),
                          over("the block" + axis, config.block[i], kBlock[i])});
    if (!problem.empty()) return problem;
    threads *= config.block[i];
  }
  constexpr uint64_t kRegisters = 65536, kUnit = 256, kWarp = 32;  // a warp's come in such units
  const uint64_t of_warp =
      (static_cast<uint64_t>(function.registers) * kWarp + kUnit - 1) / kUnit * kUnit;
  return first({over("threads of a block", threads, 1024),
                over("threads within the kernel's launch bounds", threads,
                     static_cast<uint64_t>(function.most_threads)),
                over("registers of a block", (threads + kWarp - 1) / kWarp * of_warp, kRegisters)});
}

Text cluster_problem(const cuda::LaunchConfig& config, const FunctionState& function,
                     int architecture) {
  constexpr unsigned kPortable = 8, kLarge = 16;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    if (config.attributes[i].id != cuda::kAttributeClusterDimension) continue;
    unsigned blocks = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const unsigned edge = config.attributes[i].cluster[axis];
      if (edge == 0) return "a cluster of no blocks";
      if (config.grid[axis] % edge != 0) {
        return "a grid of " + text_of(config.grid[axis]) + " blocks in clusters of " +
               text_of(edge);
      }
      blocks *= edge;
    }
    Text problem =
        first({over("blocks of a cluster", blocks, function.large_clusters ? kLarge : kPortable),
               when(architecture < 90 && blocks > 1, "clusters before sm_90")});
    if (!problem.empty()) return problem;
  }
  return "";
}

int element_bytes(int dtype) {
  return dtype == cuda::kMapFloat16 || dtype == cuda::kMapBFloat16 ? 2 : 0;
}

}  // namespace

int most_shared(int architecture) {
  if (architecture >= 90 && architecture < 120) return 227 * 1024;
  if (architecture == 80 || architecture == 87) return 163 * 1024;
  return architecture < 80 ? 64 * 1024 : 99 * 1024;
}

std::string shared_problem(int bytes, const FunctionState& function, int architecture) {
  return first({when(bytes < 0, "a negative size of shared memory"),
                over("dynamic and static shared memory",
                     static_cast<uint64_t>(bytes) + static_cast<uint64_t>(function.static_shared),
                     static_cast<uint64_t>(most_shared(architecture)))});
}

std::string launch_problem(const cuda::LaunchConfig& config, const FunctionState& function,
                           int architecture) {
  const int dynamic =
      function.most_dynamic >= 0 ? function.most_dynamic : kDefaultShared - function.static_shared;
  return first({size_problem(config, function),
                over("dynamic shared memory", config.shared_bytes, static_cast<uint64_t>(dynamic)),
                shared_problem(static_cast<int>(config.shared_bytes), function, architecture),
                cluster_problem(config, function, architecture)});
}

namespace {

Text box_problem(const MapArguments& given) {
  for (unsigned i = 0; i < given.rank; ++i) {
    Text problem = first(
        {when(given.box[i] == 0, "no elements along a box"), over("a box", given.box[i], 256)});
    if (!problem.empty()) return problem;
  }
  return "";
}

Text window_problem(const MapArguments& given) {
  if (given.rank < 3) return "windows of rank " + text_of(given.rank);
  static constexpr int kMost[] = {32767, 127, 15};  // of a corner, by spatial dimensions
  const int most = kMost[given.rank - 3];
  for (unsigned i = 0; i + 2 < given.rank; ++i) {
    for (const int corner : {given.lower[i], given.upper[i]}) {
      if (corner < -most - 1 || corner > most) return "a corner at " + std::to_string(corner);
    }
    const auto last = static_cast<int64_t>(given.dims[i + 1]) - 1 + given.upper[i];
    if (last < given.lower[i]) return "no windows along a dimension";
  }
  return first({when(given.box[0] == 0 || given.box[1] == 0, "no elements of a copy"),
                over("channels of a copy", given.box[0], 256),
                over("windows of a copy", given.box[1], 1024)});
}

}  // namespace

std::string map_problem(const MapArguments& given) {
  constexpr uint64_t kLargestStride = uint64_t{1} << 40, kLargestDim = uint64_t{1} << 32;
  static constexpr unsigned kSwizzleBytes[] = {0, 32, 64, 128};  // by swizzle
  const auto aligned = [](const void* address, uint64_t to) {
    return reinterpret_cast<uint64_t>(address) % to == 0;
  };
  const uint64_t unit = given.interleave == 2 ? 32 : 16;
  const auto bytes = static_cast<unsigned>(element_bytes(given.dtype));
  Text problem = first({when(given.rank < 1 || given.rank > 5, "rank " + text_of(given.rank)),
                        when(bytes == 0, "an element type that is not used"),
                        when(given.swizzle < 0 || given.swizzle > 3, "an unknown swizzle"),
                        when(given.interleave != 0 && given.rank < 3, "interleaved, rank below 3"),
                        when(!aligned(given.map, 64), "a map that is not aligned"),
                        when(!aligned(given.address, unit), "an address that is not aligned")});
  if (!problem.empty()) return problem;
  for (unsigned i = 0; i < given.rank; ++i) {
    const uint64_t stride = i > 0 ? given.strides[i - 1] : 0;
    problem = first({when(given.dims[i] == 0, "no elements along a dimension"),
                     over("a dimension", given.dims[i], kLargestDim),
                     over("a stride", stride, kLargestStride - 1),
                     when(stride % unit != 0, "a stride of " + text_of(stride) + " bytes"),
                     when(given.steps[i] == 0, "an element stride of 0"),
                     over("an element stride", given.steps[i], 8)});
    if (!problem.empty()) return problem;
  }
  problem = given.lower != nullptr ? window_problem(given) : box_problem(given);
  if (!problem.empty() || given.interleave != 0) return problem;
  const unsigned inner = given.box[0] * bytes;
  return first({when(inner % 16 != 0, "a box of " + text_of(inner) + " bytes"),
                given.swizzle == 0
                    ? Text()
                    : over("the bytes of a swizzled box", inner, kSwizzleBytes[given.swizzle])});
}

}  // namespace redfuser::device_tests
