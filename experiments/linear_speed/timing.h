// Shared code of the measurements of `linear-speed` on the CPU and on a device: when to stop, and
// the rows of a trial.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {

inline constexpr size_t kOtherStep = kSteps;  // index of the time outside all operations

// Random streams of the operands. A Linear with stream kLayerStream uses the streams 8 to 15.
enum OperandStream : uint64_t { kStreamX, kStreamW, kStreamG };
inline constexpr uint64_t kLayerStream = 1;

// Measurements of one layer at one size.
struct LayerTimes {
  // Seconds in each pass, by LinearOp and kOtherStep; empty for operations of other layers.
  std::array<std::vector<double>, kSteps + 1> samples;
  // Number of elements that were compared with the CPU's, by the LinearOp of the GEMM.
  std::array<size_t, kSteps> checked = {};
  size_t kept_bytes = 0;  // bytes saved for backward
};

// Where layers were timed, for every row, and the size of their values.
struct TimedPlace {
  std::string device, library;
  size_t value_bytes = 4;  // bytes of an unquantised element
};

// How often and how long layers are timed.
struct RoundLimits {
  int64_t repeats;
  double least, most;  // seconds per layer; most = 0: any
};

// Reads --repeats, --min-seconds and --max-seconds. Throws Error naming an option that is wrong.
RoundLimits RoundLimitsOf(const Settings& settings);

// Calls round() at least --repeats times and until --min-seconds per layer of `layers` are over,
// but starts no further round once --max-seconds per layer are over.
void RepeatRounds(const Settings& settings, size_t layers, const std::function<void()>& round);

LinearShape ShapeOf(const Trial& trial);

// Returns the rows of operations.csv. `times` holds the times of each layer.
Rows OperationRows(const Trial& trial,
                   const TimedPlace& place,
                   std::span<const TimedLayer> layers,
                   std::span<const LayerTimes> times);

// Implements Measure for the backend cuda; only built with CUDA. Compares results with the CPU's
// and throws Error that names the layer and the first element that differs. Layers for which
// FitsDevice is false have no rows.
Rows MeasureOnDevice(const Settings& settings, const Trial& trial);

// Returns true if the layer's GEMMs can run on a device at that size: the inner dimension of int8
// GEMMs is limited to kMostProductsOfAnyInt8 (gemm/gemm_device.h).
bool FitsDevice(const LinearRecipe& recipe, LinearShape shape);

// Returns an upper bound of a layer's device memory in bytes, without its operands and results.
size_t DeviceBytes(const LinearRecipe& recipe, LinearShape shape);

// Divides the layers for which FitsDevice is true into groups, as indices. Every group holds all
// standard layers and, if there are others, one or more of them: the first even if the group is
// then larger than `bytes`, further ones only if the group still fits.
std::vector<std::vector<size_t>> DeviceGroups(std::span<const TimedLayer> layers,
                                              LinearShape shape,
                                              size_t bytes);

}  // namespace numsim::experiments::linear_speed
