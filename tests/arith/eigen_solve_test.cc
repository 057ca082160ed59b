// Eigen's factorisations with SoftFloat as their scalar.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "tests/arith/eigen_numbers.h"

namespace numsim {
namespace {

// Symmetric with a dominant diagonal: condition number below 4.
Matrix<Bf16> WellConditioned(int n) {
  const Matrix<Bf16> r = Numbers<Bf16>(n, n, 9, 0.5f);
  Matrix<Bf16> a = r + r.transpose();
  for (int i = 0; i < n; ++i) a(i, i) = Bf16(2 * n);
  return a;
}

double RelativeResidual(const Matrix<Bf16>& a, const Vector<Bf16>& x, const Vector<Bf16>& b) {
  double rest = 0, whole = 0;
  for (int i = 0; i < a.rows(); ++i) {
    const auto right = static_cast<double>(b(i));
    double left = 0;
    for (int j = 0; j < a.cols(); ++j) {
      left += static_cast<double>(a(i, j)) * static_cast<double>(x(j));
    }
    rest += (left - right) * (left - right);
    whole += right * right;
  }
  return std::sqrt(rest / whole);
}

// The factorisations are backward stable: the residual is a small multiple of the unit roundoff
// 2^-8. Float or double arithmetic would leave less than the rounding of x alone does.
TEST(EigenSolve, LuAndCholeskySolveInBf16) {
  const int n = 12;
  const Matrix<Bf16> a = WellConditioned(n);
  const Vector<Bf16> b = Numbers<Bf16>(n, 1, 10, 3);
  const Vector<Bf16> lu = a.partialPivLu().solve(b), llt = a.llt().solve(b);
  const Vector<Bf16> full = a.fullPivLu().solve(b);
  for (const Vector<Bf16>& x : {lu, llt, full}) {
    EXPECT_LT(RelativeResidual(a, x, b), 8 * 0x1p-8);
    EXPECT_GT(RelativeResidual(a, x, b), 0x1p-12);
  }
  EXPECT_EQ(a.llt().info(), Eigen::Success);
  EXPECT_EQ(a.fullPivLu().rank(), n);
}

TEST(EigenSolve, CholeskyRefusesAnIndefiniteMatrix) {
  Matrix<Bf16> a = WellConditioned(4);
  a(2, 2) = Bf16(-1);
  EXPECT_EQ(a.llt().info(), Eigen::NumericalIssue);
}

}  // namespace
}  // namespace numsim
