// Where the time of a training step goes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace numsim {

enum class StepPhase : uint8_t {
  kProduct,    // the products of linear layers, scales applied in their store included
  kQuantise,   // their operands, to codes and back
  kAttention,  // with its two products forward and five backward
  kNorm,
  kActivation,
  kEmbedding,  // tokens, positions, patches
  kResidual,   // sums, biases, layer-scale, copies
  kLoss,
  kOptimiser,  // moments, weights, clipping
  kData,
  kTelemetry,
};
inline constexpr size_t kStepPhases = 11;
// product quantise attention norm activation embedding residual loss optimiser data telemetry.
std::string_view ToString(StepPhase part);

// Seconds of wall time by part.
struct StepProfile {
  std::array<double, kStepPhases> seconds{};

  double& operator[](StepPhase part) { return seconds[static_cast<size_t>(part)]; }
  double operator[](StepPhase part) const { return seconds[static_cast<size_t>(part)]; }
  double Sum() const;
};

// Adds the time of its life to a part; does nothing without a profile. Not nested.
class TimedPart {
 public:
  TimedPart(StepProfile* profile, StepPhase part) : profile_(profile), part_(part) {
    if (profile_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ~TimedPart() {
    if (profile_ == nullptr) return;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
    (*profile_)[part_] += time.count();
  }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

 private:
  StepProfile* profile_;
  StepPhase part_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace numsim
