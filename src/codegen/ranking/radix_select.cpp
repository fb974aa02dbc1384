#include "codegen/ranking/radix_select.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "codegen/elementwise/clear_kernel.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/ranking/radix_kernel.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// Counts have 30 bits.
constexpr int64_t kLongestRow = (int64_t{1} << 30) - 1;

bool contracts(ir::Expr root) {
  bool found = false;
  visit(root, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
  return found;
}

class Sort {
 public:
  Sort(StepBuilder& builder, const FlatStreaming& form)
      : builder_(builder),
        pool_(builder.pool()),
        form_(radix_form(form)),
        elements_(pool_.mul(rows(), form.length())) {}

  void add() { write(add_positions()); }

  int64_t add_positions() {
    RadixScratch scratch;
    ir::Expr numbers = radix_numbers(pool_, form_);
    scratch.numbers = builder_.add_scratch(DType::UInt32, numbers);
    const DType key = form_.key_bits == 64 ? DType::UInt64 : DType::UInt32;
    const int passes = form_.passes();
    for (int buffer = 0; buffer < std::min(passes, 2); ++buffer) {
      // The last pass has no keys.
      if (buffer < passes - 1) scratch.keys[buffer] = builder_.add_scratch(key, elements_);
      scratch.positions[buffer] = builder_.add_scratch(DType::UInt32, elements_);
    }
    push(clear_kernel(builder_, "sort_clear", scratch.numbers, numbers));
    push(radix_count_kernel(builder_, form_, scratch));
    for (int pass = 0; pass < passes; ++pass) {
      push(radix_pass_kernel(builder_, form_, scratch, pass));
    }
    return scratch.positions[(passes - 1) % 2];
  }

  // Microseconds.
  double time() const {
    constexpr double kStartTime = 1.5, kChainTime = 3, kCacheShare = 0.5, kMemoryShare = 0.8;
    // Instructions of a warp that a multiprocessor issues per cycle, and of 32 elements in a pass.
    constexpr double kIssueRate = 3.5, kPassWork = 70, kCountWork = 40, kSector = 32;
    const Target& target = builder_.target;
    const auto elements = static_cast<double>(builder_.sizes.of(elements_));
    const double pair = form_.key_bytes() + 4, passes = form_.passes();
    const bool cached = 2 * pair * elements < static_cast<double>(target.l2_bytes);
    const double rate = cached ? kCacheShare * target.l2_rate() : kMemoryShare * target.dram_rate;
    const double first = read_bytes();
    const double issue = kIssueRate * target.clock * target.multiprocessors;
    const double counting =
        elements * std::max(first / rate, (kCountWork + 8 * passes) / 32 / issue);
    const double moved = elements * (2 * passes * pair - form_.key_bytes() - pair + first) / rate;
    const double work = elements / 32 * kPassWork * passes / issue;
    const double results = kSector * 2 * written() / target.l2_rate();
    return (3 + passes) * (select::kLaunchTime + kStartTime) + passes * kChainTime + counting +
           std::max(moved, work) + results;
  }

 private:
  ir::Expr rows() const { return product_of(pool_, extents_of(pool_, form_.rows.cascade.rows)); }

  void push(KernelLaunch launch) { builder_.result.calls.push_back(std::move(launch)); }

  // What an element takes of memory where it is read in the order of the row.
  double read_bytes() const {
    constexpr double kSector = 32;
    double bytes = 0;
    visit(form_.accumulator().lift, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const auto affine = affine_in(pool_, e->args[0], form_.rows.cascade.stream);
      const bool adjacent = affine && affine->stride->is_constant(1);
      bytes += adjacent ? static_cast<double>(size_of(builder_.dtype_of(e->integer))) : kSector;
    });
    return bytes;
  }

  double written() const {
    double count = 0;
    for (const FlatStreaming::Output& output : form_.rows.outputs) {
      ir::Expr size = product_of(pool_, builder_.shape(output.value));
      count += static_cast<double>(std::max<int64_t>(builder_.sizes.of(size), 0));
    }
    return count;
  }

  // The position at a rank of the row.
  ir::Expr position(int64_t positions, ir::Expr rank) const {
    const std::vector<ir::Expr>& rows = form_.rows.cascade.rows;
    ir::Expr row = row_major(pool_, rows, extents_of(pool_, rows));
    ir::Expr at = pool_.add(pool_.mul(row, form_.rows.length()), rank);
    return pool_.cast(DType::Int64, pool_.read(positions, DType::UInt32, {at}));
  }

  // What stands for a ranked result: the element at its position, or that.
  ir::Expr ranked(ir::Expr read, int64_t positions) const {
    const int64_t code = -read->integer - 2;
    const ir::Expr finish = form_.rows.finish[static_cast<size_t>(code / 2)];
    RF_CHECK(finish->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
    ir::Expr at = position(positions, read->args[0]);
    if (code % 2 != 0) return at;
    return pool_.substitute(form_.accumulator().lift, {{form_.rows.cascade.stream, at}});
  }

  void write(int64_t positions) {
    std::map<std::vector<ir::Expr>, std::vector<Store>> stores;  // by ranks
    for (const FlatStreaming::Output& output : form_.rows.outputs) {
      ir::Expr body = pool_.rewrite(output.body, [&](ir::Expr e) -> ir::Expr {
        if (e->op == ir::ExprOp::Read && e->integer < 0) return ranked(e, positions);
        const bool count = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
        return count ? form_.rows.length() : nullptr;
      });
      stores[output.extra].push_back({output.value, body, output.offset});
    }
    for (auto& [ranks, own] : stores) {
      std::vector<ir::Expr> axes = form_.rows.cascade.rows;
      axes.insert(axes.end(), ranks.begin(), ranks.end());
      add_map(builder_, "sort_results", axes, std::move(own), form_.rows.comment);
    }
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const RadixForm form_;
  const ir::Expr elements_;
};

}  // namespace

std::optional<std::string> sort_refusal(const FlatStreaming& form) {
  if (form.accumulators.size() != 1 || !is_ranked(form.accumulators[0].reduction)) {
    return "the row has another reduction than by rank";
  }
  const cascade::Accumulator& a = form.accumulators[0];
  if (contracts(a.lift)) return "an element of the row is a reduction of its own";
  for (const FlatStreaming::Output& output : form.outputs) {
    if (output.maps_back) return "an output has an element for every one of the row";
    if (contracts(output.body)) return "an output holds a reduction of its own";
  }
  if (form.length()->is_constant() && form.length()->integer > kLongestRow) {
    return "a row has more elements than are counted in 30 bits";
  }
  return std::nullopt;
}

std::vector<Candidate> sort_configs(StepBuilder& builder, const FlatStreaming& form) {
  const int64_t length = builder.sizes.of(form.length());
  if (length <= 0) return {};
  for (ir::Expr extent : extents_of(builder.pool(), form.cascade.rows)) {
    if (builder.sizes.of(extent) <= 0) return {};
  }
  return {{{kSortFamily, {}}, Sort(builder, form).time()}};
}

int64_t add_sorted_positions(StepBuilder& builder, const FlatStreaming& form) {
  return Sort(builder, form).add_positions();
}

void add_sort(StepBuilder& builder, const FlatStreaming& form) { Sort(builder, form).add(); }

}  // namespace redfuser::codegen
