// The text of an attention kernel: 64 rows by tiles of 64 keys, with the generated score, weight,
// transport and finish.
#include <algorithm>

#include "base/error.h"
#include "codegen/attention.h"
#include "codegen/leaf_texts.h"
#include "ir/polynomial.h"

namespace redfuser {
namespace {

constexpr int kRows = 64, kKeys = 64, kThreads = 128;

class AttentionText {
 public:
  AttentionText(StepBuilder& builder, const AttentionForm& form)
      : pool_(builder.pool()),
        form_(form),
        rows_(form.rows),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        leaves_(emitter_),
        phases_(phases_of(form.rows)) {
    const DType dtype = form.query->dtype;
    half_ = size_of(dtype) == 2;
    type_ = storage_type(dtype);
    depth_ = padded(form.depth->extent()->integer);
    columns_ = padded(form.column->extent()->integer);
    stages_ = half_ ? 2 : 1;
    emitter_.set_fast_exp(half_);
    leaves_.add(form.weight);
    leaves_.add(rows_);
    find_shared();
  }

  KernelLaunch launch() {
    keys_ = kernel_.size(rows_.length());
    row_count_ = form_.row ? form_.row->extent() : pool_.integer(1);
    place();
    declare_tiles();
    declare_state();
    tile_loop();
    write_outputs();
    KernelLaunch launch = kernel_.launch("attention", comment_of(rows_.comment),
                                         {"ptx", "math", "types", "reduce", "attention"}, "",
                                         emitter_.close(), kThreads);
    launch.shared = shared_bytes();
    launch.grid[0] = pool_.mul(ceil_div(pool_, row_count_, kRows),
                               product_of(pool_, extents_of(pool_, form_.others)));
    return launch;
  }

 private:
  static int padded(int64_t n) { return static_cast<int>((n + 15) / 16 * 16); }
  int element_bytes() const { return half_ ? 2 : 4; }
  int tile_elements(int rows, int columns) const { return rows * (columns + 16 / element_bytes()); }
  int shared_bytes() const {
    int elements = tile_elements(kRows, depth_) +
                   stages_ * (tile_elements(kKeys, depth_) + tile_elements(kKeys, columns_));
    if (!half_) elements += tile_elements(kRows, kKeys);
    return elements * element_bytes();
  }

  // Scores that several phases need are computed once.
  void find_shared() {
    RowForm scalar = rows_;
    scalar.accumulators[form_.value_accumulator].lift = form_.weight;
    for (Expr e : shared_values(scalar, phases_)) {
      bool scored = false;
      visit(e, [&](Expr x) { scored |= x == form_.contraction; });
      if (scored) shared_.push_back(e);
    }
  }

  void place() {
    const std::string tiles = kernel_.size(ceil_div(pool_, row_count_, kRows));
    emitter_.line(
        fmt::format("const long long other = floor_div(blockIdx.x, {0}), first_row = "
                    "(blockIdx.x - other * {0}) * {1};",
                    tiles, kRows));
    emitter_.line(
        "const int warp = threadIdx.x >> 5, quad = (threadIdx.x & 31) >> 2, pair = "
        "(threadIdx.x & 3) * 2;");
    bind_coordinates(emitter_, form_.others, "other");
  }

  // A lambda from (line, element) to an operand's offset, and whether it may be copied whole.
  void declare_operand(const std::string& name, Expr read, Expr line, const std::string& line_name,
                       Expr element) {
    emitter_.open();
    if (line) emitter_.bind(line, line_name);
    emitter_.bind(element, "e");
    const std::string value = emitter_.emit(read->args[0]);
    const std::string text = emitter_.close();
    emitter_.line(
        fmt::format("const {}* const {}_data = {};", type_, name, kernel_.buffer(read->integer)));
    emitter_.line(
        fmt::format("const auto {}_at = [&](long long line, long long e) {{\n(void)line;\n{}"
                    "return {};\n}};",
                    name, text, value));
    auto affine = affine_in(pool_, read->args[0], element);
    std::string vector = "false";
    if (affine && affine->stride->is_constant(1) && !affine->base->depends_on(element)) {
      std::vector<Expr> units = offset_units(pool_, affine->base);
      units.push_back(element->extent());
      vector = fmt::format("{} && aligned({})", kernel_.multiples(units, 16 / element_bytes()),
                           kernel_.buffer(read->integer));
    }
    emitter_.line(fmt::format("const bool {}_vector = {};", name, vector));
  }

  void declare_tiles() {
    emitter_.line("extern __shared__ __align__(16) char memory[];");
    emitter_.line(fmt::format("{0}* const q_tile = reinterpret_cast<{0}*>(memory);", type_));
    emitter_.line(
        fmt::format("{}* const k_tiles = q_tile + {};", type_, tile_elements(kRows, depth_)));
    emitter_.line(fmt::format("{}* const v_tiles = k_tiles + {};", type_,
                              stages_ * tile_elements(kKeys, depth_)));
    emitter_.line(fmt::format("{}* const staged = v_tiles + {} + warp * {};", type_,
                              stages_ * tile_elements(kKeys, columns_),
                              half_ ? 0 : tile_elements(16, kKeys)));
    declare_operand("q", form_.query, form_.row, "(first_row + line)", form_.depth);
    declare_operand("k", form_.key, rows_.stream, "line", form_.depth);
    declare_operand("v", form_.value, rows_.stream, "line", form_.column);
    emitter_.line(
        fmt::format("load_tile<{}, {}>(q_tile, q_data, q_at, {} - first_row, {}, q_vector);", kRows,
                    depth_, kernel_.size(row_count_), form_.depth->extent()->integer));
    emitter_.line("const auto load_keys = [&](long long from, int stage) {");
    for (const auto& [name, columns, extent] :
         {std::tuple("k", depth_, form_.depth->extent()->integer),
          std::tuple("v", columns_, form_.column->extent()->integer)}) {
      emitter_.line(
          fmt::format("load_tile<{0}, {1}>({2}_tiles + stage * {3}, {2}_data, [&](long long "
                      "line, long long e) {{ return {2}_at(from + line, e); }}, {4} - from, "
                      "{5}, {2}_vector);",
                      kKeys, columns, name, tile_elements(kKeys, columns), keys_, extent));
    }
    emitter_.line("ptx_copy_commit();\n};");
  }

  bool is_value(size_t k) const { return k == form_.value_accumulator; }

  void declare_state() {
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      const Accumulator& a = rows_.accumulators[k];
      if (is_value(k)) continue;
      const std::string identity = identity_of(a.reduction, a.dtype);
      emitter_.line(fmt::format("float a{0}[2] = {{{1}, {1}}};", k, identity));
    }
    emitter_.line(fmt::format("float o[{}][4] = {{}};", columns_ / 8));
    // References of the empty state.
    emitter_.open();
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      if (is_value(k)) continue;
      const Accumulator& a = rows_.accumulators[k];
      leaves_.bind(LeafKind::State, static_cast<int64_t>(k), identity_of(a.reduction, a.dtype),
                   a.dtype);
    }
    leaves_.bind(LeafKind::Count, 0, "0ll", DType::Int64);
    std::string declarations;
    for (size_t r = 0; r < rows_.references.size(); ++r) {
      const std::string value = emitter_.emit_as(rows_.references[r].value, DType::Float32);
      declarations += fmt::format("r{0}[0] = r{0}[1] = {1};\n", r, value);
    }
    emitter_.line(declarations);
    const std::string text = emitter_.close();
    for (size_t r = 0; r < rows_.references.size(); ++r)
      emitter_.line(fmt::format("float r{}[2];", r));
    emitter_.line(fmt::format("{{\n{}}}", text));
  }

  void tile_loop() {
    emitter_.open();
    emitter_.line(fmt::format("const long long next = first + {};", kKeys));
    if (stages_ == 2) {
      emitter_.line(
          fmt::format("if (next < {}) load_keys(next, stage ^ 1); else ptx_copy_commit();", keys_));
      emitter_.line("ptx_copy_wait<1>();\n__syncthreads();");
    } else {
      emitter_.line("load_keys(first, 0);\nptx_copy_wait<0>();\n__syncthreads();");
    }
    emitter_.line(
        fmt::format("const int valid = static_cast<int>(min_of({} - first, {}ll));", keys_, kKeys));
    emitter_.line(fmt::format("float s[{}][4], p[{}][4];", kKeys / 8, kKeys / 8));
    for (size_t i = 0; i < shared_.size(); ++i) {
      emitter_.line(fmt::format("float kept{}[{}][4];", i, kKeys / 8));
    }
    emitter_.line(
        fmt::format("score_product<{0}, {1}>(s, q_tile + warp * {2}, k_tiles + stage * {3});",
                    depth_, kKeys, tile_elements(16, depth_), tile_elements(kKeys, depth_)));
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      if (!is_value(k)) emitter_.line(fmt::format("float b{}[2];", k));
    }
    for (size_t r = 0; r < rows_.references.size(); ++r)
      emitter_.line(fmt::format("float w{}[2];", r));
    make_references(0);
    for (size_t i = 0; i < phases_.size(); ++i) run_phase(phases_[i], i == 0);
    emitter_.line(fmt::format("value_product<{}, {}>(o, p, v_tiles + stage * {}, staged);",
                              columns_, kKeys, tile_elements(kKeys, columns_)));
    std::string moves;
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      if (!is_value(k)) moves += fmt::format("a{0}[h] = b{0}[h];\n", k);
    }
    for (size_t r = 0; r < rows_.references.size(); ++r)
      moves += fmt::format("r{0}[h] = w{0}[h];\n", r);
    emitter_.line(fmt::format("#pragma unroll\nfor (int h = 0; h < 2; ++h) {{\n{}}}", moves));
    if (stages_ == 2) emitter_.line("stage ^= 1;");
    emitter_.line("__syncthreads();");
    const std::string text = emitter_.close();
    if (stages_ == 2) emitter_.line(fmt::format("if ({} > 0) load_keys(0, 0);", keys_));
    emitter_.line(
        fmt::format("int stage = 0;\nfor (long long first = 0; first < {}; first += {}) {{\n{}"
                    "}}",
                    keys_, kKeys, text));
  }

  // Opens the scope of one of the thread's two rows.
  void open_row() {
    emitter_.open();
    if (!form_.row) return;
    emitter_.line(
        fmt::format("const long long row = min_of(first_row + warp * 16 + h * 8 + quad, {} - "
                    "1);",
                    kernel_.size(row_count_)));
    emitter_.bind(form_.row, "row");
  }
  void close_row() {
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("#pragma unroll\nfor (int h = 0; h < 2; ++h) {{\n{}}}", text));
  }

  void bind_old_state(const std::string& count) {
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      if (!is_value(k))
        leaves_.bind(LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k),
                     DType::Float32);
    }
    for (size_t r = 0; r < rows_.references.size(); ++r) {
      leaves_.bind(LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("r{}[h]", r),
                   DType::Float32);
    }
    bind_new_references();
    leaves_.bind(LeafKind::Count, 0, count, DType::Int64);
  }
  void bind_new_references() {
    for (size_t r = 0; r < rows_.references.size(); ++r) {
      leaves_.bind(LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("w{}[h]", r),
                   DType::Float32);
    }
  }

  void run_phase(const Phase& phase, bool first) {
    open_row();
    bind_new_references();
    for (size_t k = phase.begin; k < phase.end; ++k) {
      const Accumulator& a = rows_.accumulators[k];
      if (!is_value(k)) {
        emitter_.line(
            fmt::format("float t{}_{} = {};", k, "tile", identity_of(a.reduction, a.dtype)));
      }
    }
    emitter_.open();
    emitter_.line("const int x = h * 2 + e, offset = n * 8 + pair + e;");
    emitter_.line(fmt::format("const long long at = min_of(first + offset, {} - 1);", keys_));
    emitter_.bind(rows_.stream, "at");
    if (first) {
      bind_score("s[n][x]");
      for (size_t i = 0; i < shared_.size(); ++i) {
        emitter_.line(
            fmt::format("kept{}[n][x] = {};", i, emitter_.emit_as(shared_[i], DType::Float32)));
      }
    } else {
      bind_score("s[n][x]");
      for (size_t i = 0; i < shared_.size(); ++i)
        emitter_.bind(shared_[i], fmt::format("kept{}[n][x]", i));
    }
    for (size_t k = phase.begin; k < phase.end; ++k) {
      const Accumulator& a = rows_.accumulators[k];
      if (is_value(k)) {
        const std::string weight = emitter_.emit_as(form_.weight, DType::Float32);
        emitter_.line(fmt::format("p[n][x] = offset < valid ? {} : 0.0f;", weight));
      } else {
        emitter_.line(fmt::format("if (offset < valid) t{0}_tile = {1}::apply(t{0}_tile, {2});", k,
                                  combiner_of(a.reduction), emitter_.emit_as(a.lift, a.dtype)));
      }
    }
    const std::string element = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int n = 0; n < {}; ++n) {{\n#pragma unroll\nfor (int "
                    "e = 0; e < 2; ++e) {{\n{}}}\n}}",
                    kKeys / 8, element));
    for (size_t k = phase.begin; k < phase.end; ++k) update(k);
    close_row();
    make_references(phase.end);
  }

  void bind_score(const std::string& score) {
    if (!form_.scale) {
      emitter_.bind(form_.contraction, score);
      return;
    }
    const std::string scale = emitter_.emit_as(form_.scale, DType::Float32);
    const std::string name = emitter_.fresh("scaled");
    emitter_.line(fmt::format("const float {} = {} * {};", name, score, scale));
    emitter_.bind(form_.contraction, name);
  }

  // New states from old ones and the tile's reductions.
  void update(size_t k) {
    const Accumulator& a = rows_.accumulators[k];
    if (!is_value(k)) {
      emitter_.open();
      bind_old_state("first");
      const std::string old =
          a.transport ? emitter_.emit_as(a.transport, a.dtype) : fmt::format("a{}[h]", k);
      const std::string_view op = combiner_of(a.reduction);
      emitter_.line(
          fmt::format("b{0}[h] = {1}::apply({2}, quad_reduce<{1}>(t{0}_tile));", k, op, old));
      emitter_.line("");
      const std::string text = emitter_.close();
      emitter_.line(fmt::format("{{\n{}}}", text));
      return;
    }
    if (!a.transport) return;
    emitter_.open();
    bind_old_state("first");
    emitter_.open();
    emitter_.line("const int x = h * 2 + e;");
    leaves_.bind(LeafKind::State, static_cast<int64_t>(k), "o[n][x]", DType::Float32);
    emitter_.line(fmt::format("o[n][x] = {};", emitter_.emit_as(a.transport, DType::Float32)));
    const std::string element = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int n = 0; n < {}; ++n) {{\n#pragma unroll\nfor (int "
                    "e = 0; e < 2; ++e) {{\n{}}}\n}}",
                    columns_ / 8, element));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("{{\n{}}}", text));
  }

  void make_references(size_t done) {
    for (size_t r = 0; r < rows_.references.size(); ++r) {
      const Reference& reference = rows_.references[r];
      if (static_cast<size_t>(reference.ready_after) > done || ready_.count(r)) continue;
      ready_.insert(r);
      emitter_.open();
      for (size_t k = 0; k < done; ++k) {
        if (!is_value(k)) {
          leaves_.bind(LeafKind::State, static_cast<int64_t>(k), fmt::format("b{}[h]", k),
                       DType::Float32);
        }
      }
      leaves_.bind(LeafKind::Count, 0, "(first + valid)", DType::Int64);
      emitter_.line(
          fmt::format("w{}[h] = {};", r, emitter_.emit_as(reference.value, DType::Float32)));
      const std::string text = emitter_.close();
      emitter_.line(fmt::format("#pragma unroll\nfor (int h = 0; h < 2; ++h) {{\n{}}}", text));
    }
  }

  void write_outputs() {
    open_row();
    emitter_.line(fmt::format("const bool exists = first_row + warp * 16 + h * 8 + quad < {};",
                              kernel_.size(row_count_)));
    for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
      if (!is_value(k))
        leaves_.bind(LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k),
                     DType::Float32);
    }
    leaves_.bind(LeafKind::Count, 0, keys_, DType::Int64);
    emitter_.open();
    emitter_.line("const int x = h * 2 + e;\nconst long long column = n * 8 + pair + e;");
    leaves_.bind(LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "o[n][x]",
                 DType::Float32);
    emitter_.bind(form_.column, "column");
    finish();
    for (const auto& output : rows_.outputs) {
      const bool columns = output.offset->depends_on(form_.column);
      const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
      emitter_.line(fmt::format("if (exists && column < {}) store({}, {}, {});",
                                columns ? form_.column->extent()->integer : 1,
                                kernel_.buffer(output.value, true), emitter_.emit(output.offset),
                                value));
    }
    const std::string element = emitter_.close();
    emitter_.line(
        fmt::format("#pragma unroll\nfor (int n = 0; n < {}; ++n) {{\n#pragma unroll\nfor (int "
                    "e = 0; e < 2; ++e) {{\n{}}}\n}}",
                    columns_ / 8, element));
    close_row();
  }

  void finish() {
    for (size_t i = 0; i < rows_.finish.size(); ++i) {
      const DType dtype = rows_.finish[i]->dtype;
      std::string value = emitter_.emit(rows_.finish[i]);
      if (!rows_.length()->is_constant()) {
        value = fmt::format("({} == 0 ? {} : {})", keys_,
                            identity_of(rows_.stages[i].reduction, dtype), value);
      }
      leaves_.bind(LeafKind::Result, static_cast<int64_t>(i), value, dtype);
    }
  }

  ExprPool& pool_;
  const AttentionForm& form_;
  const RowForm& rows_;
  KernelText kernel_;
  Emitter emitter_;
  LeafTexts leaves_;
  std::vector<Phase> phases_;
  std::vector<Expr> shared_;
  std::set<size_t> ready_;
  std::string type_, keys_;
  Expr row_count_ = nullptr;
  bool half_ = false;
  int depth_ = 0, columns_ = 0, stages_ = 1;
};

}  // namespace

KernelLaunch attention_kernel(StepBuilder& builder, const AttentionForm& form) {
  return AttentionText(builder, form).launch();
}

}  // namespace redfuser
