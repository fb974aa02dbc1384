#include "codegen/rows/single_pass_body.h"

#include <fmt/format.h>

#include "codegen/rows/single_pass_select.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

// Groups per iteration of a pass over shared memory.
constexpr int kSharedUnroll = 2;

}  // namespace

SinglePassBody::SinglePassBody(KernelText& kernel, Emitter& emitter, const FlatStreaming& form,
                               const SinglePassConfig& config, VectorLoads& reads,
                               StateStruct& state)
    : kernel_(kernel),
      emitter_(emitter),
      form_(form),
      config_(config),
      reads_(reads),
      state_(state),
      phases_(phases_of(form)) {}

// The unrolling of a pass over a tile in shared memory: loads overlap with few registers.
std::string SinglePassBody::unrolled(bool output) const {
  if (reads_.unrolls(output)) return "";
  return fmt::format(" (kVector ? {} : 1)", kSharedUnroll);
}

// Loops over the groups of `width` elements of a tile. `body` emits the text of a group.
template <typename Body>
void SinglePassBody::for_groups(const std::string& unroll, Body body) {
  emitter_.open();
  reads_.bind_group(emitter_);
  body();
  const std::string text = emitter_.close();
  const std::string inside = fills() ? "kVector || first < extent" : "first < extent";
  const std::string guarded = config_.shared ? fmt::format("if (!({})) break;\n{}", inside, text)
                                             : fmt::format("if ({}) {{\n{}}}\n", inside, text);
  emitter_.line(
      fmt::format("#pragma unroll{}\nfor (int c = 0; c < {}; ++c) {{\nconst int first = "
                  "tile + c * {} + lane * {} - shift;\n{}}}",
                  unroll, config_.chunks, config_.lanes * config_.width * config_.cluster,
                  config_.width, guarded));
}

// Whether every tile is full in all lanes.
bool SinglePassBody::fills() const {
  ir::Expr length = form_.length();
  return length->is_constant() && length->integer % tile_elements(config_) == 0;
}

// Loops over the elements of a group, with its reads bound.
template <typename Body>
void SinglePassBody::for_elements(bool output, Body body) {
  reads_.open_group(emitter_, output);
  emitter_.open();
  emitter_.line("const long long at = begin + first + v;");
  emitter_.bind(form_.cascade.stream, "at");
  bind_digits(emitter_, form_.streamed(), form_.cascade.stream, "at");
  reads_.bind_element(emitter_, output);
  body();
  const std::string text = emitter_.close();
  emitter_.line(
      fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\nif (kVector || (first + v >= "
                  "0 && first + v < extent)) {{\n{}}}\n}}",
                  config_.width, text));
}

void SinglePassBody::fold() {
  if (!config_.whole) state_.declare_old_references();
  emitter_.open();
  reads_.declare_tile(emitter_);
  emitter_.line(counts(form_) ? "State t;\nint added = 0;" : "State t;");
  load_tile();
  fold_tile();
  const std::string text = emitter_.close();
  emit_tiles(text);
}

void SinglePassBody::load_tile() {
  for_groups("", [&] {
    reads_.load_group(emitter_);
    if (!counts(form_)) return;
    emitter_.line(fmt::format("added += kVector ? {0} : min(extent - first, {0}) - max(-first, 0);",
                              config_.width));
  });
  reads_.wait_copies(emitter_);
  if (reads_.transposes()) for_groups("", [&] { reads_.transpose_group(emitter_); });
}

void SinglePassBody::fold_tile() {
  if (counts(form_)) emitter_.line("t.count = s.count + added;");
  state_.declare_new_references();
  state_.update_references(0, "t");
  for (const Phase& phase : phases_) fold_phase(phase);
  emitter_.line("s = t;");
  if (!config_.whole) state_.renew_references();
}

void SinglePassBody::for_tile(const std::function<void()>& body) {
  for_groups(unrolled(false), [&] { for_elements(false, body); });
}

void SinglePassBody::emit_tiles(const std::string& text) {
  if (config_.whole) {
    emitter_.line("constexpr int tile = 0;\n" + text);
  } else {
    emitter_.line(
        fmt::format("#pragma unroll 1\nfor (int tile = 0; tile < extent + shift; tile += {}) "
                    "{{\n{}}}",
                    tile_elements(config_), text));
  }
}

void SinglePassBody::fold_phase(const Phase& phase) {
  for (size_t k = phase.begin; k < phase.end; ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    emitter_.line(
        fmt::format("{} part{} = {};", state_.type_of(a), k, state_.identity_of_accumulator(a)));
  }
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (static_cast<size_t>(form_.references[r].ready_after) > phase.begin) continue;
    state_.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("new{}", r),
                form_.references[r].value->dtype);
  }
  for_groups(unrolled(false), [&] {
    for_elements(false, [&] {
      for (size_t k = phase.begin; k < phase.end; ++k) fold_element(k);
    });
  });
  for (size_t k = phase.begin; k < phase.end; ++k) {
    state_.settle(k, fmt::format("part{}", k), "s", "t", config_.whole);
  }
}

void SinglePassBody::fold_element(size_t k) {
  const cascade::Accumulator& a = form_.accumulators[k];
  const std::string value =
      is_arg(a.reduction) ? fmt::format("{}{{{}, at}}", state_.type_of(a), emitter_.emit(a.lift))
                          : emitter_.emit_as(a.lift, a.dtype);
  emitter_.line(
      fmt::format("part{0} = {1}::apply(part{0}, {2});", k, combiner_of(a.reduction), value));
}

void SinglePassBody::write_outputs() {
  if (!maps_back(form_)) return;
  emitter_.open();
  for_groups(unrolled(true), [&] { write_group(); });
  const std::string text = emitter_.close();
  config_.whole ? emitter_.line(text) : emit_tiles(text);
}

void SinglePassBody::write_group() {
  size_t number = 0;
  for (const auto& output : form_.outputs) {
    if (!output.maps_back) continue;
    emitter_.line(fmt::format("{} y{}[{}];", value_type(kernel_.dtype_of(output.value)), number++,
                              config_.width));
  }
  for_elements(true, [&] {
    size_t i = 0;
    for (const auto& output : form_.outputs) {
      if (!output.maps_back) continue;
      const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
      const VectorLoads::OutputPlace place = reads_.output_place(output);
      if (place.base || place.group) {
        emitter_.line(fmt::format("y{}[v] = {};", i, value));
      }
      if (!place.base) {
        if (place.group) emitter_.line("if (!kVector) {");
        bind_digits(emitter_, {output.offset}, form_.cascade.stream, "at");
        emitter_.line(fmt::format("store({}, {}, {});", kernel_.buffer(output.value, true),
                                  emitter_.emit(output.offset), value));
        if (place.group) emitter_.line("}");
      }
      ++i;
    }
  });
  size_t i = 0;
  for (const auto& output : form_.outputs) {
    if (!output.maps_back) continue;
    const VectorLoads::OutputPlace place = reads_.output_place(output);
    const std::string buffer = kernel_.buffer(output.value, true);
    if (place.base) {
      emitter_.line(fmt::format(
          "store_words<{}, kVector>({} + {} + begin + first, y{}, -first, extent - first);",
          config_.width, buffer, emitter_.emit(place.base), i));
    } else if (place.group) {
      emitter_.line(fmt::format("if (kVector) store_aligned<{}>({} + {}, y{});", config_.width,
                                buffer, emitter_.emit(place.group), i));
    }
    ++i;
  }
}

}  // namespace redfuser::codegen
