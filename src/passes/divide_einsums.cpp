// Sums of products of several values by sums of products of two, in the order of the fewest
// products. Sums over axes that nothing else has are done with the pair that has them.
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

// What is left to compute: the factors, and the labels of the result.
struct Sum {
  Terms terms;
  Labels output;
};

// Terms a and b, replaced by their product at the end of the list.
struct Pair {
  size_t a = 0, b = 0;
};

// The labels of the product of two terms, where nothing else needs the others: those of both, those
// of the first alone, those of the second alone.
Labels product_of(const Sum& sum, Pair pair) {
  const Labels &a = sum.terms[pair.a], &b = sum.terms[pair.b];
  Labels result;
  const auto add = [&](const Labels& from, const auto& wanted) {
    for (const int label : from) {
      bool needed = has(sum.output, label);
      for (size_t t = 0; t < sum.terms.size(); ++t) {
        needed |= t != pair.a && t != pair.b && has(sum.terms[t], label);
      }
      if (needed && wanted(label) && !has(result, label)) result.push_back(label);
    }
  };
  add(a, [&](int label) { return has(b, label); });
  add(a, [](int) { return true; });
  add(b, [](int) { return true; });
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
  void divide(ir::NodeId at, const ir::Node& node) {
    const ir::ValueId whole = node.outputs[0];
    const ir::Value value = graph_.values[static_cast<size_t>(whole)];
    const size_t terms = node.inputs.size();
    if (terms < 3 || terms > kMaxTerms || value.is_constant()) return;
    if (value.dtype != DType::Float32 && value.dtype != DType::Float64) return;
    const ops::Equation equation = ops::equation_of(ops::NodeView(graph_, node));
    const auto letters = letters_of(equation);
    if (equation.summed.empty() || !letters || is_contraction(graph_, whole)) return;
    const Order order(equation);
    Sum sum{equation.terms, equation.output};
    const auto [count, pairs] = order.best(sum);
    if (count > kMaxProducts * order.products(equation.terms)) return;
    const auto text = [&](const Labels& labels) {
      std::string result;
      for (const int label : labels) result += letters->at(label);
      return result;
    };
    std::vector<ir::ValueId> values = node.inputs;
    for (const Pair& pair : pairs) {
      Sum rest = without(sum, pair);
      ir::Node product = ops::new_node_for(node, "Einsum", {values[pair.a], values[pair.b]});
      product.attributes["equation"] = fmt::format(
          "{},{}->{}", text(sum.terms[pair.a]), text(sum.terms[pair.b]), text(rest.terms.back()));
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
