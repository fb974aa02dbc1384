#include "ops/reduce/einsum.h"

#include <algorithm>

#include "base/error.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

std::vector<int> labels_of(const NodeView& view, const std::string& term, int ellipsis) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (term.compare(i, 3, "...") != 0) view.fail("a lone dot in the equation");
      for (int d = ellipsis; d-- > 0;) labels.push_back(-d);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      view.fail(fmt::format("character '{}' in the equation", term[i]));
    }
  }
  return labels;
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

// The number of dimensions of a term's ellipsis.
int ellipsis_rank(const NodeView& view, const std::string& term, int rank) {
  const auto letters = static_cast<int>(
      std::count_if(term.begin(), term.end(), [](unsigned char c) { return std::isalpha(c); }));
  const bool dots = term.find('.') != std::string::npos;
  if (letters > rank || (!dots && letters != rank)) {
    view.fail(fmt::format("term \"{}\" does not fit an input of rank {}", term, rank));
  }
  return rank - letters;
}

// Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order.
std::vector<int> implicit_output(const Equation& equation, int ellipsis) {
  std::map<int, int> count;
  for (auto& term : equation.terms) {
    for (int label : term) ++count[label];
  }
  std::vector<int> output;
  for (int d = ellipsis; d-- > 0;) output.push_back(-d);
  for (auto& [label, times] : count) {
    if (label > 0 && times == 1) output.push_back(label);
  }
  return output;
}

void note_size(const NodeView& view, Equation& equation, int label, ir::Expr size) {
  ir::Expr& known = equation.size[label];
  known = known ? broadcast_shapes(view, {known}, {size})[0] : size;
}

}  // namespace

Equation equation_of(const NodeView& view) {
  std::string text = view.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  const auto terms = split_terms(text.substr(0, arrow));
  if (static_cast<int>(terms.size()) != view.input_count()) {
    view.fail(fmt::format("{} terms for {} inputs", terms.size(), view.input_count()));
  }
  Equation equation;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int input = static_cast<int>(i),
              ellipsis = ellipsis_rank(view, terms[i], view.rank(input));
    widest = std::max(widest, ellipsis);
    equation.terms.push_back(labels_of(view, terms[i], ellipsis));
    for (size_t d = 0; d < equation.terms[i].size(); ++d) {
      note_size(view, equation, equation.terms[i][d], view.shape(input)[d]);
    }
  }
  equation.output = arrow == std::string::npos ? implicit_output(equation, widest)
                                               : labels_of(view, text.substr(arrow + 2), widest);
  for (int label : equation.output) {
    if (!equation.size.count(label)) view.fail("an output label that no input has");
    if (std::count(equation.output.begin(), equation.output.end(), label) > 1) {
      view.fail("an output label appears twice");
    }
  }
  for (auto& term : equation.terms) {
    for (int label : term) {
      auto in = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), label) != list.end();
      };
      if (!in(equation.output) && !in(equation.summed)) equation.summed.push_back(label);
    }
  }
  return equation;
}

namespace {

void infer_einsum(InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i) {
    check_operand(context, i, Operand::Number);
    if (context.dtype(i) != context.dtype(0)) context.fail("the inputs differ in dtype");
  }
  const Equation equation = equation_of(context);
  Shape shape;
  for (int label : equation.output) shape.push_back(equation.size.at(label));
  context.set(0, context.dtype(0), std::move(shape));
}

// In all terms that have one of them, at least two, `next` directly follows `label`, and both are
// summed: together they are one axis in row-major order.
bool is_one_axis(const LowerContext& context, const Equation& equation, int label, int next) {
  int together = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const auto& term = equation.terms[i];
    const auto first = std::count(term.begin(), term.end(), label);
    if (first == 0 && std::count(term.begin(), term.end(), next) == 0) continue;
    const auto at = std::find(term.begin(), term.end(), label);
    const bool pair = first == 1 && std::count(term.begin(), term.end(), next) == 1 &&
                      at + 1 != term.end() && *(at + 1) == next;
    if (!pair) return false;
    const auto d = static_cast<size_t>(at - term.begin());
    const Shape& shape = context.shape(static_cast<int>(i));
    if (shape[d] != equation.size.at(label) || shape[d + 1] != equation.size.at(next)) return false;
    ++together;
  }
  return together > 1;
}

// The axes of the sums, outermost first; sets the index of each label.
std::vector<ir::Expr> summed_axes(LowerContext& context, const Equation& equation,
                                  std::map<int, ir::Expr>& at) {
  ir::ExprPool& pool = context.pool();
  const std::vector<int>& summed = equation.summed;
  std::vector<ir::Expr> loops;
  for (size_t begin = 0, end = 0; begin < summed.size(); begin = end) {
    ir::Expr extent = equation.size.at(summed[begin]);
    for (end = begin + 1; end < summed.size(); ++end) {
      if (!is_one_axis(context, equation, summed[end - 1], summed[end])) break;
      extent = pool.mul(extent, equation.size.at(summed[end]));
    }
    loops.push_back(context.loop_axis(static_cast<int>(loops.size()), extent));
    ir::Expr rest = loops.back();
    for (size_t i = end; i-- > begin;) {
      ir::Expr size = equation.size.at(summed[i]);
      at[summed[i]] = i == begin ? rest : pool.floormod(rest, size);
      rest = pool.floordiv(rest, size);
    }
  }
  return loops;
}

ir::Expr lower_einsum(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Equation equation = equation_of(context);
  std::map<int, ir::Expr> at;
  for (size_t i = 0; i < equation.output.size(); ++i) {
    at[equation.output[i]] = context.index()[i];
  }
  const std::vector<ir::Expr> loops = summed_axes(context, equation, at);
  ir::Expr product = nullptr;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const auto& term = equation.terms[i];
    Shape sizes;
    std::vector<ir::Expr> index;
    for (int label : term) {
      sizes.push_back(equation.size.at(label));
      index.push_back(at.at(label));
    }
    const int input = static_cast<int>(i);
    ir::Expr factor =
        context.read(input, broadcast_index(pool, context.shape(input), sizes, index));
    product = product ? pool.mul(product, factor) : factor;
  }
  for (size_t i = loops.size(); i-- > 0;)
    product = pool.reduce(ir::Reduction::Sum, loops[i], product);
  return product;
}

constexpr OpDef kOps[] = {
    {"Einsum", "", 12, infer_einsum, lower_einsum},
};

}  // namespace

std::span<const OpDef> einsum_ops() { return kOps; }

}  // namespace redfuser::ops
