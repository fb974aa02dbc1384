#include "ep/session_pool.h"

namespace redfuser::ep {

std::unique_ptr<Session> SessionPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Session> session = std::move(free_.back());
      free_.pop_back();
      return session;
    }
  }
  return std::make_unique<Session>(program_, options_);
}

void SessionPool::give(std::unique_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(session));
}

}  // namespace redfuser::ep
