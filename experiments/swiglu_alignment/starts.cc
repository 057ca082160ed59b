// Trains a single SwiGLU neuron with Adam from random starts, and lists how activation functions grow.
#include <algorithm>
#include <cmath>

#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/elementary.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr size_t kStartDim = 5, kStartSamples = 128;
constexpr double kStartBias = 6;  // the constant feature, which keeps the gate open
constexpr uint64_t kWeightStream = 5;
constexpr double kStartRate = 0.02;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kAdamEpsilon = 1e-8;

// Returns random weights of standard deviation 1/sqrt(dim), except that the gate's weight of the
// constant feature is 1: the gate is open.
std::vector<double> RandomStart(uint64_t seed) {
  std::vector<float> normal(2 * kStartDim);
  FillNormal({seed, kWeightStream}, 0, normal);
  std::vector<double> w(normal.begin(), normal.end());
  for (double& element : w) element /= std::sqrt(static_cast<double>(kStartDim));
  w.back() = 1;
  return w;
}

// Adam with a learning rate that falls linearly to 0.
void TrainNeuron(const NeuronProblem& problem, int64_t steps, std::vector<double>& w) {
  std::vector<double> m(w.size()), v(w.size());
  double decay1 = 1, decay2 = 1;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<double> gradient = problem.Gradient(w);
    const double rate = kStartRate * (1 - static_cast<double>(step) / static_cast<double>(steps));
    decay1 *= kBeta1;
    decay2 *= kBeta2;
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * gradient[i];
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * gradient[i] * gradient[i];
      w[i] -= rate * (m[i] / (1 - decay1)) / (std::sqrt(v[i] / (1 - decay2)) + kAdamEpsilon);
    }
  }
}

Row StartRow(const Settings& settings, uint64_t seed, bool square, double mu) {
  const int64_t steps = settings.GetInteger("neuron-steps", 1, 10'000'000);
  const Teacher teacher = square ? SquareTeacher(kStartDim) : LinearTeacher(kStartDim);
  const NeuronProblem problem{
      NormalData(kStartDim, kStartBias, teacher, kStartSamples, seed), Gate::kSigmoid, mu};
  std::vector<double> w = RandomStart(seed);
  const double start = Cosine(w.data(), w.data() + kStartDim, kStartDim);
  TrainNeuron(problem, steps, w);
  const std::vector<double> gradient = problem.Gradient(w);
  return {square ? "square" : "linear",
          mu,
          seed,
          steps,
          start,
          Cosine(w.data(), w.data() + kStartDim, kStartDim),
          Norm(w.data(), kStartDim),
          Norm(w.data() + kStartDim, kStartDim),
          problem.LargestSlope(w),
          problem.Loss(w),
          Norm(gradient.data(), gradient.size())};
}

// The logistic function of z, of which swish(z) = z sigma(z).
double Logistic(double z) { return SigmaAt(Gate::kSigmoid, z).value; }

// GELU in its tanh form [GELU] is u sigma(2 sqrt(2/pi) (u + 0.044715 u^3)).
double GeluOver(double u) {
  constexpr double kTwiceRoot = 1.5957691216057308;  // 2 sqrt(2/pi)
  return Logistic(kTwiceRoot * (u + 0.044715 * u * u * u));
}

}  // namespace

std::vector<Row> StartRows(const Settings& settings, uint64_t seed) {
  std::vector<Row> rows;
  for (const bool square : {true, false}) {
    for (const double mu : {kNeuronDecay, 0.0}) {
      rows.push_back(StartRow(settings, seed, square, mu));
    }
  }
  return rows;
}

std::vector<Row> GrowthRows() {
  std::vector<Row> rows;
  const auto add = [&](const char* name, double u, double over_u) {
    rows.push_back({name, u, over_u, over_u / u});
  };
  for (double magnitude = 1; magnitude <= 64; magnitude *= 2) {
    for (const double u : {magnitude, -magnitude}) {
      add("relu", u, u > 0 ? 1 : 0);
      add("gelu", u, GeluOver(u));
      add("swish", u, Logistic(u));
    }
    // w1 = w2 with w1.x = 1: SwiGLU(u x) = u^2 sigma(u).
    add("swiglu", magnitude, magnitude * Logistic(magnitude));
  }
  return rows;
}

}  // namespace numsim::experiments::swiglu_alignment
