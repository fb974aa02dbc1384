#include "passes/weights/store_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/deferred_contents.h"
#include "base/half.h"
#include "ops/graph_editor.h"

namespace redfuser::passes {
namespace {

// Lines that are stored together (src/device/product/thin_codes.cuh).
constexpr int64_t kLines = 8;
constexpr int64_t kLineBytes = 16, kQuarters = 4;

using Codes = std::shared_ptr<const ir::WeightCodes>;

int64_t line_groups(const ir::WeightCodes& codes) { return (codes.lines + kLines - 1) / kLines; }

// The codes in groups of lines and steps of the depth; 0 where there is no line or no element.
class StoredCodes : public DeferredContents {
 public:
  explicit StoredCodes(Codes codes) : codes_(std::move(codes)) {}

  Dims dims() const { return {line_groups(*codes_), steps(), kLines * kQuarters * kLineBytes}; }

  void write(size_t offset, size_t bytes, char* to) const override {
    const auto end = static_cast<int64_t>(offset + bytes);
    for (auto at = static_cast<int64_t>(offset); at < end;) {
      const int64_t begin = at % kLineBytes, count = std::min(kLineBytes - begin, end - at);
      char piece[kLineBytes];
      write_piece(at / kLineBytes, piece);
      std::memcpy(to, piece + begin, static_cast<size_t>(count));
      to += count;
      at += count;
    }
  }

 private:
  int64_t elements() const { return kLineBytes * 8 / codes_->bits; }  // of 16 bytes
  int64_t steps() const {
    return (codes_->depth + elements() * kQuarters - 1) / (elements() * kQuarters);
  }

  // The 16 bytes of a lane.
  void write_piece(int64_t number, char (&piece)[kLineBytes]) const {
    const int64_t quarter = number % kQuarters, row = number / kQuarters;
    const int64_t line = row / kLines / steps() * kLines + row % kLines;
    const int64_t start = (row / kLines % steps() * kQuarters + quarter) * elements();
    const uint8_t* const codes = codes_->codes.as<uint8_t>() + line * codes_->depth;
    const int64_t end = line < codes_->lines ? codes_->depth : 0;
    const auto code = [&](int64_t depth) { return depth < end ? codes[depth] : 0; };
    for (int64_t i = 0; i < kLineBytes; ++i) {
      if (codes_->bits == 8) {
        piece[i] = static_cast<char>(code(start + i));
        continue;
      }
      // Eight codes are a word: element e is at bit 4 · (e / 2) + 16 · (e % 2).
      const int64_t first = start + i / 4 * 8 + i % 2 * 4 + i % 4 / 2;
      piece[i] = static_cast<char>(code(first) | code(first + 2) << 4);
    }
  }

  const Codes codes_;
};

// Numbers [lines, blocks] as [lines / 8, blocks, 8], with zeros behind the last line.
Tensor in_groups(const ir::WeightCodes& codes, const Tensor& numbers) {
  const int64_t blocks = codes.blocks();
  const auto width = static_cast<int64_t>(size_of(numbers.dtype()));
  Tensor result(numbers.dtype(), {line_groups(codes), blocks, kLines});
  auto* to = static_cast<char*>(result.mutable_data());
  const auto* from = static_cast<const char*>(numbers.data());
  std::memset(to, 0, result.bytes());
  for (int64_t line = 0; line < codes.lines; ++line) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t at = (line / kLines * blocks + block) * kLines + line % kLines;
      std::memcpy(to + at * width, from + (line * blocks + block) * width,
                  static_cast<size_t>(width));
    }
  }
  return result;
}

// Floats that are numbers of `dtype`.
Tensor converted(const Tensor& floats, DType dtype) {
  if (dtype == DType::Float32) return floats;
  Tensor result(dtype, floats.dims());
  const auto* from = floats.as<float>();
  std::transform(from, from + floats.size(), static_cast<uint16_t*>(result.mutable_data()),
                 dtype == DType::Float16 ? float_to_half : float_to_bfloat16);
  return result;
}

bool is_stored(const ir::WeightCodes& codes) { return codes.stored_codes != ir::kAbsent; }

void store(ir::Graph& graph, ir::ValueId id) {
  auto codes = std::make_shared<ir::WeightCodes>(*graph.values[static_cast<size_t>(id)].codes);
  const std::string name = graph.values[static_cast<size_t>(id)].name;
  const auto add = [&](const char* part, Tensor tensor) {
    return ops::add_constant(graph, fmt::format("{}/{}", name, part), std::move(tensor));
  };
  const auto stored = std::make_shared<StoredCodes>(codes);
  codes->stored_codes = add("codes", Tensor::deferred(DType::UInt8, stored->dims(), stored));
  const DType dtype = graph.values[static_cast<size_t>(id)].dtype;
  codes->stored_scales = add("scales", in_groups(*codes, converted(codes->scales, dtype)));
  if (codes->zeros.defined()) codes->stored_zeros = add("zeros", in_groups(*codes, codes->zeros));
  graph.values[static_cast<size_t>(id)].codes = std::move(codes);
}

}  // namespace

Codes side_by_side(const std::vector<Codes>& parts) {
  const auto alike = [&](const Codes& part) {
    return part && part->bits == parts[0]->bits && part->depth == parts[0]->depth &&
           part->block == parts[0]->block;
  };
  if (!std::all_of(parts.begin(), parts.end(), alike)) return nullptr;
  auto all = std::make_shared<ir::WeightCodes>(*parts[0]);
  all->depth_axis = 0;
  all->lines = 0;
  bool zeros = false;
  for (const Codes& part : parts) {
    all->lines += part->lines;
    zeros |= part->zeros.defined() || part->zero != all->zero;
  }
  const auto joined = [&](DType dtype, int64_t columns,
                          const std::function<Tensor(const Codes&)>& of) {
    Tensor result(dtype, {all->lines, columns});
    auto* to = static_cast<char*>(result.mutable_data());
    for (const Codes& part : parts) {
      const Tensor tensor = of(part);
      std::memcpy(to, tensor.data(), tensor.bytes());
      to += tensor.bytes();
    }
    return result;
  };
  all->codes = joined(DType::UInt8, all->depth, [](const Codes& c) { return c->codes; });
  all->scales = joined(DType::Float32, all->blocks(), [](const Codes& c) { return c->scales; });
  all->zeros = Tensor();
  if (zeros) {
    all->zeros = joined(DType::UInt8, all->blocks(), [](const Codes& c) {
      if (c->zeros.defined()) return c->zeros;
      Tensor same(DType::UInt8, {c->lines, c->blocks()});
      std::memset(same.mutable_data(), c->zero, same.bytes());
      return same;
    });
  }
  return all;
}

bool store_codes(ir::Graph& graph) {
  std::vector<ir::ValueId> found;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ir::Value& value = graph.values[i];
    const bool matrix = value.shape.size() == 2;
    if (matrix && value.codes && !is_stored(*value.codes))
      found.push_back(static_cast<ir::ValueId>(i));
  }
  for (const ir::ValueId id : found) store(graph, id);
  return !found.empty();
}

}  // namespace redfuser::passes
