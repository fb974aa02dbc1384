#include "base/files/temporary_path.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "redfuser/signals.h"

namespace redfuser {
namespace {

// A list that only grows, so that a signal handler may walk it at any time.
struct Slot {
  std::atomic<char*> path;
  Slot* next;
};

std::atomic<Slot*> slots{nullptr};
std::atomic<int> holders{0}, waiting{0};

std::atomic<char*>* add_path(char* path) {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    char* free_slot = nullptr;
    if (slot->path.compare_exchange_strong(free_slot, path)) return &slot->path;
  }
  Slot* added = new Slot{{path}, slots.load()};
  while (!slots.compare_exchange_weak(added->next, added)) {
  }
  return &added->path;
}

// Runs in signal handlers: it calls async-signal-safe functions only.
void unlink_all() {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    const char* path = slot->path.exchange(nullptr);
    if (path != nullptr) unlink(path);
  }
}

void end_process(int signal) {
  waiting.store(signal);
  // The last holder raises the signal again.
  if (holders.load() > 0) return;
  unlink_all();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

TemporaryPath::TemporaryPath(const std::string& path)
    : path_(path), registered_(strdup(path.c_str())) {
  if (registered_ == nullptr) throw std::bad_alloc();
  slot_ = add_path(registered_);
}

TemporaryPath::~TemporaryPath() {
  if (registered_ != nullptr) unlink(path_.c_str());
  release();
}

void TemporaryPath::release() {
  // A signal handler may have emptied the slot, and another path may use it since.
  char* own = registered_;
  if (own != nullptr && slot_->compare_exchange_strong(own, nullptr)) std::free(registered_);
  registered_ = nullptr;
}

HeldSignals::HeldSignals() { ++holders; }

HeldSignals::~HeldSignals() {
  if (--holders > 0) return;
  if (const int signal = waiting.exchange(0); signal != 0) std::raise(signal);
}

void remove_unfinished_files() {
  while (holders.load() > 0) std::this_thread::yield();
  unlink_all();
}

void remove_unfinished_files_on_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    struct sigaction action {};
    // Signals that the process ignores (nohup) stay ignored.
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = end_process;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

}  // namespace redfuser
