#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/maps/box_map.h"

namespace redfuser::codegen {
namespace {

constexpr int kWarp = 32, kBanks = 32, kWord = 4;
constexpr int kSampledWarps = 4;  // of which bank conflicts are counted

// Cycles of the banks for an access of `bytes` at each of these addresses: of so many lanes at once
// as fill the banks.
int bank_cycles(const std::vector<int64_t>& addresses, int bytes) {
  const size_t lanes = static_cast<size_t>(kWarp * kWord / std::max(bytes, kWord));
  int cycles = 0;
  for (size_t begin = 0; begin < addresses.size(); begin += lanes) {
    std::vector<int64_t> words;
    for (size_t i = begin; i < std::min(begin + lanes, addresses.size()); ++i) {
      for (int64_t at = addresses[i] / kWord; at * kWord < addresses[i] + bytes; ++at) {
        words.push_back(at);
      }
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<int, kBanks> of_bank = {};
    for (const int64_t word : words) ++of_bank[static_cast<size_t>(word % kBanks)];
    cycles += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return cycles;
}

// Cycles of all warps of `items` lanes, by those of some warps; address(item) in bytes.
template <class Address>
double sampled_cycles(int64_t items, int bytes, const Address& address) {
  const int64_t warps = (items + kWarp - 1) / kWarp,
                step = std::max<int64_t>(warps / kSampledWarps, 1);
  double cycles = 0;
  int64_t count = 0;
  for (int64_t warp = 0; warp < warps; warp += step, ++count) {
    std::vector<int64_t> addresses;
    for (int64_t item = warp * kWarp; item < std::min(items, (warp + 1) * kWarp); ++item) {
      addresses.push_back(address(item));
    }
    cycles += bank_cycles(addresses, bytes);
  }
  return cycles * static_cast<double>(warps) / static_cast<double>(count);
}

// The place of an operand's element in shared memory, by its number in the order of its memory.
int64_t place_of(const BoxMap& map, const BoxRead& read, int64_t number) {
  int64_t place = 0;
  for (size_t i = read.axes.size(); i-- > 0; number /= read.axes[i].points) {
    place += number % read.axes[i].points * map.step_of(read.axes[i].place);
  }
  return place;
}

BoxCost fill_cost(const BoxMap& map, const BoxRead& read) {
  constexpr double kAxis = 5, kUnit = 6;  // instructions: a coordinate, a load
  const int bytes = static_cast<int>(size_of(read.read->dtype));
  const int64_t units = map.row_count() * map.points_along() / read.unit;
  const int64_t step = map.step_of(read.axes.back().place);
  BoxCost cost;
  for (int v = 0; v < read.unit; ++v) {
    cost.wavefronts += sampled_cycles(units, bytes, [&](int64_t unit) {
      return (place_of(map, read, unit * read.unit) + v * step) * bytes;
    });
  }
  cost.instructions = static_cast<double>(units) *
                      (kAxis * static_cast<double>(read.axes.size()) + kUnit + read.unit);
  return cost;
}

BoxCost group_cost(const BoxMap& map, const BoxRead& read) {
  constexpr double kAxis = 5;
  const int bytes = static_cast<int>(size_of(read.read->dtype));
  const int aligned = std::min({map.pitch & -map.pitch, map.width, std::max(16 / bytes, 1)});
  const int64_t groups = map.points_along() / map.width, items = map.row_count() * groups;
  BoxCost cost;
  for (int v = 0; v < map.width; v += aligned) {
    cost.wavefronts += sampled_cycles(items, aligned * bytes, [&](int64_t item) {
      return (item / groups * map.pitch + item % groups * map.width + v) * bytes;
    });
  }
  cost.instructions = static_cast<double>(items) *
                      (kAxis * static_cast<double>(map.rows.size() + 1) + map.width / aligned);
  return cost;
}

// With its pitch and units.
BoxCost cost_of(const BoxMap& map) {
  BoxCost all;
  for (const BoxRead& read : map.reads) {
    for (const BoxCost& cost : {fill_cost(map, read), group_cost(map, read)}) {
      all.wavefronts += cost.wavefronts;
      all.instructions += cost.instructions;
    }
  }
  return all;
}

double weight_of(const BoxCost& cost) {
  constexpr double kLanes = 128;  // of a multiprocessor, each of which issues in a cycle
  return cost.wavefronts + cost.instructions / kLanes;
}

// The greatest power of two, up to `most`, that divides all that is known of these sizes.
int dividing(const std::vector<ir::Expr>& sizes, int most) {
  for (ir::Expr size : sizes) {
    while (size->is_constant() && size->integer % most != 0) most /= 2;
  }
  return most;
}

// Sizes of which groups of points on these axes must divide all, for whole groups.
std::vector<ir::Expr> group_sizes(ir::ExprPool& pool, const std::vector<BoxAxis>& axes) {
  std::vector<ir::Expr> sizes;
  ir::Expr points = pool.integer(1);
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].left) {
      for (ir::Expr unit : offset_units(pool, pool.mul(axes[i].left, points))) {
        sizes.push_back(unit);
      }
    }
    points = pool.mul(points, pool.integer(axes[i].points));
  }
  sizes.push_back(points);
  return sizes;
}

int width_of(const KernelText& kernel, const BoxMap& map) {
  ir::ExprPool& pool = kernel.pool();
  std::vector<ir::Expr> places, sizes = group_sizes(pool, map.along);
  for (const BoxAxis& axis : map.along) places.push_back(axis.place);
  const auto add = [&](ir::Expr offset) {
    const ir::Expr base = adjacent_from(pool, offset, places);
    if (!base) return;
    for (ir::Expr unit : offset_units(pool, base)) sizes.push_back(unit);
  };
  for (const Store& store : map.shape.stores) add(store.offset);
  for (ir::Expr read : reads_of(map.shape.stores)) add(read->args[0]);
  return dividing(sizes, vector_width(kernel, map.shape));
}

// The most adjacent elements of an operand that are one aligned access.
int greatest_unit(ir::ExprPool& pool, const BoxRead& read) {
  const BoxAxis& inner = read.axes.back();
  const ir::Expr base = adjacent_from(pool, read.read->args[0], inner.place);
  if (!base) return 1;
  std::vector<ir::Expr> sizes = group_sizes(pool, {inner});
  for (ir::Expr unit : offset_units(pool, base)) sizes.push_back(unit);
  return dividing(sizes, std::max(16 / static_cast<int>(size_of(read.read->dtype)), 1));
}

}  // namespace

void BoxMap::set_pitch(const KernelText& kernel) {
  constexpr int kPads[] = {0, 1, 2, 4};  // in words of the smallest operand
  width = width_of(kernel, *this);
  size_t smallest = kWord;
  for (const BoxRead& read : reads) smallest = std::min(smallest, size_of(read.read->dtype));
  const int word = kWord / static_cast<int>(smallest);
  BoxMap best = *this;
  double least = HUGE_VAL;
  for (const int pad : kPads) {
    if (rows.empty() && pad > 0) break;
    BoxMap with = *this;
    with.pitch = static_cast<int>(points_along()) + pad * word;
    for (BoxRead& read : with.reads) {
      const int most = greatest_unit(kernel.pool(), read);
      BoxRead chosen = read;
      double least_fill = HUGE_VAL;
      for (int unit = 1; unit <= most; unit *= 2) {
        read.unit = unit;
        const double weight = weight_of(fill_cost(with, read));
        if (weight < least_fill) {
          least_fill = weight;
          chosen.unit = unit;
        }
      }
      read = chosen;
    }
    with.cost = cost_of(with);
    const double weight = weight_of(with.cost);
    if (weight < least) {
      least = weight;
      best = with;
    }
  }
  *this = best;
}

// The operands in shared memory cost what they would along the results.
double BoxMap::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  constexpr double kTurn = 0.5;                    // µs: the box's loads are behind a barrier
  constexpr double kBankBytes = 22, kSector = 32;  // bytes of memory in a cycle of banks
  ir::ExprPool& pool = builder.pool();
  std::vector<std::pair<ir::Expr, ir::Expr>> turned;
  for (const BoxRead& read : reads) {
    const ir::Expr along_results =
        pool.read(read.read->integer, read.read->dtype, {shape.stores.front().offset});
    turned.emplace_back(read.read, along_results);
  }
  MapBody body;
  body.shape = shape;
  for (Store& store : body.shape.stores) store.body = pool.substitute(store.body, turned);
  select::Work work = body.work(builder, sizes);
  // A run that begins anywhere has parts of sectors at both ends.
  const auto sectors = [&](double run) {
    const double part = std::gcd(static_cast<int64_t>(run), static_cast<int64_t>(kSector));
    return (run + kSector - part) / run;
  };
  work.accesses *= std::max(sectors(stored_run), sectors(read_run));
  double boxes = 1;
  for (ir::Expr axis : outside) {
    if (axis->op == ir::ExprOp::Axis) {
      boxes *= static_cast<double>(std::max<int64_t>(sizes.of(axis->extent()), 1));
    }
  }
  work.accesses += kBankBytes * cost.wavefronts * boxes;
  work.scalars += cost.instructions * boxes;
  work.blocks = boxes;
  return select::time_of(work, builder.target) + kTurn;
}

}  // namespace redfuser::codegen
