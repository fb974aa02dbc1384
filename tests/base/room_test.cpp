// Values in memory with room for more positions.
#include "base/tensors/room.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/tensors/blocks.h"

namespace redfuser {
namespace {

struct RoomCase {
  Dims dims, room;
  bool leads;  // the elements lie one after another in the room
};

std::ostream& operator<<(std::ostream& out, const RoomCase& c) {
  return out << describe(Tensor(DType::Int64, c.dims)) << " in "
             << describe(Tensor(DType::Int64, c.room));
}

class RoomValue : public ::testing::TestWithParam<RoomCase> {};

// Each element of the room is its offset there.
TEST_P(RoomValue, HasTheElementsAtItsIndices) {
  const auto& [dims, sizes, first] = GetParam();
  Tensor memory(DType::Int64, sizes);
  std::iota(memory.as<int64_t>(), memory.as<int64_t>() + memory.size(), 0);
  const auto room = std::make_shared<Room>(Room{memory, dims});
  const Tensor value = value_of(room, dims);
  ASSERT_EQ(value.dims(), dims);
  EXPECT_EQ(room_of(value), room);
  EXPECT_EQ(leads(dims, sizes), first);
  EXPECT_EQ(value.data() == memory.data(), first);
  const Tensor part = part_below(memory, dims);
  for (int64_t i = 0; i < value.size(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (size_t k = dims.size(); k-- > 0;) {
      at += rest % dims[k] * step;
      rest /= dims[k];
      step *= sizes[k];
    }
    ASSERT_EQ(value.as<int64_t>()[i], at) << i;
    ASSERT_EQ(part.as<int64_t>()[i], at) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RoomValue,
    ::testing::Values(RoomCase{{3, 4}, {3, 4}, true}, RoomCase{{2, 4}, {8, 4}, true},
                      RoomCase{{1, 2, 4}, {1, 8, 4}, true}, RoomCase{{1, 4}, {16, 4}, true},
                      RoomCase{{2, 3}, {2, 16}, false}, RoomCase{{2, 3, 4}, {2, 8, 4}, false},
                      RoomCase{{2, 3, 4, 5}, {4, 3, 8, 5}, false}, RoomCase{{0, 4}, {16, 4}, true},
                      RoomCase{{3, 0, 2}, {4, 16, 2}, false}, RoomCase{{1, 1}, {16, 16}, true}));

// Pieces of a mebibyte that begin within a run of elements.
TEST(RoomContents, OfManyPieces) {
  const Dims dims{3, 700, 301};
  Tensor memory(DType::Float32, {3, 1024, 301});
  for (int64_t i = 0; i < memory.size(); ++i) memory.as<float>()[i] = static_cast<float>(i);
  const Tensor value = value_of(std::make_shared<Room>(Room{memory, dims}), dims);
  const Tensor wanted = resized(memory, dims);
  EXPECT_TRUE(std::equal(value.as<float>(), value.as<float>() + value.size(), wanted.as<float>()));
}

// A view of other sizes has the elements, but is no value of the room.
TEST(RoomContents, UnderOtherSizes) {
  Tensor memory(DType::Int64, {2, 8});
  std::iota(memory.as<int64_t>(), memory.as<int64_t>() + 16, 0);
  const Tensor value = value_of(std::make_shared<Room>(Room{memory, {2, 3}}), {2, 3});
  const Tensor view = value.reshaped({3, 2});
  EXPECT_EQ(room_of(view), nullptr);
  EXPECT_EQ(room_of(memory), nullptr);
  EXPECT_EQ(view.as<int64_t>()[3], 8);
}

}  // namespace
}  // namespace redfuser
