#include "codegen/product/thin_kernel.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

class ThinText {
 public:
  ThinText(StepBuilder& builder, const fuse::ProductStep& step, const ThinForm& form,
           const ThinConfig& config, const ProductEpilogue& epilogue, const MakeThinLines& lines)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        form_(form),
        config_(config),
        epilogue_(epilogue),
        kernel_(builder.kernel()),
        emitter_(kernel_) {
    kernel_.start_early();
    if (form.given) kernel_.wait_in_body();
    if (lines) lines_ = lines(kernel_);
  }

  KernelLaunch launch(const std::string& comment) {
    add_operands();
    add_finish();
    const std::string_view header = lines_ ? lines_->header : "device/product/thin_product.cuh";
    KernelLaunch launch =
        kernel_.launch(std::string(lines_ ? lines_->family : kThinProductFamily), comment, {header},
                       lines_ ? lines_->before : "", emitter_.close(), config_.warps * 32, 1);
    launch.config = config_.parameters();
    launch.cluster = config_.blocks;
    launch.static_shared = thin_static_bytes(form_, config_);
    if (lines_) {
      launch.static_shared += lines_->static_shared;
      launch.shared = lines_->shared;
    }
    launch.grid[0] =
        pool_.mul(ceil_div(pool_, form_.extent, config_.wide), pool_.integer(config_.blocks));
    launch.grid[1] = form_.batch;
    return launch;
  }

 private:
  const ThinMatrix& wide() const { return form_.wide[0]; }

  std::string buffer(const BufferRef& buffer) {
    return kernel_.buffer(buffer.scratch >= 0 ? kScratchValues + buffer.scratch : buffer.value);
  }

  std::string matrix(const ThinMatrix& matrix) {
    std::string start = fmt::format("{} + {}", buffer(matrix.buffer), kernel_.size(matrix.offset));
    if (!matrix.batch->is_constant(0)) start += " + batch * " + kernel_.size(matrix.batch);
    return fmt::format("{{{}, {}, {}}}", start, kernel_.size(matrix.line),
                       kernel_.size(matrix.depth));
  }

  // A matrix in few bits.
  std::string matrix(const CodedOperand& matrix) {
    const ir::WeightCodes& codes = *matrix.codes;
    const int64_t group = matrix.first / kCodedLines, step = 512 / codes.bits;
    const int64_t steps = (codes.depth + step - 1) / step;
    const auto numbers = [&](ir::ValueId value) {
      return fmt::format("{} + {}ll", kernel_.buffer(value), group * codes.blocks() * kCodedLines);
    };
    const bool zeros = codes.stored_zeros != ir::kAbsent;
    return fmt::format(
        "{{reinterpret_cast<const uint4*>({}) + {}ll, {}, {}, {}, {}, {}}}",
        kernel_.buffer(codes.stored_codes), group * steps * 32, numbers(codes.stored_scales),
        zeros ? numbers(codes.stored_zeros) : "nullptr", codes.zero, steps, codes.blocks());
  }

  // The last argument of the tile.
  std::string code_text() const {
    if (form_.coded.empty()) return "";
    const ir::WeightCodes& codes = *form_.coded[0].codes;
    return fmt::format(", ThinCode<{}, {}, {}>", codes.bits, codes.block, codes.zeros.defined());
  }

  // Whether 16-byte loads of a matrix are aligned and full, as text. `size`: of its contiguous
  // axis.
  std::string vectors(const ThinMatrix& matrix, bool along) {
    return kernel_.multiples({matrix.offset, matrix.batch, along ? matrix.line : matrix.depth,
                              along ? form_.depth : form_.extent},
                             form_.width());
  }

  std::string thin_matrix(std::string_view type) {
    if (!lines_) return fmt::format("const ThinMatrix<{}> thin = {};\n", type, matrix(form_.thin));
    return fmt::format("{}const ThinShared<{}> thin = {{lines, {}, 1}};\n", lines_->lines, type,
                       kernel_.size(lines_->pitch));
  }

  static void add_new(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  void add_operands() {
    const bool along = form_.along();
    std::vector<std::string> conditions, buffers, matrices;
    for (const CodedOperand& each : form_.coded) matrices.push_back(matrix(each));
    for (const ThinMatrix& each : form_.wide) {
      if (!form_.coded.empty()) break;
      conditions.push_back(vectors(each, along));
      add_new(buffers, buffer(each.buffer));
      matrices.push_back(matrix(each));
    }
    // Elements of thin lines that start anywhere are loaded one by one.
    const std::string thin = lines_ ? kernel_.multiples({form_.depth}, form_.width())
                             : form_.thin.depth->is_constant(1) ? vectors(form_.thin, true)
                                                                : "false";
    const bool thin_along = thin != "false";
    if (thin_along) {
      conditions.push_back(thin);
      if (!lines_) add_new(buffers, buffer(form_.thin.buffer));
    }
    if (lines_) conditions.push_back(lines_->vector);
    const std::string vector = all_aligned(all_of(conditions), buffers);
    const std::string_view type = storage_type(form_.dtype);
    emitter_.line(fmt::format(
        "using Tile = ThinTile<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}{8}>;\n"
        "__shared__ ThinSlots<Tile> slots;\n"
        "const long long batch = blockIdx.y;\n"
        "const {9}<{0}> wide[] = {{{10}}};\n"
        "{11}"
        "ThinProduct<Tile{12}> product(slots, wide, thin, {13}, {14}, {15});\n"
        "product.multiply({16}{17});",
        type, along, thin_along, config_.lines, config_.wide, config_.warps, config_.blocks,
        form_.wide.size(), code_text(), form_.coded.empty() ? "ThinMatrix" : "ThinCodedMatrix",
        fmt::join(matrices, ", "), thin_matrix(type),
        lines_ ? fmt::format(", ThinShared<{}>", type) : "", as_int(kernel_.size(form_.extent)),
        as_int(kernel_.size(form_.lines)), as_int(kernel_.size(form_.depth)), vector,
        lines_ ? ", " + lines_->make : ""));
  }

  void add_finish() {
    const DType out = builder_.dtype_of(epilogue_.value);
    const std::string target = kernel_.buffer(epilogue_.value, true);
    emitter_.set_fast_math(size_of(out) == 2);
    emitter_.open();
    bind_coordinates(emitter_, step_.batch, "batch");
    bind_coordinates(emitter_, step_.m, form_.columns ? "at" : "line");
    bind_coordinates(emitter_, step_.n, form_.columns ? "line" : "at");
    for (size_t i = 0; i < epilogue_.products.size(); ++i) {
      const DType rounded = epilogue_.products[i]->dtype;
      const std::string name = emitter_.fresh("sum");
      emitter_.line(fmt::format("const {0} {1} = Element<{2}>::get(Element<{2}>::put(sums[{3}]));",
                                value_type(rounded), name, storage_type(rounded), i));
      emitter_.bind(epilogue_.products[i], name);
    }
    const std::string value = emitter_.emit_as(epilogue_.body, out);
    emitter_.line(
        fmt::format("store({}, {}, {});", target, emitter_.emit(epilogue_.offset), value));
    emitter_.line(
        fmt::format("product.finish([&](long long at, long long line, const float (&sums)[{}]) {{\n"
                    "{}}});",
                    form_.wide.size(), emitter_.close()));
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  const ThinForm& form_;
  const ThinConfig& config_;
  const ProductEpilogue& epilogue_;
  KernelText kernel_;
  Emitter emitter_;
  std::optional<ThinLines> lines_;
};

}  // namespace

KernelLaunch thin_kernel(StepBuilder& builder, const fuse::ProductStep& step, const ThinForm& form,
                         const ThinConfig& config, const ProductEpilogue& epilogue,
                         const std::string& comment, const MakeThinLines& lines) {
  return ThinText(builder, step, form, config, epilogue, lines).launch(comment);
}

}  // namespace redfuser::codegen
