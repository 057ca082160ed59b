// Times the passes of every layer of a point.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "experiments/linear_speed.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/manifest.h"
#include "numsim/kernels/gemm.h"
#include "numsim/kernels/simd_target.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::linear_speed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kOtherStep = kSteps;  // index of the time outside of every step

// Streams of the operands; a Linear of stream 1 draws from streams 8 to 15.
enum OperandStream : uint64_t { kStreamX, kStreamW, kStreamG };
constexpr uint64_t kLayerStream = 1;

constexpr size_t kRotatedBytes = size_t{64} << 20;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void FillOperand(RandomStream stream, std::vector<float>& out) {
  ParallelFor(out.size(), 1 << 14, [&](size_t begin, size_t end) {
    FillNormal(stream, begin, std::span(out).subspan(begin, end - begin));
  });
}

// Inputs and results of the passes.
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

// Sets of the same operands, at least one, of together kRotatedBytes at least.
std::vector<Operands> MakeSets(LinearShape shape, uint64_t seed) {
  std::vector<Operands> sets = {Operands(shape, seed)};
  const size_t count = (kRotatedBytes - 1) / sets[0].Bytes() + 1;
  sets.resize(std::min<size_t>(count, 1024), sets[0]);
  return sets;
}

// Seconds of each step of one pass.
class StepClock : public LinearObserver {
 public:
  void Begin(LinearStep) override { begin_ = Clock::now(); }
  void End(LinearStep step) override {
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

// A layer with the times of its passes.
class Stopwatch {
 public:
  explicit Stopwatch(const LinearRecipe& recipe) : linear_(recipe) {}

  // A forward and a backward pass.
  void Run(LinearShape shape, uint64_t seed, Operands& on) {
    StepClock clock;
    const RandomStream random{seed, kLayerStream};
    const Clock::time_point begin = Clock::now();
    linear_.Forward(on.x, on.w, shape, on.y, kept_, random, &clock);
    linear_.Backward(on.g, on.w, kept_, on.dx, on.dw, random, &clock);
    double rest = SecondsSince(begin);
    for (size_t i = 0; i < kSteps; ++i) {
      if (!clock.Done(i)) continue;
      samples_[i].push_back(clock.Seconds(i));
      rest -= clock.Seconds(i);
    }
    samples_[kOtherStep].push_back(std::max(rest, 0.0));
  }

  void Forget() {
    for (std::vector<double>& samples : samples_) samples.clear();
  }

  // Of a step, or of kOtherStep; empty where the layer does not have it.
  const std::vector<double>& Samples(size_t step) const { return samples_[step]; }
  size_t KeptBytes() const { return kept_.Bytes(); }

 private:
  Linear linear_;
  LinearKept kept_;
  std::array<std::vector<double>, kSteps + 1> samples_;
};

// What a step does, in 10^9 operations or bytes.
struct Work {
  double giga = kNaN;
  const char* unit = "none";
};

Work WorkOf(const LinearRecipe& recipe, LinearShape shape, LinearStep step) {
  const auto elements = [](size_t rows, size_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols);
  };
  const double x = elements(shape.tokens, shape.in);
  const double w = elements(shape.out, shape.in);
  const double g = elements(shape.tokens, shape.out);
  // Float32 on one side, codes on the other.
  const auto convert = [](double count, const FormatSpec& format) {
    return Work{count * (4 + format.StorageBytes()) * 1e-9, "GB"};
  };
  const auto& [forward, input, weight] = recipe.products;
  switch (step) {
    case LinearStep::kForwardProduct:
    case LinearStep::kInputGradientProduct:
    case LinearStep::kWeightGradientProduct:
      return {2e-9 * x * static_cast<double>(shape.out), "GOP"};
    case LinearStep::kQuantizeX:
    case LinearStep::kDequantizeX:
      return convert(x, forward.a.format.spec);
    case LinearStep::kQuantizeW:
      return convert(w, forward.b.format.spec);
    case LinearStep::kQuantizeG:
      return convert(g, input.a.format.spec);
    case LinearStep::kQuantizeWTransposed:
      return convert(w, input.b.format.spec);
    case LinearStep::kQuantizeGTransposed:
      return convert(g, weight.a.format.spec);
    case LinearStep::kQuantizeXTransposed:
      return convert(x, weight.b.format.spec);
    case LinearStep::kKeepX:
      return convert(x, recipe.high_precision.spec);
  }
  return {};
}

// The rounds: each times every layer once.
void TimeRounds(const Settings& settings,
                LinearShape shape,
                uint64_t seed,
                std::vector<Stopwatch>& layers) {
  std::vector<Operands> sets = MakeSets(shape, seed);
  size_t next = 0;
  const auto round = [&] {
    for (Stopwatch& layer : layers) layer.Run(shape, seed, sets[next++ % sets.size()]);
  };
  round();  // Warms up: pages, threads, code that a library makes when it is first called.
  for (Stopwatch& layer : layers) layer.Forget();
  const int64_t repeats = settings.GetInteger("repeats", 1, 1000);
  const double least =
      settings.GetDouble("min-seconds", 0, 3600) * static_cast<double>(layers.size());
  const Clock::time_point begin = Clock::now();
  for (int64_t done = 0; done < repeats || SecondsSince(begin) < least; ++done) round();
}

// The cells of one operation, from `operation` to `rate`.
void AppendTimes(std::string_view operation,
                 Part part,
                 const std::vector<double>& samples,
                 const Work& work,
                 std::vector<std::string>& cells) {
  const double seconds = Quantile(samples, 0.5);
  cells.insert(cells.end(),
               {Cell(operation),
                Cell(Name(part)),
                Cell(seconds),
                Cell(Quantile(samples, 0.25)),
                Cell(Quantile(samples, 0.75)),
                Cell(uint64_t{samples.size()}),
                Cell(work.giga),
                Cell(work.unit),
                Cell(work.giga / seconds)});
}

std::string DeviceName() {
  const std::string cpu = DescribeHost().cpu;
  return cpu.empty() ? "unknown" : cpu;
}

}  // namespace

double Quantile(std::vector<double> samples, double q) {
  NUMSIM_CHECK(!samples.empty(), "no samples");
  std::sort(samples.begin(), samples.end());
  const double place = q * static_cast<double>(samples.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double weight = place - static_cast<double>(below);
  return samples[below] + weight * (samples[above] - samples[below]);
}

Rows Measure(const Settings& settings, const Point& point) {
  const LinearShape shape{std::stoull(point.parameters.at("tokens")),
                          std::stoull(point.parameters.at("in")),
                          std::stoull(point.parameters.at("out"))};
  const std::vector<TimedLayer> layers = TimedLayers(settings);
  std::vector<Stopwatch> watches;
  for (const TimedLayer& layer : layers) watches.emplace_back(layer.recipe);
  TimeRounds(settings, shape, point.seed, watches);

  Rows rows;
  const std::string device = DeviceName();
  for (size_t k = 0; k < layers.size(); ++k) {
    const LinearRecipe& recipe = layers[k].recipe;
    for (size_t i = 0; i <= kSteps; ++i) {
      const std::vector<double>& samples = watches[k].Samples(i);
      if (samples.empty()) continue;
      std::vector<std::string> cells = {device,
                                        Cell(SimdTargetName()),
                                        Cell(ThreadCount()),
                                        Cell(GemmLibrary()),
                                        recipe.kind,
                                        layers[k].format,
                                        recipe.high_precision.name,
                                        layers[k].product,
                                        point.parameters.at("dim"),
                                        point.parameters.at("tokens"),
                                        Cell(point.seed),
                                        point.parameters.at("in"),
                                        point.parameters.at("out")};
      if (i == kOtherStep) {
        AppendTimes(Name(Part::kOther), Part::kOther, samples, {}, cells);
      } else {
        const LinearStep step = static_cast<LinearStep>(i);
        AppendTimes(numsim::Name(step), PartOf(step), samples, WorkOf(recipe, shape, step), cells);
      }
      cells.push_back(Cell(uint64_t{watches[k].KeptBytes()}));
      rows[std::string(kOperationsTable)].push_back(std::move(cells));
    }
  }
  return rows;
}

}  // namespace numsim::experiments::linear_speed
