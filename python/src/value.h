// Tensors as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "redfuser/device.h"
#include "redfuser/redfuser.h"
#include "redfuser/trace.h"

namespace redfuser::python {

namespace nb = nanobind;

// The times of steps of runs since it was made. Once it has a million steps further runs are not
// kept.
class Profile {
 public:
  double elapsed_us() const;
  // Steps of a run that began at this time.
  void add(const std::vector<StepTime>& steps, double begin_us);
  // As chrome_trace() writes them.
  std::string text() const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::vector<StepTime>> runs_;
  size_t steps_ = 0;
};

// A session that several Python threads may call: they take turns.
struct SharedSession {
  SharedSession(const Program& program, const SessionOptions& options)
      : program(program), session(program, options) {}
  Program program;
  std::mutex mutex;
  std::atomic<std::thread::id> owner;  // the thread that has the turn, if any
  Session session;
  std::unique_ptr<Profile> profile;  // while runs are profiled
};

// Ends the runs that it was given to, from any thread.
struct RunControl {
  std::atomic<bool> terminate = false;
};

// A turn at the session, taken without the interpreter lock. UserError in the thread that has the
// turn, as a callback of it has.
class Turn {
 public:
  explicit Turn(SharedSession& shared);
  ~Turn();
  Turn(const Turn&) = delete;

 private:
  SharedSession& shared_;
};

// A progress callback that ends a run on Ctrl-C and by its control (which may be null). It looks
// for signals a few times a second, since that takes the interpreter lock.
class Interrupts {
 public:
  explicit Interrupts(std::shared_ptr<const RunControl> control = nullptr)
      : control_(std::move(control)) {}
  void operator()(int, int);

 private:
  std::shared_ptr<const RunControl> control_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// A tensor in host memory, or on the GPU.
struct Value {
  Tensor host;          // undefined for a tensor on the GPU
  DeviceTensor device;  // without data for a tensor in host memory
  // Where a session wrote `device` on a stream that may still run: both; else null.
  std::shared_ptr<SharedSession> session;
  void* stream = nullptr;
  bool read_only = false;

  bool on_host() const { return host.defined(); }
  DType dtype() const { return on_host() ? host.dtype() : device.dtype; }
  const Dims& dims() const { return on_host() ? host.dims() : device.dims; }
  void* data() const { return on_host() ? const_cast<void*>(host.data()) : device.data; }
  // As Session::enqueue takes it.
  DeviceTensor as_device() const;
};

// The type of a name such as "float32". UserError for other names.
DType dtype_named(const std::string& name);

// Keeps a Python object alive; the last copy may go in any thread.
std::shared_ptr<void> kept(nb::object object);

void bind_values(nb::module_& module);
void bind_dlpack(nb::class_<Value>& value);
void bind_models(nb::module_& module);
void bind_sessions(nb::module_& module);
void bind_generators(nb::module_& module);

}  // namespace redfuser::python
