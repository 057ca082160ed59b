// The time spent in the phases of a training step.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace numsim {

// The phases of a training step.
enum class StepPhase : uint8_t {
  kProduct,    // GEMMs of linear layers, including the scaling of stored results
  kQuantize,   // quantising and dequantising their operands
  kAttention,  // including its two GEMMs forward and five backward
  kNorm,
  kActivation,
  kEmbedding,  // tokens, positions, patches
  kResidual,   // sums, biases, layer-scale, copies
  kLoss,
  kOptimiser,  // moments, weights, clipping
  kData,
  kTelemetry,
};
// The number of phases.
inline constexpr size_t kStepPhases = 11;
// Returns product, quantise, attention, norm, activation, embedding, residual, loss, optimiser,
// data or telemetry.
std::string_view ToString(StepPhase part);

// Wall time in seconds per phase.
struct StepProfile {
  std::array<double, kStepPhases> seconds{};

  // The seconds of one phase, and of all phases together.
  double& operator[](StepPhase part) { return seconds[static_cast<size_t>(part)]; }
  double operator[](StepPhase part) const { return seconds[static_cast<size_t>(part)]; }
  double Sum() const;
};

// Adds the time from its construction to its destruction to a phase. Does nothing without a
// profile. Must not be nested.
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
