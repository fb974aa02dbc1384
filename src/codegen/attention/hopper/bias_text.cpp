#include "codegen/attention/hopper/bias_text.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/attention/hopper/select.h"
#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/functor/invariant_parts.h"
#include "codegen/text/function_text.h"

namespace redfuser::codegen {
namespace {

constexpr int kThreads = Warpgroup::kThreads, kRows = Warpgroup::kRows;

std::string_view stored_type(const BiasTile& term) {
  return term.expr->dtype == DType::Bool ? "float" : value_type(term.expr->dtype);
}

std::string in_block(const std::string& text) { return fmt::format("{{\n{}}}", text); }

}  // namespace

BiasText::BiasText(KernelText& kernel, const AttentionSpec& form, const HopperScores& scores,
                   const HopperConfig& config, const AttentionFunctor& functor)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      scores_(scores),
      config_(config),
      functor_(functor) {}

BiasText::Placed BiasText::placed(ir::Expr value, ir::Expr place, std::string index,
                                  std::string name) const {
  Placed result{value, place, std::move(index), std::move(name), {}};
  visit(value, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read && e->depends_on(place)) result.reads.push_back(e);
  });
  return result;
}

Emitter BiasText::emitter() const {
  Emitter result(kernel_);
  result.set_fast_exp(true);
  functor_.bind_row(result);
  return result;
}

// The text of the value, computed from the loaded elements.
std::string BiasText::emit(Emitter& emitter, const Placed& placed) const {
  emitter.bind(placed.place, "loaded." + placed.name);
  for (size_t i = 0; i < placed.reads.size(); ++i) {
    emitter.bind(placed.reads[i], "loaded." + placed.read(i));
  }
  return emitter.emit(placed.value);
}

// A key within the tile and the tensor.
std::string BiasText::key_at(int from) const {
  return config_.keys < from + kThreads
             ? fmt::format("min_of(first + min(thread + {}, {}) + 0ll, {} - 1)", from,
                           config_.keys - 1, keys_)
             : fmt::format("min_of(first + thread + {}ll, {} - 1)", from, keys_);
}

std::string BiasText::constants() const {
  return fmt::format(
      "static constexpr bool kTerms = {}, kByKey = {}, kStrips = {};\n"
      "static constexpr int kTermBytes = {}, kStripBytes = {};\n",
      !scores_.terms.empty(), scores_.by_key != nullptr, has_strips(),
      hopper_term_bytes(scores_, config_), hopper_strip_bytes(scores_, config_));
}

std::string BiasText::structs() const {
  Members loaded, pair;
  const auto add = [&](const Placed& placed) {
    loaded.add("int", placed.name);
    for (size_t i = 0; i < placed.reads.size(); ++i) {
      loaded.add(value_type(placed.reads[i]->dtype), placed.read(i));
    }
  };
  for (const auto& parts : terms_) {
    for (const Placed& part : parts) add(part);
  }
  for (const Placed& one : visible_) add(one);
  for (size_t t = 0; t < scores_.terms.size(); ++t) {
    pair.add(stored_type(scores_.terms[t]), fmt::format("term{}[2]", t));
  }
  for (size_t i = 0; has_strips() && i < scores_.strips.size(); ++i) {
    pair.add(value_type(scores_.strips[i].read->dtype), fmt::format("strip{}[2]", i));
  }
  return struct_text("Loaded", loaded.text()) + struct_text("Pair", pair.text());
}

int BiasText::term_offset(size_t t) const {
  int offset = 0;
  for (size_t i = 0; i < t; ++i) {
    offset += 2 * scores_.terms[i].places(kRows, config_.keys) * scores_.terms[i].bytes();
  }
  return offset;
}

int BiasText::strip_offset(size_t i) const {
  int offset = hopper_term_bytes(scores_, config_);
  for (size_t j = 0; j < i; ++j) offset += kRows * scores_.strips[j].pitch(config_.keys);
  return offset;
}

std::string BiasText::load_terms() const {
  std::string text = "Loaded loaded;\n";
  const auto add = [&](const Placed& part) {
    Emitter e = emitter();
    e.line(fmt::format("loaded.{} = {};", part.name, as_int(part.index)));
    e.bind(part.place, "loaded." + part.name);
    for (size_t i = 0; i < part.reads.size(); ++i) {
      e.line(fmt::format("loaded.{} = {};", part.read(i), e.emit(part.reads[i])));
    }
    text += in_block(e.close()) + "\n";
  };
  for (const auto& parts : terms_) {
    for (const Placed& part : parts) add(part);
  }
  for (const Placed& one : visible_) add(one);
  return function_text(
      "Loaded load_terms(const Row& row, int first, int group_row, int thread) const",
      text + "return loaded;\n");
}

std::string BiasText::store_terms() const {
  std::string text;
  for (size_t t = 0; t < terms_.size(); ++t) {
    const BiasTile& term = scores_.terms[t];
    const int places = term.places(kRows, config_.keys);
    text += fmt::format("{0}* const term{1} = reinterpret_cast<{0}*>(bias + {2}) + buffer * {3};\n",
                        stored_type(term), t, term_offset(t), places);
    for (size_t j = 0; j < terms_[t].size(); ++j) {
      const int from = static_cast<int>(j) * kThreads, left = places - from;
      Emitter e = emitter();
      const std::string value = emit(e, terms_[t][j]);
      const std::string some =
          left < kThreads ? fmt::format("if (thread < {}) ", left) : std::string();
      e.line(fmt::format("{}term{}[thread + {}] = {};", some, t, from, value));
      text += in_block(e.close()) + "\n";
    }
  }
  Emitter e = emitter();
  const std::string visible = visible_.empty() ? "true" : emit(e, visible_[0]);
  text += e.close() + fmt::format("return {};\n", visible);
  return function_text(
      "bool store_terms(const Loaded& loaded, const Row& row, char* bias, int buffer, int thread) "
      "const",
      text);
}

// Rows beyond the last one read the last one.
std::string BiasText::copy_strip(size_t i) const {
  const ScoreStrip& strip = scores_.strips[i];
  const std::string vector =
      kernel_.multiples(offset_units(pool_, strip.offset), 16 / strip.bytes());
  Emitter e = emitter();
  e.line(fmt::format("Row row = block;\nset_line(row, min_of(first_line + line + 0ll, {} - 1));",
                     rows_));
  e.line(fmt::format("return {} + first;", e.emit(strip.offset)));
  const int pitch = strip.pitch(config_.keys);
  return fmt::format(
      "copy_strip<{0}, {1}>(bias + {2} + warp * {3}, {4}, [&](int line) -> long long {{\n{5}}}, "
      "static_cast<int>(min_of({6} - first, {0}ll)), {7});\n",
      config_.keys, pitch, strip_offset(i), 16 * pitch, kernel_.buffer(strip.read->integer),
      e.close(), keys_, vector);
}

std::string BiasText::copy_strips() const {
  std::string text;
  for (size_t i = 0; i < scores_.strips.size(); ++i) text += copy_strip(i);
  return function_text(
      "void copy_strips(char* bias, const Row& block, int warp, int first_line, int first) const",
      text);
}

std::string BiasText::functions() {
  rows_ = kernel_.size(form_.row->extent());
  keys_ = kernel_.size(form_.rows.length());
  if (!loads()) return "";
  terms_.clear();
  visible_.clear();
  for (size_t t = 0; t < scores_.terms.size(); ++t) {
    const BiasTile& term = scores_.terms[t];
    terms_.emplace_back();
    for (int from = 0; from < term.places(kRows, config_.keys); from += kThreads) {
      const std::string gap =
          fmt::format("min_of(max_of(first - group_row + thread + {} + {} - 1, 0ll), {} + {} - 2)",
                      from - (kRows - 1), rows_, rows_, keys_);
      terms_[t].push_back(placed(term.value, term.place, term.diagonal ? gap : key_at(from),
                                 fmt::format("at{}_{}", t, from / kThreads)));
    }
  }
  if (scores_.by_key) {
    visible_.push_back(placed(scores_.by_key, form_.rows.cascade.stream, key_at(0), "seen"));
  }
  std::string text = constants() + structs() + load_terms();
  if (scores_.has_terms()) text += store_terms();
  if (has_strips()) text += copy_strips();
  return text;
}

std::vector<std::pair<ir::Expr, std::string>> BiasText::values() const {
  std::vector<std::pair<ir::Expr, std::string>> result;
  for (size_t t = 0; t < scores_.terms.size(); ++t) {
    const bool truth = scores_.terms[t].expr->dtype == DType::Bool;
    const std::string text = fmt::format("pair.term{}[at.side]", t);
    result.emplace_back(scores_.terms[t].expr, truth ? fmt::format("({} != 0)", text) : text);
  }
  for (size_t i = 0; has_strips() && i < scores_.strips.size(); ++i) {
    result.emplace_back(scores_.strips[i].read, fmt::format("pair.strip{}[at.side]", i));
  }
  return result;
}

std::string BiasText::load_bias(const ScoreSpec& score, size_t phase, const char* tag) const {
  std::string text;
  std::set<ir::Expr> seen;
  const auto load_term = [&](size_t t) {
    const BiasTile& term = scores_.terms[t];
    const int places = term.places(kRows, config_.keys);
    const std::string from =
        fmt::format("reinterpret_cast<const {}*>(at.bias + {}) + at.buffer * {} + at.column",
                    stored_type(term), term_offset(t), places);
    text += term.diagonal
                ? fmt::format("load_two(pair.term{}, {} + {} - at.row);\n", t, from, kRows - 1)
                : fmt::format("load_pair(pair.term{}, {});\n", t, from);
  };
  const auto load_strip = [&](size_t i) {
    const ScoreStrip& strip = scores_.strips[i];
    text += fmt::format(
        "load_pair(pair.strip{0}, reinterpret_cast<const {1}*>(at.bias + {2} + at.row * {3}) + "
        "at.column);\n",
        i, storage_type(strip.read->dtype), strip_offset(i), strip.pitch(config_.keys));
  };
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || (phase > 0 && e == score.kept)) return;
    for (size_t t = 0; t < scores_.terms.size(); ++t) {
      if (scores_.terms[t].expr == e) return load_term(t);
    }
    for (size_t i = 0; has_strips() && i < scores_.strips.size(); ++i) {
      if (scores_.strips[i].read == e) return load_strip(i);
    }
    for (ir::Expr arg : e->args) go(arg);
  };
  std::vector<ir::Expr> roots = score.lifts_of(phase);
  if (phase == 0 && score.kept) roots.push_back(score.kept_factors.rest);
  for (ir::Expr root : roots) go(root);
  return function_text(
      fmt::format("void load_bias({}, Phase<{}>, Pair& pair, const BiasPlace& at) const", tag,
                  phase),
      text);
}

}  // namespace redfuser::codegen
