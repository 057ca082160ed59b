#include "experiments/swiglu_alignment/neuron.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr Keyword<Gate> kGateNames[] = {{"sigmoid", Gate::kSigmoid},
                                        {"saturated", Gate::kSaturated}};

// Exp requires arguments below 700; beyond this the logistic function is 0 or 1 in float64.
constexpr double kFarOut = 690;

// One sample's forward pass, and the derivatives of u with respect to a = w1.x and g = w2.x.
struct Sample {
  double a = 0, g = 0;  // w1.x and w2.x
  SigmaParts sigma;     // at g
  double residual = 0;  // u - y
  double by_a = 0;      // g sigma
  double by_g = 0;      // a (sigma + g sigma')
  double by_a_g = 0;    // sigma + g sigma'
  double by_g_g = 0;    // a (2 sigma' + g sigma'')
};

Sample At(const NeuronProblem& problem, const std::vector<double>& w, size_t n) {
  const size_t dim = problem.data.dim;
  const double* const x = problem.data.Row(n);
  Sample s;
  s.a = Dot(w.data(), x, dim);
  s.g = Dot(w.data() + dim, x, dim);
  s.sigma = SigmaAt(problem.gate, s.g);
  s.by_a = s.g * s.sigma.value;
  s.by_a_g = s.sigma.value + s.g * s.sigma.first;
  s.by_g = s.a * s.by_a_g;
  s.by_g_g = s.a * (2 * s.sigma.first + s.g * s.sigma.second);
  s.residual = s.a * s.by_a - problem.data.y[n];
  return s;
}

double CountOf(const NeuronProblem& problem) { return static_cast<double>(problem.data.Samples()); }

void AddOuter(double factor,
              const double* x,
              size_t dim,
              size_t row,
              size_t col,
              size_t size,
              std::vector<double>& matrix) {
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) matrix[(row + i) * size + col + j] += factor * x[i] * x[j];
  }
}

void SetTargets(const Teacher& teacher, NeuronData& data) {
  const size_t samples = data.x.size() / data.dim;
  data.y.resize(samples);
  for (size_t n = 0; n < samples; ++n) {
    data.y[n] =
        Dot(teacher.p.data(), data.Row(n), data.dim) * Dot(teacher.q.data(), data.Row(n), data.dim);
  }
}

// Returns (v, last) with a v of length `length` that points along (1, -1, 1, ...).
std::vector<double> Factor(size_t dim, double length, double last) {
  std::vector<double> p(dim, last);
  const double element = length / std::sqrt(static_cast<double>(dim - 1));
  for (size_t i = 0; i + 1 < dim; ++i) p[i] = i % 2 == 0 ? element : -element;
  return p;
}

}  // namespace

std::string_view ToString(Gate gate) { return KeywordToString(kGateNames, gate); }

SigmaParts SigmaAt(Gate gate, double z) {
  if (gate == Gate::kSaturated) return {1, 0, 0};
  const double small = Exp(-std::min(std::fabs(z), kFarOut));  // e^-|z|
  const double near_one = 1 / (1 + small), near_zero = small / (1 + small);
  const double value = z >= 0 ? near_one : near_zero;
  const double rest = z >= 0 ? near_zero : near_one;
  const double first = near_one * near_zero;
  return {value, first, first * (rest - value)};
}

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double Norm(const double* a, size_t n) { return std::sqrt(Dot(a, a, n)); }

double Cosine(const double* a, const double* b, size_t n) {
  const double norms = Norm(a, n) * Norm(b, n);
  return norms > 0 ? Dot(a, b, n) / norms : 0;
}

Teacher LinearTeacher(size_t dim) { return TeacherAtAngle(dim, 90); }

Teacher SquareTeacher(size_t dim) { return {Factor(dim, 1, 1), Factor(dim, 1, 1)}; }

Teacher TeacherAtAngle(size_t dim, double degrees) {
  NUMSIM_CHECK(dim >= 2 && degrees >= 0 && degrees <= 180, "{} {}", dim, degrees);
  const SinCos angle = SinCos2Pi(degrees / 360);
  const bool right = degrees == 90;  // whose cosine is 0, not a rounding error
  return {Factor(dim, right ? 1 : angle.sin, right ? 0 : angle.cos), Factor(dim, 0, 1)};
}

NeuronData CornerData(size_t dim, double bias, const Teacher& teacher) {
  NeuronData data{dim, {}, {}};
  for (size_t corner = 0; corner < size_t{1} << (dim - 1); ++corner) {
    for (size_t i = 0; i + 1 < dim; ++i) data.x.push_back((corner >> i & 1) != 0 ? 1 : -1);
    data.x.push_back(bias);
  }
  SetTargets(teacher, data);
  return data;
}

NeuronData NormalData(
    size_t dim, double bias, const Teacher& teacher, size_t samples, uint64_t seed) {
  NeuronData data{dim, {}, {}};
  std::vector<float> z(samples * (dim - 1));
  FillNormal({seed, 0}, 0, z);
  for (size_t n = 0; n < samples; ++n) {
    for (size_t i = 0; i + 1 < dim; ++i) data.x.push_back(z[n * (dim - 1) + i]);
    data.x.push_back(bias);
  }
  SetTargets(teacher, data);
  return data;
}

double NeuronProblem::Loss(const std::vector<double>& w) const {
  double sum = 0;
  for (size_t n = 0; n < data.Samples(); ++n) {
    const double residual = At(*this, w, n).residual;
    sum += residual * residual;
  }
  return sum / (2 * CountOf(*this)) + mu / 2 * Dot(w.data(), w.data(), w.size());
}

std::vector<double> NeuronProblem::Gradient(const std::vector<double>& w) const {
  std::vector<double> gradient(2 * data.dim);
  for (size_t n = 0; n < data.Samples(); ++n) {
    const Sample s = At(*this, w, n);
    const double* const x = data.Row(n);
    const double delta = s.residual / CountOf(*this);
    for (size_t i = 0; i < data.dim; ++i) {
      gradient[i] += delta * s.by_a * x[i];
      gradient[data.dim + i] += delta * s.by_g * x[i];
    }
  }
  for (size_t i = 0; i < w.size(); ++i) gradient[i] += mu * w[i];
  return gradient;
}

std::vector<double> NeuronProblem::Hessian(const std::vector<double>& w) const {
  const size_t dim = data.dim, size = 2 * dim;
  std::vector<double> hessian(size * size);
  const double weight = 1 / CountOf(*this);
  for (size_t n = 0; n < data.Samples(); ++n) {
    const Sample s = At(*this, w, n);
    const double* const x = data.Row(n);
    const double mixed = s.by_a * s.by_g + s.residual * s.by_a_g;
    AddOuter(weight * s.by_a * s.by_a, x, dim, 0, 0, size, hessian);
    AddOuter(weight * mixed, x, dim, 0, dim, size, hessian);
    AddOuter(weight * mixed, x, dim, dim, 0, size, hessian);
    AddOuter(weight * (s.by_g * s.by_g + s.residual * s.by_g_g), x, dim, dim, dim, size, hessian);
  }
  for (size_t i = 0; i < size; ++i) hessian[i * size + i] += mu;
  return hessian;
}

std::vector<double> NeuronProblem::ProofMatrix(const std::vector<double>& w) const {
  NUMSIM_CHECK(mu > 0, "mu {}", mu);
  std::vector<double> matrix(data.dim * data.dim);
  for (size_t n = 0; n < data.Samples(); ++n) {
    const Sample s = At(*this, w, n);
    const double lambda = -s.residual / CountOf(*this) * s.sigma.value / mu;
    AddOuter(lambda, data.Row(n), data.dim, 0, 0, data.dim, matrix);
  }
  return matrix;
}

double NeuronProblem::LargestSlope(const std::vector<double>& w) const {
  double largest = 0;
  for (size_t n = 0; n < data.Samples(); ++n) {
    largest = std::max(largest, At(*this, w, n).sigma.first);
  }
  return largest;
}

double NeuronProblem::ImbalanceAtRest(const std::vector<double>& w) const {
  NUMSIM_CHECK(mu > 0, "mu {}", mu);
  double sum = 0;
  for (size_t n = 0; n < data.Samples(); ++n) {
    const Sample s = At(*this, w, n);
    sum += s.residual * s.a * s.g * s.g * s.sigma.first;
  }
  return sum / CountOf(*this) / mu;
}

}  // namespace numsim::experiments::swiglu_alignment
