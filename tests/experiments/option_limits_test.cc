// The limits of the numbers that experiments take: the next number beyond is refused with a message
// that names option, value and limits. Other tests say that numbers on a limit count as within.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/settings.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

struct Limits {
  std::string experiment, option;
  double low, high;
  bool whole = true;                               // integers alone
  std::map<std::string, std::string> others = {};  // options without which it is not read
};

constexpr double kMillion = 1e6, kBytes16 = 1 << 16, kWhole20 = 1 << 20, kWhole24 = 1 << 24;
constexpr bool kReal = false;

const std::vector<Limits> kLimits = {
    {"feature-statistics", "every", 1, std::numeric_limits<int32_t>::max()},
    {"feature-statistics", "histories", 1, kWhole20},
    {"feature-statistics", "image", 16, 64},
    {"feature-statistics", "shapes", 64, kWhole24},
    {"fp8-interventions", "clip-norm", 1e-9, 1e9, kReal},
    {"fp8-interventions", "diverged-above", 0, 1e9, kReal},
    {"fp8-interventions", "patch", 1, kBytes16},
    {"fp8-interventions", "snapshots", 1, 300},
    {"fp8-interventions", "text-layers", 0, 128},
    {"fp8-outliers", "history", 1, kBytes16},
    {"fp8-outliers", "lead", 1, 1e8},
    {"fp8-outliers", "period", 1, 1e8},
    {"linear-error", "coherence", 0, 1, kReal},
    {"linear-error", "dims", 1, 16384},
    {"linear-error", "outlier-columns", 0, 1, kReal},
    {"linear-error", "outlier-column-size", 1, kMillion, kReal},
    {"linear-error", "outlier-tokens", 0, 1, kReal},
    {"linear-error", "outlier-token-size", 1, kMillion, kReal},
    {"linear-error", "sr-bits", 1, 32},
    {"linear-error", "tokens-fixed", 1, kWhole20},
    {"linear-error", "tokens-high", 1, kWhole20},
    {"linear-error", "tokens-low", 1, kWhole20},
    {"linear-error", "width", 1, 16384},
    {"linear-speed", "dims", 1, 16384},
    {"linear-speed", "max-seconds", 0, 3600, kReal},
    {"linear-speed", "min-seconds", 0, 3600, kReal},
    {"linear-speed", "repeats", 1, 1000},
    {"linear-speed", "tokens", 1, kWhole20},
    {"linear-speed", "widths", 1, 16},
    {"loss-scaling", "burst-step", 0, 1 << 30},
    {"loss-scaling", "burst-steps", 1, 1 << 30},
    {"loss-scaling", "scales", 1e-30, 1e30, kReal},
    {"loss-scaling", "steps", 10, 1e8},
    {"loss-scaling", "window", 2, kWhole20},
    {"loss-spikes", "beta2", 0, 1 - 1e-12, kReal},
    {"loss-spikes", "change-step", 1, 1e8},
    {"loss-spikes", "images", 64, kWhole24, true, {{"models", "vit"}}},
    {"loss-spikes", "old-batches", 1, kWhole20},
    {"loss-spikes", "spike-deviations", 1e-3, kMillion, kReal},
    {"loss-spikes", "spike-rms", 1e-3, kMillion, kReal},
    {"loss-spikes", "steps", 5, 1e8},
    {"loss-spikes", "student-batch", 1, kWhole20},
    {"loss-spikes", "window", 2, kWhole20},
    {"moment-formats", "billions", 1e-6, kMillion, kReal},
    {"moment-formats", "steps", 10, 1e8},
    {"noise-floor", "draws", 1, 1000},
    {"quantization-variance", "k-high", 2, kWhole24},
    {"quantization-variance", "k-low", 2, kWhole24},
    {"quantization-variance", "pairs", 4, kMillion},
    {"quantization-variance", "sr-bits", 1, 32},
    {"quantization-variance", "tensor-rows", 1, 4096},
    {"swiglu-alignment", "neuron-steps", 1, 1e7},
    {"swiglu-alignment", "points", 1, 1e4},
    {"swiglu-alignment", "starts", 1, 1e4},
    {"switchback-accuracy", "lr-clip", 1e-12, 100, kReal},
    {"switchback-accuracy", "lr-llama", 1e-12, 100, kReal},
    {"switchback-accuracy", "shadow-seeds", 0, kMillion},
    {"switchback-accuracy", "shapes-size", 64, std::pow(2, 32)},
    {"switchback-accuracy", "steps", 10, 1e8},
    {"switchback-accuracy", "text-size", 1 << 14, std::pow(2, 32)},
    {"update-convergence", "batch", 1, kBytes16},
    {"update-convergence", "beta1", 0, 0.999999, kReal},
    {"update-convergence", "beta2", 0, 0.999999, kReal},
    {"update-convergence", "condition", 1, 1e8, kReal},
    {"update-convergence", "epsilon", 1e-30, 1, kReal},
    {"update-convergence", "image-size", 2, 256},
    {"update-convergence", "images", 1, kWhole20},
    {"update-convergence", "noise", 0, kMillion, kReal},
    {"update-convergence", "reach", 1e-6, kMillion, kReal},
    {"update-convergence", "size", 1, kWhole24},
    {"update-convergence", "steps", 2, 1e7},
    {"update-convergence", "weight-scale", 0, 1e4, kReal},
    {"update-fidelity", "iterations", 1, 1000},
    {"update-fidelity", "lr-low", 1e-30, kMillion, kReal},
    {"update-fidelity", "per-decade", 1, 100},
    {"update-fidelity", "rtol", 0, 1, kReal},
    {"update-fidelity", "size", 1, 1 << 14},
};

std::string TextOf(const Limits& limits, double value) {
  return limits.whole ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

// Expects that a value is refused because of its limits, which the message states.
void ExpectRefused(const Limits& limits, double value) {
  const std::string text = TextOf(limits, value);
  const Experiment& experiment = *FindExperiment(limits.experiment);
  std::map<std::string, std::string> options = limits.others;
  options[limits.option] = text;
  const std::string message =
      ErrorOf([&] { experiment.trials(MakeSettings(experiment, "quick", 0, 1, options)); });
  EXPECT_TRUE(message.starts_with(fmt::format("--{} \"{}\": expected ", limits.option, text)))
      << message;
  const std::string range =
      fmt::format(" from {} to {}", TextOf(limits, limits.low), TextOf(limits, limits.high));
  EXPECT_NE(message.find(range), message.npos) << message << ", not" << range;
}

TEST(OptionLimits, TheNextNumbersBeyondAreRefused) {
  for (const Limits& one : kLimits) {
    SCOPED_TRACE(one.experiment + " --" + one.option);
    ExpectRefused(one, one.whole ? one.low - 1 : std::nextafter(one.low, -HUGE_VAL));
    if (HasFailure()) return;  // a number that is not refused may take long
    ExpectRefused(one, one.whole ? one.high + 1 : std::nextafter(one.high, HUGE_VAL));
  }
}

}  // namespace
}  // namespace numsim::experiments
