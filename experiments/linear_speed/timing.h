// What the measuring parts of `linear-speed` share, on the CPU and on a device: when to stop, and
// the rows of a point.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {

inline constexpr size_t kOtherStep = kSteps;  // index of the time outside of every step

// Streams of the operands; a Linear of stream kLayerStream draws from streams 8 to 15.
enum OperandStream : uint64_t { kStreamX, kStreamW, kStreamG };
inline constexpr uint64_t kLayerStream = 1;

// What was measured of a layer at one size.
struct LayerTimes {
  // Seconds of each pass, by LinearOp and kOtherStep; empty where the layer does not have it.
  std::array<std::vector<double>, kSteps + 1> samples;
  // Elements of each product's result that were compared with the CPU's.
  std::array<size_t, kSteps> checked = {};
  size_t kept_bytes = 0;
};

// What stands in every row: where it was timed, and how it stores values.
struct TimedPlace {
  std::string device, library;
  size_t value_bytes = 4;  // of an element that is not a code
};

// Calls round() until there are --repeats and --min-seconds of `layers` layers, but no more once
// --max-seconds of them are over.
void RepeatRounds(const Settings& settings, size_t layers, const std::function<void()>& round);

LinearShape ShapeOf(const Trial& trial);

// The rows of operations.csv. Requires times of each layer.
Rows OperationRows(const Trial& trial,
                   const TimedPlace& place,
                   std::span<const TimedLayer> layers,
                   std::span<const LayerTimes> times);

// Measure under backend cuda; built only with CUDA. Results are compared with the CPU's: throws
// Error that names the layer and the element where they differ. Layers that do not fit have no
// rows.
Rows MeasureOnDevice(const Settings& settings, const Trial& trial);

// Whether a device adds the layer's products at that size: sums of int8 have a limit
// (gemm/gemm_device.h).
bool FitsDevice(const LinearRecipe& recipe, LinearShape shape);

// Bytes that a layer takes on the device at most, without its operands and results.
size_t DeviceBytes(const LinearRecipe& recipe, LinearShape shape);

// The layers that FitsDevice, as indices, in groups that fit into `bytes` together, each with at
// least one layer that is not standard where there are any; every standard layer is in all.
std::vector<std::vector<size_t>> DeviceGroups(std::span<const TimedLayer> layers,
                                              LinearShape shape,
                                              size_t bytes);

}  // namespace numsim::experiments::linear_speed
