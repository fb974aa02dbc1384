#include "cpu/steps/integer_product.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/estimate/program_time.h"
#include "cpu/simd/integers/byte_pairs.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

// The left factor is the unsigned one, the right factor the signed one.
int64_t left_offset(const IntegerKernels& kernels, DType dtype) {
  return kernels.left_offset(dtype == DType::Int8, false);
}
int64_t right_offset(DType dtype) {
  return integer_kernels().right_offset(dtype == DType::Int8, true);
}

int32_t element(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::Int8:
      return tensor.as<int8_t>()[i];
    case DType::UInt8:
      return tensor.as<uint8_t>()[i];
    default:
      return tensor.as<int32_t>()[i];
  }
}

// The zero points of `count` rows from `first` on, moved by `offset`. False if all are 0.
bool read_zeros(const RunContext& context, const ZeroPoint& zero, int64_t batch, int64_t first,
                int64_t count, int64_t offset, int32_t* to) {
  uint32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t z = zero.constant;
    if (zero.value != ir::kAbsent) {
      z = element(context.values[static_cast<size_t>(zero.value)],
                  zero.at.constant + zero.at.parts[0].at(batch) + zero.at.parts[1].at(first + i));
    }
    const uint32_t moved = static_cast<uint32_t>(z) + static_cast<uint32_t>(offset);
    to[i] = static_cast<int32_t>(moved);
    any |= moved;
  }
  return any != 0;
}

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

bool varies(const OffsetPart& part) {
  return part.stride != 0 ||
         std::any_of(part.table.begin(), part.table.end(), [](int64_t at) { return at != 0; });
}

// Splits panels for kernels of pairs of bytes. False where too many groups have a rest.
bool split(PackedPanels& packed) {
  const IntegerKernels& kernels = *packed.kernels;
  const int64_t columns = kernels.columns, groups = kernels.packed_depth(packed.k) / 4;
  const int64_t panels = packed.batches * kernels.packed_columns(packed.n) / columns;
  auto* word = reinterpret_cast<uint32_t*>(packed.panels.as<uint8_t>());
  std::vector<uint32_t> rests(static_cast<size_t>(columns));
  for (int64_t panel = 0; panel < panels; ++panel) {
    packed.begins.push_back(static_cast<int64_t>(packed.split_groups.size()));
    for (int64_t group = 0; group < groups; ++group) {
      uint32_t any = 0;
      for (uint32_t& rest : rests) any |= rest = split_pairs(*word++);
      if (any == 0) continue;
      packed.split_groups.push_back(static_cast<int32_t>(group));
      packed.split_words.insert(packed.split_words.end(), rests.begin(), rests.end());
    }
  }
  packed.begins.push_back(static_cast<int64_t>(packed.split_groups.size()));
  return static_cast<double>(packed.split_groups.size()) <=
         kMostSplit * static_cast<double>(panels * groups);
}

}  // namespace

IntegerRests PackedPanels::rests(int64_t batch, int64_t column) const {
  if (begins.empty()) return {};
  const int64_t panel = (batch * kernels->packed_columns(n) + column) / kernels->columns;
  return {begins.data() + panel, split_groups.data(), split_words.data()};
}

std::shared_ptr<const PackedPanels> PanelStore::get(size_t index, const IntegerOperand& operand,
                                                    const Tensor& tensor, int64_t batches,
                                                    int64_t n, int64_t k) {
  if (!varies(operand.at.parts[0])) batches = 1;
  const std::lock_guard lock(mutex_);
  if (kept_.size() <= index) kept_.resize(index + 1);
  std::shared_ptr<const PackedPanels>& kept = kept_[index];
  if (kept && kept->n == n && kept->k == k && kept->batches == batches && kept->at == operand.at) {
    return kept;
  }
  // They stay for later runs, and so count for none.
  const MemoryLimit none(0);
  const auto pack = [&](const IntegerKernels& kernels) {
    auto packed = std::make_shared<PackedPanels>();
    packed->at = operand.at;
    packed->n = n;
    packed->k = k;
    packed->batches = batches;
    packed->kernels = &kernels;
    packed->panels = Tensor(DType::UInt8, {batches * kernels.panel_bytes(n, k)});
    packed->sums.resize(static_cast<size_t>(batches * n));
    for (int64_t batch = 0; batch < batches; ++batch) {
      IntegerPackArgs args;
      args.matrix = view_of(operand.at, static_cast<const char*>(tensor.data()), operand.dtype,
                            batch, 2, 0, 1, 0);
      args.count = n;
      args.depth = k;
      args.offset = right_offset(operand.dtype);
      args.out = packed->panels.as<uint8_t>() + batch * kernels.panel_bytes(n, k);
      args.sums = packed->sums.data() + batch * n;
      kernels.pack_columns(args);
    }
    return packed;
  };
  if (const IntegerKernels* pairs = cpu::kernels().byte_pairs) {
    auto packed = pack(*pairs);
    if (split(*packed)) return kept = std::move(packed);
  }
  return kept = pack(integer_kernels());
}

std::shared_ptr<const Tensor> PanelStore::filters(const std::string& family,
                                                  const std::function<Tensor()>& pack) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Tensor>& filters = filters_[family];
  if (filters == nullptr) {
    const MemoryLimit none(0);
    filters = std::make_shared<const Tensor>(pack());
  }
  return filters;
}

// Where the parts of a block's scratch memory begin.
struct IntegerProduct::Parts {
  int32_t *c, *row_zeros, *row_sums, *column_zeros, *column_terms;
  char *a, *b;
  int64_t c_stride, bytes;
};

IntegerProduct::Parts IntegerProduct::parts_of(char* scratch, int64_t rows, int64_t columns) const {
  const IntegerKernels& kernels = integer_kernels();
  int64_t used = 0;
  const auto take = [&](int64_t bytes) {
    char* begin = scratch + used;
    used += aligned(bytes);
    return begin;
  };
  const auto integers = [&](int64_t count) { return reinterpret_cast<int32_t*>(take(4 * count)); };
  Parts parts{};
  // Rows that do not lie a power of two apart.
  parts.c_stride = kernels.packed_columns(columns) + 16;
  parts.c = integers(rows * parts.c_stride);
  parts.row_zeros = integers(rows);
  parts.row_sums = integers(rows);
  parts.column_zeros = integers(columns);
  parts.column_terms = integers(columns);
  parts.a = take(rows * kernels.row_bytes(k));
  const bool all_packed =
      std::all_of(packed.begin(), packed.end(), [](const auto& p) { return p != nullptr; });
  parts.b = take(all_packed ? 0 : kernels.panel_bytes(columns, k));
  parts.bytes = used;
  return parts;
}

void IntegerProduct::pack_constants(const ir::Graph& graph, PanelStore& store, int64_t batches,
                                    int64_t n) {
  for (size_t i = 0; i < b.size(); ++i) {
    if (!b[i].constant) continue;
    const Tensor& tensor = graph.values[static_cast<size_t>(b[i].value)].constant;
    packed[i] = store.get(i, b[i], tensor, batches, n, k);
  }
}

double IntegerProduct::time(double rows, double columns) const {
  const select::CpuMachine& machine = this_machine();
  const auto depth = static_cast<double>(k);
  double time = 0;
  for (const IntegerOperand& right : b) {
    time += machine.product_call + rows * columns * depth / machine.dot_rate +
            rows * depth / machine.pack_rate + rows * columns / machine.convert_rate;
    if (!right.constant) time += columns * depth / machine.pack_rate;
  }
  return time;
}

int64_t IntegerProduct::scratch_bytes(int64_t rows, int64_t columns) const {
  return parts_of(nullptr, rows, columns).bytes;
}

void IntegerProduct::run(const RunContext& context, size_t index, const IntegerBlock& block) const {
  const IntegerKernels& kernels = packed[index] ? *packed[index]->kernels : integer_kernels();
  const Parts parts = parts_of(block.scratch, block.rows, block.columns);
  const IntegerOperand& right = b[index];
  const auto data = [&](ir::ValueId value) {
    return static_cast<const char*>(context.values[static_cast<size_t>(value)].data());
  };
  const int64_t a_offset = left_offset(kernels, a.dtype);
  const bool row_zeros =
      read_zeros(context, a.zero, block.batch, block.row, block.rows, a_offset, parts.row_zeros);
  const bool column_zeros =
      read_zeros(context, right.zero, block.batch, block.column, block.columns,
                 right_offset(right.dtype), parts.column_zeros);

  IntegerMultiplyArgs g;
  g.m = block.rows;
  g.n = block.columns;
  g.depth = kernels.packed_depth(k);
  g.c = parts.c;
  g.c_stride = parts.c_stride;
  IntegerPackArgs left;
  left.matrix = view_of(a.at, data(a.value), a.dtype, block.batch, 1, block.row, 2, 0);
  const MatrixView& view = left.matrix;
  const bool in_place = a_offset == 0 && kernels.left_bytes == 1 && !column_zeros &&
                        !view.row_offsets && !view.column_offsets && view.column_stride == 1 &&
                        g.depth == k;
  g.a = view.data;
  g.a_stride = view.row_stride;
  if (!in_place) {
    left.count = block.rows;
    left.depth = k;
    left.offset = a_offset;
    left.out = parts.a;
    left.sums = column_zeros ? parts.row_sums : nullptr;
    kernels.pack_rows(left);
    g.a = parts.a;
    g.a_stride = kernels.row_bytes(k);
  }
  const int32_t* sums = parts.column_terms;
  if (packed[index]) {
    const PackedPanels& p = *packed[index];
    const int64_t batch = p.batches == 1 ? 0 : block.batch;
    g.b = p.panels.as<uint8_t>() + batch * kernels.panel_bytes(p.n, k) + block.column * g.depth;
    g.rests = p.rests(batch, block.column);
    sums = p.sums.data() + batch * p.n + block.column;
  } else {
    IntegerPackArgs args;
    args.matrix =
        view_of(right.at, data(right.value), right.dtype, block.batch, 2, 0, 1, block.column);
    args.count = block.columns;
    args.depth = k;
    args.offset = right_offset(right.dtype);
    args.out = parts.b;
    args.sums = row_zeros ? parts.column_terms : nullptr;
    kernels.pack_columns(args);
    g.b = parts.b;
  }
  kernels.multiply(g);

  IntegerFinishArgs f;
  f.rows = block.rows;
  f.columns = block.columns;
  f.c = parts.c;
  f.c_stride = parts.c_stride;
  if (row_zeros) {
    for (int64_t j = 0; j < block.columns; ++j) {
      const uint32_t constant =
          static_cast<uint32_t>(k) * static_cast<uint32_t>(parts.column_zeros[j]);
      parts.column_terms[j] = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) - constant);
    }
    f.row_zeros = parts.row_zeros;
    f.column_terms = parts.column_terms;
  }
  if (column_zeros) {
    f.row_sums = parts.row_sums;
    f.column_zeros = parts.column_zeros;
  }
  f.out = block.out;
  f.out_stride = block.out_stride;
  const KernelTable& table = cpu::kernels();
  (block.dtype == DType::Float32 ? table.finish_f32 : table.finish_i32)(f);
}

}  // namespace redfuser::cpu
