// Matrix products for the product library: strides from affine analysis, copies of operands without
// such strides, and the epilogue as an elementwise kernel.
#include "codegen/product/library_product.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/matrix/matrix_layout.h"
#include "codegen/matrix/padded_operand.h"
#include "codegen/product/library_time.h"
#include "codegen/product/line_scales.h"
#include "codegen/product/own_kernels.h"
#include "codegen/product/plain_product.h"
#include "codegen/product/product_batch.h"
#include "ir/contraction.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

ir::Expr read_of(ir::Expr operand) {
  while (operand->op == ir::ExprOp::Cast) operand = operand->args[0];
  return operand;
}

// A float type with the values of both, in which operands of different types are multiplied.
DType common_type(DType a, DType b) {
  for (const DType dtype : {a, b}) {
    if (dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float8E8M0) {
      return DType::Float32;
    }
  }
  if (is_low_bit_float(a) && is_low_bit_float(b)) return DType::Float16;
  if (is_low_bit_float(a)) return b;
  return is_low_bit_float(b) || a == b ? a : DType::Float32;
}

class ProductBuilder {
 public:
  ProductBuilder(StepBuilder& builder, const fuse::ProductStep& step, int64_t value,
                 ir::Expr offset, const std::string& comment)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        value_(value),
        offset_(offset),
        comment_(comment) {}

  void build() { finish(calls()); }

  std::vector<ProductCall> calls() {
    ir::Expr a = flat_read(step_.a), b = flat_read(step_.b[0]);
    ProductCall call;
    call.batch = product_of(pool_, extents_of(pool_, step_.batch));
    call.m = product_of(pool_, extents_of(pool_, step_.m));
    call.n = product_of(pool_, extents_of(pool_, step_.n));
    call.k = step_.k->extent();
    call.dtype = multiplies_codes(call) ? DType::Float8E4M3FN : common_type(a->dtype, b->dtype);
    const auto [layout, value, more_rows, more_depth] =
        operand(a, step_.m, {step_.k}, call.m, call.k, call.dtype);
    call.a = builder_.buffer(value);
    call.a_offset = layout.offset;
    call.a_batch = layout.batch;
    call.a_row = layout.row;
    call.a_column = layout.column;
    if (more_depth) call.padded_k = in_vectors(call.k, call.dtype);
    std::vector<ProductCall> calls;
    for (ir::Expr operand : step_.b) {
      calls.push_back(call);
      set_b(calls.back(), flat_read(operand));
    }
    return calls;
  }

  // Of so many products.
  ProductEpilogue epilogue(size_t count) {
    ProductEpilogue result{builder_.flat.flat(step_.epilogue), {}, value_, offset_};
    result.products.resize(count);
    visit(result.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Product) {
        result.products.at(static_cast<size_t>(e->integer)) = e;
      }
    });
    for (ir::Expr product : result.products) RF_CHECK(product, "an epilogue without its product");
    return result;
  }

 private:
  ir::Expr flat_read(ir::Expr operand) {
    ir::Expr read = builder_.flat.flat(read_of(operand));
    RF_CHECK(read->op == ir::ExprOp::Read, "a product's operand is no read");
    return read;
  }

  // Whether the library multiplies the operands as 8-bit floats. It takes rows of whole vectors.
  bool multiplies_codes(const ProductCall& call) {
    const auto is_code = [&](ir::Expr operand) {
      return flat_read(operand)->dtype == DType::Float8E4M3FN;
    };
    return builder_.target.multiplies_codes() && is_code(step_.a) &&
           std::all_of(step_.b.begin(), step_.b.end(), is_code) && call.batch->is_constant(1) &&
           whole_vectors(call.k) && whole_vectors(call.n);
  }

  bool whole_vectors(ir::Expr codes) {
    constexpr int64_t kUnit = 16;
    return pool_.floormod(codes, pool_.integer(kUnit))->is_constant(0);
  }

  // Whether tensor cores read the matrix of 8-bit floats, `inner` being the stride along k.
  bool takes_codes(const MatrixLayout& layout, ir::Expr inner, ir::Expr outer) {
    return inner->is_constant(1) && whole_vectors(outer) && whole_vectors(layout.offset);
  }

  void set_b(ProductCall& call, ir::Expr b) {
    if (is_low_bit_float(call.dtype)) {
      // As rows of n along k.
      ProductOperand rows = operand(b, step_.n, {step_.k}, call.n, call.k, call.dtype);
      std::swap(rows.layout.row, rows.layout.column);
      std::swap(rows.more_rows, rows.more_columns);
      return set_b(call, rows);
    }
    set_b(call, operand(b, {step_.k}, step_.n, call.k, call.n, call.dtype));
  }

  void set_b(ProductCall& call, const ProductOperand& b) {
    call.b = builder_.buffer(b.value);
    call.b_offset = b.layout.offset;
    call.b_batch = b.layout.batch;
    call.b_row = b.layout.row;
    call.b_column = b.layout.column;
    if (!b.more_rows) call.padded_k = nullptr;
    if (b.more_columns) call.padded_n = in_vectors(call.n, call.dtype);
  }

  ir::Expr in_vectors(ir::Expr size, DType dtype) {
    return size->is_constant() ? pool_.integer(size_in_vectors(size->integer, dtype)) : nullptr;
  }

  // The layout of an operand, which is copied if it has none.
  ProductOperand operand(ir::Expr read, const std::vector<ir::Expr>& rows,
                         const std::vector<ir::Expr>& columns, ir::Expr row_count,
                         ir::Expr column_count, DType dtype) {
    auto layout = matrix_layout(pool_, read->args[0], step_.batch, rows, columns);
    if (read->dtype != dtype && layout && layout->row->is_constant(1) &&
        !layout->column->is_constant(1)) {
      // The copy has the order of the memory.
      ProductOperand turned = operand(read, columns, rows, column_count, row_count, dtype);
      std::swap(turned.layout.row, turned.layout.column);
      std::swap(turned.more_rows, turned.more_columns);
      return turned;
    }
    if (read->dtype == dtype && layout && library_takes(pool_, *layout, row_count, column_count)) {
      ProductOperand taken{*layout, read->integer};
      find_padding(builder_, taken, row_count, column_count);
      const bool depth_is_rows = rows.size() == 1 && rows[0] == step_.k;
      const bool vectors =
          is_low_bit_float(dtype)
              ? takes_codes(*layout, layout->column, layout->row)
              : !builder_.pads_operands ||
                    has_whole_lines(pool_, taken, row_count, column_count, dtype, depth_is_rows);
      if (vectors) return taken;
    }
    return copied_operand(builder_, pool_.cast(dtype, read), {step_.batch, rows, columns, step_.k},
                          comment_);
  }

  // The library writes to the value if its layout and type allow, and the epilogue runs in place;
  // otherwise it writes to scratch memory of the product's type.
  void finish(std::vector<ProductCall> calls) {
    const DType out = builder_.dtype_of(value_);
    const ProductEpilogue own = this->epilogue(calls.size());
    ir::Expr epilogue = own.body;
    const std::vector<ir::Expr>& products = own.products;
    ProductCall& call = calls[0];
    ir::Expr product = products[0];
    const bool identity = read_of(epilogue) == product;
    auto layout = matrix_layout(pool_, offset_, step_.batch, step_.m, step_.n);
    if (layout && call.n->is_constant(1)) layout->column = pool_.integer(1);
    if (layout && call.m->is_constant(1)) layout->row = call.n;
    bool direct = calls.size() == 1 && layout && layout->column->is_constant(1) &&
                  is_library_type(out, call.dtype) &&
                  proved_less_equal(pool_, call.n, layout->row, ir::kWhereElementsExist);
    const ir::Expr pitch = row_pitch(call, out);
    direct &= pitch == call.n || !layout || layout->row != call.n;
    const bool in_library =
        direct && !identity && take_affine(call, epilogue, product, offset_, out);
    direct &= identity || in_library || out == product->dtype;
    visit(epilogue,
          [&](ir::Expr e) { direct &= !(e->op == ir::ExprOp::Read && e->integer == value_); });
    ir::Expr taken = nullptr;  // where a kernel of ours computes the product
    for (OwnKernel& kernel :
         own_kernels(builder_, step_, calls, own, direct && (identity || in_library), comment_)) {
      KernelLaunch& launch = kernel.launch;
      launch.grid[0] = pool_.select(kernel.when, launch.grid[0], pool_.integer(0));
      builder_.result.calls.push_back(std::move(launch));
      taken = taken ? pool_.make(ir::ExprOp::Or, {taken, kernel.when}) : kernel.when;
    }
    if (taken && taken->is_constant(1)) return;
    const size_t kernels = builder_.result.calls.size(), buffers = builder_.result.scratch.size();
    if (direct) {
      call.c = builder_.buffer(value_);
      call.result = out;
      call.c_row = layout->row;
      call.c_batch = layout->batch;
      take_padding(call, false);
      builder_.result.calls.push_back(call);
      if (!identity && !in_library) add_epilogue(epilogue, {{product, {value_, offset_}}});
    } else {
      add_apart(std::move(calls), epilogue, products);
    }
    if (taken) leave_out_where(builder_, taken, kernels, buffers);
  }

  // An element of a buffer.
  struct Place {
    int64_t value;
    ir::Expr offset;
  };

  // The library writes to scratch memory. Products whose right operands are adjacent columns of one
  // matrix are one call.
  void add_apart(std::vector<ProductCall> calls, ir::Expr epilogue,
                 const std::vector<ir::Expr>& products) {
    const ir::Expr columns = calls[0].n;
    const size_t together = have_adjacent_columns(pool_, calls) ? calls.size() : 1;
    if (together > 1) {
      calls[0].n = pool_.mul(columns, pool_.integer(static_cast<int64_t>(together)));
      calls[0].padded_n = nullptr;
      calls.resize(1);
    }
    auto position = [&](const std::vector<ir::Expr>& axes) {
      return row_major(pool_, axes, extents_of(pool_, axes));
    };
    std::vector<ir::Expr> rows = step_.batch;
    rows.insert(rows.end(), step_.m.begin(), step_.m.end());
    std::vector<std::pair<ir::Expr, Place>> places;
    for (ProductCall& call : calls) {
      const DType dtype = products[places.size()]->dtype;
      call.result = is_library_type(dtype, call.dtype) ? dtype : DType::Float32;
      call.c_row = row_pitch(call, builder_.dtype_of(value_));
      call.c_batch = pool_.mul(call.m, call.c_row);
      const int64_t scratch =
          builder_.add_scratch(call.result, pool_.mul(call.batch, call.c_batch));
      call.c = builder_.buffer(scratch);
      take_padding(call, call.c_row == call.padded_n);
      builder_.result.calls.push_back(call);
      ir::Expr offset = pool_.add(pool_.mul(position(rows), call.c_row), position(step_.n));
      for (size_t i = 0; i < together; ++i) {
        places.emplace_back(products[places.size()], Place{scratch, offset});
        offset = pool_.add(offset, columns);
      }
    }
    add_epilogue(epilogue, places);
  }

  // The pitch of the result's rows. The library is several times slower if rows of 16-bit elements
  // are not aligned to 16 bytes; a padded pitch and a copy cost less.
  ir::Expr row_pitch(const ProductCall& call, DType out) {
    constexpr int64_t kUnit = 8, kWorthwhile = 128;
    const bool ragged = size_of(out) == 2 && call.n->is_constant() && call.n->integer > kUnit &&
                        call.n->integer % kUnit != 0 && call.k->is_constant() &&
                        (call.k->integer >= kWorthwhile || builder_.pads_operands) &&
                        !call.m->is_constant(1);
    return ragged ? pool_.integer(size_in_vectors(call.n->integer, out)) : call.n;
  }

  // Moves a vector along n and a matrix with the layout of the result into the library call, which
  // adds them before it rounds.
  bool take_affine(ProductCall& call, ir::Expr epilogue, ir::Expr product, ir::Expr offset,
                   DType out) {
    // The library does not compute empty sums.
    if (!proved_less_equal(pool_, pool_.integer(1), call.k, ir::kWhereElementsExist)) return false;
    std::vector<ir::Expr> terms;
    add_terms(epilogue, terms);
    ir::Expr bias = nullptr, addend = nullptr;
    int products = 0;
    const bool codes = is_low_bit_float(call.dtype);
    std::optional<LineScales> scales;
    for (ir::Expr term : terms) {
      const auto scaled =
          codes ? line_scales(pool_, term, product, step_.m, step_.n) : std::nullopt;
      const bool known =
          term == product || scaled || (term->op == ir::ExprOp::Read && term->dtype == out);
      if (!known) return false;
      if (term == product || scaled) {
        ++products;
        scales = scaled;
      } else if (!bias && is_bias(term->args[0])) {
        bias = term;
      } else if (!addend && term->args[0] == offset) {
        addend = term;
      } else {
        return false;
      }
    }
    if (products != 1) return false;
    // A bias of these products has 16 bits.
    if (codes && bias && out == DType::Float32) return false;
    if (scales && !take_scales(call, *scales)) return false;
    if (bias) call.bias = builder_.buffer(bias->integer);
    if (addend) call.addend = builder_.buffer(addend->integer);
    return true;
  }

  bool take_scales(ProductCall& call, const LineScales& scales) {
    if (!scales.row && !scales.column) return true;
    // cuBLASLt scales lines on Hopper.
    const bool by_lines = builder_.target.scaled_products && builder_.target.architecture / 10 == 9;
    if (!scales.one && !by_lines) return false;
    ir::Expr one = pool_.number(1, DType::Float32);
    call.line_scales = !scales.one;
    call.a_scale = vector_of(scales.row ? scales.row : one, scales.one ? no_axes_ : step_.m);
    if (call.line_scales) call.b_scale = vector_of(scales.column ? scales.column : one, step_.n);
    return true;
  }

  // A contiguous vector of the expression's values: where they are, or computed first.
  BufferRef vector_of(ir::Expr e, const std::vector<ir::Expr>& axes) {
    if (e->op == ir::ExprOp::Read && e->dtype == DType::Float32) {
      const auto layout = matrix_layout(pool_, e->args[0], {}, {}, axes);
      const bool whole = layout && layout->offset->is_constant(0);
      if (whole && (axes.empty() || layout->column->is_constant(1))) {
        return builder_.buffer(e->integer);
      }
    }
    const std::vector<ir::Expr> extents = extents_of(pool_, axes);
    const int64_t scales = builder_.add_scratch(DType::Float32, product_of(pool_, extents));
    add_map(builder_, "scales", axes, {{scales, e, row_major(pool_, axes, extents)}},
            "scales of a product's lines\n" + comment_);
    return builder_.buffer(scales);
  }

  static void add_terms(ir::Expr e, std::vector<ir::Expr>& terms) {
    e = without_float_casts(e);
    if (e->op != ir::ExprOp::Add) return terms.push_back(e);
    for (ir::Expr arg : e->args) add_terms(arg, terms);
  }

  // Whether an offset starts at the first element and runs along n contiguously.
  bool is_bias(ir::Expr offset) {
    for (const auto& axes : {step_.batch, step_.m}) {
      for (ir::Expr axis : axes) {
        if (offset->depends_on(axis)) return false;
      }
    }
    const auto layout = matrix_layout(pool_, offset, {}, {}, step_.n);
    return layout && layout->column->is_constant(1) && layout->offset->is_constant(0);
  }

  static bool is_library_type(DType result, DType operands) {
    const bool alike = result == operands || is_low_bit_float(operands);
    return result == DType::Float32 || (alike && size_of(result) == 2 && is_float(result));
  }

  void add_epilogue(ir::Expr epilogue, const std::vector<std::pair<ir::Expr, Place>>& products) {
    std::vector<std::pair<ir::Expr, ir::Expr>> reads;
    for (const auto& [product, place] : products) {
      ir::Expr read = pool_.read(place.value, builder_.dtype_of(place.value), {place.offset});
      reads.emplace_back(product, pool_.cast(product->dtype, read));
    }
    ir::Expr body = pool_.substitute(epilogue, reads);
    const bool scratch = value_ >= kScratchValues;
    const std::vector<ir::Expr> axes =
        scratch ? step_.axes : builder_.memory_axes(value_, step_.axes);
    add_map(builder_, "epilogue", axes, {{value_, body, offset_}}, comment_);
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  int64_t value_;
  ir::Expr offset_;
  const std::string& comment_;
  const std::vector<ir::Expr> no_axes_;
};

}  // namespace

namespace {

// Whether copies of operands with padded rows pay, by estimates at sizes that are known.
bool padding_pays(const StepBuilder& builder, const fuse::ProductStep& step, int64_t value,
                  ir::Expr offset, const std::string& comment) {
  const auto trial = [&](bool pads) {
    // With what the step has in scratch memory, and reads already by offsets.
    StepBuilder result = builder;
    result.result.calls.clear();
    result.pads_operands = pads;
    return result;
  };
  StepBuilder given = trial(false), padded = trial(true);
  const ProductCall call = ProductBuilder(given, step, value, offset, comment).calls()[0];
  for (ir::Expr size : {call.batch, call.m, call.n, call.k}) {
    if (!size->is_constant()) return false;
  }
  if (size_of(call.dtype) != 2) return false;
  ProductBuilder(padded, step, value, offset, comment).calls();
  const bool differ = padded.result.calls.size() > given.result.calls.size();
  if (!differ) return false;
  constexpr double kDoubt = 1.1;  // of more launches
  const auto time = [&](bool pads) {
    StepBuilder whole = trial(pads);
    ProductBuilder(whole, step, value, offset, comment).build();
    return time_of(whole.result, builder.sizes, builder.target);
  };
  return kDoubt * time(true) < time(false);
}

}  // namespace

void add_product(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                 const std::string& comment) {
  ir::Expr offset = builder.offset_of(value, product.axes);
  const fuse::ProductStep turned = with_adjacent_columns(builder.pool(), product, offset);
  const fuse::ProductStep fitting = with_fitting_batch(builder, turned, offset);
  builder.pads_operands = padding_pays(builder, fitting, value, offset, comment);
  ProductBuilder(builder, fitting, value, offset, comment).build();
  builder.pads_operands = false;
}

void add_product_at(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                    ir::Expr offset, const std::string& comment) {
  std::vector<ir::Expr> roots = product.b;
  roots.insert(roots.end(), {product.a, product.epilogue});
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read) builder.flat.keep(e);
    });
  }
  ProductBuilder(builder, product, value, offset, comment).build();
}

void leave_out_where(StepBuilder& builder, ir::Expr when, size_t first_call, size_t first_buffer) {
  ir::ExprPool& pool = builder.pool();
  const auto otherwise = [&](ir::Expr size) { return pool.select(when, pool.integer(0), size); };
  GpuStep& result = builder.result;
  for (size_t i = first_call; i < result.calls.size(); ++i) {
    if (auto* launch = std::get_if<KernelLaunch>(&result.calls[i])) {
      launch->grid[0] = otherwise(launch->grid[0]);
    } else {
      auto& product = std::get<ProductCall>(result.calls[i]);
      product.m = otherwise(product.m);
    }
  }
  for (size_t i = first_buffer; i < result.scratch.size(); ++i) {
    result.scratch[i].bytes = otherwise(result.scratch[i].bytes);
  }
}

namespace {

std::string comment_of(ir::ExprPool& pool, const fuse::ProductStep& step) {
  std::string comment =
      fmt::format("product\n%{} = {}", step.value, to_string(pool, step.epilogue));
  for (size_t i = 0; i < step.b.size(); ++i) {
    comment += fmt::format("\nproduct{} = sum_{} {} * {}", i, to_string(pool, step.k),
                           to_string(pool, step.a), to_string(pool, step.b[i]));
  }
  return comment + "\n";
}

// The product library has a type for all operands.
bool in_library(const fuse::ProductStep& step) {
  const auto has_type = [](ir::Expr operand) {
    const DType dtype = read_of(operand)->dtype;
    return (is_float(dtype) && dtype != DType::Float64) ||
           (is_low_bit_float(dtype) && bits_of(dtype) == 8);
  };
  return has_type(step.a) && std::all_of(step.b.begin(), step.b.end(), has_type);
}

}  // namespace

std::optional<ProductParts> product_parts(StepBuilder& builder, const fuse::ProductStep& step) {
  if (!in_library(step)) return std::nullopt;
  ir::Expr offset = builder.offset_of(step.value, step.axes);
  ProductParts parts{
      with_fitting_batch(builder, step, offset), {}, {}, comment_of(builder.pool(), step)};
  ProductBuilder product(builder, parts.step, step.value, offset, parts.comment);
  parts.calls = product.calls();
  parts.epilogue = product.epilogue(parts.calls.size());
  return parts;
}

void generate_product(StepBuilder& builder, const fuse::ProductStep& step) {
  const std::string comment = comment_of(builder.pool(), step);
  const bool open = builder.product_family == ProductFamily::ByEstimate;
  const bool plain = builder.product_family == ProductFamily::Plain || !in_library(step) ||
                     (open && plain_product_pays(builder, step, comment));
  plain ? add_plain_product(builder, step, comment)
        : add_product(builder, step, step.value, comment);
}

}  // namespace redfuser::codegen
