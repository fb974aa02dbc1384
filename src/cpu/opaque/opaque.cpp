#include "cpu/opaque/opaque.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/opaque_shapes.h"
#include "cpu/opaque/opaque_table.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

class OpaqueKernel : public Kernel {
 public:
  OpaqueKernel(ir::NodeId node, std::string name, OpaqueFunction function)
      : node_(node), name_(std::move(name)), function_(function) {}

  void run(RunContext& context) const override {
    OpaqueCall call(context, context.graph.nodes[node_], prepared_);
    try {
      function_(call);
    } catch (const std::bad_alloc&) {
      call.fail("out of memory");
    } catch (const std::length_error&) {
      call.fail("out of memory");
    }
  }

  Selection selection(std::span<const int64_t>, bool) const override {
    return {{{"operator", name_, 0, ""}}, {}, {}};
  }
  double estimate(std::span<const int64_t>, int) const override { return 0; }

 private:
  ir::NodeId node_;
  std::string name_;
  OpaqueFunction function_;
  mutable Prepared prepared_;
};

bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

}  // namespace

std::unique_ptr<Kernel> make_opaque_kernel(const ir::Graph& graph, const fuse::OpaqueStep& step) {
  const ir::Node& node = graph.nodes[step.node];
  OpaqueFunction function = find_opaque(node.domain, node.op);
  if (function == nullptr) {
    user_error("[{}] node \"{}\": no CPU kernel for operator {}{}{}", node.op, node.name,
               node.domain, node.domain.empty() ? "" : ".", node.op);
  }
  return std::make_unique<OpaqueKernel>(step.node, node.op, function);
}

const Tensor& OpaqueCall::tensor(int input) const {
  if (!has_input(input)) {
    user_error("[{}] node \"{}\": input {} is missing", node().op, node().name, input);
  }
  const Tensor& tensor = context_.values[node().inputs[input]];
  RF_CHECK(tensor.defined(), "[{}] node \"{}\": input {} is not computed", node().op, node().name,
           input);
  return tensor;
}

Tensor OpaqueCall::widened(int input) const {
  const Tensor& source = tensor(input);
  return is_half(source.dtype()) ? convert_float(source, DType::Float32, threads()) : source;
}

std::vector<int64_t> OpaqueCall::integers_of(int input) const {
  const Tensor& source = tensor(input);
  require_memory(source.size(), sizeof(int64_t));
  std::vector<int64_t> values(source.size());
  dispatch(source.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < source.size(); ++i) {
      if constexpr (kIsInteger<T>) {
        values[i] = static_cast<int64_t>(source.as<T>()[i]);
      } else {
        values[i] = saturated<int64_t>(static_cast<double>(source.as<T>()[i]));
      }
    }
  });
  return values;
}

ChargedVector<double> OpaqueCall::reals_of(int input) const {
  const Tensor& source = tensor(input);
  ChargedVector<double> values(source.size());
  dispatch(source.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < source.size(); ++i) {
      values[i] = static_cast<double>(source.as<T>()[i]);
    }
  });
  return values;
}

int64_t OpaqueCall::integer_of(int input) const {
  require_one(input);
  return integers_of(input)[0];
}

double OpaqueCall::real_of(int input) const {
  require_one(input);
  return reals_of(input)[0];
}

void OpaqueCall::require_one(int input) const {
  if (tensor(input).size() == 1) return;
  fail(fmt::format("input {} is {}, not one number", input, describe(tensor(input))));
}

Tensor& OpaqueCall::allocate(int output, Dims dims) const {
  ir::ValueId id = node().outputs[output];
  bind_shape(context_, id, dims);
  return place(context_, id, std::move(dims));
}

void OpaqueCall::set(int output, Tensor tensor) const {
  ir::ValueId id = node().outputs[output];
  DType dtype = graph().values[id].dtype;
  if (tensor.dtype() != dtype && is_half(dtype)) tensor = convert_float(tensor, dtype, threads());
  RF_CHECK(tensor.dtype() == dtype, "[{}] node \"{}\": output {} is {}, not {}", node().op,
           node().name, output, describe(tensor), name_of(dtype));
  bind_shape(context_, id, tensor.dims());
  context_.values[id] = std::move(tensor);
}

Tensor convert_float(const Tensor& tensor, DType dtype, ThreadPool& pool) {
  Tensor result(dtype, tensor.dims());
  dispatch(tensor.dtype(), [&](auto from) {
    using From = typename decltype(from)::type;
    dispatch(dtype, [&](auto to) {
      using To = typename decltype(to)::type;
      if constexpr (!std::is_integral_v<From> && !std::is_integral_v<To>) {
        const From* source = tensor.as<From>();
        To* target = result.as<To>();
        parallel_ranges(pool, tensor.size(), 1 << 14, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            target[i] = static_cast<To>(static_cast<Arithmetic<From>>(source[i]));
          }
        });
      } else {
        internal_error("convert_float from {} to {}", describe(tensor), name_of(dtype));
      }
    });
  });
  return result;
}

void require_memory(int64_t count, size_t width) {
  if (count <= MemoryLimit::left() / static_cast<int64_t>(width)) return;
  throw MemoryLimitError(
      fmt::format("{} elements of {} bytes do not fit into the memory limit", count, width));
}

void parallel_ranges(ThreadPool& pool, int64_t count, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, 4 * pool.size());
  pool.parallel_for(
      parts, [&](int64_t part, int) { body(count * part / parts, count * (part + 1) / parts); });
}

AxisView around_axis(const Dims& dims, int axis) {
  AxisView view;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    (i < axis ? view.outer : i == axis ? view.size : view.inner) *= dims[i];
  }
  return view;
}

std::vector<int64_t> strides_of(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (int i = static_cast<int>(dims.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * dims[i + 1];
  }
  return strides;
}

}  // namespace redfuser::cpu
