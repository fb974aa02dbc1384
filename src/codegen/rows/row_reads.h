// The reads of a fold along its row: groups of consecutive elements as machine words.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/functor/stream_digits.h"
#include "codegen/rows/single_pass.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

class RowReads {
 public:
  RowReads(KernelText& kernel, const FlatStreaming& form, const SinglePassConfig& config);

  struct Item {
    int64_t value = 0;
    ir::Expr base =
        nullptr;  // offset of the row's first element; null: elements are not consecutive
    // Offset of a group's first element over group_axis(), with `stride` (0 or 1) elements between
    // adjacent ones; null: every element has an offset of its own.
    ir::Expr group = nullptr;
    int stride = 1;
    bool once = false, folded = false, written = false;  // passes that read it
    std::vector<std::pair<ir::Expr, int>> members;  // reads, and their position within a stride
  };
  const std::vector<Item>& items() const { return items_; }

  // The words of an item's group, the 16-byte vectors that these take in shared memory, and the
  // type of its elements in memory.
  int words(const Item& item) const;
  int vectors(const Item& item) const { return (words(item) + 3) / 4; }
  std::string_view storage(const Item& item) const;
  // Where a pass (the fold, or the outputs) finds an item's words: among those that a tile keeps in
  // registers or in shared memory, or in the tensor.
  enum class Source { Registers, Shared, Memory };
  bool kept(const Item& item) const { return item.folded || prefetch_; }
  bool in_shared(const Item& item) const { return config_.shared && item.folded; }
  Source source(const Item& item, bool output) const;
  // Whether a warp loads the words in coalesced order and transposes them through shared memory:
  // kStagingVectors vectors of 16 bytes per word of a group for every warp.
  bool transposed(const Item& item) const;
  static constexpr int kStagingVectors = 8;
  int staging_words() const;
  // The largest staging_words() of all configurations.
  int max_staging_words() const;
  // Whether outputs need words in registers.
  bool prefetches() const { return prefetch_; }
  // Whether outputs read elements that the fold does not read.
  bool loads_for_outputs() const;
  // Words of a group, and of its vectors in shared memory.
  int group_words() const;
  int shared_words() const;
  // Bytes that the fold reads of an element.
  double element_bytes() const;
  // Whether shared memory can hold a tile: groups consist of 16-byte vectors, or of one or two
  // words.
  bool shareable() const;
  // Dynamic shared memory of a block.
  int shared_bytes() const;
  // If the row's first element is not aligned, groups start so many elements before it as the
  // address of this item is past a group's; nullopt: the row itself.
  std::optional<size_t> shifted() const;

  // The axis over which the offsets of groups are given, and these.
  ir::Expr group_axis() const { return group_axis_; }
  const std::vector<ir::Expr>& group_offsets() const { return group_offsets_; }
  // The offset of an output's first element in the row, or in each group if only groups are
  // consecutive. Both are null if elements are not consecutive.
  struct OutputPlace {
    ir::Expr base = nullptr, group = nullptr;
  };
  OutputPlace output_place(const FlatStreaming::Output& output);
  // A CUDA bool: every group can be accessed as a vector. Complete after output_place() of all
  // outputs.
  std::string vector_condition();

 private:
  void collect(ir::Expr root, bool output);
  void find_alignment();
  std::optional<ir::Affine> consecutive(ir::Expr offset);
  std::optional<GroupedOffset> grouped(ir::Expr offset);
  ir::Expr over_groups(ir::Expr offset) const;
  void require_group(int64_t value, ir::Expr offset, bool written);
  void add(ir::Expr read, bool output);
  void merge(Item item, ir::Expr read, int place, bool output);
  bool may_transpose(const Item& item) const;
  bool available(ir::Expr base) const;
  bool may_be_aligned(ir::Expr base);

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const FlatStreaming& form_;
  const SinglePassConfig config_;
  AlignedAccesses accesses_;
  ir::Expr group_axis_;
  std::vector<Item> items_;
  std::vector<ir::Expr> group_offsets_;
  bool prefetch_ = false, any_aligned_ = false;
};

}  // namespace redfuser::codegen
