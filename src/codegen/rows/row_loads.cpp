// The loads of a RowFunctor: of the words that a tile keeps, and of those of one pass.
#include "base/error.h"
#include "codegen/rows/row_functor.h"
#include "codegen/text/function_text.h"

namespace redfuser::codegen {

using Source = RowReads::Source;

// Elements with offsets of their own, one by one.
std::string RowFunctor::elements_text(Emitter& e, const RowReads::Item& item,
                                      const std::string& target) const {
  e.open();
  ir::Expr offset = item.members[0].first->args[0];
  bind_element(e, {offset});
  e.line(fmt::format("return {}[{}];", kernel_.buffer(item.value), e.emit(offset)));
  return fmt::format(
      "gather_words<kWidth>({},\n[&](int v) {{ return Vector || (first + v >= 0 && first + v < "
      "row.extent); }},\n[&](int v) {{\n{}}});\n",
      target, e.close());
}

// Where the item's tensor begins and ends, as arguments, if rows have groups of which only a part
// is theirs.
std::string RowFunctor::tensor_text(const RowReads::Item& item) const {
  const ir::Expr length = whole_.length();
  const bool whole = length->is_constant() && length->integer % config_.width == 0;
  if (whole || item.value >= kScratchValues || kernel_.in_shared(item.value)) return "";
  const std::string begin = kernel_.buffer(item.value);
  const ir::Value& value = kernel_.graph().values[static_cast<size_t>(item.value)];
  return fmt::format(", {0}, {0} + {1}", begin, kernel_.size(product_of(pool_, value.shape)));
}

std::string RowFunctor::load_text(Emitter& emitter, const RowReads::Item& item, size_t number,
                                  const std::string& target) const {
  if (item.base) {
    return fmt::format(
        "load_words<{0}, {1}, Vector, {2}>({3}, row.in{4} + first * {5}, -first * {5}, (row.extent "
        "- first) * {5}{6});\n",
        reads_.storage(item), config_.width * item.stride, item.once, target, number, item.stride,
        tensor_text(item));
  }
  const std::string elements = elements_text(emitter, item, target);
  if (!item.group) return elements;
  const std::string address =
      fmt::format("{} + {}", kernel_.buffer(item.value), emitter.emit(item.group));
  return fmt::format("if constexpr (Vector) {{\n{}}} else {{\n{}}}\n",
                     item.stride == 1
                         ? fmt::format("load_aligned<{}, kWidth, {}>({}, {});\n",
                                       reads_.storage(item), !config_.everywhere, target, address)
                         : fmt::format("repeat<kWidth>({}, *({}));\n", target, address),
                     elements);
}

// The address of the thread's vectors of group `c`; they are kThreads vectors apart.
std::string RowFunctor::slot(const RowReads::Item& item) const {
  int offset = 0;
  for (const RowReads::Item& other : reads_.items()) {
    if (&other == &item) break;
    if (reads_.in_shared(other)) offset += reads_.vectors(other) * config_.chunks;
  }
  return fmt::format("tile_smem + ({} + c * {}) * Config::kThreads + threadIdx.x", offset,
                     reads_.vectors(item));
}

std::string RowFunctor::to_shared(Emitter& emitter, const RowReads::Item& item,
                                  size_t number) const {
  if (item.group) {
    return fmt::format("unsigned k{0}[{1}];\n{2}store_shared(k{0}, {3}, Config::kThreads);\n",
                       number, reads_.words(item),
                       load_text(emitter, item, number, fmt::format("k{}", number)), slot(item));
  }
  RF_CHECK(item.base, "a row in shared memory has reads that are not consecutive");
  return fmt::format(
      "copy_to_shared<{0}, {1}, Vector, {2}, {3}>({4}, Config::kThreads, row.in{5} + first * {6}, "
      "-first * {6}, (row.extent - first) * {6});\n",
      reads_.storage(item), config_.width * item.stride, item.once && reads_.loads_for_outputs(),
      reads_.words(item), slot(item), number, item.stride);
}

std::string RowFunctor::words_members(bool kept) const {
  std::string text;
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    const RowReads::Item& item = reads_.items()[i];
    const bool fold = item.folded && reads_.source(item, false) != Source::Registers;
    const bool write = item.written && reads_.source(item, true) != Source::Registers;
    const bool held = reads_.kept(item) && !reads_.in_shared(item);
    if (kept ? held : fold || write) {
      text += fmt::format("unsigned k{}[{}];\n", i, reads_.words(item));
    }
  }
  return text;
}

std::string RowFunctor::load_function() {
  Emitter e = emitter();
  bind_rows(e);
  bind_group(e);
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    const RowReads::Item& item = reads_.items()[i];
    if (!reads_.kept(item)) continue;
    if (reads_.in_shared(item)) {
      e.line(to_shared(e, item, i));
      continue;
    }
    const std::string load = load_text(e, item, i, fmt::format("kept.k{}", i));
    if (reads_.transposed(item)) {
      e.line(
          fmt::format("if (coalesced) {{\nload_coalesced(kept.k{0}, row.in{0} + (first - "
                      "static_cast<int>(threadIdx.x & 31) * kWidth) * {1});\n}} else {{\n{2}}}",
                      i, item.stride, load));
    } else {
      e.line(load);
    }
  }
  return function_text(
      "void keep(Kept& kept, bool coalesced, const Row& row, int c, int first) const", e.close(),
      "bool Vector");
}

std::string RowFunctor::transpose_function() const {
  std::string text;
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    if (reads_.transposed(reads_.items()[i])) {
      text += fmt::format("transpose_lanes(kept.k{}, staging);\n", i);
    }
  }
  return function_text("void transpose(Kept& kept, uint4* staging) const", text);
}

std::string RowFunctor::fetch_function() {
  std::string passes[2];
  for (const bool output : {false, true}) {
    Emitter e = emitter();
    bind_rows(e);
    bind_group(e);
    for (size_t i = 0; i < reads_.items().size(); ++i) {
      const RowReads::Item& item = reads_.items()[i];
      const Source source = reads_.source(item, output);
      if (!(output ? item.written : item.folded) || source == Source::Registers) continue;
      const std::string target = fmt::format("words.k{}", i);
      e.line(source == Source::Memory
                 ? load_text(e, item, i, target)
                 : fmt::format("load_shared({}, {}, Config::kThreads);", target, slot(item)));
    }
    passes[output ? 1 : 0] = e.close();
  }
  return function_text("void fetch(Words& words, const Row& row, int c, int first) const",
                       fmt::format("if constexpr (Set == Reads::Folded) {{\n{}}} else {{\n{}}}\n",
                                   passes[0], passes[1]),
                       "bool Vector, Reads Set");
}

}  // namespace redfuser::codegen
