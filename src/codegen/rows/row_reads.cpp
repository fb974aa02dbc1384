#include "codegen/rows/row_reads.h"

#include <algorithm>

#include "base/error.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kMaxStride = 4;
constexpr size_t kVectorBytes = 16;
// Words per thread that are loaded in advance for outputs while a warp reduces its row. Beyond
// this, other blocks hide the latency.
constexpr int kMaxWaiting = 32;
// The same where every block has all rows: nothing hides the latency.
constexpr int kMaxWaitingEverywhere = 64;

}  // namespace

RowReads::RowReads(KernelText& kernel, const FlatStreaming& form, const SinglePassConfig& config)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      config_(config),
      accesses_(kernel),
      group_axis_(kernel.pool().axis("g", form.length())) {
  find_alignment();
  if (config.part != SinglePassConfig::Part::Finish) {
    for (const cascade::Accumulator& a : form.accumulators) collect(a.lift, false);
  }
  if (config.part != SinglePassConfig::Part::Partials) {
    for (const FlatStreaming::Output& output : form.outputs) {
      if (!output.maps_back) continue;
      collect(output.body, true);
      if (!consecutive(output.offset)) group_offsets_.push_back(over_groups(output.offset));
    }
  }
  int waiting = 0;
  for (const Item& item : items_) {
    if (!config.shared || !item.folded) waiting += words(item) * config.chunks;
  }
  const int most = config.everywhere ? kMaxWaitingEverywhere : kMaxWaiting;
  const bool alone = config.lanes <= 32 || config.everywhere;
  prefetch_ = config.whole && alone && waiting > 0 && waiting <= most;
}

// Whether groups of the row's elements may be aligned, which an odd row length excludes. Reads that
// all rows share do not count.
void RowReads::find_alignment() {
  auto note = [&](ir::Expr offset) {
    const auto affine = consecutive(offset);
    const bool own =
        affine && std::any_of(form_.cascade.rows.begin(), form_.cascade.rows.end(),
                              [&](ir::Expr row) { return affine->base->depends_on(row); });
    any_aligned_ |= own && may_be_aligned(affine->base);
  };
  for (ir::Expr root : form_.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) note(e->args[0]);
    });
  }
}

std::optional<ir::Affine> RowReads::consecutive(ir::Expr offset) {
  auto affine = affine_in(pool_, offset, form_.cascade.stream);
  if (!affine || !affine->stride->is_constant() || affine->stride->integer < 1 ||
      affine->stride->integer > kMaxStride || !available(affine->base)) {
    return std::nullopt;
  }
  return affine;
}

// Collects the reads outside of other reads' indices.
void RowReads::collect(ir::Expr root, bool output) {
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || !e->depends_on(form_.cascade.stream)) return;
    if (e->op == ir::ExprOp::Read) return add(e, output);
    for (ir::Expr arg : e->args) go(arg);
  };
  go(root);
}

void RowReads::add(ir::Expr read, bool output) {
  Item item;
  item.value = read->integer;
  int place = 0;
  // Elements between those of a row are loaded with them, as vectors: the width is their alignment.
  const bool vectors = config_.width * size_of(kernel_.dtype_of(item.value)) >= kVectorBytes;
  const auto affine = consecutive(read->args[0]);
  if (affine && (vectors || affine->stride->is_constant(1))) {
    item.stride = static_cast<int>(affine->stride->integer);
    for (auto& [monomial, coefficient] : to_polynomial(affine->base)) {
      if (monomial.empty()) place = static_cast<int>(coefficient % item.stride);
    }
    ir::Expr base = place < 0 ? affine->base : pool_.sub(affine->base, pool_.integer(place));
    place = std::max(place, 0);
    if (!any_aligned_ || may_be_aligned(base)) item.base = base;
  }
  if (!item.base) {
    item.stride = 1;
    place = 0;
    if (const auto group = grouped(read->args[0])) {
      item.stride = group->stride;
      item.group = over_groups(read->args[0]);
      group_offsets_.push_back(item.group);
    }
  }
  merge(std::move(item), read, place, output);
}

// Reads of the same words are one item.
void RowReads::merge(Item item, ir::Expr read, int place, bool output) {
  for (Item& other : items_) {
    const bool same = item.base ? other.value == item.value && other.base == item.base &&
                                      other.stride == item.stride
                                : !other.base && other.members[0].first == read;
    if (!same) continue;
    (output ? other.written : other.folded) = true;
    const std::pair<ir::Expr, int> member{read, place};
    if (std::find(other.members.begin(), other.members.end(), member) == other.members.end()) {
      other.members.push_back(member);
    }
    return;
  }
  (output ? item.written : item.folded) = true;
  item.members.emplace_back(read, place);
  item.once = item.base && !config_.everywhere && !kernel_.in_shared(item.value) &&
              std::all_of(form_.cascade.rows.begin(), form_.cascade.rows.end(),
                          [&](ir::Expr row) { return item.base->depends_on(row); });
  items_.push_back(std::move(item));
}

// Groups with consecutive or equal elements that may be aligned.
std::optional<GroupedOffset> RowReads::grouped(ir::Expr offset) {
  if (!available(pool_.substitute(offset, {{form_.cascade.stream, pool_.integer(0)}}))) {
    return std::nullopt;
  }
  auto group = grouped_offset(pool_, offset, form_.cascade.stream, config_.width);
  if (!group || kernel_.multiples(group->units, config_.width) == "false") return std::nullopt;
  return group;
}

ir::Expr RowReads::over_groups(ir::Expr offset) const {
  return pool_.substitute(offset, {{form_.cascade.stream, group_axis_}});
}

// Whether it depends on row axes alone.
bool RowReads::available(ir::Expr base) const {
  if (base->depends_on(form_.cascade.stream)) return false;
  bool result = true;
  visit(base, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Axis) return;
    result &= std::find(form_.cascade.rows.begin(), form_.cascade.rows.end(), e) !=
              form_.cascade.rows.end();
  });
  return result;
}

bool RowReads::may_be_aligned(ir::Expr base) {
  return kernel_.multiples(offset_units(pool_, base), config_.width) != "false";
}

void RowReads::require_group(int64_t value, ir::Expr offset, bool written) {
  const auto group = grouped(offset);
  if (group->stride == 1) accesses_.add(kernel_.buffer(value, written));
  accesses_.require(group->units);
}

std::string_view RowReads::storage(const Item& item) const {
  return storage_type(kernel_.dtype_of(item.value));
}

int RowReads::words(const Item& item) const {
  const int bytes = config_.width * std::max(item.stride, 1) *
                    static_cast<int>(size_of(kernel_.dtype_of(item.value)));
  return (bytes + 3) / 4;
}

int RowReads::group_words() const {
  int total = 0;
  for (const Item& item : items_) total += item.folded ? words(item) : 0;
  return total;
}

double RowReads::element_bytes() const {
  double total = 0;
  for (const Item& item : items_) {
    const auto bytes = static_cast<double>(size_of(kernel_.dtype_of(item.value)));
    if (item.folded) total += bytes * std::max(item.stride, 1);
  }
  return total;
}

int RowReads::shared_words() const {
  int total = 0;
  for (const Item& item : items_) total += item.folded ? 4 * vectors(item) : 0;
  return total;
}

bool RowReads::shareable() const {
  const auto is_copied = [&](const Item& item) {
    const int bytes = config_.width * std::max(item.stride, 1) *
                      static_cast<int>(size_of(kernel_.dtype_of(item.value)));
    return (item.base || item.group) && (bytes % 16 == 0 || bytes == 8 || bytes == 4);
  };
  bool vectors = false;
  for (const Item& item : items_) {
    if (!item.folded) continue;
    if (!is_copied(item)) return false;
    vectors |= words(item) % 4 == 0;
  }
  return vectors;
}

bool RowReads::loads_for_outputs() const {
  return !prefetch_ && std::any_of(items_.begin(), items_.end(),
                                   [](const Item& item) { return item.written && !item.folded; });
}

int RowReads::shared_bytes() const {
  int total = 0;
  for (const Item& item : items_) {
    if (in_shared(item)) total += vectors(item) * 16 * config_.chunks * config_.threads;
  }
  return total;
}

std::optional<size_t> RowReads::shifted() const {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].base && items_[i].once && items_[i].stride == 1) return i;
  }
  return std::nullopt;
}

// Whether coalesced loads and a transpose can replace loads of 16 bytes per lane with gaps between
// adjacent lanes.
bool RowReads::may_transpose(const Item& item) const {
  return item.once && item.stride > 1 && words(item) % 4 == 0 && words(item) > 4;
}

bool RowReads::transposed(const Item& item) const {
  return may_transpose(item) && config_.lanes >= 32 && kept(item) && !in_shared(item);
}

int RowReads::max_staging_words() const {
  int most = 0;
  for (const Item& item : items_) most = std::max(most, may_transpose(item) ? words(item) : 0);
  return most;
}

int RowReads::staging_words() const {
  int most = 0;
  for (const Item& item : items_) most = std::max(most, transposed(item) ? words(item) : 0);
  return most;
}

RowReads::Source RowReads::source(const Item& item, bool output) const {
  if (!kept(item) || (output && !config_.whole)) return Source::Memory;
  return in_shared(item) ? Source::Shared : Source::Registers;
}

RowReads::OutputPlace RowReads::output_place(const FlatStreaming::Output& output) {
  const auto affine = consecutive(output.offset);
  if (affine) {
    const bool usable =
        affine->stride->is_constant(1) && (!any_aligned_ || may_be_aligned(affine->base));
    if (!usable) return {};
    accesses_.add(kernel_.buffer(output.value, true), affine->base);
    return {affine->base, nullptr};
  }
  const auto group = grouped(output.offset);
  if (!group || group->stride != 1) return {};
  require_group(output.value, output.offset, true);
  return {nullptr, over_groups(output.offset)};
}

std::string RowReads::vector_condition() {
  for (const Item& item : items_) {
    if (item.base) accesses_.add(kernel_.buffer(item.value), item.base);
    if (item.group) require_group(item.value, item.members[0].first->args[0], false);
  }
  return accesses_.condition(form_.length(), config_.width);
}

}  // namespace redfuser::codegen
