// Eigen with SoftFloat as its scalar. The compiler needs a second or more for each scalar of each
// product, so few scalars stand for all; eigen_solve_test.cc has factorisations.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/arith/eigen_support.h"
#include "tests/arith/eigen_numbers.h"

namespace numsim {
namespace {

static_assert(Eigen::NumTraits<E4M3>::IsSigned && !Eigen::NumTraits<E4M3>::IsInteger);
static_assert(!Eigen::NumTraits<SoftFloat<kE8M0fnu>>::IsSigned);
static_assert(std::is_same_v<Eigen::NumTraits<Bf16>::Real, Bf16>);

// From left to right, everything rounded.
template <typename T>
T Dot(const Matrix<T>& a, int row, const Matrix<T>& b, int column) {
  T sum = a(row, 0) * b(0, column);
  for (int k = 1; k < a.cols(); ++k) sum += a(row, k) * b(k, column);
  return sum;
}

// From right to left.
template <typename T>
T ReversedDot(const Matrix<T>& a, int row, const Matrix<T>& b, int column) {
  const int last = static_cast<int>(a.cols()) - 1;
  T sum = a(row, last) * b(last, column);
  for (int k = last - 1; k >= 0; --k) sum += a(row, k) * b(k, column);
  return sum;
}

template <typename T>
void ExpectSameCodes(const Matrix<T>& got, const Matrix<T>& expected) {
  ASSERT_EQ(got.rows(), expected.rows());
  ASSERT_EQ(got.cols(), expected.cols());
  for (int i = 0; i < got.rows(); ++i) {
    for (int j = 0; j < got.cols(); ++j) {
      EXPECT_EQ(got(i, j).code(), expected(i, j).code()) << i << ", " << j;
    }
  }
}

template <typename T>
class EigenProduct : public testing::Test {};
using Scalars = testing::Types<E4M3, Bf16>;
TYPED_TEST_SUITE(EigenProduct, Scalars, );

TYPED_TEST(EigenProduct, LazyProductIsTheLoopFromLeftToRight) {
  using T = TypeParam;
  const Matrix<T> a = Numbers<T>(7, 33, 1, 2), b = Numbers<T>(33, 5, 2, 2);
  Matrix<T> expected(7, 5);
  bool order_matters = false;
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 5; ++j) {
      expected(i, j) = Dot(a, i, b, j);
      order_matters |= expected(i, j).code() != ReversedDot(a, i, b, j).code();
    }
  }
  ExpectSameCodes<T>(a.lazyProduct(b), expected);
  EXPECT_TRUE(order_matters);
}

TYPED_TEST(EigenProduct, SumAndDotAreTheLoopFromLeftToRight) {
  using T = TypeParam;
  const Matrix<T> a = Numbers<T>(1, 50, 3, 1), b = Numbers<T>(50, 1, 4, 1);
  Vector<T> x(50), y(50);
  for (int i = 0; i < 50; ++i) {
    x(i) = a(0, i);
    y(i) = b(i, 0);
  }
  EXPECT_EQ(x.dot(y).code(), Dot(a, 0, b, 0).code());
  T sum = x(0);
  for (int i = 1; i < 50; ++i) sum += x(i);
  EXPECT_EQ(x.sum().code(), sum.code());
}

template <typename T>
void ExpectExactBlockedProduct() {
  // Entries -1, 0, 1 of which a row has few that are not zero: sums stay small integers, and the
  // order cannot matter. Large enough for Eigen's blocked product.
  Matrix<T> a(40, 64), b(64, 48);
  a.setZero();
  b.setZero();
  for (int i = 0; i < 40; ++i) {
    for (int k = i % 16; k < 64; k += 16) a(i, k) = T(k % 2 == 0 ? 1 : -1);
  }
  for (int k = 0; k < 64; ++k) {
    for (int j = 0; j < 48; ++j) b(k, j) = T((k % 16 + k / 48 + j) % 3 - 1);
  }
  const Matrix<T> product = a * b;
  float largest = 0;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 48; ++j) {
      float expected = 0;
      for (int k = 0; k < 64; ++k) {
        expected += static_cast<float>(a(i, k)) * static_cast<float>(b(k, j));
      }
      ASSERT_EQ(static_cast<float>(product(i, j)), expected) << i << ", " << j;
      largest = std::max(largest, std::abs(expected));
    }
  }
  EXPECT_GT(largest, 1);
}

TEST(EigenBlockedProduct, IsExactWhereNoSumRounds) {
  ExpectExactBlockedProduct<E4M3>();
  ExpectExactBlockedProduct<Bf16>();
}

TEST(EigenMatrix, ElementwiseOperationsAreThoseOfTheScalar) {
  const Matrix<E4M3> a = Numbers<E4M3>(4, 6, 5, 10), b = Numbers<E4M3>(4, 6, 6, 10);
  const Matrix<E4M3> sum = a + b, difference = a - b, scaled = a * E4M3(0.75f), negative = -a;
  const Matrix<E4M3> product = a.cwiseProduct(b), quotient = a.cwiseQuotient(b);
  const Matrix<E4M3> least = a.cwiseMin(b), magnitude = a.cwiseAbs(), transposed = a.transpose();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) {
      EXPECT_EQ(sum(i, j).code(), (a(i, j) + b(i, j)).code());
      EXPECT_EQ(difference(i, j).code(), (a(i, j) - b(i, j)).code());
      EXPECT_EQ(scaled(i, j).code(), (a(i, j) * E4M3(0.75f)).code());
      EXPECT_EQ(negative(i, j).code(), (-a(i, j)).code());
      EXPECT_EQ(product(i, j).code(), (a(i, j) * b(i, j)).code());
      EXPECT_EQ(quotient(i, j).code(), (a(i, j) / b(i, j)).code());
      EXPECT_EQ(least(i, j).code(), min(a(i, j), b(i, j)).code());
      EXPECT_EQ(magnitude(i, j).code(), abs(a(i, j)).code());
      EXPECT_EQ(transposed(j, i).code(), a(i, j).code());
    }
  }
}

TEST(EigenMatrix, CastsToFloatExactlyAndBack) {
  const Matrix<E4M3> a = Numbers<E4M3>(5, 5, 7, 400);
  const Eigen::MatrixXf floats = a.cast<float>();
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_EQ(floats(i, j), static_cast<float>(a(i, j)));
  }
  ExpectSameCodes<E4M3>(floats.cast<E4M3>(), a);
  ExpectSameCodes<E5M2>(a.cast<E5M2>(), floats.cast<E5M2>());
}

TEST(EigenMatrix, NewElementsAreZeroAndConstantsAreWhatTheySay) {
  { const Matrix<E4M3> used = Matrix<E4M3>::Constant(32, 32, E4M3(3)); }
  const Matrix<E4M3> fresh(32, 32);  // most likely where `used` was
  EXPECT_TRUE(fresh.isZero(E4M3(0)));
  EXPECT_EQ(Matrix<E4M3>::Identity(3, 3).cast<float>(), Eigen::MatrixXf::Identity(3, 3));
  EXPECT_EQ(Matrix<E4M3>::Constant(2, 2, E4M3(3)).sum().code(), E4M3(12).code());
}

TEST(EigenMatrix, NormIsTheRootOfTheSumOfSquares) {
  Vector<E4M3> v(2);
  v << E4M3(3), E4M3(-4);
  // 25 is a tie between 24 and 26; the root of 24 rounds to 5.
  EXPECT_EQ(static_cast<float>(v.squaredNorm()), 24);
  EXPECT_EQ(static_cast<float>(v.norm()), 5);
}

TEST(EigenMatrix, ExtremesAndComparisons) {
  const Matrix<Fp16> a = Numbers<Fp16>(6, 6, 8, 5);
  EXPECT_EQ(static_cast<float>(a.maxCoeff()), a.cast<float>().maxCoeff());
  EXPECT_EQ(static_cast<float>(a.minCoeff()), a.cast<float>().minCoeff());
  EXPECT_TRUE(a.isApprox(a));
  EXPECT_FALSE(a.isApprox(Fp16(2) * a));
  EXPECT_TRUE(a == a);
  EXPECT_TRUE(a.allFinite());
  Matrix<Fp16> with_nan = a;
  with_nan(1, 2) = std::numeric_limits<Fp16>::quiet_NaN();
  EXPECT_FALSE(with_nan.allFinite());
  EXPECT_TRUE(with_nan.hasNaN());
}

TEST(EigenMatrix, FixedSizesWork) {
  Eigen::Matrix<E4M3, 2, 2> a;
  a << E4M3(1), E4M3(2), E4M3(3), E4M3(4);
  const Eigen::Matrix<E4M3, 2, 2> square = a * a;
  EXPECT_EQ(square.cast<float>()(1, 1), 22);
  EXPECT_EQ(static_cast<float>(a.determinant()), -2);
}

}  // namespace
}  // namespace numsim
