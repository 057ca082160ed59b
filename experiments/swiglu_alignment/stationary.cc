// Finds stationary points of the loss of a single SwiGLU neuron, and measures what Theorem 1 of
// [Fishman] and its proof say about them.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr size_t kDim = 5;        // four features and the constant one
constexpr size_t kSamples = 256;  // of normal data
constexpr uint64_t kDataSeed = 1, kStartStream = 2, kDriftSeed = 3;
constexpr double kGradientAtRest = 1e-12;
constexpr int kMostNewtonSteps = 200;
constexpr double kDrift = 0.02;  // of the elements of a start, away from the teacher's factors

// A problem whose stationary point is sought.
struct Case {
  std::string_view teacher, design;
  double degrees = 90;  // between the teacher's factors
  Gate gate = Gate::kSaturated;
  double bias = 6, mu = 0.1;
};

// The counterexample, with the exact limit of the gate and with real gates that approach it; the same on
// data without symmetry; a square; and teachers whose factors are at any angle.
std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"linear", "corners", 90, Gate::kSaturated, 6, 0.1},
      {"linear", "corners", 90, Gate::kSaturated, 6, 1},
      {"linear", "normal", 90, Gate::kSaturated, 6, 0.1},
      {"square", "corners", 0, Gate::kSaturated, 6, 0.1},
      {"square", "normal", 0, Gate::kSaturated, 6, 0.1},
      {"square", "corners", 0, Gate::kSigmoid, 12, 0.1},
  };
  for (const double bias : {6.0, 12.0, 24.0, 36.0}) {
    cases.push_back({"linear", "corners", 90, Gate::kSigmoid, bias, 0.1});
    cases.push_back({"linear", "normal", 90, Gate::kSigmoid, bias, 0.1});
  }
  for (const double degrees : {0.0, 30.0, 60.0, 120.0, 150.0, 180.0}) {
    cases.push_back({"angle", "corners", degrees, Gate::kSaturated, 6, 0.1});
  }
  return cases;
}

Teacher TeacherOf(const Case& one) {
  return one.teacher == "square" ? SquareTeacher(kDim) : TeacherAtAngle(kDim, one.degrees);
}

NeuronProblem ProblemOf(const Case& one) {
  const Teacher teacher = TeacherOf(one);
  NeuronData data = one.design == "corners"
                        ? CornerData(kDim, one.bias, teacher)
                        : NormalData(kDim, one.bias, teacher, kSamples, kDataSeed);
  return {std::move(data), one.gate, one.mu};
}

// Returns a start near the teacher's factors, but not on the symmetric set that they may lie in.
std::vector<double> StartNear(const Teacher& teacher) {
  std::vector<double> w = teacher.p;
  w.insert(w.end(), teacher.q.begin(), teacher.q.end());
  std::vector<float> drift(w.size());
  FillNormal({kDriftSeed, kStartStream}, 0, drift);
  for (size_t i = 0; i < w.size(); ++i) w[i] += kDrift * drift[i];
  return w;
}

double LargestMagnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// Returns w - H^-1 gradient, or a shorter step in that direction if it does not lower the gradient.
std::vector<double> NewtonStep(const NeuronProblem& problem,
                               const std::vector<double>& w,
                               const std::vector<double>& gradient) {
  const auto size = static_cast<Eigen::Index>(w.size());
  const std::vector<double> hessian = problem.Hessian(w);
  const Eigen::VectorXd direction =
      Eigen::Map<const RowMatrix>(hessian.data(), size, size)
          .fullPivLu()
          .solve(Eigen::Map<const Eigen::VectorXd>(gradient.data(), size));
  std::vector<double> next = w;
  for (double length = 1; length > 1e-6; length /= 2) {
    for (size_t i = 0; i < w.size(); ++i) {
      next[i] = w[i] - length * direction[static_cast<Eigen::Index>(i)];
    }
    if (LargestMagnitude(problem.Gradient(next)) < LargestMagnitude(gradient)) break;
  }
  return next;
}

Eigen::VectorXd EigenvaluesOf(const std::vector<double>& matrix, size_t dim) {
  const auto size = static_cast<Eigen::Index>(dim);
  const Eigen::MatrixXd copy = Eigen::Map<const RowMatrix>(matrix.data(), size, size);
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(copy, Eigen::EigenvaluesOnly).eigenvalues();
}

double NearestTo(double value, const Eigen::VectorXd& eigenvalues) {
  double nearest = eigenvalues[0];
  for (const double one : eigenvalues) {
    if (std::fabs(one - value) < std::fabs(nearest - value)) nearest = one;
  }
  return nearest;
}

// Returns the largest magnitude of an element of A v - factor v.
double EigenError(const std::vector<double>& a, const std::vector<double>& v, double factor) {
  double error = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const double product = Dot(a.data() + i * v.size(), v.data(), v.size());
    error = std::max(error, std::fabs(product - factor * v[i]));
  }
  return error;
}

std::vector<double> Times(const std::vector<double>& a, const std::vector<double>& v) {
  std::vector<double> product(v.size());
  for (size_t i = 0; i < v.size(); ++i)
    product[i] = Dot(a.data() + i * v.size(), v.data(), v.size());
  return product;
}

// Appends what the proof says about A at a stationary point.
void AppendProof(const NeuronProblem& problem, const std::vector<double>& w, Row& row) {
  const size_t dim = problem.data.dim;
  const std::vector<double> a = problem.ProofMatrix(w);
  const std::vector<double> w1(w.begin(), w.begin() + static_cast<ptrdiff_t>(dim));
  const std::vector<double> w2(w.begin() + static_cast<ptrdiff_t>(dim), w.end());
  std::vector<double> p(dim), q(dim), squared = Times(a, Times(a, w1));
  for (size_t i = 0; i < dim; ++i) {
    p[i] = (w1[i] + w2[i]) / 2;
    q[i] = (w1[i] - w2[i]) / 2;
    squared[i] -= w1[i];
  }
  const Eigen::VectorXd eigenvalues = EigenvaluesOf(a, dim);
  const double size = LargestMagnitude(w);
  for (const double value : {NearestTo(1, eigenvalues),
                             NearestTo(-1, eigenvalues),
                             Norm(p.data(), dim),
                             Norm(q.data(), dim),
                             std::max(EigenError(a, p, 1), EigenError(a, q, -1)) / size,
                             LargestMagnitude(squared) / size,
                             std::min(EigenError(a, w1, 1), EigenError(a, w1, -1)) / size}) {
    row.emplace_back(value);
  }
}

Row RowOf(const Case& one) {
  const NeuronProblem problem = ProblemOf(one);
  const StationaryPoint point = FindStationaryPoint(problem, StartNear(TeacherOf(one)));
  const size_t dim = problem.data.dim;
  const double* const w1 = point.w.data();
  const double* const w2 = w1 + dim;
  const double imbalance = Dot(w1, w1, dim) - Dot(w2, w2, dim);
  Row row = {one.teacher,
             one.degrees,
             one.design,
             ToString(one.gate),
             one.bias,
             one.mu,
             point.gradient,
             point.least_curvature,
             problem.LargestSlope(point.w),
             Cosine(w1, w2, dim),
             Norm(w1, dim),
             Norm(w2, dim),
             imbalance,
             std::fabs(imbalance - problem.ImbalanceAtRest(point.w))};
  AppendProof(problem, point.w, row);
  return row;
}

}  // namespace

StationaryPoint FindStationaryPoint(const NeuronProblem& problem, std::vector<double> w) {
  std::vector<double> gradient = problem.Gradient(w);
  for (int i = 0; i < kMostNewtonSteps && LargestMagnitude(gradient) > kGradientAtRest; ++i) {
    w = NewtonStep(problem, w, gradient);
    gradient = problem.Gradient(w);
  }
  StationaryPoint point{std::move(w), Norm(gradient.data(), gradient.size()), 0};
  point.least_curvature = EigenvaluesOf(problem.Hessian(point.w), 2 * problem.data.dim).minCoeff();
  return point;
}

std::vector<Row> StationaryRows() {
  std::vector<Row> rows;
  for (const Case& one : Cases()) rows.push_back(RowOf(one));
  return rows;
}

}  // namespace numsim::experiments::swiglu_alignment
