// Sums of products of several values by sums of products of two, in the order of the fewest
// products. Sums over axes that nothing else has are done with the pair that has them, and their
// axes stand side by side, so that they are one axis of a matrix product.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/contraction.h"
#include "ir/evaluate.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/reduce/einsum.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

using Labels = std::vector<int>;
using Terms = std::vector<Labels>;

constexpr size_t kMaxTerms = 6;
constexpr double kNominalSize = 1024;  // of an axis whose size the file leaves open
// Divided sums may take so many times the products of the whole one, which no kernel of matrix
// products computes.
constexpr double kMaxProducts = 1.25;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// A sum that remains to be computed: the labels of its factors and of its result.
struct Sum {
  Terms terms;
  Labels output;
};

// Terms a and b, replaced by their product at the end of the list.
struct Pair {
  size_t a = 0, b = 0;
};

// The labels of the product of two terms, where nothing else needs the others: those of the result,
// in both, the first or the second term, and behind them those that are summed later, side by side
// in the order of a term with which they are.
Labels product_of(const Sum& sum, Pair pair) {
  const Labels &a = sum.terms[pair.a], &b = sum.terms[pair.b];
  Labels result;
  const auto add = [&](const Labels& from, const auto& wanted) {
    for (const int label : from) {
      if (wanted(label) && !has(result, label)) result.push_back(label);
    }
  };
  Labels later;  // what terms other than these sum
  for (size_t t = 0; t < sum.terms.size(); ++t) {
    for (const int label : sum.terms[t]) {
      const bool own = has(a, label) || has(b, label), other = t != pair.a && t != pair.b;
      if (own && other && !has(sum.output, label) && !has(later, label)) later.push_back(label);
    }
  }
  // A single one may stand anywhere.
  const auto kept = [&](int label) {
    return has(sum.output, label) || (later.size() == 1 && label == later[0]);
  };
  add(a, [&](int label) { return kept(label) && has(b, label); });
  add(a, kept);
  add(b, kept);
  add(later, [](int) { return true; });
  return result;
}

Sum without(const Sum& sum, Pair pair) {
  Sum rest{{}, sum.output};
  for (size_t t = 0; t < sum.terms.size(); ++t) {
    if (t != pair.a && t != pair.b) rest.terms.push_back(sum.terms[t]);
  }
  rest.terms.push_back(rest.terms.empty() ? sum.output : product_of(sum, pair));
  return rest;
}

bool is_contiguous(const Labels& labels, const Labels& part) {
  return std::search(labels.begin(), labels.end(), part.begin(), part.end()) != labels.end() ||
         part.empty();
}

// The labels that a product of two terms sums and both have once, if there are several: in the
// order of the second term where they stand side by side in it, else of the first.
Labels summed_together(const Labels& a, const Labels& b, const Labels& result) {
  const auto of = [&](const Labels& term, const Labels& other) {
    Labels labels;
    for (const int label : term) {
      const bool once = std::count(term.begin(), term.end(), label) == 1 &&
                        std::count(other.begin(), other.end(), label) == 1;
      if (once && !has(result, label)) labels.push_back(label);
    }
    return labels;
  };
  const Labels second = of(b, a), first = of(a, b);
  if (first.size() < 2) return {};
  return is_contiguous(b, second) ? second : first;
}

class Order {
 public:
  explicit Order(const ops::Equation& equation) {
    for (const auto& [label, size] : equation.size) {
      sizes_[label] = ir::evaluate(size, [](ir::Expr) { return kNominalSize; });
    }
  }

  // The number of products of an element of every term.
  double products(const Terms& terms) const {
    Labels all;
    double count = 1;
    for (const Labels& term : terms) {
      for (const int label : term) {
        if (has(all, label)) continue;
        all.push_back(label);
        count *= sizes_.at(label);
      }
    }
    return count;
  }
  // The pairs in the order of the fewest products; the first such order.
  std::pair<double, std::vector<Pair>> best(const Sum& sum) const {
    std::pair<double, std::vector<Pair>> best{0, {}};
    for (size_t a = 0; a < sum.terms.size(); ++a) {
      for (size_t b = a + 1; b < sum.terms.size(); ++b) {
        auto [count, pairs] = this->best(without(sum, {a, b}));
        count += products({sum.terms[a], sum.terms[b]});
        if (!best.second.empty() && count >= best.first) continue;
        pairs.insert(pairs.begin(), Pair{a, b});
        best = {count, std::move(pairs)};
      }
    }
    return best;
  }

 private:
  std::map<int, double> sizes_;
};

// A letter for each label, those of an ellipsis too; nullopt where there are too few.
std::optional<std::map<int, char>> letters_of(const ops::Equation& equation) {
  std::map<int, char> letters;
  std::string free;
  for (const char* range : {"az", "AZ"}) {
    for (char c = range[0]; c <= range[1]; ++c) {
      if (equation.size.count(c) == 0) free += c;
    }
  }
  for (const auto& [label, size] : equation.size) {
    if (label > 0) {
      letters[label] = static_cast<char>(label);
    } else if (free.empty()) {
      return std::nullopt;
    } else {
      letters[label] = free.back();
      free.pop_back();
    }
  }
  return letters;
}

bool is_contraction(const ir::Graph& graph, ir::ValueId value) {
  ops::Lowering lowering(graph, [&](ir::ValueId v) { return v == value; });
  ir::Expr body = lowering.element(value, ops::shared_index(graph, value));
  return body->op == ir::ExprOp::Reduce && ir::as_contraction(*graph.pool, body).has_value();
}

class Divider {
 public:
  explicit Divider(ir::Graph& graph) : graph_(graph), editor_(graph) {}

  bool run() {
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      const ir::Node node = graph_.nodes[n];
      if (node.op == "Einsum") divide(static_cast<ir::NodeId>(n), node);
    }
    if (editor_.empty()) return false;
    editor_.place();
    Rewrite rewrite(graph_);
    for (const auto& [from, to] : replaced_) {
      if (!rewrite.replace(from, to)) continue;
      rewrite.remove(graph_.values[static_cast<size_t>(from)].producer);
    }
    return rewrite.apply();
  }

 private:
  // The order in which the node is divided: of two terms the one pair; none where it stays whole.
  std::vector<Pair> pairs_of(const ir::Node& node, const ops::Equation& equation) const {
    const DType dtype = graph_.values[static_cast<size_t>(node.outputs[0])].dtype;
    const size_t terms = node.inputs.size();
    if (terms == 2 && is_float(dtype)) return {Pair{0, 1}};
    if (terms < 3 || terms > kMaxTerms) return {};
    if (dtype != DType::Float32 && dtype != DType::Float64) return {};
    if (equation.summed.empty() || is_contraction(graph_, node.outputs[0])) return {};
    const Order order(equation);
    auto [count, pairs] = order.best({equation.terms, equation.output});
    if (count > kMaxProducts * order.products(equation.terms)) return {};
    return pairs;
  }

  // The value with `last` as its last labels, unless they stand side by side in that order.
  ir::ValueId ordered(ir::NodeId at, const ir::Node& node, ir::ValueId value, Labels& labels,
                      const Labels& last) {
    if (is_contiguous(labels, last)) return value;
    Labels wanted;
    std::vector<int64_t> perm;
    const auto add = [&](size_t from) {
      wanted.push_back(labels[from]);
      perm.push_back(static_cast<int64_t>(from));
    };
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!has(last, labels[i])) add(i);
    }
    for (const int label : last) {
      add(static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin()));
    }
    labels = std::move(wanted);
    ir::Node transpose = ops::new_node_for(node, "Transpose", {value});
    transpose.attributes["perm"] = std::move(perm);
    const std::string& name = graph_.values[static_cast<size_t>(node.outputs[0])].name;
    return editor_.add(at, std::move(transpose), fmt::format("{}/operand{}", name, value));
  }

  void divide(ir::NodeId at, const ir::Node& node) {
    const ir::ValueId whole = node.outputs[0];
    const ir::Value value = graph_.values[static_cast<size_t>(whole)];
    if (value.is_constant()) return;
    const ops::Equation equation = ops::equation_of(ops::NodeView(graph_, node));
    const auto letters = letters_of(equation);
    const std::vector<Pair> pairs = pairs_of(node, equation);
    if (!letters || pairs.empty()) return;
    const auto text = [&](const Labels& labels) {
      std::string result;
      for (const int label : labels) result += letters->at(label);
      return result;
    };
    Sum sum{equation.terms, equation.output};
    std::vector<ir::ValueId> values = node.inputs;
    for (const Pair& pair : pairs) {
      Sum rest = without(sum, pair);
      Labels a = sum.terms[pair.a], b = sum.terms[pair.b];
      const Labels together = summed_together(a, b, rest.terms.back());
      if (pairs.size() == 1 && is_contiguous(a, together) && is_contiguous(b, together)) return;
      const ir::ValueId left = ordered(at, node, values[pair.a], a, together);
      const ir::ValueId right = ordered(at, node, values[pair.b], b, together);
      ir::Node product = ops::new_node_for(node, "Einsum", {left, right});
      product.attributes["equation"] =
          fmt::format("{},{}->{}", text(a), text(b), text(rest.terms.back()));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(pair.b));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(pair.a));
      values.push_back(editor_.add(at, std::move(product),
                                   fmt::format("{}/product{}", value.name, values.size())));
      sum = std::move(rest);
    }
    replaced_.emplace_back(whole, values[0]);
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
};

}  // namespace

bool divide_einsums(ir::Graph& graph) { return Divider(graph).run(); }

}  // namespace redfuser::passes
