#include "codegen/integer_product/integer_kernel.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/core/size_classes.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

class IntegerText {
 public:
  IntegerText(StepBuilder& builder, const IntegerForm& form, const IntegerConfig& config)
      : builder_(builder),
        pool_(builder.pool()),
        form_(form),
        config_(config),
        kernel_(builder.kernel()),
        emitter_(kernel_) {}

  KernelLaunch launch() {
    const IntegerShape& shape = config_.shape();
    add_operands();
    add_finish();
    KernelLaunch launch =
        kernel_.launch(kIntegerProductFamily, comment(), {"device/product/integer_product.cuh"},
                       tile_text(), emitter_.close(), shape.threads(),
                       integer_resident_blocks(form_, config_, builder_.target));
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.shared = integer_shared_bytes(form_, config_);
    launch.grid[0] = pool_.mul(pool_.mul(form_.batches, pool_.mul(row_tiles(), column_tiles())),
                               pool_.integer(config_.blocks));
    return launch;
  }

 private:
  ir::Expr row_tiles() { return ceil_div(pool_, form_.m, config_.shape().rows); }
  ir::Expr column_tiles() { return ceil_div(pool_, form_.n, config_.shape().columns); }

  std::string comment() const {
    std::string text =
        fmt::format("product of integers\n%{} = {}", form_.value, to_string(pool_, form_.epilogue));
    for (size_t i = 0; i < form_.b.size(); ++i) {
      const auto factor = [&](const char* name, const IntegerOperand& operand) {
        return operand.zero ? fmt::format("({}%{} - {})", name, operand.value,
                                          to_string(pool_, operand.zero))
                            : fmt::format("{}%{}", name, operand.value);
      };
      text += fmt::format("\nproduct{} = sum_k {} * {}", i, factor("", form_.a),
                          factor("", form_.b[i]));
    }
    return text + "\n";
  }

  std::string tile_text() const {
    const IntegerShape& shape = config_.shape();
    return fmt::format(
        "using Tile = IntegerTile<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;\n",
        storage_type(form_.a.dtype), storage_type(form_.b[0].dtype), form_.a.along(),
        form_.b[0].along(), form_.sums_a(), form_.sums_b(), form_.b.size(), shape.rows,
        shape.columns, shape.row_warps, shape.column_warps, shape.depth_warps, shape.depth,
        shape.stages, config_.blocks);
  }

  std::string matrix(const IntegerOperand& operand) {
    std::string start = kernel_.buffer(operand.value);
    if (!operand.start->is_constant(0)) start += " + " + emitter_.emit(operand.start);
    return fmt::format("integer_matrix<{}>({}, {}, {})", operand.along(), start,
                       kernel_.size(operand.line), kernel_.size(operand.depth));
  }

  void add_operands() {
    emitter_.line(
        fmt::format("extern __shared__ __align__(128) char memory[];\n"
                    "const IntegerPlace place = place_integer_tile<Tile>({}, {});",
                    kernel_.size(row_tiles()), kernel_.size(column_tiles())));
    bind_coordinates(emitter_, form_.batch, "place.batch");
    const std::string a = matrix(form_.a);
    std::vector<std::string> b;
    for (const IntegerOperand& each : form_.b) b.push_back(matrix(each));
    emitter_.line(fmt::format(
        "const IntegerMatrix<{}> a = {};\nconst IntegerMatrix<{}> b[] = {{{}}};\n"
        "IntegerProduct<Tile> product(memory, a, b, place, {}, {}, {});\nproduct.multiply();",
        storage_type(form_.a.dtype), a, storage_type(form_.b[0].dtype), fmt::join(b, ", "),
        as_int(kernel_.size(form_.m)), as_int(kernel_.size(form_.n)),
        as_int(kernel_.size(form_.k))));
  }

  void add_finish() {
    const DType out = builder_.dtype_of(form_.value);
    const std::string target = kernel_.buffer(form_.value, true);
    emitter_.set_fast_math(size_of(out) == 2);
    emitter_.open();
    bind_coordinates(emitter_, form_.columns, "column");
    emitter_.open();
    bind_coordinates(emitter_, form_.rows, "row");
    bind_products();
    const std::string value = emitter_.emit_as(form_.epilogue, out);
    emitter_.line(fmt::format("store({}, {}, {});", target, emitter_.emit(form_.offset), value));
    const std::string element = emitter_.close();
    emitter_.line(
        fmt::format("lines.each([&](long long row, const IntegerSums<{}>& sums) {{\n{}}});",
                    form_.b.size(), element));
    const std::string column = emitter_.close();
    emitter_.line(fmt::format(
        "product.finish([&](long long column, const IntegerProduct<Tile>::Lines& lines) {{\n{}}});",
        column));
  }

  void bind_products() {
    const auto zero = [&](const IntegerOperand& operand) {
      return operand.zero ? emitter_.emit(operand.zero) : "0";
    };
    const std::string a_zero = zero(form_.a);
    for (size_t i = 0; i < form_.b.size(); ++i) {
      const std::string name = emitter_.fresh("sum");
      emitter_.line(fmt::format("const long long {} = sums.of({}, {}, {}, {});", name, i, a_zero,
                                zero(form_.b[i]), as_int(kernel_.size(form_.k))));
      emitter_.bind(form_.products[i], name);
    }
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const IntegerForm& form_;
  const IntegerConfig config_;
  KernelText kernel_;
  Emitter emitter_;
};

// Up to as many rows a kernel is chosen for that number.
constexpr int64_t kRowClasses[] = {16, 64, 512};
constexpr double kMany = 4096;

}  // namespace

KernelLaunch integer_kernel(StepBuilder& builder, const IntegerForm& form,
                            const IntegerConfig& config) {
  KernelLaunch launch = IntegerText(builder, form, config).launch();
  const KnownSizes& known = builder.sizes;
  if (known.of(form.m) >= 0) {
    launch.time = integer_time(form, config, integer_sizes(form, known), builder.target);
  }
  return launch;
}

void add_integer_product(StepBuilder& builder, const IntegerForm& form) {
  ir::ExprPool& pool = builder.pool();
  IntegerSizes sizes = integer_sizes(form, KnownSizes());
  const auto best = [&] { return integer_choices(form, sizes, builder.target).front().choice; };
  if (form.m->is_constant()) {
    const KernelConfig choice = best();
    builder.result.calls.push_back(integer_kernel(builder, form, IntegerConfig::of(choice)));
    return;
  }
  const auto best_for = [&](double rows) {
    sizes.m = rows;
    return best();
  };
  each_size_class(pool, form.m, kRowClasses, kMany, best_for,
                  [&](const KernelConfig& choice, ir::Expr when) {
                    KernelLaunch launch = integer_kernel(builder, form, IntegerConfig::of(choice));
                    launch.grid[0] = pool.select(when, launch.grid[0], pool.integer(0));
                    builder.result.calls.push_back(std::move(launch));
                  });
}

}  // namespace redfuser::codegen
