// Lists that share their elements, against vectors.
#include "base/tensors/lists.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace redfuser {
namespace {

Tensor number(int64_t value) {
  Tensor tensor(DType::Int64, {});
  *tensor.as<int64_t>() = value;
  return tensor;
}

std::vector<int64_t> numbers_of(const Tensor& list) {
  std::vector<int64_t> numbers;
  for (const Tensor& element : elements_of(list)) numbers.push_back(*element.as<int64_t>());
  return numbers;
}

struct Version {
  Tensor list;
  std::vector<int64_t> numbers;
};

// Every version keeps its elements, whichever others are made of it.
TEST(Lists, KeepTheirElements) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t count) { return static_cast<int64_t>(random() % count); };
    std::vector<Version> versions{{Tensor::sequence({}), {}}};
    for (int step = 0; step < 400; ++step) {
      // Mostly the newest one.
      const size_t of = random() % 4 != 0 ? versions.size() - 1 : random() % versions.size();
      Version next = versions[of];
      const auto size = next.numbers.size();
      if (size > 0 && random() % 3 == 0) {
        const int64_t at = random() % 2 == 0 ? 0 : below(size);
        next.list = without_element(next.list, at);
        next.numbers.erase(next.numbers.begin() + at);
      } else {
        const int64_t at = random() % 3 != 0 ? static_cast<int64_t>(size) : below(size + 1);
        next.list = with_element(next.list, at, number(step));
        next.numbers.insert(next.numbers.begin() + at, step);
      }
      versions.push_back(std::move(next));
    }
    for (const Version& version : versions) {
      ASSERT_EQ(numbers_of(version.list), version.numbers) << "seed " << seed;
      ASSERT_EQ(version.list.dims(), Dims{static_cast<int64_t>(version.numbers.size())});
    }
  }
}

TEST(Lists, GrowInOneMemory) {
  Tensor list = Tensor::sequence({});
  int moves = 0;
  for (int i = 0; i < 1000; ++i) {
    const Tensor* before = elements_of(list).data();
    list = with_element(list, i, number(i));
    if (elements_of(list).data() != before) ++moves;
  }
  EXPECT_LE(moves, 12);
}

TEST(Lists, MayBeContinuedByThreads) {
  const Tensor start = with_element(Tensor::sequence({}), 0, number(-1));
  std::vector<Tensor> ends(4, start);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < ends.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        ends[t] = with_element(ends[t], ends[t].size(), number(static_cast<int64_t>(t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < ends.size(); ++t) {
    std::vector<int64_t> wanted(201, static_cast<int64_t>(t));
    wanted[0] = -1;
    EXPECT_EQ(numbers_of(ends[t]), wanted);
  }
}

Tensor floats(Dims dims) { return Tensor(DType::Float32, std::move(dims)); }

struct FormCase {
  const char* name;
  std::vector<Tensor> elements;
  ListForm form;
};

std::ostream& operator<<(std::ostream& out, const FormCase& c) { return out << c.name; }

class Forms : public ::testing::TestWithParam<FormCase> {};

TEST_P(Forms, AreWhatElementsHaveInCommon) {
  const Tensor whole = Tensor::sequence(GetParam().elements);
  EXPECT_EQ(*form_of(whole), GetParam().form);
  Tensor grown = Tensor::sequence({});
  for (const Tensor& element : GetParam().elements) {
    const ListFormRef before = form_of(grown);
    grown = with_element(grown, grown.size(), element);
    EXPECT_TRUE(covers(form_of(grown), before));
    EXPECT_TRUE(covers(form_of(grown), form_of_one(element)));
  }
  EXPECT_EQ(*form_of(grown), GetParam().form);
  EXPECT_TRUE(covers(open_form(), form_of(whole)));
  EXPECT_EQ(covers(empty_form(DType::Float32), form_of(whole)), GetParam().elements.empty());
}

using Shapes = ListForm::Shapes;

INSTANTIATE_TEST_SUITE_P(
    All, Forms,
    ::testing::Values(
        FormCase{"Nothing", {}, {}},
        FormCase{"Same", {floats({2, 3}), floats({2, 3})}, {DType::Float32, Shapes::Alike, {2, 3}}},
        FormCase{
            "Sizes", {floats({2, 3}), floats({4, 3})}, {DType::Float32, Shapes::Alike, {-1, 3}}},
        FormCase{"Ranks", {floats({2}), floats({2, 2})}, {DType::Float32, Shapes::Differ, {}}},
        FormCase{"Types", {floats({}), number(1)}, {DType::Undefined, Shapes::Differ, {}}},
        FormCase{"Nested",
                 {Tensor::sequence({}), Tensor::sequence({floats({2})})},
                 {DType::Sequence,
                  Shapes::Alike,
                  {-1},
                  std::make_shared<const ListForm>(ListForm{
                      DType::Float32, Shapes::Alike, {2}, nullptr})}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
