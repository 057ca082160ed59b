// A single SwiGLU neuron u(x) = (w1.x) (w2.x) sigma(w2.x), trained with l2 regularisation on squared
// errors in float64: Equation 1 of [Fishman] for a network that is nothing but the neuron.
//
//   L(w1, w2) = 1/(2N) sum over n of (u(x_n) - y_n)^2 + mu/2 (|w1|^2 + |w2|^2)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::experiments::swiglu_alignment {

// The gate's sigma: the logistic function, or its limit 1 in which sigma' vanishes everywhere.
enum class Gate : uint8_t { kSigmoid, kSaturated };
// Names: sigmoid, saturated.
std::string_view ToString(Gate gate);

// sigma(z) and its first two derivatives.
struct SigmaParts {
  double value = 0, first = 0, second = 0;
};
SigmaParts SigmaAt(Gate gate, double z);

// Inputs x_n (rows of length `dim`, the last element is the constant feature) and targets y_n.
struct NeuronData {
  size_t dim = 0;
  std::vector<double> x, y;

  size_t Samples() const { return y.size(); }
  const double* Row(size_t n) const { return x.data() + n * dim; }
};

// The factors p and q of a teacher y = (p.x) (q.x), each of length `dim`.
struct Teacher {
  std::vector<double> p, q;
};
// Returns y = bias (v.z), written as p = (v, 0), q = (0, 1): linear in z, and p and q are orthogonal.
Teacher LinearTeacher(size_t dim);
// Returns y = (v.z + bias)^2: p = q = (v, 1).
Teacher SquareTeacher(size_t dim);
// Returns the teacher of q = (0, 1) and a p of length 1 at that angle to q in degrees: 90 is the linear
// teacher.
Teacher TeacherAtAngle(size_t dim, double degrees);

// Returns the samples (z, bias) with z at all 2^(dim - 1) points of {-1, 1}^(dim - 1): mean 0,
// covariance 1, no third moments.
NeuronData CornerData(size_t dim, double bias, const Teacher& teacher);
// Returns `samples` of them with normal z, rounded to float32, from that seed.
NeuronData NormalData(
    size_t dim, double bias, const Teacher& teacher, size_t samples, uint64_t seed);

// The neuron's loss as a function of w = (w1, w2).
struct NeuronProblem {
  NeuronData data;
  Gate gate = Gate::kSigmoid;
  double mu = 0;

  double Loss(const std::vector<double>& w) const;
  std::vector<double> Gradient(const std::vector<double>& w) const;
  // Returns the matrix of second derivatives, row by row.
  std::vector<double> Hessian(const std::vector<double>& w) const;
  // Returns the proof's matrix A = sum over n of lambda_n x_n x_n^T with lambda_n = -delta_n sigma_n /
  // mu and delta_n the derivative of sample n's loss by u, row by row. Requires mu > 0.
  std::vector<double> ProofMatrix(const std::vector<double>& w) const;
  // Returns the largest sigma'(w2.x_n).
  double LargestSlope(const std::vector<double>& w) const;
  // Returns |w1|^2 - |w2|^2 as it follows at a stationary point from the inner products of the two
  // equations with w1 and w2: the mean of (u_n - y_n) (w1.x_n) (w2.x_n)^2 sigma'_n, over mu.
  double ImbalanceAtRest(const std::vector<double>& w) const;
};

double Dot(const double* a, const double* b, size_t n);
double Norm(const double* a, size_t n);
// Returns the cosine of the angle between two vectors; 0 if one of them is 0.
double Cosine(const double* a, const double* b, size_t n);

}  // namespace numsim::experiments::swiglu_alignment
