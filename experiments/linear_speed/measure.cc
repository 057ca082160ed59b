// Times the passes of every layer of a trial on the CPU.
#include <algorithm>
#include <array>
#include <chrono>

#include "experiments/linear_speed/timing.h"
#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/io/manifest.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::linear_speed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRotatedBytes = size_t{64} << 20;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void FillOperand(RandomStream stream, std::vector<float>& out) {
  ParallelFor(out.size(), 1 << 14, [&](size_t begin, size_t end) {
    FillNormal(stream, begin, std::span(out).subspan(begin, end - begin));
  });
}

// Operands and results of a pass.
struct Operands {
  std::vector<float> x, w, g, y, dx, dw;

  Operands(LinearShape shape, uint64_t seed)
      : x(shape.tokens * shape.in),
        w(shape.out * shape.in),
        g(shape.tokens * shape.out),
        y(g.size()),
        dx(x.size()),
        dw(w.size()) {
    FillOperand({seed, kStreamX}, x);
    FillOperand({seed, kStreamW}, w);
    FillOperand({seed, kStreamG}, g);
  }

  size_t Bytes() const { return 2 * (x.size() + w.size() + g.size()) * sizeof(float); }
};

// Returns sets of the same operands that together take at least kRotatedBytes: at least one set and
// at most 1024.
std::vector<Operands> MakeSets(LinearShape shape, uint64_t seed) {
  std::vector<Operands> sets = {Operands(shape, seed)};
  const size_t count = (kRotatedBytes - 1) / sets[0].Bytes() + 1;
  sets.resize(std::min<size_t>(count, 1024), sets[0]);
  return sets;
}

// Measures the seconds of each operation of one pass.
class StepClock : public LinearObserver {
 public:
  void Begin(LinearOp) override { begin_ = Clock::now(); }
  void End(LinearOp step) override {
    const size_t i = static_cast<size_t>(step);
    seconds_[i] = (done_[i] ? seconds_[i] : 0) + SecondsSince(begin_);
    done_[i] = true;
  }

  bool Done(size_t step) const { return done_[step]; }
  double Seconds(size_t step) const { return seconds_[step]; }

 private:
  Clock::time_point begin_;
  std::array<double, kSteps> seconds_{};
  std::array<bool, kSteps> done_{};
};

// A layer that records the times of its passes.
class Stopwatch {
 public:
  explicit Stopwatch(const LinearRecipe& recipe) : linear_(recipe) {}

  // Runs and times a forward and a backward pass.
  void Run(LinearShape shape, uint64_t seed, Operands& on) {
    StepClock clock;
    const RandomStream random{seed, kLayerStream};
    const Clock::time_point begin = Clock::now();
    linear_.Forward(
        HostMatrix(on.x, shape.X()), HostMatrix(on.w, shape.W()), on.y, saved_, random, &clock);
    linear_.Backward(on.g, on.w, saved_, on.dx, on.dw, random, &clock);
    double rest = SecondsSince(begin);
    for (size_t i = 0; i < kSteps; ++i) {
      if (!clock.Done(i)) continue;
      times_.samples[i].push_back(clock.Seconds(i));
      rest -= clock.Seconds(i);
    }
    times_.samples[kOtherStep].push_back(std::max(rest, 0.0));
  }

  // Discards the times so far.
  void Forget() {
    for (std::vector<double>& samples : times_.samples) samples.clear();
  }

  // Returns the times since the last Forget.
  LayerTimes Times() {
    times_.kept_bytes = saved_.Bytes();
    return times_;
  }

 private:
  Linear linear_;
  LinearSaved saved_;
  LayerTimes times_;
};

// Runs the rounds, each of which times every layer once.
void TimeRounds(const Settings& settings,
                LinearShape shape,
                uint64_t seed,
                std::vector<Stopwatch>& layers) {
  std::vector<Operands> sets = MakeSets(shape, seed);
  size_t next = 0;
  const auto round = [&] {
    for (Stopwatch& layer : layers) layer.Run(shape, seed, sets[next++ % sets.size()]);
  };
  round();  // Warm-up of pages, threads, and code that a library generates at its first call.
  for (Stopwatch& layer : layers) layer.Forget();
  RepeatRounds(settings, layers.size(), round);
}

std::string DeviceName() {
  const std::string cpu = DescribeHost().cpu;
  return cpu.empty() ? "unknown" : cpu;
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) return MeasureOnDevice(settings, trial);
  }
  const std::vector<TimedLayer> layers = TimedLayers(settings);
  std::vector<Stopwatch> watches;
  for (const TimedLayer& layer : layers) watches.emplace_back(layer.recipe);
  TimeRounds(settings, ShapeOf(trial), trial.seed, watches);
  std::vector<LayerTimes> times;
  for (Stopwatch& watch : watches) times.push_back(watch.Times());
  const TimedPlace place{.device = DeviceName(), .library = GemmLibrary()};
  return OperationRows(trial, place, layers, times);
}

}  // namespace numsim::experiments::linear_speed
