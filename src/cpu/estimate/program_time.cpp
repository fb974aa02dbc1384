#include "cpu/estimate/program_time.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/tile/tile_memory.h"

namespace redfuser::cpu {
namespace {

constexpr double kLine = 64;  // bytes of a cache line

double whole_vectors(double elements, const select::CpuMachine& machine) {
  return std::ceil(elements / machine.lanes) * machine.lanes;
}

class Clock {
 public:
  Clock(const TileProgram& program, const select::CpuMachine& machine)
      : program_(program), machine_(machine) {
    for (const Scope& scope : program.scopes) {
      columns_.push_back(static_cast<double>(std::min(scope.tile, scope.extent)));
    }
    register_rate_ = rate_of(static_cast<double>(program.scratch_bytes()));
  }

  TaskTime run() {
    block(program_.block);
    return total_;
  }

 private:
  double rate_of(double bytes) const {
    if (bytes <= static_cast<double>(machine_.l1_bytes)) return machine_.l1_rate;
    if (bytes <= static_cast<double>(machine_.l2_bytes) / 2) return machine_.l2_rate;
    return machine_.memory_rate;
  }

  double rows(const Register& r) const {
    if (r.matrix_rows > 0) return static_cast<double>(r.matrix_rows);
    return has_rows(r.shape) ? static_cast<double>(program_.row_tile) : 1;
  }
  double columns(const Register& r) const {
    return has_columns(r.shape) ? columns_[static_cast<size_t>(r.scope)] : 1;
  }
  double elements(const Register& r) const { return rows(r) * columns(r); }
  double whole_vectors(double elements) const { return cpu::whole_vectors(elements, machine_); }
  // With those that fill the last vector of a row.
  double padded_elements(const Register& r) const {
    return has_columns(r.shape) ? rows(r) * whole_vectors(columns(r)) : whole_vectors(rows(r));
  }
  const Register& info(RegisterId r) const { return program_.registers[static_cast<size_t>(r)]; }

  void add(double time, double floor) {
    total_.time += times_ * time;
    total_.floor += times_ * floor;
  }

  void repeat(double times, const Block& body) {
    times_ *= times;
    block(body);
    times_ /= times;
  }

  double trips(int scope) const {
    const Scope& s = program_.scopes[static_cast<size_t>(scope)];
    return std::max(1.0, std::ceil(static_cast<double>(s.extent) / static_cast<double>(s.tile)));
  }

  void block(const Block& block) {
    for (const auto& instruction : block) {
      if (instruction->body() != nullptr) {
        loop(*instruction);
      } else {
        one(*instruction);
      }
    }
  }

  void loop(const Instruction& instruction) {
    if (const auto* columns = dynamic_cast<const ColumnLoop*>(&instruction)) {
      const auto scope = static_cast<size_t>(columns->scope);
      const double before = columns_[scope], count = trips(columns->scope);
      columns_[scope] = static_cast<double>(program_.scopes[scope].extent) / count;
      repeat(count, columns->block);
      columns_[scope] = before;
    } else if (const auto* axis = dynamic_cast<const AxisLoop*>(&instruction)) {
      repeat(static_cast<double>(axis->extent), axis->block);
    } else if (const auto* part = dynamic_cast<const AtPartEnd*>(&instruction)) {
      repeat(1 / static_cast<double>(part->period), part->block);
    } else if (const auto* later = dynamic_cast<const AfterFirst*>(&instruction)) {
      const double count = trips(later->scope);
      const double floor = total_.floor;
      repeat((count - 1) / count, later->block);
      total_.floor = floor;
    }
  }

  void one(const Instruction& i) {
    if (const auto* load = dynamic_cast<const LoadView*>(&i)) return view(load->access, i);
    if (const auto* out = dynamic_cast<const BindOutput*>(&i)) return bind(out->access, i);
    if (const auto* load = dynamic_cast<const LoadCopy*>(&i)) return copy(load->access, i);
    if (const auto* store = dynamic_cast<const Store*>(&i)) return this->store(*store);
    if (const auto* gemm = dynamic_cast<const Gemm*>(&i)) return product(*gemm);
    if (const auto* best = dynamic_cast<const KeepBest*>(&i)) return ranks(*best);
    double bytes = 0, most = 1, most_rows = 1;
    const auto touch = [&](RegisterId id) {
      const Register& r = info(id);
      const bool vector = has_columns(r.shape) || !has_rows(r.shape);
      bytes += padded_elements(r) * static_cast<double>(size_of(r.elem));
      if (padded_elements(r) >= most) most_rows = vector ? rows(r) : 1;
      most = std::max(most, padded_elements(r));
    };
    for (RegisterId r : i.reads) touch(r);
    for (RegisterId r : i.writes) touch(r);
    const double work = most / operations(i);
    constexpr double kLongRow = 64;
    const bool folds = dynamic_cast<const FoldedChain*>(&i) != nullptr;
    const bool chains = folds || dynamic_cast<const PointwiseChain*>(&i) != nullptr;
    const bool reduces = folds || dynamic_cast<const ReduceColumns*>(&i) != nullptr;
    const bool lanes = reduces && columns(info(i.reads[0])) >= kLongRow;
    // A chain takes the scalars of each row, as a reduction combines its lanes.
    const bool scalars = chains && std::any_of(i.reads.begin(), i.reads.end(), [&](RegisterId r) {
                           return info(r).shape == Shape::Rows;
                         });
    const double row = lanes || scalars ? machine_.reduce_row : machine_.row;
    add(work + bytes / register_rate_ + machine_.instruction + most_rows * row,
        work + bytes / machine_.l1_rate);
  }

  // Elements per microsecond, besides the bytes.
  double operations(const Instruction& i) const {
    const auto* unary = dynamic_cast<const Unary*>(&i);
    const auto* binary = dynamic_cast<const Binary*>(&i);
    if ((unary != nullptr && unary->special) || (binary != nullptr && binary->special)) {
      const Elem elem = i.writes.empty() ? Elem::F32 : info(i.writes[0]).elem;
      const bool integer = elem == Elem::I32 || elem == Elem::I64 || elem == Elem::U64;
      return integer ? machine_.divide_rate : machine_.special_rate;
    }
    const auto* chain = dynamic_cast<const PointwiseChain*>(&i);
    const auto* folded = dynamic_cast<const FoldedChain*>(&i);
    if (chain != nullptr || folded != nullptr) {
      const auto& links = chain != nullptr ? chain->links : folded->links;
      const auto functions = std::count_if(links.begin(), links.end(),
                                           [](const auto& link) { return is_function(link.op); });
      if (functions > 0) return machine_.special_rate / static_cast<double>(functions);
      // Rounding takes as long as two conversions.
      const bool rounds = std::any_of(links.begin(), links.end(),
                                      [](const auto& link) { return link.op == ChainOp::Round; });
      if (rounds) return machine_.convert_rate / 2;
    }
    if (unary != nullptr && unary->rounds) return machine_.narrow_rate;
    if (dynamic_cast<const Fill*>(&i) != nullptr) return machine_.fill_rate;
    if (dynamic_cast<const Lookup*>(&i) != nullptr) return machine_.lookup_rate;
    if (dynamic_cast<const Convert*>(&i) != nullptr) return machine_.convert_rate;
    if (dynamic_cast<const ColumnIndex*>(&i) != nullptr ||
        dynamic_cast<const RowIndex*>(&i) != nullptr) {
      return machine_.index_rate;
    }
    const auto* fold = dynamic_cast<const RunningFold*>(&i);
    if (fold != nullptr && fold->length > 0) return machine_.convert_rate;
    if (fold != nullptr || dynamic_cast<const TakeColumn*>(&i) != nullptr) {
      return machine_.scalar_rate;
    }
    if (!i.writes.empty() && info(i.writes[0]).elem == Elem::I64) return machine_.integer_rate;
    return machine_.l1_rate;
  }

  // Bytes of a tensor: of memory where the tensor is large and not in a cache from a pass before.
  double bytes_time(const Access& access, double bytes, bool writes) {
    const auto key = std::make_pair(access.tensor, writes);
    const double all =
        static_cast<double>(access.size) * static_cast<double>(size_of(access.dtype));
    double& touched = touched_[key];
    const double total = times_ * bytes;
    const double before = touched;
    touched += total;
    if (all <= static_cast<double>(machine_.l2_bytes) / 2) return bytes / machine_.l2_rate;
    return bytes / (before >= total ? rate_of(2 * before) : machine_.memory_rate);
  }

  void view(const Access& access, const Instruction& i) {
    const Register& r = info(i.writes[0]);
    const double time =
        bytes_time(access, elements(r) * static_cast<double>(element_bytes(r)), false);
    add(time + machine_.instruction, time);
  }

  void bind(const Access& access, const Instruction& i) {
    const Register& r = info(i.writes[0]);
    const double time =
        bytes_time(access, elements(r) * static_cast<double>(element_bytes(r)), true);
    add(time + machine_.instruction, time);
  }

  // The cost of elements that do not lie side by side.
  double scattered(const Access& access, double rows, double columns, double bytes) {
    const double count = rows * columns;
    const double all = static_cast<double>(access.size) * bytes;
    const bool distant = all > static_cast<double>(machine_.l2_bytes) / 2;
    // A table of axes stays near its row, and several rows make it worth looking through.
    const bool table = access.whole == kNoRegister && access.column_offsets != kNoRegister;
    constexpr double kFewestRows = 3;
    const bool permuted = table && !access.by_data && rows >= kFewestRows;
    double lines = 0;
    if (distant && table && !access.by_data) {
      lines = count * bytes / kLine;
    } else if (distant && access.whole == kNoRegister && access.column_offsets == kNoRegister) {
      const double stride = std::fabs(static_cast<double>(access.column_stride)) * bytes;
      const double reused = access.row_stride == 1 ? rows : 1;
      lines = stride >= kLine ? count / std::min(reused, kLine / bytes) : count * stride / kLine;
    } else if (distant) {
      lines = count / 4;
    }
    const bool transposed = access.row_stride == 1 && rows > 1 && access.whole == kNoRegister &&
                            access.row_offsets == kNoRegister &&
                            access.column_offsets == kNoRegister;
    const double each = transposed
                            ? count / machine_.transpose_rate +
                                  columns * std::ceil(rows / machine_.lanes) * machine_.column
                            : count / (permuted ? machine_.permute_rate : machine_.gather_rate);
    return each + lines / machine_.line_rate;
  }

  double converted(DType dtype, double elements, double rate) const {
    return elements / rate * (dtype == DType::BFloat16 ? machine_.bfloat_share : 1);
  }

  bool contiguous(const Access& access, Shape shape) const {
    if (access.whole != kNoRegister) return false;
    if (!has_columns(shape)) {
      return !has_rows(shape) || (access.row_stride == 1 && access.row_offsets == kNoRegister);
    }
    return access.column_stride == 1 && access.column_offsets == kNoRegister;
  }

  void copy(const Access& access, const Instruction& i) {
    const Register& r = info(i.writes[0]);
    const auto width = static_cast<double>(size_of(access.dtype));
    const bool vector = has_columns(r.shape);
    const double height = vector ? rows(r) : 1, length = vector ? columns(r) : rows(r);
    const double floor = bytes_time(access, elements(r) * width, false) +
                         elements(r) * static_cast<double>(size_of(r.elem)) / machine_.l1_rate;
    const bool converts = !access.copies();
    double time =
        floor + machine_.instruction + height * (converts ? machine_.convert_row : machine_.row);
    if (!contiguous(access, r.shape)) time += scattered(access, height, length, width);
    if (converts)
      time += converted(access.dtype, height * whole_vectors(length), machine_.convert_rate);
    add(time, floor);
  }

  void store(const Store& store) {
    const Register& r = info(store.reads.back());
    const double height = has_rows(store.shape) ? static_cast<double>(program_.row_tile) : 1;
    const double length = has_columns(store.shape) ? columns_[static_cast<size_t>(store.scope)] : 1;
    const auto width = static_cast<double>(size_of(store.access.dtype));
    const double floor = bytes_time(store.access, height * length * width, true) +
                         height * length * static_cast<double>(size_of(r.elem)) / machine_.l1_rate;
    const bool converts = !store.access.copies();
    double time =
        floor + machine_.instruction + height * (converts ? machine_.convert_row : machine_.row);
    if (!contiguous(store.access, store.shape)) {
      time += scattered(store.access, height, length, width);
    } else if (converts) {
      time += converted(store.access.dtype, height * whole_vectors(length), machine_.narrow_rate);
    }
    add(time, floor);
  }

  void product(const Gemm& gemm) {
    const Register& out = info(gemm.writes[0]);
    const double m = rows(out), n = columns(out);
    const double k = columns_[static_cast<size_t>(gemm.contraction_scope)];
    const double floor = m * n * k / machine_.product_rate;
    double read = 0;
    if (!gemm.b_is_register) {
      read = bytes_time(gemm.b, n * k * static_cast<double>(size_of(gemm.b.dtype)), false);
    }
    const bool half = !gemm.b_is_register && size_of(gemm.b.dtype) == 2;
    const bool columns = gemm.b_is_register ? !gemm.b_transposed : gemm.b.column_stride == 1;
    add(product_time({m, n, k, half, columns}, machine_) + read + machine_.instruction, floor);
  }

  // Elements in a random order; each that is kept moves half of those that are.
  void ranks(const KeepBest& op) {
    const Register& x = info(op.reads[0]);
    const double count = columns(x), height = rows(info(op.writes[0]));
    const double time =
        height * (op.keep == 1 ? first_time(x, count)
                               : best_time(op.keep, op.merges, count, trips(x.scope)));
    add(time, time);
  }

  // The extreme of `count` elements, then the first one that equals it, within a chunk one by one.
  double first_time(const Register& x, double count) const {
    constexpr double kChunk = 64;
    const double bytes = count * static_cast<double>(size_of(x.elem));
    return 2 * (bytes / machine_.l1_rate + machine_.reduce_row) +
           std::min(count, kChunk) / 2 / machine_.index_rate;
  }

  // Of one of so many tiles of `count` elements.
  double best_time(int64_t keep, bool merges, double count, double tiles) const {
    const auto kept = static_cast<double>(keep);
    const double seen = count / machine_.scalar_rate;
    if (merges) {
      // All of the first tile are candidates, of later ones those that enter the list.
      const double first = std::min(count, kept), later = kept * std::log(tiles);
      const double sorted = std::min(count, (first + later) / tiles);
      return seen + count / tiles / (2 * machine_.sort_rate) +
             sorted * std::log2(std::max(2.0, sorted)) / machine_.sort_rate +
             kept / machine_.scalar_rate;
    }
    const double all = count * tiles;
    const double moved = std::min(all, kept * (1 + std::log(std::max(1.0, all / kept)))) / tiles;
    return seen + moved * kept / 2 / machine_.move_rate;
  }

  const TileProgram& program_;
  const select::CpuMachine& machine_;
  std::vector<double> columns_;  // by scope, of the tile at hand
  double times_ = 1;             // of the block at hand
  double register_rate_;
  std::map<std::pair<int, bool>, double> touched_;
  TaskTime total_;
};

}  // namespace

double product_time(const ProductSizes& p, const select::CpuMachine& machine) {
  constexpr double kFewestRows = 4;  // of a register block: they take as long as fewer
  const double wide = whole_vectors(p.n, machine), result = p.m * p.n / machine.product_out_rate;
  const double call = machine.product_call + result;
  if (p.m <= static_cast<double>(kRowsInPlace) && !p.half && !p.packed) {
    const double once = p.along_columns ? machine.product_row_rate : machine.product_dot_rate;
    return call + wide * p.k * (1 / once + p.m / machine.product_rate);
  }
  const double last = std::fmod(p.m, machine.block_rows);
  const double rows = p.m - last + (last > 0 ? std::max(last, kFewestRows) : 0);
  const bool across = p.half && !p.along_columns;
  const double multiplied = call + rows * wide * p.k / machine.product_rate;
  if (p.packed) return multiplied;
  return multiplied + wide * p.k / (across ? machine.pack_half_rate : machine.pack_rate);
}

TaskTime task_time(const TileProgram& program, const select::CpuMachine& machine) {
  return Clock(program, machine).run();
}

StepTime step_time(const TaskTime& task, double tasks, int threads, double output_bytes,
                   double share, const select::CpuMachine& machine) {
  constexpr double kLargestReused = 32 << 20;  // larger memory is taken to be fresh
  const double each = share * task.time + machine.task;
  const double pages = output_bytes > kLargestReused ? output_bytes / machine.fault_rate : 0;
  const double waves = std::ceil(tasks / threads);
  const double saved = (tasks - waves) * each;
  const double work = tasks * each - (runs_alone(saved, machine) ? 0 : saved - machine.wake);
  return {machine.step + work + pages / threads, (share * task.floor * tasks + pages) / threads,
          saved};
}

bool runs_alone(double saved, const select::CpuMachine& machine) { return saved <= machine.wake; }

double output_bytes(const TileProgram& program) {
  double bytes = 0;
  std::set<int> seen;
  const std::function<void(const Block&)> scan = [&](const Block& block) {
    for (const auto& i : block) {
      if (i->body() != nullptr) scan(*i->body());
      const auto* store = dynamic_cast<const Store*>(i.get());
      const auto* bound = dynamic_cast<const BindOutput*>(i.get());
      const Access* access = store != nullptr ? &store->access : bound ? &bound->access : nullptr;
      if (access == nullptr || !seen.insert(access->tensor).second) continue;
      bytes += static_cast<double>(access->size) * static_cast<double>(size_of(access->dtype));
    }
  };
  scan(program.block);
  return bytes;
}

}  // namespace redfuser::cpu
