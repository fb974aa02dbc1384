// Other runs in the memory of a BoundProgram.
#include <algorithm>
#include <utility>

#include "runtime/gpu/bound/bound_program.h"

namespace redfuser::runtime {
namespace {

std::vector<ir::Expr> sizes_of(const codegen::KernelLaunch& launch) {
  std::vector<ir::Expr> sizes = launch.sizes;
  sizes.insert(sizes.end(), std::begin(launch.grid), std::end(launch.grid));
  for (const codegen::TmaView& view : launch.views) {
    const std::vector<ir::Expr> own = view.sizes();
    sizes.insert(sizes.end(), own.begin(), own.end());
  }
  return sizes;
}

std::vector<ir::Expr> sizes_of(const codegen::ProductCall& call) {
  return {call.m,     call.n,        call.k,       call.a_row,    call.a_column,
          call.b_row, call.b_column, call.c_row,   call.a_offset, call.b_offset,
          call.batch, call.a_batch,  call.b_batch, call.c_batch};
}

std::vector<int64_t> symbols_of(const codegen::GpuStep& form) {
  std::set<int64_t> symbols;
  for (const codegen::GpuCall& call : form.calls) {
    for (const ir::Expr size : std::visit([](const auto& of) { return sizes_of(of); }, call)) {
      if (size == nullptr) continue;
      ir::visit(size, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Symbol) symbols.insert(e->integer);
      });
    }
  }
  return {symbols.begin(), symbols.end()};
}

}  // namespace

void BoundProgram::find_dependences() {
  if (!dependences_.empty()) return;
  dependences_.resize(steps_.size());
  for (size_t step = 0; step < steps_.size(); ++step) {
    const codegen::GpuStep& form = steps_[step]->form;
    dependences_[step].symbols = symbols_of(form);
    std::set<ir::ValueId> elsewhere;
    visit_buffers(form, [&](const codegen::BufferRef& buffer) {
      if (buffer.value < 0) return;
      const ir::ValueId root = program_.compiled().plan.root(buffer.value);
      if (addresses_.count(root)) elsewhere.insert(root);
    });
    dependences_[step].elsewhere = {elsewhere.begin(), elsewhere.end()};
  }
}

bool BoundProgram::rebind(const std::vector<int64_t>& symbols, const Addresses& addresses) {
  const bool resized = symbols != symbols_;
  if (!resized && addresses == addresses_) return true;
  if (resized && (!replaced_.empty() || !layout_.holds(symbols))) return false;
  find_dependences();
  const auto is_resized = [&](int64_t symbol) {
    return symbols[static_cast<size_t>(symbol)] != symbols_[static_cast<size_t>(symbol)];
  };
  const auto is_moved = [&](ir::ValueId value) {
    return addresses.at(value) != addresses_.at(value);
  };
  std::vector<size_t> stale;
  for (size_t step = 0; step < steps_.size(); ++step) {
    const auto& [sizes, elsewhere] = dependences_[step];
    if (std::any_of(sizes.begin(), sizes.end(), is_resized) ||
        std::any_of(elsewhere.begin(), elsewhere.end(), is_moved)) {
      stale.push_back(step);
    }
  }
  std::vector<int64_t> old_symbols = std::exchange(symbols_, symbols);
  Addresses old_addresses = std::exchange(addresses_, addresses);
  try {
    make_calls(stale);
  } catch (...) {
    symbols_ = std::move(old_symbols);
    addresses_ = std::move(old_addresses);
    throw;
  }
  recording.outdate(stale);
  return true;
}

void BoundProgram::foresee(const std::vector<int64_t>& symbols, const Addresses& addresses) {
  try {
    if (rebind(symbols, addresses) && recording) recording.change(*this);
  } catch (const std::exception&) {
    // Such a run, if it comes, says so itself.
  }
}

std::vector<std::pair<ir::ValueId, ir::ValueId>> BoundProgram::overlaps() const {
  struct Range {
    cuda::DevicePointer begin, end;
    ir::ValueId value;
  };
  std::vector<Range> ranges;
  for (const auto& [value, address] : addresses_) {
    ranges.push_back({address, address + static_cast<uint64_t>(room_of(value)), value});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.value) < std::pair(b.begin, b.value);
  });
  std::vector<std::pair<ir::ValueId, ir::ValueId>> pairs;
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
      pairs.push_back(std::minmax(ranges[i].value, ranges[j].value));
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace redfuser::runtime
