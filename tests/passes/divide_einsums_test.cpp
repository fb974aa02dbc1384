// Sums of products of several values in sums of products of two.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

struct EinsumCase {
  std::string name, equation;
  std::vector<Dims> dims;
  std::vector<std::string> divided;  // equations, and other operators
  DType dtype = DType::Float32;
};

std::ostream& operator<<(std::ostream& out, const EinsumCase& c) { return out << c.name; }

std::vector<EinsumCase> cases() {
  return {
      {"chain", "ab,bc,cd->ad", {{2, 9}, {9, 8}, {8, 7}}, {"ab,bc->ac", "cd,ac->ad"}},
      {"chain_from_its_end", "ab,bc,cd->ad", {{9, 8}, {8, 7}, {7, 2}}, {"bc,cd->bd", "ab,bd->ad"}},
      {"heads_mixed",
       "bgqk,gh,bhkd->bqhd",
       {{1, 4, 5, 6}, {4, 3}, {1, 3, 6, 7}},
       {"bgqk,gh->bqkh", "bhkd,bqkh->bqhd"}},
      {"four",
       "bln,bsn,bls,bsp->blp",
       {{2, 9, 4}, {2, 9, 4}, {2, 9, 9}, {2, 9, 5}},
       {"bln,bsn->bls", "bls,bls->bls", "bsp,bls->blp"}},
      // What is summed at last lies side by side in both.
      {"routing", "etf,efd,te->td", {{3, 4, 5}, {3, 5, 6}, {4, 3}}, {"etf,te->tef", "efd,tef->td"}},
      {"ellipsis",
       "...ab,bc,...cd->...ad",
       {{3, 2, 9}, {9, 8}, {3, 8, 7}},
       {"Zab,bc->Zac", "Zcd,Zac->Zad"}},
      {"broadcast",
       "bij,jk,bkl->bil",
       {{1, 2, 9}, {9, 8}, {4, 8, 7}},
       {"bij,jk->bik", "bkl,bik->bil"}},
      {"summed_alone", "ab,bc,cd->a", {{9, 8}, {8, 7}, {7, 6}}, {"bc,cd->b", "ab,b->a"}},
      {"doubles",
       "ab,bc,cd->ad",
       {{2, 9}, {9, 8}, {8, 7}},
       {"ab,bc->ac", "cd,ac->ad"},
       DType::Float64},
      {"open_sizes", "ab,bc,cd->ad", {{9, 8}, {8, 7}, {7, -1}}, {"ab,bc->ac", "cd,ac->ad"}},
      {"two", "ab,bc->ac", {{2, 9}, {9, 8}}, {"ab,bc->ac"}},
      {"two_of_side_by_side", "bqhd,hdm->bqm", {{2, 3, 4, 5}, {4, 5, 6}}, {"bqhd,hdm->bqm"}},
      {"two_apart", "bhqd,hdm->bqm", {{2, 4, 3, 5}, {4, 5, 6}}, {"Transpose", "bqhd,hdm->bqm"}},
      {"two_apart_in_both",
       "hqd,dmh->qm",
       {{4, 3, 5}, {5, 6, 4}},
       {"Transpose", "Transpose", "qhd,mhd->qm"},
       DType::Float16},
      {"two_apart_after_a_product",
       "hqd,hdm,mk->qk",
       {{4, 3, 5}, {4, 5, 2}, {2, 6}},
       {"Transpose", "qhd,hdm->qm", "mk,qm->qk"}},
      {"two_apart_and_a_diagonal",
       "abac,bcd->ad",
       {{3, 4, 3, 5}, {4, 5, 6}},
       {"Transpose", "aabc,bcd->ad"}},
      {"diagonals", "iji,jik->k", {{3, 4, 3}, {4, 3, 5}}, {"iji,jik->k"}},
      {"elementwise", "ab,ab,a->ab", {{2, 9}, {2, 9}, {2}}, {"ab,ab,a->ab"}},
      {"one_axis", "i,i,i->", {{9}, {9}, {9}}, {"i,i,i->"}},
      {"scaled_product", "ab,bc,a->ac", {{5, 9}, {9, 8}, {5}}, {"ab,bc,a->ac"}},
      {"halves", "ab,bc,cd->ad", {{2, 9}, {9, 8}, {8, 7}}, {"ab,bc,cd->ad"}, DType::Float16},
  };
}

class DivideEinsums : public ::testing::TestWithParam<EinsumCase> {};

TEST_P(DivideEinsums, LeavesTheValues) {
  const EinsumCase& c = GetParam();
  GraphBuilder b;
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < c.dims.size(); ++i) {
    inputs.push_back(b.input("x" + std::to_string(i), c.dtype, c.dims[i]));
  }
  b.output(b.node("Einsum", inputs, {{"equation", c.equation}}));
  EXPECT_EQ(run_pass(passes::divide_einsums, b.graph), c.divided.size() > 1);
  std::vector<std::string> equations;
  for (const ir::Node& node : b.graph.nodes) {
    const auto equation = node.attributes.find("equation");
    equations.push_back(
        equation == node.attributes.end() ? node.op : std::get<std::string>(equation->second));
  }
  EXPECT_EQ(equations, c.divided);
}

INSTANTIATE_TEST_SUITE_P(All, DivideEinsums, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser::testing
