// Measures the speed of a training and the GEMM speed of the machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/random/distributions.h"
#include "numsim/train/internal/run_summary.h"

namespace numsim {
namespace {

constexpr double kGiga = 1e9;

GemmOperand AsSquare(std::span<const float> values, size_t n) {
  GemmOperand operand;
  operand.format = FindFormat("fp32")->spec;
  operand.values = values;
  operand.rows = n;
  operand.inner = n;
  return operand;
}

// Returns the operations per second of the fastest of several GEMMs, in about 1/20 s. The matrices
// grow to 512 x 512 as long as that time allows: without vector instructions one such GEMM would take
// seconds.
double ProductRate(const AccumulationMode& mode) {
  constexpr size_t kSmallest = 32, kLargest = 512;
  constexpr double kSeconds = 0.05;
  std::vector<float> a(kLargest * kLargest), b(a.size()), out(a.size());
  FillNormal({1, 0}, 0, a);
  FillNormal({1, 1}, 0, b);
  const auto seconds = [&](size_t size) {
    const std::span<float> left(a.data(), size * size), right(b.data(), size * size);
    const auto start = std::chrono::steady_clock::now();
    Gemm(AsSquare(left, size), AsSquare(right, size), mode, std::span(out).first(size * size));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(kSmallest);  // threads start, and libraries generate code
  double best = 0, spent = 0;
  for (size_t size = kSmallest; spent < kSeconds;) {
    const double first = seconds(size), second = seconds(size), least = std::min(first, second);
    spent += first + second;
    best = std::max(best, 2.0 * static_cast<double>(size * size * size) / least);
    const bool fits = 2 * 8 * least < kSeconds - spent;  // the next size takes eight times as long
    if (size < kLargest && fits) size *= 2;
  }
  return best;
}

}  // namespace

double TrainSpeed::Share(StepPhase part) const {
  return seconds == 0 ? 0 : profile[part] / seconds;
}

TrainSpeed MeasureSpeed(Trainer& trainer, bool rates) {
  TrainSpeed speed;
  speed.steps = trainer.steps_timed();
  if (speed.steps == 0) return speed;
  const auto steps = static_cast<double>(speed.steps);
  speed.seconds = trainer.step_seconds();
  speed.fastest = trainer.fastest_step_seconds();
  speed.unit = trainer.unit();
  speed.profile = trainer.profile();
  speed.tokens_per_second = steps * static_cast<double>(trainer.tokens_per_step()) / speed.seconds;
  const double products = speed.profile[StepPhase::kProduct];
  const double operations = 3 * steps * trainer.model().ForwardFlops(trainer.config().train.batch);
  if (products > 0) speed.layer_gflops = operations / products / kGiga;
  if (!rates) return speed;
  speed.float32_gflops = ProductRate(ParseAccumulationMode("fp32")) / kGiga;
  speed.library_gflops = ProductRate(ParseAccumulationMode("library")) / kGiga;
  return speed;
}

std::string Describe(const TrainSpeed& speed) {
  if (speed.steps == 0) return "";
  std::string text = fmt::format("{} steps in {:.1f} s, {:.0f} {}/s\n",
                                 speed.steps,
                                 speed.seconds,
                                 speed.tokens_per_second,
                                 speed.unit);
  text += fmt::format("GEMMs of linear layers {:.1f} GFLOP/s", speed.layer_gflops);
  if (speed.library_gflops > 0) {
    text += fmt::format("; float32 GEMM on this machine: {:.1f} in fixed order, {:.1f} by {}",
                        speed.float32_gflops,
                        speed.library_gflops,
                        GemmLibrary());
  }
  text += "\nshare of step time:";
  double other = 1;
  for (size_t i = 0; i < kStepPhases; ++i) {
    const auto part = static_cast<StepPhase>(i);
    other -= speed.Share(part);
    text += fmt::format(" {} {:.1f} %,", ToString(part), 100 * speed.Share(part));
  }
  return text + fmt::format(" other {:.1f} %\n", 100 * other);
}

}  // namespace numsim
