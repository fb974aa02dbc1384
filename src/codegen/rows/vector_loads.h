// What a fold reads along its row: groups of consecutive elements as machine words.
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

  // Pointers to the row, in the scope where it is known, and `shift`: by how many elements groups
  // start before the row so that they are aligned where its first element is not.
  void declare(Emitter& emitter);
  // Room for a tile's words.
  void declare_tile(Emitter& emitter) const;
  // Loads group `c` of a tile, which starts at `first`.
  void load_group(Emitter& emitter);
  // `group`, the position of the first of a group's elements, in the scope where `first` is known.
  void bind_group(Emitter& emitter) const;
  // Until the tile has come.
  void await(Emitter& emitter) const;
  // Some of what lies strided is loaded by a warp together; then each lane takes its own group `c`
  // of it.
  bool joins() const;
  void part_group(Emitter& emitter) const;
  // Declares the shared memory through which it does: kRoomGroups pieces of 16 bytes for each of
  // these words, of every warp.
  static constexpr int kRoomGroups = 8;
  std::string rooms() const;
  int room_words() const;
  // The words of group `c` for a pass: of the fold, or of the outputs.
  void open_group(Emitter& emitter, bool output);
  // Binds the reads of element `v`.
  void bind_element(Emitter& emitter, bool output) const;

  // Passes over a tile index registers: they must be unrolled.
  bool unrolls(bool output) const { return !config_.shared || (output && prefetch_); }

  // Outputs read what the fold does not.
  bool fetches() const;

  // Where an output's elements are consecutive: the offset of the row's first, or of every group's
  // first while groups are vectors; both null where they are not.
  struct OutputPlace {
    ir::Expr base = nullptr, group = nullptr;
  };
  OutputPlace output_place(const FlatStreaming::Output& output);
  // A bool: every group can be accessed as vectors. Complete once all text is made.
  std::string vector_condition();
  // The most room_words() of any configuration.
  int joint_words() const;
  // Words per thread of a tile's group.
  int group_words() const;
  // Everything that a tile keeps can lie in shared memory: pieces of 16 bytes.
  bool shareable() const;
  // Dynamic shared memory of a block.
  int shared_bytes() const;

 private:
  struct Item {
    int64_t value = 0;
    ir::Expr base = nullptr;  // of the row's first element; null: it says nothing of the others'
    // Of a group's first element, over group_axis_, where the next ones are `stride` (0 or 1) away;
    // null: every element has an offset of its own.
    ir::Expr group = nullptr;
    int stride = 1;
    bool once = false, folded = false, written = false;  // of which passes
    std::vector<std::pair<ir::Expr, int>> members;       // reads, and their place within a stride
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
  bool at_home(const Item& item) const { return config_.shared && item.folded; }
  bool joinable(const Item& item) const;
  bool joined(const Item& item) const;
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
