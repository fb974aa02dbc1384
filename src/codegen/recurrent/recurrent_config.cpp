#include "codegen/recurrent/recurrent_config.h"

#include <algorithm>
#include <cmath>

#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

constexpr int kPortableBlocks = 8, kMostBlocks = 16;  // of a cluster
constexpr int kTileBytes = 1024;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The counts of BlockRows (src/device/recurrent/rows.cuh) for `count` rows.
struct Rows {
  Rows(const RecurrentForm& form, const RecurrentConfig& config, int64_t count)
      : halves(size_of(form.dtype) == 2), batch(config.batch) {
    const int64_t most = halves ? 2 : 4;
    tiles = up(count, height());
    places = up(form.hidden, depth());
    while (groups < RecurrentConfig::kWarps && up(tiles, groups) > most) groups *= 2;
    each = std::min(up(tiles, groups), most);
    rounds = up(tiles, groups * each);
    slices = std::min<int64_t>(RecurrentConfig::kWarps / groups, places);
    held = std::min<int64_t>(config.held * slices, places);
    resident = std::min<int64_t>(config.resident, places - held);
  }
  int64_t height() const { return halves ? 16 : 32; }  // of a tile
  int64_t depth() const { return halves ? 32 : 8; }
  int64_t resident_bytes() const { return tiles * resident * kTileBytes; }
  int64_t streamed_bytes() const { return tiles * (places - held - resident) * kTileBytes; }
  // Of a thread whose warp holds so many tiles along k.
  int64_t held_registers(int64_t count) const {
    return 8 * each * std::min(count, up(places, slices));
  }
  int64_t sum_bytes() const { return slices * batch * (tiles * height() + 4) * 4; }

  // Cycles of a step: multiplications, or accesses to shared memory.
  double cycles() const {
    // Products per cycle of a multiprocessor; bytes of shared memory per cycle. All lanes read one
    // vector of h where a lane has a row.
    constexpr double kTensorRate = 1100, kLaneRate = 110, kBankBytes = 115;
    const double work = static_cast<double>(tiles * height() * batch * places * depth()) /
                        (halves ? kTensorRate : kLaneRate);
    const double reads = static_cast<double>(groups * rounds * batch * places * depth());
    const double accesses =
        static_cast<double>(tiles * (places - held) * kTileBytes + 2 * sum_bytes()) +
        reads * (halves ? 2 : 32);
    return std::max(work, accesses / kBankBytes);
  }

  bool halves;
  int64_t batch, tiles = 0, places = 0, groups = 1, each = 1, rounds = 1, slices = 1;
  int64_t held = 0, resident = 0;  // along k, of all slices
};

// Those of a phase each.
std::vector<Rows> rows_of(const RecurrentForm& form, const RecurrentConfig& config) {
  const int64_t units = recurrent_units(form, config);
  if (!form.two_phases()) return {Rows(form, config, form.gates() * units)};
  return {Rows(form, config, 2 * units), Rows(form, config, units)};
}

// The most resident tiles that fit: all, or equal shares of the slices.
bool fill_memory(const RecurrentForm& form, const Target& target, RecurrentConfig& config) {
  config.resident = 0;
  const int64_t room = target.shared_bytes - recurrent_shared_bytes(form, config);
  if (room < 0) return false;
  int64_t tiles = 0, unit = 1, places = 0;
  for (const Rows& rows : rows_of(form, config)) {
    tiles += rows.tiles;
    unit = std::max(unit, rows.slices);
    places = std::max(places, rows.places - rows.held);
  }
  const int64_t most = room / (tiles * kTileBytes);
  config.resident = static_cast<int>(most >= places ? places : most / unit * unit);
  return true;
}

// The most tiles of a warp that registers have room for; as many as there are, at most.
int most_held(const RecurrentForm& form, const RecurrentConfig& config) {
  const bool halves = size_of(form.dtype) == 2;
  // Sums of more sequences and the code of a second phase have registers too.
  const int64_t wide = form.two_phases() && config.batch > 8 ? 96 : 128;
  const int64_t room = halves ? (config.batch <= 16 ? wide : 64) : (config.batch <= 8 ? 64 : 0);
  const std::vector<Rows> parts = rows_of(form, config);
  const auto registers_of = [&](int held) {
    int64_t used = 0;
    for (const Rows& rows : parts) used += rows.held_registers(held);
    return used;
  };
  for (const Rows& rows : parts) {
    if (rows.rounds > 1) return 0;
  }
  int held = 0;
  while (registers_of(held + 1) > registers_of(held) && registers_of(held + 1) <= room) ++held;
  return held;
}

// All multiprocessors, divided among the teams of a known batch; one block where that is none.
RecurrentConfig grid_config(const RecurrentForm& form, const Target& target, int sequences) {
  constexpr int64_t kCounters = 32;  // of a team
  RecurrentConfig config{1, sequences};
  if (!form.batch->is_constant() || target.portable) return config;
  const int64_t tiles = up(std::max<int64_t>(form.batch->integer, 1), sequences);
  const int64_t teams = form.layer.directions * tiles;
  if (teams * kCounters > kLaunchCounters || 2 * teams > target.multiprocessors) return config;
  config.grid = true;
  config.blocks = static_cast<int>(target.multiprocessors / teams);
  config.blocks = static_cast<int>(up(form.hidden, recurrent_units(form, config)));
  return config;
}

}  // namespace

const char* RecurrentConfig::family() const {
  return grid                       ? kGridRecurrentFamily
         : blocks > kPortableBlocks ? kWideRecurrentFamily
         : blocks > 1               ? kClusterRecurrentFamily
                                    : kBlockRecurrentFamily;
}

RecurrentConfig RecurrentConfig::of(const KernelConfig& choice) {
  return {choice.at("blocks"), choice.at("batch"), choice.at("held"), choice.at("resident"),
          choice.at("grid") != 0};
}

int recurrent_units(const RecurrentForm& form, const RecurrentConfig& config) {
  return static_cast<int>(up(up(form.hidden, config.blocks), 8) * 8);
}

int64_t recurrent_shared_bytes(const RecurrentForm& form, const RecurrentConfig& config) {
  const int64_t units = recurrent_units(form, config),
                bytes = static_cast<int64_t>(size_of(form.dtype));
  int64_t resident = 0, sums = 0, depth = 1;
  for (const Rows& rows : rows_of(form, config)) {
    resident += rows.resident_bytes();
    sums = std::max(sums, rows.sum_bytes());
    depth = rows.depth();
  }
  const int64_t tiles = up(config.blocks * units, depth);
  const int64_t pitch = (bytes == 2 ? tiles | 1 : tiles) * depth;
  const int64_t buffers = config.grid ? 1 : 2;
  const int64_t states = buffers * config.batch * pitch * bytes,
                piece = config.batch * units * bytes;
  const int64_t parameters = (form.gates() + 4) * units * 4, cells = 2 * config.batch * units * 4;
  constexpr int64_t kBarriers = 16;
  return resident + states + piece + sums + parameters + cells + config.batch * 4 + kBarriers;
}

double recurrent_time(const RecurrentForm& form, const RecurrentConfig& config,
                      const Target& target, double steps, int64_t batch) {
  // Cycles: of a phase's barriers and gates, of an exchange, to which each block adds a share, of a
  // cell of a thread; bytes per cycle of a multiprocessor from L2, and to the other blocks.
  constexpr double kPhase = 700, kExchange = 900, kExchangeShare = 25, kCell = 120;
  constexpr double kGridExchange = 3200;  // through memory
  constexpr double kLoaded = 40, kSent = 32;
  // The share of multiprocessors that large clusters fill.
  constexpr double kFilled = 0.85;
  const int64_t units = recurrent_units(form, config);
  const auto bytes = static_cast<int64_t>(size_of(form.dtype));
  const double blocks =
      static_cast<double>(form.layer.directions * up(batch, config.batch) * config.blocks);
  const double room = (config.blocks > 2 && !config.grid ? kFilled : 1) * target.multiprocessors;
  const double turns = std::ceil(blocks / room), together = std::min(blocks, room);
  double step = 0, prologue = 0;  // microseconds
  for (const Rows& rows : rows_of(form, config)) {
    const auto streamed = static_cast<double>(rows.streamed_bytes());
    const double loads =
        std::max(target.microseconds(streamed / kLoaded), together * streamed / target.l2_rate());
    double cycles = kPhase + kCell * std::ceil(static_cast<double>(units * config.batch) /
                                               (32 * RecurrentConfig::kWarps));
    if (config.grid) {
      const auto received = static_cast<double>(config.batch * units * bytes * config.blocks);
      cycles += kGridExchange + received / kLoaded;
    } else if (config.blocks > 1) {
      const auto sent = static_cast<double>(config.batch * units * bytes * config.blocks);
      cycles += kExchange + kExchangeShare * config.blocks + sent / kSent;
    }
    step += target.microseconds(cycles) + std::max(target.microseconds(rows.cycles()), loads);
    prologue += target.microseconds(static_cast<double>(rows.resident_bytes()) / kLoaded);
  }
  const auto weights = static_cast<double>(form.columns() * form.hidden * bytes);
  if (weights > static_cast<double>(target.l2_bytes)) {
    // Tiles that are not resident are read from memory.
    double streamed = 0;
    for (const Rows& rows : rows_of(form, config)) {
      streamed += static_cast<double>(rows.streamed_bytes() * config.blocks) *
                  static_cast<double>(form.layer.directions);
    }
    step = std::max(step, streamed / target.dram_rate);
  }
  return select::kLaunchTime + turns * (prologue + steps * step);
}

int64_t recurrent_exchanged(const RecurrentForm& form, const RecurrentConfig& config) {
  const int64_t teams = form.layer.directions * up(form.batch->integer, config.batch);
  return teams * 2 * config.batch * config.blocks * recurrent_units(form, config);
}

std::vector<Candidate> recurrent_choices(const RecurrentForm& form, const Target& target,
                                         double steps, int64_t batch) {
  const bool clusters = target.architecture >= 90 && !target.portable;
  const bool halves = size_of(form.dtype) == 2;
  std::vector<Candidate> choices;
  const auto add = [&](RecurrentConfig config) {
    const int most = most_held(form, config);
    for (config.held = 0; config.held <= most; config.held += std::max(most, 1)) {
      if (!fill_memory(form, target, config)) continue;
      choices.push_back({{config.family(), config.parameters()},
                         recurrent_time(form, config, target, steps, batch)});
    }
  };
  for (const int sequences : {8, 16, 32}) {
    if (sequences > 8 && sequences >= 2 * batch) break;
    if (sequences > 16 && !halves) break;
    for (const int blocks : {1, 2, 4, 8, kMostBlocks}) {
      if (blocks > 1 && !clusters) break;
      const RecurrentConfig config{blocks, sequences};
      if ((blocks - 1) * recurrent_units(form, config) < form.hidden) add(config);
    }
    const RecurrentConfig grid = grid_config(form, target, sequences);
    if (grid.blocks > (clusters ? kMostBlocks : 1)) add(grid);
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
