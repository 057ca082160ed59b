#include "numsim/stats/product_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/stats/internal/error_terms.h"

namespace numsim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using error_terms::kDecibelPerNeper;
constexpr size_t kBand = 256;  // rows per partial sum

// Sums over some elements, with the reference r, the compared value y and e = y - r.
struct Sums {
  double r = 0, rr = 0, yy = 0, yr = 0, e = 0, ee = 0;

  void Add(const Sums& other) {
    r += other.r;
    rr += other.rr;
    yy += other.yy;
    yr += other.yr;
    e += other.e;
    ee += other.ee;
  }
};

// Returns ||e|| / ||r||, given the squares of both norms.
double Relative(double ee, double rr) { return rr == 0 ? kNaN : std::sqrt(ee / rr); }

// Returns the lower median of the values that are not NaN, or NaN if there are none.
double Median(std::vector<double> values) {
  const auto end =
      std::remove_if(values.begin(), values.end(), [](double x) { return std::isnan(x); });
  values.erase(end, values.end());
  if (values.empty()) return kNaN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Band {
  Sums total;
  std::vector<double> column_ee, column_rr;
};

template <typename T>
Band SumBand(const T* r, const float* y, size_t rows, size_t cols, double* row_errors) {
  Band band{{}, std::vector<double>(cols), std::vector<double>(cols)};
  for (size_t i = 0; i < rows; ++i) {
    Sums row;
    for (size_t j = 0; j < cols; ++j) {
      const auto signal = static_cast<double>(r[i * cols + j]);
      const double value = static_cast<double>(y[i * cols + j]);
      const double error = value - signal;
      const double ee = error * error, rr = signal * signal;
      row.r += signal;
      row.rr += rr;
      row.yy += value * value;
      row.yr += value * signal;
      row.e += error;
      row.ee += ee;
      band.column_ee[j] += ee;
      band.column_rr[j] += rr;
    }
    row_errors[i] = Relative(row.ee, row.rr);
    band.total.Add(row);
  }
  return band;
}

double Sqnr(const Sums& s) {
  if (s.rr == 0 || std::isnan(s.ee)) return kNaN;
  if (s.ee == 0) return std::numeric_limits<double>::infinity();
  if (std::isinf(s.ee)) return -std::numeric_limits<double>::infinity();
  return kDecibelPerNeper * (Log(s.rr) - Log(s.ee));
}

ProductError FromSums(const Sums& s, double elements) {
  ProductError error;
  const double mean_r = s.r / elements;
  error.bias = s.e / elements;
  error.error_variance = std::max(0.0, s.ee / elements - error.bias * error.bias);
  error.signal_variance = std::max(0.0, s.rr / elements - mean_r * mean_r);
  if (std::isnan(s.ee)) error.error_variance = kNaN;
  error.relative_error = Relative(s.ee, s.rr);
  error.gain = s.rr == 0 ? kNaN : s.yr / s.rr;
  error.sqnr_db = Sqnr(s);
  const double norms = std::sqrt(s.rr) * std::sqrt(s.yy);
  error.cosine = norms == 0 ? kNaN : s.yr / norms;
  return error;
}

}  // namespace

template <typename T>
ProductError CompareProduct(std::span<const T> r, std::span<const float> y, size_t cols) {
  NUMSIM_REQUIRE(
      r.size() == y.size() && cols >= 1 && r.size() % cols == 0,
      "CompareProduct: {} and {} elements in {} columns, expected equal sizes of whole rows",
      r.size(),
      y.size(),
      cols);
  const size_t rows = r.size() / cols;
  std::vector<double> row_errors(rows);
  std::vector<Band> bands((rows + kBand - 1) / kBand);
  ParallelFor(bands.size(), 1, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      const size_t begin = b * kBand;
      bands[b] = SumBand(r.data() + begin * cols,
                         y.data() + begin * cols,
                         std::min(kBand, rows - begin),
                         cols,
                         row_errors.data() + begin);
    }
  });
  Band total{{}, std::vector<double>(cols), std::vector<double>(cols)};
  for (const Band& band : bands) {
    total.total.Add(band.total);
    for (size_t j = 0; j < cols; ++j) {
      total.column_ee[j] += band.column_ee[j];
      total.column_rr[j] += band.column_rr[j];
    }
  }
  ProductError error = FromSums(total.total, static_cast<double>(r.size()));
  for (size_t j = 0; j < cols; ++j) {
    total.column_ee[j] = Relative(total.column_ee[j], total.column_rr[j]);
  }
  error.row_error = Median(std::move(row_errors));
  error.column_error = Median(std::move(total.column_ee));
  return error;
}

template ProductError CompareProduct<float>(std::span<const float>, std::span<const float>, size_t);
template ProductError CompareProduct<double>(std::span<const double>,
                                             std::span<const float>,
                                             size_t);

}  // namespace numsim
