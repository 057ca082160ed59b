// Attention against the definition, written out here once more, and its gradient against
// differences.
#include "numsim/ops/shared/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/random/distributions.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

// q, k, v side by side in one matrix, as a layer has them, and what belongs to them.
template <typename T>
struct Problem {
  AttentionShape shape;
  std::vector<T> qkv, g;

  Problem(const AttentionShape& of, float spread, uint64_t seed) : shape(of) {
    std::vector<float> draws(4 * Tokens() * Width());
    FillNormal({seed, 0}, 0, draws);
    qkv.assign(draws.begin(), draws.begin() + static_cast<std::ptrdiff_t>(3 * Tokens() * Width()));
    for (T& x : qkv) x *= spread;
    g.assign(draws.end() - static_cast<std::ptrdiff_t>(Tokens() * Width()), draws.end());
  }

  size_t Tokens() const { return shape.batch * shape.length; }
  size_t Width() const { return shape.heads * shape.head_dim; }
  MatrixSpan<const T> Part(size_t i) const {
    return MatrixSpan<const T>(qkv.data(), Tokens(), 3 * Width()).Columns(i * Width(), Width());
  }
};

template <typename T>
struct Result {
  std::vector<T> log_sums, out, dqkv;
};

template <typename T>
Result<T> Solve(const Problem<T>& p) {
  const size_t n = p.Tokens(), w = p.Width();
  Result<T> r{std::vector<T>(n * p.shape.heads), std::vector<T>(n * w), std::vector<T>(3 * n * w)};
  const MatrixSpan<T> sums(r.log_sums.data(), n, p.shape.heads), out(r.out.data(), n, w);
  Attention<T>(p.shape, p.Part(0), p.Part(1), p.Part(2), sums, out);
  const MatrixSpan<T> d(r.dqkv.data(), n, 3 * w);
  AttentionGradient<T>(p.shape,
                       MatrixSpan<const T>(p.g.data(), n, w),
                       p.Part(0),
                       p.Part(1),
                       p.Part(2),
                       sums,
                       out,
                       d.Columns(0, w),
                       d.Columns(w, w),
                       d.Columns(2 * w, w));
  return r;
}

// By the formula, in long double, without a shift of the exponents.
std::vector<long double> Defined(const Problem<double>& p) {
  const AttentionShape& s = p.shape;
  const size_t w = p.Width();
  std::vector<long double> out(p.Tokens() * w);
  for (size_t b = 0; b < s.batch; ++b) {
    for (size_t h = 0; h < s.heads; ++h) {
      for (size_t t = 0; t < s.length; ++t) {
        long double total = 0;
        std::vector<long double> e(s.causal ? t + 1 : s.length);
        for (size_t j = 0; j < e.size(); ++j) {
          long double score = 0;
          for (size_t d = 0; d < s.head_dim; ++d) {
            score += static_cast<long double>(p.Part(0).Row(b * s.length + t)[h * s.head_dim + d]) *
                     p.Part(1).Row(b * s.length + j)[h * s.head_dim + d];
          }
          e[j] = std::exp(score / std::sqrt(static_cast<long double>(s.head_dim)));
          total += e[j];
        }
        for (size_t d = 0; d < s.head_dim; ++d) {
          long double& x = out[(b * s.length + t) * w + h * s.head_dim + d];
          for (size_t j = 0; j < e.size(); ++j) {
            x += e[j] / total * p.Part(2).Row(b * s.length + j)[h * s.head_dim + d];
          }
        }
      }
    }
  }
  return out;
}

// <g, out>, whose gradient AttentionGradient gives.
double Objective(const Problem<double>& p) {
  const Result<double> r = Solve(p);
  double sum = 0;
  for (size_t i = 0; i < r.out.size(); ++i) sum += r.out[i] * p.g[i];
  return sum;
}

const AttentionShape kShapes[] = {
    {1, 1, 1, 2, true},
    {2, 3, 2, 4, true},
    {1, 17, 1, 7, true},
    {2, 17, 3, 8, false},
    {1, 33, 2, 16, true},
    {1, 6, 1, 33, false},
    {2, 64, 2, 32, true},
    {3, 37, 2, 20, true},
    {1, 18, 1, 23, true},
    {1, 7, 1, 70, false},
};

std::string Describe(const AttentionShape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.length) + " heads " +
         std::to_string(s.heads) + "x" + std::to_string(s.head_dim) + (s.causal ? " causal" : "");
}

TEST(Attention, Float64EqualsTheDefinition) {
  for (const AttentionShape& shape : kShapes) {
    const Problem<double> p(shape, 1.0f, 1);
    const std::vector<long double> expected = Defined(p);
    const Result<double> r = Solve(p);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(r.out[i], static_cast<double>(expected[i]), 1e-12) << Describe(shape) << " " << i;
    }
  }
}

TEST(Attention, Float32IsCloseToFloat64ForwardAndBackward) {
  for (const AttentionShape& shape : kShapes) {
    for (const float spread : {0.5f, 3.0f}) {
      const Result<double> wide = Solve(Problem<double>(shape, spread, 2));
      const Result<float> r = Solve(Problem<float>(shape, spread, 2));
      for (size_t i = 0; i < wide.out.size(); ++i) {
        ASSERT_NEAR(r.out[i], wide.out[i], 2e-6 * spread * (1 + spread)) << Describe(shape);
      }
      for (size_t i = 0; i < wide.dqkv.size(); ++i) {
        ASSERT_NEAR(r.dqkv[i], wide.dqkv[i], 2e-5 * spread * (1 + spread)) << Describe(shape);
      }
      for (size_t i = 0; i < wide.log_sums.size(); ++i) {
        ASSERT_NEAR(r.log_sums[i], wide.log_sums[i], 4e-6 * (1 + std::abs(wide.log_sums[i])));
      }
    }
  }
}

TEST(AttentionGradient, EqualsCentralDifferences) {
  for (const AttentionShape& shape :
       {AttentionShape{2, 3, 2, 4, true}, AttentionShape{1, 5, 1, 3, false}}) {
    Problem<double> p(shape, 1.0f, 3);
    const Result<double> r = Solve(p);
    const double step = 1e-5;
    for (size_t i = 0; i < p.qkv.size(); ++i) {
      const double at = p.qkv[i];
      p.qkv[i] = at + step;
      const double up = Objective(p);
      p.qkv[i] = at - step;
      const double down = Objective(p);
      p.qkv[i] = at;
      ASSERT_NEAR(r.dqkv[i], (up - down) / (2 * step), 1e-8) << Describe(shape) << " " << i;
    }
  }
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

// The shapes have every number of rows and of vectors at the edge of a tile.
TEST(Attention, BitsDependOnNeitherTargetNorThreads) {
  for (const AttentionShape& shape : kShapes) {
    const Problem<float> p(shape, 2.0f, 4);
    const Result<float> expected = Solve(p);
    WithEachBackend([&] {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(Describe(shape) + ", threads " + std::to_string(threads));
        SetThreadCount(threads);
        const Result<float> r = Solve(p);
        ExpectSameBits(r.out, expected.out);
        ExpectSameBits(r.dqkv, expected.dqkv);
        ExpectSameBits(r.log_sums, expected.log_sums);
      }
    });
  }
}

TEST(Attention, TokensBehindDoNotMatterWhenCausal) {
  const AttentionShape shape{1, 21, 1, 8, true};
  Problem<float> p(shape, 1.0f, 5);
  const Result<float> before = Solve(p);
  for (size_t d = 0; d < 3 * 8; ++d) p.qkv[12 * 24 + d] += 5;
  const Result<float> after = Solve(p);
  EXPECT_EQ(std::memcmp(before.out.data(), after.out.data(), 12 * 8 * sizeof(float)), 0);
  EXPECT_NE(std::memcmp(before.out.data() + 96, after.out.data() + 96, 8 * sizeof(float)), 0);
}

// Returns whether row `token` of head `head` of a result has the same bits in both.
bool SameRow(const AttentionShape& s,
             const std::vector<float>& a,
             const std::vector<float>& b,
             size_t token,
             size_t part,
             size_t parts,
             size_t head) {
  const size_t width = s.heads * s.head_dim;
  const size_t at = (token * parts + part) * width + head * s.head_dim;
  return std::memcmp(&a[at], &b[at], s.head_dim * sizeof(float)) == 0;
}

// A value that is not finite, in q, k, v or g of token j, reaches those rows alone that the mask lets
// it reach, whatever rows a tile computes together.
TEST(Attention, ValuesThatAreNotFiniteStayWithinTheMask) {
  enum Part : size_t { kQ, kK, kV, kG };
  const AttentionShape shape{2, 18, 2, 5, true};
  const size_t width = shape.heads * shape.head_dim;
  const Problem<float> whole(shape, 1.0f, 8);
  WithEachBackend([&] {
    const Result<float> before = Solve(whole);
    for (const Part part : {kQ, kK, kV, kG}) {
      for (size_t j = 0; j < shape.length; ++j) {
        SCOPED_TRACE("part " + std::to_string(part) + ", token " + std::to_string(j));
        Problem<float> p = whole;
        const float bad = j % 2 == 0 ? std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN();
        (part == kG ? p.g[j * width + 2] : p.qkv[(j * 3 + part) * width + 2]) = bad;
        const Result<float> after = Solve(p);
        size_t reached = 0;
        for (size_t t = 0; t < p.Tokens(); ++t) {
          for (size_t head = 0; head < shape.heads; ++head) {
            const bool same_head = t < shape.length && head == 0;
            const bool by_token = part == kQ || part == kG;  // else by those that attend to token j
            const bool reaches_row = same_head && (by_token ? t == j : t >= j);
            // Rows r >= j have terms for keys t <= r.
            const bool reaches_key = same_head && (by_token ? t <= j : true);
            const bool same_out = SameRow(shape, before.out, after.out, t, 0, 1, head);
            const auto same = [&](size_t of) {
              return SameRow(shape, before.dqkv, after.dqkv, t, of, 3, head);
            };
            EXPECT_TRUE(same_out || (reaches_row && part != kG)) << t;
            EXPECT_TRUE(same(0) || reaches_row) << t;
            EXPECT_TRUE((same(1) && same(2)) || reaches_key) << t;
            reached += !same_out || !same(0) || !same(1) || !same(2);
          }
        }
        EXPECT_GT(reached, 0u);
      }
    }
  });
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Problem<float> p({1, 9, 1, 4, true}, 100.0f, 6);
  for (const float x : Solve(p).out) EXPECT_TRUE(std::isfinite(x));
}

TEST(Attention, ANanInAQueryIsANanInItsRowAlone) {
  Problem<float> p({1, 9, 1, 4, true}, 1.0f, 7);
  p.qkv[5 * 12] = std::numeric_limits<float>::quiet_NaN();
  const Result<float> r = Solve(p);
  for (size_t t = 0; t < 9; ++t) EXPECT_EQ(std::isnan(r.out[t * 4]), t == 5) << t;
}

TEST(AttentionDeathTest, TheGradientChecksTheShapesOfAllItReads) {
  const AttentionShape shape{.batch = 1, .length = 4, .heads = 2, .head_dim = 2};
  const Problem<float> p(shape, 1, 3),
      shorter({.batch = 1, .length = 3, .heads = 2, .head_dim = 2}, 1, 3);
  std::vector<float> values(4 * 4), d(4 * 12);
  const MatrixSpan<float> out(values.data(), 4, 4), sums(values.data(), 4, 2), to(d.data(), 4, 12);
  const auto gradient = [&](const Problem<float>& q,
                            const Problem<float>& k,
                            const Problem<float>& v,
                            MatrixSpan<const float> log_sums) {
    AttentionGradient<float>(shape,
                             out,
                             q.Part(0),
                             k.Part(1),
                             v.Part(2),
                             log_sums,
                             out,
                             to.Columns(0, 4),
                             to.Columns(4, 4),
                             to.Columns(8, 4));
  };
  EXPECT_DEATH(gradient(shorter, p, p, sums), "q: 3 x 4");
  EXPECT_DEATH(gradient(p, shorter, p, sums), "k: 3 x 4");
  EXPECT_DEATH(gradient(p, p, shorter, sums), "v: 3 x 4");
  EXPECT_DEATH(gradient(p, p, p, sums.Rows(0, 3)), "log_sums: 3 x 2");
}

}  // namespace
}  // namespace numsim
