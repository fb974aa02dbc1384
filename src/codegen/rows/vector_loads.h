// The reads of a fold along its row: groups of consecutive elements as machine words.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/rows/single_pass.h"
#include "codegen/rows/stream_digits.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

class VectorLoads {
 public:
  VectorLoads(KernelText& kernel, const FlatStreaming& form, const SinglePassConfig& config);

  // Declares pointers to the row, and `shift`: if the row's first element is not aligned, groups
  // start so many elements before it. The row must be bound.
  void declare(Emitter& emitter);
  // Declares the registers of a tile.
  void declare_tile(Emitter& emitter) const;
  // Loads group `c` of a tile, whose first element is `first`.
  void load_group(Emitter& emitter);
  // Declares `group`, the streamed position of the group's first element. `first` must be declared.
  void bind_group(Emitter& emitter) const;
  // Waits for the asynchronous copies of a tile.
  void wait_copies(Emitter& emitter) const;
  // Whether a warp loads some strided reads coalesced and transposes them through shared memory,
  // and the text that transposes group `c`.
  bool transposes() const;
  void transpose_group(Emitter& emitter) const;
  // Declares the shared memory of the transposes: for every warp kStagingVectors vectors of 16
  // bytes per word.
  static constexpr int kStagingVectors = 8;
  std::string declare_staging() const;
  int staging_words() const;
  // Loads the words of group `c` for a pass: the fold, or the outputs.
  void open_group(Emitter& emitter, bool output);
  // Binds the reads of element `v`.
  void bind_element(Emitter& emitter, bool output) const;

  // Whether loops over a tile index registers and must be unrolled.
  bool unrolls(bool output) const { return !config_.shared || (output && prefetch_); }

  // Whether outputs read elements that the fold does not read.
  bool loads_for_outputs() const;

  // The offset of an output's first element in the row, or in each group if only groups are
  // consecutive. Both are null if elements are not consecutive.
  struct OutputPlace {
    ir::Expr base = nullptr, group = nullptr;
  };
  OutputPlace output_place(const FlatStreaming::Output& output);
  // A CUDA bool: every group can be accessed as a vector. Final after all text is emitted.
  std::string vector_condition();
  // The largest staging_words() of all configurations.
  int max_staging_words() const;
  // Words of a group.
  int group_words() const;
  // Whether shared memory can hold a tile: groups consist of 16-byte vectors.
  bool shareable() const;
  // Dynamic shared memory of a block.
  int shared_bytes() const;

 private:
  struct Item {
    int64_t value = 0;
    ir::Expr base =
        nullptr;  // offset of the row's first element; null: elements are not consecutive
    // Offset of a group's first element over group_axis_, with `stride` (0 or 1) elements between
    // adjacent ones; null: every element has an offset of its own.
    ir::Expr group = nullptr;
    int stride = 1;
    bool once = false, folded = false, written = false;  // passes that read it
    std::vector<std::pair<ir::Expr, int>> members;  // reads, and their position within a stride
  };
  void collect(ir::Expr root, bool output);
  void find_alignment();
  std::optional<ir::Affine> consecutive(ir::Expr offset);
  std::optional<GroupedOffset> grouped(ir::Expr offset);
  ir::Expr over_groups(ir::Expr offset) const;
  void require_group(int64_t value, ir::Expr offset, bool written);
  void load_elements(Emitter& emitter, const Item& item, const std::string& target);
  void add(ir::Expr read, bool output);
  bool kept(const Item& item) const { return item.folded || prefetch_; }
  bool in_shared(const Item& item) const { return config_.shared && item.folded; }
  bool may_transpose(const Item& item) const;
  bool transposed(const Item& item) const;
  int words(const Item& item) const;
  std::string_view storage(const Item& item) const;
  bool available(ir::Expr base) const;
  bool may_be_aligned(ir::Expr base);
  void require(int64_t value, ir::Expr base, bool written);
  void load(Emitter& emitter, const Item& item, size_t number, const std::string& target);
  std::string group_address(Emitter& emitter, const Item& item) const;

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const FlatStreaming& form_;
  SinglePassConfig config_;
  ir::Expr group_axis_;
  std::vector<Item> items_;
  std::vector<ir::Expr> group_offsets_;
  bool prefetch_ = false, any_aligned_ = false;
  std::vector<std::string> aligned_;
  std::vector<ir::Expr> units_;
};

}  // namespace redfuser::codegen
