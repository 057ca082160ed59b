// The single neuron of `swiglu-alignment`: derivatives against differences, and closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/swiglu_alignment/neuron.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "tests/experiments/swiglu_alignment_fixture.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// The loss of Equation 1 in the words of the paper, with libm's exponential.
double LossOf(const NeuronProblem& problem, const std::vector<double>& w) {
  const size_t dim = problem.data.dim;
  double sum = 0, norm = 0;
  for (size_t n = 0; n < problem.data.y.size(); ++n) {
    double a = 0, g = 0;
    for (size_t i = 0; i < dim; ++i) {
      a += w[i] * problem.data.x[n * dim + i];
      g += w[dim + i] * problem.data.x[n * dim + i];
    }
    const double sigma = problem.gate == Gate::kSaturated ? 1 : 1 / (1 + std::exp(-g));
    sum += std::pow(a * g * sigma - problem.data.y[n], 2) / 2;
  }
  for (const double element : w) norm += element * element;
  return sum / static_cast<double>(problem.data.y.size()) + problem.mu / 2 * norm;
}

std::vector<NeuronProblem> Problems() {
  std::vector<NeuronProblem> problems;
  for (const Gate gate : {Gate::kSigmoid, Gate::kSaturated}) {
    problems.push_back({NormalData(4, 0.7, LinearTeacher(4), 9, 5), gate, 0.3});
    problems.push_back({CornerData(4, 2, SquareTeacher(4)), gate, 0});
  }
  return problems;
}

const std::vector<double> kSomewhere = {0.3, -0.5, 0.9, 0.2, -0.4, 0.8, 0.1, -0.6};

std::vector<double> Moved(std::vector<double> w, size_t i, double by) {
  w[i] += by;
  return w;
}

TEST(SwigluNeuron, HasTheLossOfEquation1) {
  for (const NeuronProblem& problem : Problems()) {
    EXPECT_NEAR(problem.Loss(kSomewhere), LossOf(problem, kSomewhere), 1e-14);
  }
}

TEST(SwigluNeuron, GradientIsThatOfDifferencesOfTheLoss) {
  constexpr double kStep = 1e-5;
  for (const NeuronProblem& problem : Problems()) {
    const std::vector<double> gradient = problem.Gradient(kSomewhere);
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double up = LossOf(problem, Moved(kSomewhere, i, kStep));
      const double down = LossOf(problem, Moved(kSomewhere, i, -kStep));
      EXPECT_NEAR(gradient[i], (up - down) / (2 * kStep), 1e-8) << ToString(problem.gate) << i;
    }
  }
}

TEST(SwigluNeuron, HessianIsThatOfDifferencesOfTheGradient) {
  constexpr double kStep = 1e-5;
  for (const NeuronProblem& problem : Problems()) {
    const std::vector<double> hessian = problem.Hessian(kSomewhere);
    for (size_t i = 0; i < kSomewhere.size(); ++i) {
      const std::vector<double> up = problem.Gradient(Moved(kSomewhere, i, kStep));
      const std::vector<double> down = problem.Gradient(Moved(kSomewhere, i, -kStep));
      for (size_t j = 0; j < kSomewhere.size(); ++j) {
        EXPECT_NEAR(hessian[i * kSomewhere.size() + j], (up[j] - down[j]) / (2 * kStep), 1e-7);
      }
    }
  }
}

TEST(SwigluNeuron, SigmaHasItsDerivativesAlsoFarOut) {
  for (const double z : {-800.0, -30.0, -1.5, 0.0, 0.5, 20.0, 800.0}) {
    const SigmaParts at = SigmaAt(Gate::kSigmoid, z);
    const double sigma = z < -700 ? 0 : 1 / (1 + std::exp(-z));
    const double rest = z > 700 ? 0 : 1 / (1 + std::exp(z));
    EXPECT_NEAR(at.value, sigma, 1e-15) << z;
    EXPECT_NEAR(at.first, sigma * rest, 1e-15) << z;
    EXPECT_NEAR(at.second, sigma * rest * (rest - sigma), 1e-15) << z;
  }
  EXPECT_EQ(SigmaAt(Gate::kSaturated, -3).value, 1);
  EXPECT_EQ(SigmaAt(Gate::kSaturated, -3).first, 0);
}

TEST(SwigluNeuron, TeachersAreTheProductsOfTheirFactors) {
  const Teacher linear = LinearTeacher(5), square = SquareTeacher(5);
  EXPECT_EQ(Dot(linear.p.data(), linear.q.data(), 5), 0);
  EXPECT_EQ(square.p, square.q);
  for (const double degrees : {0.0, 30.0, 90.0, 135.0, 180.0}) {
    const Teacher teacher = TeacherAtAngle(5, degrees);
    EXPECT_NEAR(
        Cosine(teacher.p.data(), teacher.q.data(), 5), std::cos(degrees * M_PI / 180), 1e-14);
    EXPECT_NEAR(Norm(teacher.p.data(), 5), 1, 1e-14);
  }
  // y = b (v.z) with v = (1, -1, 1, -1) / 2.
  const NeuronData data = CornerData(5, 6, linear);
  ASSERT_EQ(data.Samples(), 16u);
  for (size_t n = 0; n < 16; ++n) {
    const double* const z = data.Row(n);
    EXPECT_NEAR(data.y[n], 6 * (z[0] - z[1] + z[2] - z[3]) / 2, 1e-14);
  }
}

// With sigma = 1, w1 = a (v, 0) and w2 = a (0, 1) are stationary if bias^2 (a^2 - 1) + mu = 0.
TEST(SwigluNeuron, TheCounterexampleHasTheClosedForm) {
  for (const double mu : {0.1, 1.0, 4.0}) {
    const NeuronProblem problem{CornerData(5, 6, LinearTeacher(5)), Gate::kSaturated, mu};
    const double a = std::sqrt(1 - mu / 36);
    const std::vector<double> w = {a / 2, -a / 2, a / 2, -a / 2, 0, 0, 0, 0, 0, a};
    for (const double element : problem.Gradient(w)) EXPECT_NEAR(element, 0, 1e-13);
    // A is (v, 0) (0, 1)^T and its transpose.
    const std::vector<double> matrix = problem.ProofMatrix(w);
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        const double v = i == 4 && j < 4   ? (j % 2 == 0 ? 0.5 : -0.5)
                         : j == 4 && i < 4 ? (i % 2 == 0 ? 0.5 : -0.5)
                                           : 0;
        EXPECT_NEAR(matrix[i * 5 + j], v, 1e-12);
      }
    }
    std::vector<double> start = w;
    for (size_t i = 0; i < start.size(); ++i) start[i] += 0.01 * kSomewhere[i % 8];
    const StationaryPoint found = FindStationaryPoint(problem, start);
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(found.w[i], w[i], 1e-11) << mu << " " << i;
    EXPECT_LT(found.gradient, 1e-11);
    EXPECT_GT(found.least_curvature, 0.01);  // a minimum
  }
}

// Near w1 = w2 = sqrt(1 - mu / ..) v of a square there is a minimum on the diagonal.
TEST(SwigluNeuron, ASquareHasAnAlignedMinimum) {
  const NeuronProblem problem{CornerData(5, 6, SquareTeacher(5)), Gate::kSaturated, 0.1};
  std::vector<double> start = SquareTeacher(5).p;
  start.insert(start.end(), start.begin(), start.end());
  for (size_t i = 0; i < start.size(); ++i) start[i] += 0.01 * kSomewhere[i % 8];
  const StationaryPoint found = FindStationaryPoint(problem, start);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(found.w[i], found.w[5 + i], 1e-10);
  EXPECT_GT(found.least_curvature, 0);
}

TEST(SwigluNeuron, ImbalanceFollowsFromTheSlopeOfTheGate) {
  const NeuronProblem problem{NormalData(5, 2, LinearTeacher(5), 64, 3), Gate::kSigmoid, 0.1};
  std::vector<double> start = LinearTeacher(5).p;
  const Teacher teacher = LinearTeacher(5);
  start.insert(start.end(), teacher.q.begin(), teacher.q.end());
  const StationaryPoint found = FindStationaryPoint(problem, start);
  ASSERT_LT(found.gradient, 1e-10);
  const double imbalance = Dot(&found.w[0], &found.w[0], 5) - Dot(&found.w[5], &found.w[5], 5);
  EXPECT_GT(std::fabs(imbalance), 1e-3);  // the gate is not saturated
  EXPECT_NEAR(imbalance, problem.ImbalanceAtRest(found.w), 1e-9);
}

TEST(SwigluNeuron, StationaryPointsAreAtRestAndTheTheoremFails) {
  ResultTables results(SwigluAlignment());
  Table table;
  for (const Column& column : results.experiment().tables[0].columns) {
    table.columns.push_back(column.name);
  }
  table.rows = StationaryRows();
  size_t orthogonal = 0;
  Frame(table).ForEach([&](const Frame& row) {
    EXPECT_LT(row.Number("gradient"), 1e-11);
    EXPECT_NEAR(row.Number("imbalance"),
                std::pow(row.Number("w1"), 2) - std::pow(row.Number("w2"), 2),
                1e-13);
    orthogonal += std::fabs(row.Number("cos")) < 1e-12;
    if (row.Text("teacher") == "square") {
      EXPECT_GT(row.Number("cos"), 0.999);
    }
  });
  EXPECT_EQ(orthogonal, 6u);  // the linear teacher at the corners: two limits, four real gates
}

TEST(SwigluNeuron, AdamAlignsForASquareAndNotForALinearTeacher) {
  const Settings settings = TinySettings({{"neuron-steps", "20000"}});
  const std::vector<Row> rows = StartRows(settings, 4);
  ASSERT_EQ(rows.size(), 4u);
  for (const Row& row : rows) {
    const double cos = std::fabs(row[5].Number());
    if (row[0].Text() == "square") {
      EXPECT_GT(cos, 0.99);
    } else {
      EXPECT_LT(cos, 0.01);
    }
  }
}

TEST(SwigluNeuron, ActivationsGrowAsTheirFormulasSay) {
  for (const Row& row : GrowthRows()) {
    const std::string name = row[0].Text();
    const double u = row[1].Number(), over_u = row[2].Number();
    const double sigma = 1 / (1 + std::exp(-u));
    const double gelu = (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u))) / 2;
    const double expected = name == "relu"    ? (u > 0 ? 1.0 : 0.0)
                            : name == "gelu"  ? gelu
                            : name == "swish" ? sigma
                                              : u * sigma;
    EXPECT_NEAR(over_u, expected, 1e-12) << name << u;
    EXPECT_NEAR(row[3].Number(), expected / u, 1e-12);
  }
}

}  // namespace
}  // namespace numsim::experiments::swiglu_alignment
