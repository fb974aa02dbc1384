#include "cascade/certify/certificate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cascade/certify/elements.h"
#include "cascade/certify/simulate.h"
#include "cascade/certify/structure.h"
#include "cascade/visibility/hidden_elements.h"
#include "ir/evaluate.h"

namespace redfuser::cascade {
namespace {

enum class Kind { Normal, Large, Tiny, Zeros, Ties, SomeMinusInf, AllMinusInf, PlusInf, NaN };
constexpr Kind kKinds[] = {Kind::Normal,      Kind::Large,   Kind::Tiny,
                           Kind::Zeros,       Kind::Ties,    Kind::SomeMinusInf,
                           Kind::AllMinusInf, Kind::PlusInf, Kind::NaN};
constexpr const char* kKindNames[] = {"normal", "large",      "tiny",     "zero", "tied",
                                      "masked", "all masked", "infinite", "NaN"};

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Values with few bits, so that their sums and squares are exact and cancellation shows only if the
// form itself loses digits.
double float_value(Kind kind, uint64_t hash) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double small = (static_cast<double>(hash % 65) - 32) / 8;
  const bool special = (hash >> 20) % 3 == 0;
  switch (kind) {
    case Kind::Normal:
      return small;
    case Kind::Large:
      return static_cast<double>(hash % 2001) - 1000;
    case Kind::Tiny:
      return small / 1048576;
    case Kind::Zeros:
      return 0;
    case Kind::Ties:
      return static_cast<double>(hash % 2);
    case Kind::SomeMinusInf:
      return special ? -inf : small;
    case Kind::AllMinusInf:
      return -inf;
    case Kind::PlusInf:
      return special ? inf : small;
    case Kind::NaN:
      return special ? std::nan("") : small;
  }
  return small;
}

// With a guard that replaces a whole row by zeros, the graph computes 0·v per element, which is NaN
// for an infinite v, and the fused form writes 0. Values behind such guards are drawn finite.
std::set<int64_t> values_behind_guards(const Cascade& cascade) {
  std::set<int64_t> values;
  for (const Stage& stage : cascade.stages) {
    bool guarded = false;
    visit(stage.body,
          [&](ir::Expr e) { guarded |= e->op == ir::ExprOp::Select && e->args[0]->has_leaf; });
    if (!guarded) continue;
    visit(stage.body, [&](ir::Expr e) {
      for (ir::Expr column : stage.columns) {
        if (e->op == ir::ExprOp::Read && e->depends_on(column)) values.insert(e->integer);
      }
    });
  }
  return values;
}

ir::Environment environment(Kind kind, int64_t size, uint64_t seed,
                            const std::set<int64_t>& finite) {
  return [=, &finite](ir::Expr leaf) -> double {
    if (leaf->op == ir::ExprOp::Symbol) return static_cast<double>(size);
    if (leaf->op == ir::ExprOp::Axis) return 0;
    uint64_t hash = mixed(seed ^ static_cast<uint64_t>(leaf->integer));
    for (ir::Expr index : leaf->args) hash = mixed(hash ^ static_cast<uint64_t>(index->integer));
    if (leaf->dtype == DType::Bool) return static_cast<double>(hash % 4 != 0);
    if (is_integer(leaf->dtype)) return static_cast<double>(hash % 4);
    return float_value(finite.count(leaf->integer) ? Kind::Normal : kind, hash);
  };
}

// The same with every row axis at `position`, or at its last point.
ir::Environment at_row(const ir::Environment& values, int64_t position) {
  const auto known = std::make_shared<std::map<int64_t, double>>();  // by extent's id
  return [=, &values](ir::Expr leaf) -> double {
    if (leaf->op != ir::ExprOp::Axis) return values(leaf);
    const auto [found, added] = known->try_emplace(leaf->extent()->id, 0);
    if (added) {
      found->second = std::max(
          std::min(static_cast<double>(position), evaluate(leaf->extent(), values) - 1), 0.0);
    }
    return found->second;
  };
}

// The relative difference; 0 for equal values, infinities and NaN pairs.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)});
}

// Positions are compared only if values determine them: not among NaN, and not where underflow
// makes elements equal that differ in the streaming form.
bool positions_defined(Kind kind) {
  return kind == Kind::Normal || kind == Kind::Tiny || kind == Kind::Zeros || kind == Kind::Ties;
}

// A hidden element is taken to be finite.
bool is_finite(Kind kind) { return kind < Kind::SomeMinusInf; }

constexpr double kTolerance = 1e-6;
constexpr int64_t kLongestRow = 1024;
constexpr int64_t kMostTiles = 16;      // of two elements or more
constexpr int64_t kWorthThreads = 256;  // shorter rows take less time than starting threads

struct Case {
  Kind kind;
  int64_t size;  // of every symbol
  uint64_t seed;
  int64_t length = -1;  // of the row; -1: as the sizes give it
};

std::vector<Case> cases_for(ir::Expr extent) {
  std::vector<Case> cases;
  const bool fixed = extent->is_constant();
  const std::vector<int64_t> sizes =
      fixed ? std::vector<int64_t>{3} : std::vector<int64_t>{1, 2, 3, 7};
  for (Kind kind : kKinds) {
    for (int64_t size : sizes) cases.push_back({kind, size, cases.size() + 17});
  }
  return cases;
}

// A row has at least k elements for a TopK.
int64_t fewest_elements(const Cascade& cascade) {
  int64_t fewest = 0;
  for (const Stage& stage : cascade.stages) {
    if (stage.k > 1) fewest = std::max(fewest, stage.k);
  }
  return fewest;
}

std::vector<Case> cases_of_elements(const std::vector<int64_t>& lengths) {
  std::vector<Case> cases;
  for (Kind kind : kKinds) {
    for (const int64_t length : lengths) cases.push_back({kind, length, cases.size() + 17, length});
  }
  return cases;
}

// Runs both forms on rows of data.
class Trial {
 public:
  // `hidden`: the condition of elements that may be left out.
  Trial(const Cascade& cascade, const Streaming& streaming, ir::Expr hidden)
      : cascade_(cascade),
        hidden_(hidden),
        exact_infinities_(streaming.exact_infinities),
        finite_(values_behind_guards(cascade)),
        fewest_(fewest_elements(cascade)),
        unfused_(cascade),
        fused_(streaming) {}

  Certificate run(const Case& test) {
    Certificate certificate;
    certificate.valid = true;
    Row row;
    row.values = environment(test.kind, test.size, test.seed, finite_);
    row.length = test.length >= 0
                     ? test.length
                     : static_cast<int64_t>(evaluate(cascade_.stream->extent(), row.values));
    if (row.length > kLongestRow || row.length < fewest_) return certificate;
    row.columns = {{0}, {1}};
    const RowResult expected = unfused_.run(row);
    const int64_t n = row.length;
    const std::vector<std::pair<std::vector<int64_t>, int64_t>> segmentations = {
        {{0, n}, std::max<int64_t>(n, 1)},
        {{0, (n + 1) / 2, (n + 1) / 2, n}, std::max<int64_t>(n / kMostTiles, 2)},
        {{0, n / 3, n - n / 4, n}, std::max<int64_t>(n / 5, 1)}};
    for (const auto& [bounds, tile] : segmentations) {
      const RowResult actual = fused_.run(row, bounds, tile);
      ++certificate.cases;
      check(certificate, test.kind, n, actual, expected);
      if (!certificate.valid) return certificate;
    }
    if (!hidden_->is_constant(0) && is_finite(test.kind)) check_hidden(certificate, test.kind, row);
    return certificate;
  }

 private:
  void check_hidden(Certificate& certificate, Kind kind, Row row) {
    const ir::Environment values = row.values;
    const int64_t n = row.length;
    for (const int64_t position : std::set<int64_t>{0, n / 2, n - 1}) {
      row.values = at_row(values, position);
      const RowResult expected = unfused_.run(row);
      const RowResult actual = fused_.run_visible(row, {0, (n + 1) / 2, n}, 2, hidden_);
      ++certificate.cases;
      certificate.hidden += fused_.left_out();
      check(certificate, kind, n, actual, expected);
      if (!certificate.valid) {
        certificate.failure += ", without hidden elements";
        return;
      }
    }
  }

  void check(Certificate& certificate, Kind kind, int64_t length, const RowResult& actual,
             const RowResult& expected) const {
    for (size_t o = 0; o < expected.outputs.size(); ++o) {
      if (!is_float(cascade_.outputs[o].body->dtype) && !positions_defined(kind)) continue;
      for (size_t i = 0; i < expected.outputs[o].size(); ++i) {
        const double a = actual.outputs[o][i], b = expected.outputs[o][i];
        double error = difference(a, b);
        if (!std::isfinite(a) && !std::isfinite(b) && !exact_infinities_) error = 0;
        if (std::isfinite(error)) certificate.max_error = std::max(certificate.max_error, error);
        if (error > kTolerance) {
          certificate.valid = false;
          certificate.failure = fmt::format(
              "the incremental form gives {} where the graph gives {} ({} data, {} elements)", a, b,
              kKindNames[static_cast<int>(kind)], length);
          return;
        }
      }
    }
  }

  const Cascade& cascade_;
  const ir::Expr hidden_;
  const bool exact_infinities_;
  const std::set<int64_t> finite_;
  const int64_t fewest_;
  UnfusedSimulator unfused_;
  StreamingSimulator fused_;
};

// Each thread has its own simulators, and the cases' results are joined in order, so that the
// certificate is that of a single thread which stops at the first failure.
Certificate certificate_of(const Sides& sides, ir::Expr hidden, const std::vector<Case>& cases,
                           int thread_count) {
  ThreadPool threads(thread_count);
  std::vector<Certificate> parts(cases.size());
  std::atomic<int64_t> first_failure = static_cast<int64_t>(cases.size());
  std::vector<std::unique_ptr<Trial>> trials(static_cast<size_t>(threads.size()));
  threads.parallel_for(static_cast<int64_t>(cases.size()), [&](int64_t number, int worker) {
    if (number > first_failure) return;
    auto& trial = trials[static_cast<size_t>(worker)];
    if (!trial) trial = std::make_unique<Trial>(sides.cascade, sides.streaming, hidden);
    Certificate& part = parts[static_cast<size_t>(number)];
    part = trial->run(cases[static_cast<size_t>(number)]);
    for (int64_t first = first_failure; !part.valid && number < first;) {
      if (first_failure.compare_exchange_weak(first, number)) break;
    }
  });
  Certificate certificate;
  certificate.valid = true;
  for (const Certificate& part : parts) {
    certificate.cases += part.cases;
    certificate.hidden += part.hidden;
    certificate.max_error = std::max(certificate.max_error, part.max_error);
    certificate.failure = part.failure;
    certificate.valid = part.valid;
    if (!certificate.valid) break;
  }
  return certificate;
}

}  // namespace

Certificate certify(ir::ExprPool& pool, const Cascade& cascade, const Streaming& streaming,
                    CertificateMemo* memo) {
  ElementReads reads(pool);
  const Sides sides = with_contractions_read(pool, {cascade, streaming}, reads);
  const ir::Expr hidden = hidden_elements(pool, sides.streaming);
  const ir::Expr extent = cascade.stream->extent();
  const bool fixed = extent->is_constant();
  const int threads = fixed && extent->integer >= kWorthThreads ? 0 : 1;
  // An identity of arbitrary elements needs none of the arithmetic of sizes and inputs. Masks are
  // part of that arithmetic. Most identities hold for rows of any length. One that has a
  // constant in place of the length holds for the graph's length alone.
  if (Sides elements = sides; hidden->is_constant(0) && read_elements(elements, pool, reads)) {
    StructureKey key;
    key.add(elements.cascade);
    key.add(elements.streaming);
    if (memo != nullptr) {
      const auto known = memo->of_elements.find(key.text());
      if (known != memo->of_elements.end()) return known->second;
    }
    const int64_t several = 17 + fewest_elements(cascade);  // segments and tiles
    Certificate certificate =
        certificate_of(elements, hidden, cases_of_elements({1, 2, 3, 7, several}), 1);
    if (!certificate.valid && fixed) {
      certificate = certificate_of(elements, hidden, cases_of_elements({extent->integer}), threads);
    }
    if (certificate.valid && certificate.cases > 0) {
      if (memo != nullptr) memo->of_elements.emplace(key.text(), certificate);
      return certificate;
    }
  }
  return certificate_of(sides, hidden, cases_for(extent), threads);
}

std::string fingerprint(const Cascade& cascade) {
  StructureKey key;
  key.add(cascade);
  return key.text();
}

}  // namespace redfuser::cascade
