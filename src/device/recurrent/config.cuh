// The constants that specialise a kernel of a recurrent layer, and the division of a block's
// shared memory.
#pragma once

#include "device/recurrent/exchange.cuh"
#include "device/recurrent/rows.cuh"
#include "device/types.cuh"

enum class Cell { kRnn, kGru, kLstm };

// A direction's units are divided among the Team blocks of a cluster, or with Grid among any that
// run together, Units for each; a team has Batch sequences. Of the tiles of R along k, Held of each
// warp are in registers, then Resident in shared memory.
//
// `Linear`: of a GRU, r multiplies h · Rᵀ of n with its bias; without it, it multiplies h, whose
// product is a second phase of each step.
template <typename T, Cell Kind, bool Linear, int Hidden, int Units, int Team, int Batch, int Warps,
          int Held, int Resident, bool Grid>
struct LayerConfig {
  using Element = T;
  static constexpr Cell kCell = Kind;
  static constexpr bool kLinear = Linear;
  static constexpr int kHidden = Hidden, kUnits = Units, kTeam = Team, kBatch = Batch;
  static constexpr int kWarps = Warps, kThreads = Warps * 32, kHeld = Held, kResident = Resident;
  static constexpr bool kGrid = Grid;
  static constexpr int kGates = Kind == Cell::kLstm ? 4 : Kind == Cell::kGru ? 3 : 1;
  static constexpr bool kTwoPhases = Kind == Cell::kGru && !Linear;
  static_assert(Team * Units >= Hidden);

  // Of a row of states: whole tiles, an odd number of those of 16-bit elements, which are half as
  // long as the banks are wide.
  static constexpr int kDepth = StateTile<T, Batch>::kDepth;
  static constexpr int kRowTiles = divide_up(Team * Units, kDepth);
  static constexpr int kPitch = (sizeof(T) == 2 ? kRowTiles | 1 : kRowTiles) * kDepth;

  using First = BlockRows<LayerConfig, 0, (kTwoPhases ? 2 : kGates) * Units>;
  using Second =  // of two phases; else the first
      BlockRows<LayerConfig, (kTwoPhases ? 2 : 0) * Units, (kTwoPhases ? 1 : kGates) * Units>;
  using Exchange = StateExchange<LayerConfig, Team, Grid>;

  // Values of each unit: biases of gates, that of h · Rᵀ of n, peepholes.
  static constexpr int kParameters = kGates + 1 + 3;

  // Bytes of shared memory, in this order, and all of it.
  static constexpr int kFirstBytes = First::kWords * 16;
  static constexpr int kSecondBytes = kTwoPhases ? Second::kWords * 16 : 0;
  static constexpr int kStateBytes =
      Exchange::kBuffers * Exchange::kBuffer * static_cast<int>(sizeof(T));
  static constexpr int kPieceBytes = Batch * Units * static_cast<int>(sizeof(T));
  static constexpr int kSumFloats =
      Second::kSumFloats > First::kSumFloats ? Second::kSumFloats : First::kSumFloats;
  static constexpr int kSumBytes = kSumFloats * 4;
  static constexpr int kParameterBytes = kParameters * Units * 4;
  static constexpr int kCellBytes = 2 * Batch * Units * 4;  // h and c in fp32
  static constexpr int kLengthBytes = Batch * 4;
  static constexpr int kBytes = kFirstBytes + kSecondBytes + kStateBytes + kPieceBytes + kSumBytes +
                                kParameterBytes + kCellBytes + kLengthBytes + 16;
};
