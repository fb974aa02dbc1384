// Key and diagonal terms of the scores, which a warpgroup evaluates once for a tile into its own
// part of shared memory, together with the question whether all keys of the tile are visible; and
// strips, of which each warp copies its own rows after it has folded the tile before. Two buffers
// are used in turn: past the barrier of this tile every warp has folded the tile before, so the
// other buffer may be overwritten.
#include <algorithm>
#include <functional>

#include "base/error.h"
#include "codegen/attention/hopper/select.h"
#include "codegen/attention/hopper/text.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr int kFirstBarrier = 3;  // plus the warpgroup; turns are barriers 1 to 3

std::string_view stored_type(const BiasTile& term) {
  return term.expr->dtype == DType::Bool ? "float" : value_type(term.expr->dtype);
}

}  // namespace

bool HopperText::is_term(ir::Expr e) const {
  return std::any_of(scores_.terms.begin(), scores_.terms.end(),
                     [&](const BiasTile& term) { return term.expr == e; });
}

void HopperText::declare_terms() {
  const int terms = hopper_term_bytes(scores_, config_);
  const int strips = hopper_strip_bytes(scores_, config_);
  if (!scores_.has_terms() && strips == 0) return;
  emitter_.line(
      fmt::format("const int thread = threadIdx.x & {};\n"
                  "char* const terms = memory + (barriers - ptx_shared_address(memory)) + {} + "
                  "(group - 1) * {};",
                  Warpgroup::kThreads - 1, HopperConfig::kBarrierBytes, terms + strips));
  int offset = terms;
  for (size_t i = 0; i < scores_.strips.size() && strips > 0; ++i) {
    const int pitch = scores_.strips[i].pitch(config_.keys);
    emitter_.line(
        fmt::format("char* const strip{} = terms + {} + warp * {};", i, offset, 16 * pitch));
    offset += Warpgroup::kRows * pitch;
  }
}

HopperText::LoadedTerm HopperText::load_reads(ir::Expr value, ir::Expr place,
                                              const std::string& index) {
  LoadedTerm loaded{emitter_.fresh("place"), {}};
  emitter_.line(fmt::format("const int {} = {};", loaded.place, as_int(index)));
  emitter_.open();
  emitter_.bind(place, loaded.place);
  visit(value, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || !e->depends_on(place)) return;
    loaded.reads.emplace_back(e, emitter_.emit(e));
  });
  const std::string text = emitter_.close();
  if (!text.empty()) emitter_.line(text);
  return loaded;
}

void HopperText::load_terms() {
  // For keys within the tile and the tensor.
  const auto key = [&](int from) {
    return config_.keys < from + Warpgroup::kThreads
               ? fmt::format("min_of(first + min(thread + {}, {}) + 0ll, {} - 1)", from,
                             config_.keys - 1, keys_)
               : fmt::format("min_of(first + thread + {}ll, {} - 1)", from, keys_);
  };
  loaded_.clear();
  for (const BiasTile& term : scores_.terms) {
    loaded_.emplace_back();
    for (int from = 0; from < term.places(Warpgroup::kRows, config_.keys);
         from += Warpgroup::kThreads) {
      const std::string gap =
          fmt::format("min_of(max_of(first - group_row + thread + {} + {} - 1, 0ll), {} + {} - 2)",
                      from - (Warpgroup::kRows - 1), row_count_, row_count_, keys_);
      loaded_.back().push_back(load_reads(term.value, term.place, term.diagonal ? gap : key(from)));
    }
  }
  if (scores_.by_key) loaded_visible_ = load_reads(scores_.by_key, rows_.cascade.stream, key(0));
}

std::string HopperText::term_value(ir::Expr value, ir::Expr place, const LoadedTerm& loaded) {
  emitter_.bind(place, loaded.place);
  for (const auto& [read, name] : loaded.reads) emitter_.bind(read, name);
  return emitter_.emit(value);
}

std::string HopperText::skip_terms() const {
  if (scores_.terms.empty()) return "";
  return fmt::format("ptx_named_sync({} + group, {});\n", kFirstBarrier, Warpgroup::kThreads);
}

void HopperText::store_terms(const std::string& use) {
  if (!scores_.has_terms()) return;
  int offset = 0;
  for (size_t t = 0; t < scores_.terms.size(); ++t) {
    const BiasTile& term = scores_.terms[t];
    const int places = term.places(Warpgroup::kRows, config_.keys);
    emitter_.line(
        fmt::format("{0}* const term{1} = reinterpret_cast<{0}*>(terms + {2}) + (({3}) & 1) * {4};",
                    stored_type(term), t, offset, use, places));
    offset += 2 * places * term.bytes();
    for (size_t j = 0; j < loaded_[t].size(); ++j) {
      const int from = static_cast<int>(j) * Warpgroup::kThreads, left = places - from;
      emitter_.open();
      const std::string value = term_value(term.value, term.place, loaded_[t][j]);
      const std::string some =
          left < Warpgroup::kThreads ? fmt::format("if (thread < {}) ", left) : std::string();
      emitter_.line(fmt::format("{}term{}[thread + {}] = {};", some, t, from, value));
      const std::string text = emitter_.close();
      emitter_.line(fmt::format("{{\n{}}}", text));
    }
  }
  const std::string barrier = fmt::format("({} + group, {}", kFirstBarrier, Warpgroup::kThreads);
  if (!scores_.by_key) {
    emitter_.line(fmt::format("ptx_named_sync{});", barrier));
    return;
  }
  emitter_.open();
  const std::string visible = term_value(scores_.by_key, rows_.cascade.stream, loaded_visible_);
  emitter_.line(fmt::format("clear = ptx_named_all{}, {});", barrier, visible));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("bool clear;\n{{\n{}}}", text));
}

// The terms of eight keys, of which a thread has a pair.
void HopperText::open_terms(const ScoreSpec& score, size_t phase) {
  term_texts_.clear();
  std::vector<ir::Expr> roots = score.lifts_of(phase);
  if (phase == 0 && score.kept) roots.push_back(score.kept_factors.rest);
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || (phase > 0 && e == score.kept)) return;
    for (size_t t = 0; t < scores_.terms.size(); ++t) {
      if (scores_.terms[t].expr == e) return open_term(t);
    }
    for (size_t i = 0; config_.strips && i < scores_.strips.size(); ++i) {
      if (scores_.strips[i].read == e) return open_strip(i);
    }
    for (ir::Expr arg : e->args) go(arg);
  };
  for (ir::Expr root : roots) go(root);
}

void HopperText::open_term(size_t t) {
  const BiasTile& term = scores_.terms[t];
  const std::string name = fmt::format("here{}", t);
  emitter_.line(fmt::format("{} {}[2];", stored_type(term), name));
  if (term.diagonal) {
    emitter_.line(
        fmt::format("load_two({}, term{} + n * 8 + pair + {} - (own_row + h * 8 - group_row));",
                    name, t, Warpgroup::kRows - 1));
  } else {
    emitter_.line(fmt::format("load_pair({}, term{} + n * 8 + pair);", name, t));
  }
  const bool truth = term.expr->dtype == DType::Bool;
  term_texts_.emplace_back(term.expr,
                           truth ? fmt::format("({}[e] != 0)", name) : fmt::format("{}[e]", name));
}

void HopperText::open_strip(size_t i) {
  const ScoreStrip& strip = scores_.strips[i];
  const std::string name = fmt::format("along{}", i);
  emitter_.line(fmt::format(
      "{0} {1}[2];\nload_pair({1}, reinterpret_cast<const {2}*>(strip{3} + (quad + h * 8) * {4}) + "
      "n * 8 + pair);",
      value_type(strip.read->dtype), name, storage_type(strip.read->dtype), i,
      strip.pitch(config_.keys)));
  term_texts_.emplace_back(strip.read, fmt::format("{}[e]", name));
}

std::string HopperText::copy_strips(const std::string& first) {
  if (!config_.strips) return "";
  emitter_.open();
  emitter_.line(fmt::format("const int strip_first = {};\n__syncwarp();", first));
  for (size_t i = 0; i < scores_.strips.size(); ++i) copy_strip(i);
  emitter_.line("ptx_copy_commit();");
  return fmt::format("{{\n{}}}\n", emitter_.close());
}

// Rows beyond the last one read the last one.
void HopperText::copy_strip(size_t i) {
  const ScoreStrip& strip = scores_.strips[i];
  const std::string vector =
      kernel_.multiples(offset_units(pool_, strip.offset), 16 / strip.bytes());
  emitter_.open();
  emitter_.line(
      fmt::format("const int row = static_cast<int>(min_of(static_cast<long long>(group_row + warp "
                  "* 16 + line), {} - 1));",
                  row_count_));
  emitter_.bind(form_.row, "row");
  const std::string offset = emitter_.emit(strip.offset);
  emitter_.line(fmt::format("return {} + strip_first;", offset));
  const std::string at = emitter_.close();
  emitter_.line(
      fmt::format("copy_strip<{0}, {1}>(strip{2}, {3}, [&](int line) -> long long {{\n{4}}}, "
                  "static_cast<int>(min_of({5} - strip_first, {0}ll)), {6});",
                  config_.keys, strip.pitch(config_.keys), i, kernel_.buffer(strip.read->integer),
                  at, keys_, vector));
}

void HopperText::wait_strips() {
  if (config_.strips) emitter_.line("ptx_copy_wait<0>();\n__syncwarp();");
}

void HopperText::bind_terms() {
  for (const auto& [e, text] : term_texts_) emitter_.bind(e, text);
}

}  // namespace redfuser::codegen
