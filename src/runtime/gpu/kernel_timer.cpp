#include "runtime/gpu/kernel_timer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

KernelTimer::KernelTimer(cuda::DevicePtr device, int64_t room)
    : device_(std::move(device)), before_(device_), after_(device_) {
  const int64_t bytes = 2 * device_->info().l2_bytes;
  if (bytes > room) return;
  try {
    flush_ = cuda::Buffer(device_, bytes, "overwriting the cache");
  } catch (const UserError&) {
    // Without free memory, times are measured with a warm cache.
  }
}

double KernelTimer::once(const BoundProgram::Calls& calls, const cuda::Stream& stream,
                         cuda::DevicePointer workspace) const {
  stream.fill(flush_.address(), 0, flush_.bytes());
  before_.record(stream);
  BoundProgram::enqueue(calls, stream, workspace);
  after_.record(stream);
  after_.synchronize();
  return after_.microseconds_since(before_);
}

std::vector<KernelTimer::Time> KernelTimer::time(
    const std::vector<BoundProgram::Calls>& alternatives, const cuda::Stream& stream,
    cuda::DevicePointer workspace) const {
  constexpr double kBudget = 1e5, kRunOverhead = 60;  // microseconds
  constexpr int kMin = 5, kMax = 25, kTrial = 3;
  constexpr double kFarSlower = 1.25;
  std::vector<Time> times(alternatives.size());
  std::vector<std::vector<double>> samples(alternatives.size());
  std::vector<size_t> alive;
  double all = 0;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    try {
      once(alternatives[i], stream, workspace);
      all += once(alternatives[i], stream, workspace) + kRunOverhead;
      alive.push_back(i);
    } catch (const std::exception&) {
      times[i].error = std::current_exception();
    }
  }
  const int rounds = std::clamp(static_cast<int>(kBudget / std::max(all, 1.0)), kMin, kMax);
  for (int round = 0; round < rounds; ++round) {
    for (const size_t i : alive) samples[i].push_back(once(alternatives[i], stream, workspace));
    if (round + 1 != kTrial) continue;
    double best = HUGE_VAL;
    for (const size_t i : alive) best = std::min(best, median(samples[i]));
    std::erase_if(alive, [&](size_t i) { return median(samples[i]) > kFarSlower * best; });
  }
  for (size_t i = 0; i < times.size(); ++i) {
    if (!samples[i].empty()) times[i].us = median(samples[i]);
  }
  return times;
}

}  // namespace redfuser::runtime
