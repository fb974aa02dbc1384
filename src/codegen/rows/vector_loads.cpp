#include "codegen/rows/vector_loads.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kMaxStride = 4;
// Words per thread that are loaded in advance for outputs while a warp reduces its row. Beyond
// this, other blocks hide the latency.
constexpr int kMaxWaiting = 32;

}  // namespace

VectorLoads::VectorLoads(KernelText& kernel, const FlatStreaming& form,
                         const SinglePassConfig& config)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      config_(config),
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
  prefetch_ = config.whole && config.lanes <= 32 && waiting > 0 && waiting <= kMaxWaiting;
}

// Whether groups of the row's elements may be aligned, which an odd row length excludes. Reads that
// all rows share do not count.
void VectorLoads::find_alignment() {
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

std::optional<ir::Affine> VectorLoads::consecutive(ir::Expr offset) {
  auto affine = affine_in(pool_, offset, form_.cascade.stream);
  if (!affine || !affine->stride->is_constant() || affine->stride->integer < 1 ||
      affine->stride->integer > kMaxStride || !available(affine->base)) {
    return std::nullopt;
  }
  return affine;
}

// Collects the reads outside of other reads' indices.
void VectorLoads::collect(ir::Expr root, bool output) {
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || !e->depends_on(form_.cascade.stream)) return;
    if (e->op == ir::ExprOp::Read) return add(e, output);
    for (ir::Expr arg : e->args) go(arg);
  };
  go(root);
}

void VectorLoads::add(ir::Expr read, bool output) {
  Item item;
  item.value = read->integer;
  int place = 0;
  if (const auto affine = consecutive(read->args[0])) {
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
  item.once = item.base && std::all_of(form_.cascade.rows.begin(), form_.cascade.rows.end(),
                                       [&](ir::Expr row) { return item.base->depends_on(row); });
  items_.push_back(std::move(item));
}

// Groups with consecutive or equal elements that may be aligned.
std::optional<GroupedOffset> VectorLoads::grouped(ir::Expr offset) {
  if (!available(pool_.substitute(offset, {{form_.cascade.stream, pool_.integer(0)}}))) {
    return std::nullopt;
  }
  auto group = grouped_offset(pool_, offset, form_.cascade.stream, config_.width);
  if (!group || kernel_.multiples(group->units, config_.width) == "false") return std::nullopt;
  return group;
}

ir::Expr VectorLoads::over_groups(ir::Expr offset) const {
  return pool_.substitute(offset, {{form_.cascade.stream, group_axis_}});
}

// Whether it depends on row axes alone.
bool VectorLoads::available(ir::Expr base) const {
  if (base->depends_on(form_.cascade.stream)) return false;
  bool result = true;
  visit(base, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Axis) return;
    result &= std::find(form_.cascade.rows.begin(), form_.cascade.rows.end(), e) !=
              form_.cascade.rows.end();
  });
  return result;
}

bool VectorLoads::may_be_aligned(ir::Expr base) {
  return kernel_.multiples(offset_units(pool_, base), config_.width) != "false";
}

void VectorLoads::require(int64_t value, ir::Expr base, bool written) {
  const std::string buffer = kernel_.buffer(value, written);
  if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
    aligned_.push_back(buffer);
  }
  for (ir::Expr unit : offset_units(pool_, base)) units_.push_back(unit);
}

void VectorLoads::require_group(int64_t value, ir::Expr offset, bool written) {
  const auto group = grouped(offset);
  if (group->stride == 1) {
    const std::string buffer = kernel_.buffer(value, written);
    if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
      aligned_.push_back(buffer);
    }
  }
  units_.insert(units_.end(), group->units.begin(), group->units.end());
}

std::string_view VectorLoads::storage(const Item& item) const {
  return storage_type(kernel_.dtype_of(item.value));
}

int VectorLoads::words(const Item& item) const {
  const int bytes = config_.width * std::max(item.stride, 1) *
                    static_cast<int>(size_of(kernel_.dtype_of(item.value)));
  return (bytes + 3) / 4;
}

int VectorLoads::group_words() const {
  int total = 0;
  for (const Item& item : items_) total += item.folded ? words(item) : 0;
  return total;
}

bool VectorLoads::shareable() const {
  return std::all_of(items_.begin(), items_.end(), [&](const Item& item) {
    return !item.folded || ((item.base || item.group) && words(item) % 4 == 0);
  });
}

bool VectorLoads::loads_for_outputs() const {
  return !prefetch_ && std::any_of(items_.begin(), items_.end(),
                                   [](const Item& item) { return item.written && !item.folded; });
}

int VectorLoads::shared_bytes() const {
  int total = 0;
  for (const Item& item : items_) {
    if (in_shared(item)) total += words(item) * 4 * config_.chunks * config_.threads;
  }
  return total;
}

void VectorLoads::declare(Emitter& emitter) {
  int offset = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.base) {
      require(item.value, item.base, false);
      const std::string base = emitter.emit(item.base);
      emitter.line(fmt::format("const {}* in{} = {} + ({} + begin * {});", storage(item), i,
                               kernel_.buffer(item.value), base, item.stride));
    }
    if (item.group) require_group(item.value, item.members[0].first->args[0], false);
    if (in_shared(item)) {
      emitter.line(fmt::format("uint4* smem{} = tile_smem + {} + threadIdx.x;", i, offset));
      offset += words(item) / 4 * config_.chunks * config_.threads;
    }
  }
  const auto first = std::find_if(items_.begin(), items_.end(), [](const Item& item) {
    return item.base && item.once && item.stride == 1;
  });
  if (first == items_.end()) {
    emitter.line("constexpr int shift = 0;");
    return;
  }
  const int capacity = config_.lanes * config_.cluster * config_.width * config_.chunks;
  emitter.line(fmt::format(
      "const int shift = kVector ? 0 : misalignment<{}>(in{}, {});", config_.width,
      first - items_.begin(),
      config_.whole ? fmt::format("{} - extent", capacity) : fmt::to_string(config_.width)));
}

// Whether coalesced loads and a transpose can replace loads of 16 bytes per lane with gaps between
// adjacent lanes.
bool VectorLoads::may_transpose(const Item& item) const {
  return item.once && item.stride > 1 && words(item) % 4 == 0 && words(item) > 4;
}

bool VectorLoads::transposed(const Item& item) const {
  return may_transpose(item) && config_.lanes >= 32 && kept(item) && !in_shared(item);
}

int VectorLoads::max_staging_words() const {
  int most = 0;
  for (const Item& item : items_) most = std::max(most, may_transpose(item) ? words(item) : 0);
  return most;
}

bool VectorLoads::transposes() const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return transposed(item); });
}

int VectorLoads::staging_words() const {
  int most = 0;
  for (const Item& item : items_) most = std::max(most, transposed(item) ? words(item) : 0);
  return most;
}

std::string VectorLoads::declare_staging() const {
  const int most = staging_words();
  if (most == 0) return "";
  return fmt::format("__shared__ __align__(128) uint4 staging[{}][{}];\n", config_.threads / 32,
                     kStagingVectors * most);
}

void VectorLoads::transpose_group(Emitter& emitter) const {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!transposed(items_[i])) continue;
    emitter.line(
        fmt::format("if (coalesced[c]) transpose_lanes(k{}[c], staging[threadIdx.x >> 5]);", i));
  }
}

void VectorLoads::declare_tile(Emitter& emitter) const {
  if (transposes()) emitter.line(fmt::format("bool coalesced[{}];", config_.chunks));
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!kept(items_[i]) || in_shared(items_[i])) continue;
    emitter.line(fmt::format("unsigned k{}[{}][{}];", i, config_.chunks, words(items_[i])));
  }
}

void VectorLoads::load(Emitter& emitter, const Item& item, size_t number,
                       const std::string& target) {
  if (item.base) {
    emitter.line(fmt::format(
        "load_words<{0}, {1}, kVector, {2}>({3}, in{4} + first * {5}, -first * {5}, (extent - "
        "first) * "
        "{5});",
        storage(item), config_.width * item.stride, item.once, target, number, item.stride));
    return;
  }
  if (!item.group) return load_elements(emitter, item, target);
  emitter.line(item.stride == 1
                   ? fmt::format("if (kVector) {{\nload_aligned<{}, {}, true>({}, {});\n}} else {{",
                                 storage(item), config_.width, target, group_address(emitter, item))
                   : fmt::format("if (kVector) {{\nrepeat<{}>({}, *({}));\n}} else {{",
                                 config_.width, target, group_address(emitter, item)));
  load_elements(emitter, item, target);
  emitter.line("}");
}

void VectorLoads::bind_group(Emitter& emitter) const {
  if (group_offsets_.empty()) return;
  emitter.line("const long long group = begin + first;");
  emitter.bind(group_axis_, "group");
  bind_digits(emitter, group_offsets_, group_axis_, "group");
}

std::string VectorLoads::group_address(Emitter& emitter, const Item& item) const {
  return fmt::format("{} + {}", kernel_.buffer(item.value), emitter.emit(item.group));
}

void VectorLoads::load_elements(Emitter& emitter, const Item& item, const std::string& target) {
  emitter.open();
  emitter.line("const long long at = begin + first + v;");
  emitter.bind(form_.cascade.stream, "at");
  bind_digits(emitter, {item.members[0].first->args[0]}, form_.cascade.stream, "at");
  const std::string offset = emitter.emit(item.members[0].first->args[0]);
  emitter.line(fmt::format("place({}, v, {}[{}]);", target, kernel_.buffer(item.value), offset));
  const std::string text = emitter.close();
  emitter.line(
      fmt::format("#pragma unroll\nfor (int w = 0; w < {}; ++w) {}[w] = 0;\n#pragma unroll\nfor "
                  "(int v = 0; v < {}; ++v) {{\nif (kVector || (first + v >= 0 && first + v < "
                  "extent)) {{\n{}}}\n}}",
                  words(item), target, config_.width, text));
}

void VectorLoads::load_group(Emitter& emitter) {
  if (transposes()) {
    emitter.line(
        fmt::format("const int warp_first = first - static_cast<int>(threadIdx.x & 31) * {0};\n"
                    "coalesced[c] = kVector && warp_first + 32 * {0} <= extent;",
                    config_.width));
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!kept(item)) continue;
    if (transposed(item)) {
      emitter.line(
          fmt::format("if (coalesced[c]) {{\nload_coalesced(k{0}[c], in{0} + warp_first * {1});\n"
                      "}} else {{",
                      i, item.stride));
    }
    if (!in_shared(item)) {
      load(emitter, item, i, fmt::format("k{}[c]", i));
      if (transposed(item)) emitter.line("}");
      continue;
    }
    if (item.group) {
      emitter.line(fmt::format("unsigned g{}[{}];", i, words(item)));
      load(emitter, item, i, fmt::format("g{}", i));
      emitter.line(fmt::format("store_shared(g{0}, smem{0} + c * {1}, {2});", i,
                               words(item) / 4 * config_.threads, config_.threads));
      continue;
    }
    RF_CHECK(item.base, "a row in shared memory has reads that are not consecutive");
    emitter.line(
        fmt::format("copy_to_shared<{0}, {1}, kVector, {7}, {2}>(smem{3} + c * {4}, {5}, in{3} + "
                    "first * {6}, -first * {6}, (extent - first) * {6});",
                    storage(item), config_.width * item.stride, words(item), i,
                    words(item) / 4 * config_.threads, config_.threads, item.stride,
                    item.once && loads_for_outputs()));
  }
}

void VectorLoads::wait_copies(Emitter& emitter) const {
  if (config_.shared) emitter.line("ptx_copy_commit();\nptx_copy_wait<0>();");
}

void VectorLoads::open_group(Emitter& emitter, bool output) {
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!(output ? item.written : item.folded)) continue;
    const bool here = kept(item) && (!output || config_.whole);
    if (here && !in_shared(item)) continue;
    emitter.line(fmt::format("unsigned g{}[{}];", i, words(item)));
    if (here) {
      emitter.line(fmt::format("load_shared(g{0}, smem{0} + c * {1}, {2});", i,
                               words(item) / 4 * config_.threads, config_.threads));
    } else {
      load(emitter, item, i, fmt::format("g{}", i));
    }
  }
}

void VectorLoads::bind_element(Emitter& emitter, bool output) const {
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!(output ? item.written : item.folded)) continue;
    const bool registers = kept(item) && (!output || config_.whole) && !in_shared(item);
    const std::string words = registers ? fmt::format("k{}[c]", i) : fmt::format("g{}", i);
    for (auto& [read, place] : item.members) {
      const std::string index =
          item.stride <= 1 ? "v" : fmt::format("v * {} + {}", item.stride, place);
      emitter.bind(read, fmt::format("pick<{}>({}, {})", storage(item), words, index));
    }
  }
}

VectorLoads::OutputPlace VectorLoads::output_place(const FlatStreaming::Output& output) {
  const auto affine = consecutive(output.offset);
  if (affine) {
    const bool usable =
        affine->stride->is_constant(1) && (!any_aligned_ || may_be_aligned(affine->base));
    if (!usable) return {};
    require(output.value, affine->base, true);
    return {affine->base, nullptr};
  }
  const auto group = grouped(output.offset);
  if (!group || group->stride != 1) return {};
  require_group(output.value, output.offset, true);
  return {nullptr, over_groups(output.offset)};
}

std::string VectorLoads::vector_condition() {
  units_.push_back(form_.length());
  return all_aligned(kernel_.multiples(units_, config_.width), aligned_);
}

}  // namespace redfuser::codegen
