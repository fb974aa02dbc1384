// The memory of one state between runs.
#pragma once

#include "redfuser/state.h"

namespace redfuser::runtime {

// Copies share the value, until one of them is replaced.
class StateValue {
 public:
  // `capacity` as in StateOptions.
  StateValue(StatePair pair, ValueInfo declared, int64_t capacity);

  const StatePair& pair() const { return pair_; }
  // The input as the file declares it.
  const ValueInfo& declared() const { return declared_; }
  int64_t capacity() const { return capacity_; }
  // Undefined until a run has written it. With room where appended() holds it.
  DeviceTensor value() const;
  // The value without room: a copy, where it is, if the room lies between its elements.
  DeviceTensor dense(Session& session) const;
  bool written() const { return room_.dtype != DType::Undefined; }
  // Positions along the axis; 0 of a recurrent state.
  int64_t length() const;

  // Memory for the next value. On a GPU without an axis that of this value, unless something else
  // keeps it; else that of the value before this one, if it is large enough and nothing else keeps
  // it; else new memory, for a power of two of positions.
  DeviceTensor target(Session& session, const Dims& dims);
  // Of a state with an axis: memory with room for positions up to `dims`, which holds this value,
  // if it is written, and nothing else keeps. The value moves there if it is not.
  DeviceTensor appended(Session& session, const Dims& dims);
  // The next value. Its memory is target()'s or appended()'s or, on the CPU, any, with or without
  // room.
  void replace(const DeviceTensor& value);
  // The first positions alone, of a value with room.
  void shorten(int64_t positions) { dims_[static_cast<size_t>(*pair_.axis)] = positions; }
  void drop();
  // A copy that shares the value but not the memory of the next one.
  StateValue fork() const;

 private:
  // New memory for positions up to `dims` and more.
  DeviceTensor with_room(Session& session, const Dims& dims) const;

  StatePair pair_;
  ValueInfo declared_;
  int64_t capacity_;
  Dims dims_;
  DeviceTensor room_, spare_;  // of this value and of the next one, with their room
};

}  // namespace redfuser::runtime
