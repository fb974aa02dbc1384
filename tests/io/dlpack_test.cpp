// Tensors to and from DLPack.
#include <gtest/gtest.h>

#include "redfuser/dlpack.h"
#include "redfuser/error.h"

namespace redfuser {
namespace {

// A tensor of another library, which counts how often it is given back.
struct Foreign {
  explicit Foreign(int32_t device = dlpack::kCuda) {
    managed.tensor.data = data;
    managed.tensor.device = {device, 0};
    managed.tensor.ndim = 2;
    managed.tensor.dtype = {dlpack::kFloat, 16, 1};
    managed.tensor.shape = shape;
    managed.tensor.byte_offset = 8;
    managed.context = this;
    managed.deleter = [](auto* mine) { ++static_cast<Foreign*>(mine->context)->deleted; };
  }
  char data[64] = {};
  int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  dlpack::ManagedTensorVersioned managed;
  int deleted = 0;
};

TEST(Dlpack, TakesATensorOver) {
  Foreign foreign;
  {
    const DeviceTensor tensor = dlpack::from_dlpack(&foreign.managed);
    EXPECT_EQ(tensor.dtype, DType::Float16);
    EXPECT_EQ(tensor.dims, (Dims{2, 3}));
    EXPECT_EQ(tensor.data, foreign.data + 8);
    EXPECT_FALSE(tensor.on_host);
    const DeviceTensor copy = tensor;
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
  Foreign host(dlpack::kCpu);
  host.managed.tensor.strides = host.strides;
  EXPECT_TRUE(dlpack::from_dlpack(&host.managed).on_host);
}

TEST(Dlpack, RefusesWhatItHasNot) {
  Foreign foreign;
  const auto refused = [&] {
    EXPECT_THROW(dlpack::from_dlpack(&foreign.managed), UserError);
    EXPECT_EQ(foreign.deleted, 0);
  };
  foreign.managed.tensor.strides = foreign.strides;
  foreign.strides[0] = 4;
  refused();
  foreign.strides[0] = 3;
  foreign.managed.tensor.dtype.lanes = 4;
  refused();
  foreign.managed.tensor.dtype = {9, 8, 1};
  refused();
  foreign.managed.tensor.dtype = {dlpack::kFloat, 32, 1};
  foreign.managed.tensor.device.type = 10;  // ROCm
  refused();
  foreign.managed.tensor.device = {dlpack::kCuda, 1};
  refused();
  foreign.managed.tensor.device.id = 0;
  foreign.managed.version.major = 2;
  refused();
}

TEST(Dlpack, HandsATensorOut) {
  DeviceTensor tensor;
  tensor.dtype = DType::BFloat16;
  tensor.dims = {4, 0, 2};
  auto owner = std::make_shared<int>(0);
  tensor.owner = owner;
  tensor.data = owner.get();
  dlpack::ManagedTensor* managed = dlpack::to_dlpack(tensor);
  tensor = DeviceTensor();
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(managed->tensor.device.type, dlpack::kCuda);
  EXPECT_EQ(managed->tensor.dtype.code, dlpack::kBfloat);
  EXPECT_EQ(managed->tensor.shape[2], 2);
  // And back again.
  { EXPECT_EQ(dlpack::from_dlpack(managed).dims, (Dims{4, 0, 2})); }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Dlpack, LowBitTypesTakeAByteAndSaySo) {
  Tensor tensor(DType::Int4, {3});
  dlpack::ManagedTensorVersioned* managed = dlpack::to_dlpack_versioned(dlpack::on_host(tensor));
  EXPECT_EQ(managed->tensor.dtype.code, dlpack::kInt);
  EXPECT_EQ(managed->tensor.dtype.bits, 4);
  EXPECT_EQ(managed->flags, dlpack::kPadded);
  managed->flags = 0;
  EXPECT_THROW(dlpack::from_dlpack(managed), UserError);
  managed->flags = dlpack::kPadded;
  EXPECT_EQ(dlpack::from_dlpack(managed).dtype, DType::Int4);
  EXPECT_THROW(dlpack::to_dlpack(dlpack::on_host(tensor)), UserError);
  const Tensor eight(DType::Float8E5M2, {2, 2});
  const DeviceTensor back = dlpack::from_dlpack(dlpack::to_dlpack(dlpack::on_host(eight)));
  EXPECT_EQ(back.dtype, DType::Float8E5M2);
}

TEST(Dlpack, SharesHostTensors) {
  Tensor tensor(DType::Int64, {3});
  tensor.as<int64_t>()[2] = 5;
  dlpack::ManagedTensorVersioned* managed = dlpack::to_dlpack_versioned(dlpack::on_host(tensor));
  tensor = Tensor();
  const Tensor back = dlpack::to_tensor(dlpack::from_dlpack(managed));
  EXPECT_EQ(back.as<int64_t>()[2], 5);
}

}  // namespace
}  // namespace redfuser
