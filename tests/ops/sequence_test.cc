#include "numsim/ops/shared/sequence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/ops/grid.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

// Small integers: sums of their products are exact, so identities hold to the last bit.
Grid<double> Integers(size_t rows, size_t cols, uint64_t seed) {
  Grid<double> grid(rows, cols, seed);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) grid(r, c) = std::round(8 * grid(r, c));
  }
  return grid;
}

double Dot(const Grid<double>& a, const Grid<double>& b) {
  EXPECT_EQ(a.rows(), b.rows());
  EXPECT_EQ(a.cols(), b.cols());
  double sum = 0;
  for (size_t r = 0; r < a.rows(); ++r) {
    for (size_t c = 0; c < a.cols(); ++c) sum += a(r, c) * b(r, c);
  }
  return sum;
}

void ExpectRow(const Grid<double>& y, size_t row, const Grid<double>& x, size_t from) {
  for (size_t c = 0; c < x.cols(); ++c) EXPECT_EQ(y(row, c), x(from, c)) << row << ' ' << c;
}

// The bits of what `make` returns, with 1, 2, 3 and 4 threads.
template <typename T>
void ExpectSameWithAnyThreads(const std::function<Grid<T>()>& make) {
  const ExecutionState state;
  SetThreadCount(1);
  const Grid<T> expected = make();
  for (const int threads : {2, 3, 4}) {
    SetThreadCount(threads);
    EXPECT_TRUE(make().HasBitsOf(expected)) << threads << " threads";
  }
}

TEST(GatherRows, TakesTheNamedRows) {
  const Grid<double> table(5, 7, 1);
  const std::vector<int32_t> ids = {4, 0, 0, 3};
  Grid<double> y(4, 7);
  GatherRows<double>(table.View(), Indices(ids), y.View());
  for (size_t i = 0; i < ids.size(); ++i) ExpectRow(y, i, table, static_cast<size_t>(ids[i]));
  EXPECT_TRUE(y.GapsAreUntouched());
}

TEST(GatherRows, IndexOutsideOfTheTableThrows) {
  const Grid<float> table(5, 2, 1);
  Grid<float> y(1, 2);
  for (const int32_t id : {-1, 5}) {
    const std::vector<int32_t> ids = {id};
    const std::string message =
        fmt::format("index 0 is {}, expected at least 0 and less than 5", id);
    EXPECT_EQ(ErrorOf([&] { GatherRows<float>(table.View(), Indices(ids), y.View()); }), message);
    EXPECT_EQ(ErrorOf([&] {
                GatherRowsGradient<float>(y.View(), Indices(ids), Grid<float>(5, 2).View());
              }),
              message);
  }
}

TEST(GatherRowsGradient, SumsRowsInAscendingOrderAndClearsTheOthers) {
  const size_t tokens = 200, cols = 37;
  const Grid<float> g(tokens, cols, 2);
  std::vector<int32_t> ids(tokens);
  for (size_t i = 0; i < tokens; ++i) ids[i] = static_cast<int32_t>(i * i % 5);  // 0, 1, 4
  Grid<float> table(6, cols);
  GatherRowsGradient<float>(g.View(), Indices(ids), table.View());
  bool order_matters = false;
  for (size_t c = 0; c < cols; ++c) {
    std::vector<float> up(6), down(6);
    for (size_t i = 0; i < tokens; ++i) {
      up[static_cast<size_t>(ids[i])] += g(i, c);
      down[static_cast<size_t>(ids[tokens - 1 - i])] += g(tokens - 1 - i, c);
    }
    for (size_t r = 0; r < 6; ++r) {
      EXPECT_EQ(table(r, c), up[r]) << r << ' ' << c;
      if (up[r] != down[r]) order_matters = true;
    }
  }
  EXPECT_TRUE(order_matters);
  EXPECT_EQ(table(2, 0), 0);
  EXPECT_EQ(table(5, 36), 0);
  EXPECT_TRUE(table.GapsAreUntouched());
}

TEST(GatherRowsGradient, DoesNotDependOnThreads) {
  const Grid<float> g(700, 131, 3);
  std::vector<int32_t> ids(700);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7 % 13);
  ExpectSameWithAnyThreads<float>([&] {
    Grid<float> table(40, 131);
    GatherRowsGradient<float>(g.View(), Indices(ids), table.View());
    return table;
  });
}

TEST(AddPositions, AddsTheRowOfThePositionInEachSequence) {
  const Grid<double> table = Integers(3, 5, 4), before = Integers(6, 5, 5);
  Grid<double> y = before;
  AddPositions<double>(table.View(), y.View());
  for (size_t row = 0; row < 6; ++row) {
    for (size_t c = 0; c < 5; ++c) EXPECT_EQ(y(row, c), before(row, c) + table(row % 3, c));
  }
  EXPECT_TRUE(y.GapsAreUntouched());
}

TEST(AddPositionsGradient, SumsEachPositionOverTheSequences) {
  const Grid<float> g(4 * 6, 5, 6);
  Grid<float> table(6, 5);
  AddPositionsGradient<float>(g.View(), table.View());
  for (size_t t = 0; t < 6; ++t) {
    for (size_t c = 0; c < 5; ++c) {
      float sum = 0;
      for (size_t b = 0; b < 4; ++b) sum += g(b * 6 + t, c);
      EXPECT_EQ(table(t, c), sum) << t << ' ' << c;
    }
  }
  EXPECT_TRUE(table.GapsAreUntouched());
}

TEST(AddPositionsGradient, DoesNotDependOnThreads) {
  const Grid<float> g(40 * 30, 70, 7);
  ExpectSameWithAnyThreads<float>([&] {
    Grid<float> table(30, 70);
    AddPositionsGradient<float>(g.View(), table.View());
    return table;
  });
}

struct Rotary {
  Grid<double> cosines, sines;

  Rotary(double base, size_t head_dim, size_t length)
      : cosines(length, head_dim / 2), sines(length, head_dim / 2) {
    RotaryTables<double>(base, head_dim, cosines.View(), sines.View());
  }
  void Rotate(bool inverse, MatrixSpan<double> x) const {
    RotatePositions<double>(cosines.View(), sines.View(), 2 * cosines.cols(), inverse, x);
  }
};

TEST(RotaryTables, AreCosinesAndSinesOfPositionsAtEveryFrequency) {
  const size_t head_dim = 10, length = 5000;
  const Rotary rotary(500, head_dim, length);
  for (size_t position = 0; position < length; position += position < 50 ? 1 : 97) {
    for (size_t j = 0; j < head_dim / 2; ++j) {
      const long double angle = static_cast<long double>(position) *
                                std::pow(500.0L, -2 * static_cast<long double>(j) / head_dim);
      const double error = 1e-15 * static_cast<double>(position) + 1e-15;
      EXPECT_NEAR(rotary.cosines(position, j), static_cast<double>(std::cos(angle)), error);
      EXPECT_NEAR(rotary.sines(position, j), static_cast<double>(std::sin(angle)), error);
    }
  }
}

TEST(RotaryTables, OfFloat32AreThoseOfFloat64Rounded) {
  const Rotary rotary(10000, 8, 100);
  Grid<float> cosines(100, 4), sines(100, 4);
  RotaryTables<float>(10000, 8, cosines.View(), sines.View());
  for (size_t t = 0; t < 100; ++t) {
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(cosines(t, j), static_cast<float>(rotary.cosines(t, j)));
      EXPECT_EQ(sines(t, j), static_cast<float>(rotary.sines(t, j)));
    }
  }
}

TEST(RotatePositions, TurnsTheHalvesOfEachHeadAgainstEachOther) {
  const size_t head_dim = 6, length = 4;
  const Rotary rotary(100, head_dim, length);
  const Grid<double> before(2 * length, 2 * head_dim, 8);
  Grid<double> x = before;
  rotary.Rotate(false, x.View());
  for (size_t row = 0; row < x.rows(); ++row) {
    for (size_t head = 0; head < 2; ++head) {
      for (size_t j = 0; j < 3; ++j) {
        const size_t first = head * head_dim + j, second = first + 3;
        const double angle =
            static_cast<double>(row % length) * std::pow(100.0, -2.0 * static_cast<double>(j) / 6);
        const double a = before(row, first), b = before(row, second);
        EXPECT_NEAR(x(row, first), a * std::cos(angle) - b * std::sin(angle), 1e-14);
        EXPECT_NEAR(x(row, second), a * std::sin(angle) + b * std::cos(angle), 1e-14);
      }
    }
  }
  EXPECT_TRUE(x.GapsAreUntouched());
}

TEST(RotatePositions, InverseUndoesAndIsTheAdjoint) {
  const Rotary rotary(10000, 8, 50);
  const Grid<double> before(100, 24, 9), g(100, 24, 10);
  Grid<double> x = before, back = g;
  rotary.Rotate(false, x.View());
  rotary.Rotate(true, back.View());
  EXPECT_NEAR(Dot(x, g), Dot(before, back), 1e-11);
  EXPECT_GT(std::abs(Dot(x, g) - Dot(before, g)), 1);
  rotary.Rotate(true, x.View());
  for (size_t r = 0; r < x.rows(); ++r) {
    for (size_t c = 0; c < x.cols(); ++c) EXPECT_NEAR(x(r, c), before(r, c), 1e-14);
  }
}

TEST(RotatePositions, DotProductsDependOnTheDifferenceOfPositionsAlone) {
  const size_t length = 64, head_dim = 16;
  const Rotary rotary(10000, head_dim, length);
  const Grid<double> one(2, head_dim, 11);  // a query and a key, at every position
  Grid<double> q(length, head_dim), k(length, head_dim);
  for (size_t t = 0; t < length; ++t) {
    for (size_t c = 0; c < head_dim; ++c) {
      q(t, c) = one(0, c);
      k(t, c) = one(1, c);
    }
  }
  rotary.Rotate(false, q.View());
  rotary.Rotate(false, k.View());
  const auto dot = [&](size_t s, size_t t) {
    double sum = 0;
    for (size_t c = 0; c < head_dim; ++c) sum += q(s, c) * k(t, c);
    return sum;
  };
  for (size_t gap = 0; gap < 20; ++gap) {
    for (size_t t = gap; t < length; ++t) EXPECT_NEAR(dot(t, t - gap), dot(gap, 0), 1e-12);
  }
  EXPECT_GT(std::abs(dot(3, 0) - dot(0, 0)), 0.1);
  EXPECT_GT(std::abs(dot(3, 0) - dot(0, 3)), 0.1);
}

TEST(RotatePositions, DoesNotDependOnThreads) {
  Grid<float> cosines(60, 8), sines(60, 8);
  RotaryTables<float>(10000, 16, cosines.View(), sines.View());
  ExpectSameWithAnyThreads<float>([&] {
    Grid<float> x(600, 64, 12);
    RotatePositions<float>(cosines.View(), sines.View(), 16, false, x.View());
    return x;
  });
}

TEST(CutPatches, OrdersPatchesByRowsAndElementsByRowColumnChannel) {
  const size_t height = 6, width = 8, channels = 3, patch = 2;
  const Grid<double> images(2, height * width * channels, 13);
  Grid<double> patches(2 * 3 * 4, patch * patch * channels);
  CutPatches<double>(images.View(), height, width, channels, patch, patches.View());
  size_t row = 0;
  for (size_t image = 0; image < 2; ++image) {
    for (size_t top = 0; top < height; top += patch) {
      for (size_t left = 0; left < width; left += patch, ++row) {
        size_t col = 0;
        for (size_t y = top; y < top + patch; ++y) {
          for (size_t x = left; x < left + patch; ++x) {
            for (size_t c = 0; c < channels; ++c, ++col) {
              EXPECT_EQ(patches(row, col), images(image, (y * width + x) * channels + c));
            }
          }
        }
      }
    }
  }
  EXPECT_TRUE(patches.GapsAreUntouched());
}

TEST(PrependToken, StandsBeforeEachSequenceAndItsGradientIsTheAdjoint) {
  const size_t length = 3, batch = 4, cols = 5;
  const Grid<double> x = Integers(batch * length, cols, 14), token = Integers(1, cols, 15);
  const Grid<double> g = Integers(batch * (length + 1), cols, 16);
  Grid<double> y(batch * (length + 1), cols), dx(batch * length, cols), dtoken(1, cols);
  PrependToken<double>(x.View(), length, token.View(), y.View());
  for (size_t b = 0; b < batch; ++b) {
    ExpectRow(y, b * 4, token, 0);
    for (size_t t = 0; t < length; ++t) ExpectRow(y, b * 4 + 1 + t, x, b * length + t);
  }
  PrependTokenGradient<double>(g.View(), length, dtoken.View(), dx.View());
  EXPECT_EQ(Dot(y, g), Dot(x, dx) + Dot(token, dtoken));
  for (size_t b = 0; b < batch; ++b) {
    for (size_t t = 0; t < length; ++t) ExpectRow(dx, b * length + t, g, b * 4 + 1 + t);
  }
  EXPECT_TRUE(y.GapsAreUntouched() && dx.GapsAreUntouched() && dtoken.GapsAreUntouched());
}

TEST(PrependTokenGradient, DoesNotDependOnThreads) {
  const Grid<float> g(300 * 5, 130, 17);
  ExpectSameWithAnyThreads<float>([&] {
    Grid<float> token(1, 130), dx(300 * 4, 130);
    PrependTokenGradient<float>(g.View(), 4, token.View(), dx.View());
    return token;
  });
}

TEST(TakeRows, TakesOneOfEachSequenceAndItsGradientIsZeroElsewhere) {
  const size_t length = 4, batch = 3, cols = 5;
  const Grid<double> x = Integers(batch * length, cols, 18), g = Integers(batch, cols, 19);
  const std::vector<int32_t> given = {3, 0, 2}, none = {0, 0, 0};
  for (const bool has : {true, false}) {
    const std::vector<int32_t>& at = has ? given : none;
    const IndexRef ref = has ? Indices(given) : IndexRef();
    Grid<double> y(batch, cols), dx(batch * length, cols);
    TakeRows<double>(x.View(), length, ref, y.View());
    TakeRowsGradient<double>(g.View(), length, ref, dx.View());
    for (size_t b = 0; b < batch; ++b) {
      const size_t taken = b * length + static_cast<size_t>(at[b]);
      ExpectRow(y, b, x, taken);
      ExpectRow(dx, taken, g, b);
    }
    EXPECT_EQ(Dot(y, g), Dot(x, dx));
    size_t zero_rows = 0;
    for (size_t r = 0; r < dx.rows(); ++r)
      zero_rows += dx(r, 0) == 0 && dx(r, cols - 1) == 0 ? 1 : 0;
    EXPECT_EQ(zero_rows, batch * (length - 1));
    EXPECT_TRUE(y.GapsAreUntouched() && dx.GapsAreUntouched());
  }
}

TEST(SequenceOperations, TakeNothingWhereThereIsNothing) {
  const std::vector<int32_t> none;
  Grid<float> table(2, 3), empty(0, 3);
  GatherRows<float>(Grid<float>(2, 3, 1).View(), Indices(none), empty.View());
  GatherRowsGradient<float>(empty.View(), Indices(none), table.View());
  EXPECT_EQ(table(1, 2), 0);
  AddPositionsGradient<float>(empty.View(), table.View());
  EXPECT_EQ(table(0, 0), 0);
}

}  // namespace
}  // namespace numsim
