#include "ep/gpu/gpu_stream.h"

#include "base/error.h"

namespace redfuser::ep {
namespace {

// An event, for which other streams and the host wait.
class Notification final : public OrtSyncNotificationImpl {
 public:
  Notification(Gpu& gpu, const cuda::Stream& stream)
      : OrtSyncNotificationImpl{}, gpu_(gpu), stream_(stream), event_(gpu.device()) {
    ort_version_supported = gpu.api().version;
    Release = [](OrtSyncNotificationImpl* own) noexcept { delete &self(own); };
    Activate = [](OrtSyncNotificationImpl* own) noexcept {
      return self(own).act([&] { self(own).event_.record(self(own).stream_); });
    };
    WaitOnDevice = [](OrtSyncNotificationImpl* own, OrtSyncStream* consumer) noexcept {
      return self(own).act([&] {
        Gpu& gpu = self(own).gpu_;
        void* const handle = gpu.api().ort->SyncStream_GetHandle(consumer);
        cuda::Stream(gpu.device(), handle).wait(self(own).event_);
      });
    };
    WaitOnHost = [](OrtSyncNotificationImpl* own) noexcept {
      return self(own).act([&] { self(own).event_.synchronize(); });
    };
  }

 private:
  static Notification& self(OrtSyncNotificationImpl* own) {
    return *static_cast<Notification*>(own);
  }
  template <typename Action>
  OrtStatus* act(const Action& action) noexcept {
    return guarded(gpu_.api(), [&] {
      gpu_.device()->make_current();
      action();
    });
  }

  Gpu& gpu_;
  const cuda::Stream& stream_;
  const cuda::Event event_;
};

}  // namespace

GpuStream::GpuStream(Gpu& gpu, GpuMemory& memory, cuda::StreamHandle borrowed)
    : OrtSyncStreamImpl{},
      gpu_(gpu),
      memory_(memory),
      stream_(borrowed != nullptr ? cuda::Stream(gpu.device(), borrowed)
                                  : cuda::Stream(gpu.device())) {
  ort_version_supported = gpu.api().version;
  Release = [](OrtSyncStreamImpl* stream) noexcept { delete &self(stream); };
  GetHandle = [](OrtSyncStreamImpl* stream) noexcept -> void* {
    return self(stream).stream_.handle();
  };
  CreateNotification = [](OrtSyncStreamImpl* stream,
                          OrtSyncNotificationImpl** notification) noexcept {
    GpuStream& own = self(stream);
    return guarded(own.gpu_.api(),
                   [&] { *notification = new Notification(own.gpu_, own.stream_); });
  };
  Flush = [](OrtSyncStreamImpl* stream) noexcept {
    return guarded(self(stream).gpu_.api(), [&] { self(stream).finish(); });
  };
  OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* { return nullptr; };
}

void GpuStream::finish() {
  gpu_.device()->make_current();
  stream_.synchronize();
  memory_.is_idle(stream_.handle());
}

GpuStream::~GpuStream() {
  try {
    finish();
    memory_.is_gone(stream_.handle());
  } catch (const std::exception&) {
    // The runs before have reported that the GPU is lost.
  }
}

}  // namespace redfuser::ep
