// Sessions of one program for threads that run it at once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser::ep {

// Thread-safe. Keeps as many sessions as have run at once, and one from the beginning.
class SessionPool {
 public:
  // Errors as from redfuser::Session.
  SessionPool(Program program, SessionOptions options)
      : program_(std::move(program)), options_(std::move(options)) {
    give(take());
  }

  // Calls use(session) with a session that no other thread has meanwhile.
  template <typename Use>
  void with_session(const Use& use) {
    std::unique_ptr<Session> session = take();
    struct Give {
      SessionPool& pool;
      std::unique_ptr<Session>& session;
      ~Give() { pool.give(std::move(session)); }
    } give{*this, session};
    use(*session);
  }

 private:
  std::unique_ptr<Session> take();
  void give(std::unique_ptr<Session> session);

  const Program program_;
  const SessionOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> free_;
};

}  // namespace redfuser::ep
