#include "codegen/cluster_product/cluster_config.h"

#include <algorithm>

#include "codegen/cluster_product/cluster_shape.h"
#include "codegen/cluster_product/cluster_time.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

// Rows of one product; other tiles are as fast for more, except of floats.
constexpr int64_t kMostRows = 1024, kMostFloatRows = 1 << 20;
constexpr int64_t kMostGrid = 65535;

bool fits(const ClusterForm& form, const ClusterConfig& config, const Target& target) {
  // Sums of a thread, alone on its multiprocessor or not.
  constexpr int kMostColumns = 256, kMostShared = 128;
  const int columns = form.products() * config.columns;
  // A stage of 8-bit floats, or of floats, has sums of its own.
  const bool apart = form.has_codes() || form.has_parts();
  if (columns * (apart ? 2 : 1) > kMostColumns) return false;
  // Beside them and their parts, two blocks have registers for 64 sums.
  if (form.has_parts() && config.resident > 1 && (config.rows > 64 || columns > 64)) return false;
  if (config.resident > 1 && config.rows > 64 && columns > kMostShared) return false;
  return config.lines % config.blocks == 0 && config.blocks <= steps_of(form) &&
         stages_of(form, config) >= 2 && cluster_shared_bytes(form, config) <= target.shared_bytes;
}

// Rows of a tile that exist where there are `rows`, a multiple of 8 for each block.
int lines_of(int64_t rows, int tile, int blocks) {
  const int64_t unit = std::max(8, blocks);
  return static_cast<int>(std::min<int64_t>((rows + unit - 1) / unit * unit, tile));
}

}  // namespace

std::optional<ClusterForm> cluster_form(const ir::Graph& graph, const Target& target,
                                        const std::vector<ProductCall>& calls) {
  constexpr size_t kMostProducts = 3;
  const ProductCall& call = calls[0];
  const bool halves = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  const bool codes = call.dtype == DType::Float8E4M3FN;
  const bool floats = call.dtype == DType::Float32 && !target.exact_products;
  if (!halves && !codes && !floats) return std::nullopt;
  if (target.architecture != 90 || target.portable) return std::nullopt;
  if (calls.size() > kMostProducts) return std::nullopt;
  const bool by_terms = !call.a_column->is_constant(1);
  if (by_terms && !(floats && call.a_row->is_constant(1))) return std::nullopt;
  if (!call.n->is_constant() || !call.k->is_constant() || call.k->integer < 1) return std::nullopt;
  if (!call.batch->is_constant() || call.batch->integer > kMostGrid) return std::nullopt;
  ClusterForm form{&calls};
  form.rows_by_terms = by_terms;
  form.by_rows = !call.b_column->is_constant(1);
  if (codes && !form.by_rows) return std::nullopt;
  for (const ProductCall& each : calls) {
    if (!(form.by_rows ? each.b_row : each.b_column)->is_constant(1)) return std::nullopt;
  }
  // Rows that are there as well arrive sooner between the columns.
  form.given = !call.a.is_given(graph) &&
               std::all_of(calls.begin(), calls.end(),
                           [&](const auto& each) { return each.b.is_given(graph); });
  return form;
}

ClusterConfig ClusterConfig::of(const KernelConfig& choice) {
  return {choice.at("rows"), choice.at("lines"), choice.at("columns"), choice.at("blocks"),
          choice.at("resident")};
}

std::vector<ClusterClass> cluster_classes(ir::ExprPool& pool, const ClusterForm& form) {
  const ir::Expr rows = form.call().m;
  const int64_t most_rows = form.has_parts() ? kMostFloatRows : kMostRows;
  const auto at_most = [&](int64_t count) {
    return pool.make(ir::ExprOp::LessEqual, {rows, pool.integer(count)});
  };
  if (rows->is_constant()) {
    if (rows->integer < 1 || rows->integer > most_rows) return {};
    return {{rows->integer, pool.boolean(true)}};
  }
  std::vector<ClusterClass> classes;
  ir::Expr more = pool.boolean(true);
  constexpr int64_t kMostOfClasses = 512;
  const int64_t last = form.has_parts() ? kMostFloatRows : kMostOfClasses;
  for (int64_t most = 32; most <= last; most *= 2) {
    classes.push_back({most, pool.make(ir::ExprOp::And, {at_most(most), more})});
    more = pool.make(ir::ExprOp::Not, {at_most(most)});
  }
  return classes;
}

std::vector<Candidate> cluster_choices(const ClusterForm& form, int64_t rows,
                                       const KnownSizes& sizes, const Target& target) {
  std::vector<Candidate> choices;
  const double batch = static_cast<double>(std::max<int64_t>(sizes.of(form.call().batch), 1));
  for (const int tile : {64, 128}) {
    if (tile > 64 && rows <= 64) continue;
    for (const int columns : {64, 128, 256}) {
      for (const int blocks : {1, 2, 4, 8}) {
        for (const int resident : {1, 2}) {
          const ClusterConfig config{tile, lines_of(rows, tile, blocks), columns, blocks, resident};
          if (!fits(form, config, target)) continue;
          const bool waits = batch * blocks_of(form, config, rows) > room_of(config, target);
          if (waits && (blocks > 1 || !form.has_parts())) continue;
          choices.push_back({{kClusterProductFamily, config.parameters()},
                             cluster_time(form, config, rows, sizes, target)});
        }
      }
    }
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
