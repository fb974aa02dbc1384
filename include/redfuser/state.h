// Values that a model takes from one run to the next: the keys and values of a decoder, or the
// states of a recurrent network.
//
//   redfuser::Session session(program, {.device = "auto"});
//   redfuser::States states(session, model);
//   redfuser::NamedTensors outputs = states.run({{"input_ids", prompt}});   // states start empty
//   outputs = states.run({{"input_ids", token}});                           // and continue
//
// A state is an input (past) and an output (present). The output of a run is the input of the next
// one, in the memory of the session's device: it is neither copied there nor to the host. On a GPU
// a run reads one buffer and writes another, and the two change places after it; each holds a power
// of two of positions, so both are allocated anew only when a state has doubled. A run thus writes
// the whole present, not the new positions alone. A state without an axis has one buffer there,
// written in place (redfuser/device.h).
//
// On the CPU a growing state has a buffer for a power of two of positions, and elementwise steps
// and streamed reductions are prepared once for all lengths up to one. A run writes the new
// positions alone where the model's output is the earlier positions followed by new ones;
// otherwise, and in a model with branches, it allocates its outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redfuser/device.h"
#include "redfuser/redfuser.h"

namespace redfuser {

struct StatePair {
  std::string past, present;  // an input and an output of the model
  // The axis along which the output is the longer one; negative ones count from the last. Without
  // one it is where the sizes of output and input differ; of several, the one whose size no other
  // input has. A state whose output has the sizes of its input has no axis: a
  // recurrent one, or a buffer of fixed size that the model writes at the positions it is told.
  std::optional<int64_t> axis;
};

// The states of a model: the pairs of `given`, and the others whose names match:
//   past_key_values.REST  present.REST         past_key_values.REST  present_key_values.REST
//   past.REST  present.REST                    past_REST  present_REST
//   key_cache.REST  updated_key_cache.REST     value_cache.REST  updated_value_cache.REST
// Their axes count from the first, or there is none. UserError for a name that the model does not
// have or that is given twice, for an input and output of different types or ranks, for a given
// axis whose input has a fixed size, and where the declared sizes leave several axes.
std::vector<StatePair> find_states(const Model& model, const std::vector<StatePair>& given = {});

struct StateOptions {
  std::vector<StatePair> pairs;  // beside or in place of those that the names tell
  // Positions of a state at most, and those of a buffer whose size the file leaves open. 0: as
  // memory allows.
  int64_t capacity = 0;
};

// The states of one sequence, or of one batch of sequences. Several may use a session in turn; its
// runs must not overlap. A UserError leaves the states as they were. It is thrown, with the state's
// name: from run() for a batch other than the state's, or more positions than the capacity or a
// buffer has; from rewind() beyond the start or of a state without an axis; from every function but
// length() during a run, such as from the session's progress callback.
class States {
 public:
  // The session, made of a program of `model`, must outlive the states and stay where it is.
  // UserError for a model without states, and as from find_states().
  States(Session& session, const Model& model, const StateOptions& options = {});
  ~States();
  States(States&&) noexcept;
  States& operator=(States&&) noexcept;

  // Runs the session on these inputs, which are all but the states, and returns all outputs but the
  // states in host memory. Empty states have length 0, those without an axis are filled with 0; the
  // other sizes are those of dimensions of `inputs` with the same names (UserError without one).
  NamedTensors run(const NamedTensors& inputs);
  // The same for tensors where they are. On a GPU the outputs are there too, in the session's own
  // memory until its next run; on the CPU everything is in host memory. Returns after the run.
  NamedDeviceTensors run_in_place(const NamedDeviceTensors& inputs);
  // The same, but on a GPU it returns when the run is enqueued: outputs and states have their
  // values when the session's own stream has got there.
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs);
  // Prepares the next run while the GPU computes the last one (Session::prepare), as it is if the
  // sizes of its inputs change as between the last two. A run of other sizes is prepared for
  // itself, as it is after a change of the states.
  void prepare();

  // Positions of the longest growing state; 0 if there is none.
  int64_t length() const;
  // Drops the values; the next run may be of another batch.
  void reset();
  // Drops the last `positions` of every growing state. On a GPU one that runs do not append to is
  // copied there.
  void rewind(int64_t positions);
  // States that begin with these values, which both share until a run replaces them.
  States fork() const;

  // The pairs, whose axes are those found.
  const std::vector<StatePair>& pairs() const;
  // The value of a state, by the name of its input or output, copied to host memory. UserError
  // for a name that is not a state's and for a state that no run has written.
  Tensor read(const std::string& name) const;
  // The value where it is, or a copy of one that lies in a buffer with room; runs leave it
  // unchanged as long as a copy of its owner exists (redfuser/dlpack.h shares it with other
  // libraries).
  DeviceTensor tensor(const std::string& name) const;

 private:
  struct Impl;
  explicit States(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace redfuser
