// ExplainDifference of product_difference.h: the kinds of difference that are told apart, and their words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "numsim/base/require.h"
#include "numsim/gemm/internal/gemm_packed.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/product_difference.h"

namespace numsim {
namespace {

constexpr size_t kVectors = 64;  // rows, and columns, that are examined
constexpr size_t kParts = 32;    // of the inner dimension
constexpr double kUnexplained = 0.01;
// Fewer elements would fit a kind by chance.
constexpr size_t kLeastSamples = 8;
// A difference of at most this part of the sum of the |products| is one that rounding makes: sums of
// some hundred products that keep 8 bits, as bf16 does.
constexpr double kRoundingShare = 0x1p-6;

// Returns up to kVectors indices, spread over 0 .. n - 1.
std::vector<size_t> Spread(size_t n) {
  std::vector<size_t> indices;
  const size_t count = std::min(n, kVectors);
  for (size_t i = 0; i < count; ++i) indices.push_back(i * n / count);
  return indices;
}

// Returns the values of a row times their scales. Products of two of them are sums of the exact ones
// up to the rounding of float64.
std::vector<double> ScaledRow(const GemmOperand& x, size_t row) {
  std::vector<double> values(x.inner);
  for (size_t k = 0; k < x.inner; ++k) {
    const size_t segment = x.scales.segment == 0 ? 0 : k / x.scales.segment;
    values[k] = static_cast<double>(OperandValue(x, row, k)) *
                static_cast<double>(x.scales.At(row, segment));
  }
  return values;
}

// An element that is examined.
struct Sample {
  size_t row, column;  // of the result
  double expected, mine;
  double Error() const { return mine - expected; }
};

double SquareOf(const std::vector<Sample>& samples, const auto& rest) {
  double sum = 0;
  for (const Sample& s : samples) sum += rest(s) * rest(s);
  return sum;
}

// Solves m x = y for a symmetric positive semidefinite m; unknowns that m does not determine are 0.
std::vector<double> Solve(std::vector<std::vector<double>> m, std::vector<double> y) {
  const size_t n = y.size();
  double largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, m[i][i]);
  std::vector<bool> known(n, false);
  for (size_t i = 0; i < n; ++i) {
    if (m[i][i] <= 1e-10 * largest) continue;
    known[i] = true;
    for (size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (size_t c = 0; c < n; ++c) m[r][c] -= factor * m[i][c];
      y[r] -= factor * y[i];
    }
  }
  for (size_t i = 0; i < n; ++i) y[i] = known[i] ? y[i] / m[i][i] : 0;
  return y;
}

class Examination {
 public:
  Examination(const GemmOperand& a,
              const GemmOperand& b,
              std::span<const float> expected,
              std::span<const float> mine)
      : a_(a), b_(b), expected_(expected), mine_(mine) {
    std::vector<std::vector<double>> left, right;
    const std::vector<size_t> rows = Spread(a.rows), columns = Spread(b.rows);
    for (const size_t i : rows) left.push_back(ScaledRow(a, i));
    for (const size_t j : columns) right.push_back(ScaledRow(b, j));
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < columns.size(); ++j) {
        Take(rows[i], columns[j], left[i], right[j]);
      }
    }
    error_ = SquareOf(samples_, [](const Sample& s) { return s.Error(); });
    mine_square_ = SquareOf(samples_, [](const Sample& s) { return s.mine; });
  }

  Likeness Result() {
    Likeness result;
    result.share = share_;
    if (error_ == 0) return result;
    const bool enough = samples_.size() >= kLeastSamples;
    for (const auto test : {&Examination::TestGain,
                            &Examination::TestVectors,
                            &Examination::TestTranspose,
                            &Examination::TestEnds,
                            &Examination::TestParts}) {
      if (enough) (this->*test)(result);
      if (result.kind != DifferenceKind::kNone) return result;
    }
    const bool rounding = share_ <= kRoundingShare;
    result.kind = rounding ? DifferenceKind::kRounding : DifferenceKind::kUnknown;
    result.text =
        fmt::format("{}: differences are at most {:.3g} (2^{:.1f}) of the sum of the |products|",
                    rounding ? "rounding, such as sums in another order or width"
                             : "neither a rounding nor a scale nor products left out",
                    share_,
                    std::log2(share_));
    return result;
  }

 private:
  // Adds an element to the samples, and its partial sums to those of all.
  void Take(size_t row, size_t column, const std::vector<double>& x, const std::vector<double>& y) {
    const size_t at = row * b_.rows + column;
    const Sample s{row, column, static_cast<double>(expected_[at]), static_cast<double>(mine_[at])};
    if (!std::isfinite(s.expected) || !std::isfinite(s.mine)) return;
    const size_t inner = a_.inner;
    if (prefix_.empty()) prefix_ = suffix_ = std::vector<double>(inner + 1);
    double whole = 0, magnitude = 0, sum = 0;
    for (size_t k = 0; k < inner; ++k) {
      whole += x[k] * y[k];
      magnitude += std::abs(x[k] * y[k]);
    }
    std::vector<double> parts(PartCount());
    for (size_t k = 0; k <= inner; ++k) {
      prefix_[k] += (s.mine - sum) * (s.mine - sum);
      suffix_[k] += (s.mine - (whole - sum)) * (s.mine - (whole - sum));
      if (k == inner) break;
      sum += x[k] * y[k];
      parts[k / PartLength()] += x[k] * y[k];
    }
    if (magnitude > 0) share_ = std::max(share_, std::abs(s.Error()) / magnitude);
    samples_.push_back(s);
    parts_.push_back(std::move(parts));
  }

  size_t PartLength() const { return std::max<size_t>((a_.inner + kParts - 1) / kParts, 1); }
  size_t PartCount() const { return (a_.inner + PartLength() - 1) / PartLength(); }
  bool Explains(double rest) const { return rest <= kUnexplained * error_; }
  // The same for a factor on the expected elements, which would fit any small numbers.
  bool FactorExplains(double rest) const {
    return rest <= kUnexplained * std::min(error_, mine_square_);
  }

  static double GainOf(double product, double square) { return square == 0 ? 1 : product / square; }

  void TestGain(Likeness& result) {
    double product = 0, square = 0;
    for (const Sample& s : samples_) {
      product += s.mine * s.expected;
      square += s.expected * s.expected;
    }
    const double gain = GainOf(product, square);
    const auto rest = [&](const Sample& s) { return s.mine - gain * s.expected; };
    if (!FactorExplains(SquareOf(samples_, rest))) return;
    result.kind = DifferenceKind::kScale;
    result.text = fmt::format("a scale: every element is {:.6g} times the expected one", gain);
  }

  void TestVectors(Likeness& result) {
    const bool rows =
        VectorsExplain(result, DifferenceKind::kRowScale, "row", &Sample::row, a_.rows);
    if (rows) return;
    VectorsExplain(result, DifferenceKind::kColumnScale, "column", &Sample::column, b_.rows);
  }

  bool VectorsExplain(Likeness& result,
                      DifferenceKind kind,
                      const char* name,
                      size_t Sample::*index,
                      size_t count) {
    std::vector<double> product(count), square(count);
    std::vector<size_t> number(count);
    for (const Sample& s : samples_) {
      product[s.*index] += s.mine * s.expected;
      square[s.*index] += s.expected * s.expected;
      ++number[s.*index];
    }
    // With one or two elements to a vector, a factor would fit anything.
    if (*std::ranges::max_element(number) < 4) return false;
    const auto rest = [&](const Sample& s) {
      return s.mine - GainOf(product[s.*index], square[s.*index]) * s.expected;
    };
    if (!FactorExplains(SquareOf(samples_, rest))) return false;
    size_t worst = 0, others = 0;
    const auto distance = [&](size_t i) {
      return number[i] == 0 ? 0 : std::abs(GainOf(product[i], square[i]) - 1);
    };
    for (size_t i = 0; i < count; ++i) {
      if (distance(i) > distance(worst)) worst = i;
      others += distance(i) > 0x1p-12 ? 1 : 0;
    }
    result.kind = kind;
    result.text = fmt::format(
        "a scale of {}s: {} {} is {:.6g} times the expected one; of the {} {}s examined, {} have "
        "another factor than 1",
        name,
        name,
        worst,
        GainOf(product[worst], square[worst]),
        count - static_cast<size_t>(std::ranges::count(number, size_t{0})),
        name,
        others);
    return true;
  }

  void TestTranspose(Likeness& result) {
    if (a_.rows != b_.rows) return;
    const auto rest = [&](const Sample& s) {
      const auto other = static_cast<double>(expected_[s.column * b_.rows + s.row]);
      return std::isfinite(other) ? s.mine - other : 0;
    };
    if (!Explains(SquareOf(samples_, rest))) return;
    result.kind = DifferenceKind::kTranspose;
    result.text = "the transposed product";
  }

  void TestEnds(Likeness& result) {
    const size_t inner = a_.inner;
    if (inner == 0) return;
    const auto least = [&](const std::vector<double>& rests) {
      return static_cast<size_t>(std::ranges::min_element(rests) - rests.begin());
    };
    const size_t end = least(prefix_), begin = least(suffix_);
    if (end < inner && Explains(prefix_[end])) {
      result.kind = DifferenceKind::kPrefix;
      result.text =
          end == 0 ? "zero, or nothing was added"
                   : fmt::format(
                         "a dropped tail: the sum of only the first {} of {} products", end, inner);
    } else if (begin > 0 && Explains(suffix_[begin])) {
      result.kind = DifferenceKind::kSuffix;
      result.text = fmt::format(
          "a dropped head: the sum of only the last {} of {} products", inner - begin, inner);
    }
  }

  // Fits the difference by the sums of the parts of the inner dimension.
  void TestParts(Likeness& result) {
    const size_t n = samples_.empty() ? 0 : parts_[0].size();
    if (n < 2 || samples_.size() < 4 * n) return;
    std::vector<std::vector<double>> normal(n, std::vector<double>(n));
    std::vector<double> right(n);
    for (size_t s = 0; s < samples_.size(); ++s) {
      for (size_t i = 0; i < n; ++i) {
        right[i] += parts_[s][i] * samples_[s].Error();
        for (size_t j = 0; j < n; ++j) normal[i][j] += parts_[s][i] * parts_[s][j];
      }
    }
    const std::vector<double> factors = Solve(std::move(normal), std::move(right));
    double rest = 0;
    for (size_t s = 0; s < samples_.size(); ++s) {
      double left = samples_[s].Error();
      for (size_t i = 0; i < n; ++i) left -= factors[i] * parts_[s][i];
      rest += left * left;
    }
    if (!Explains(rest)) return;
    size_t worst = 0;
    for (size_t i = 0; i < n; ++i) {
      if (std::abs(factors[i]) > std::abs(factors[worst])) worst = i;
    }
    // The part with the largest factor, and its neighbours that have about the same.
    size_t begin = worst, end = worst + 1;
    const auto alike = [&](size_t i) {
      return std::abs(factors[i] - factors[worst]) < 0.1 * std::abs(factors[worst]);
    };
    while (begin > 0 && alike(begin - 1)) --begin;
    while (end < n && alike(end)) ++end;
    const double times = 1 + factors[worst];
    result.kind = DifferenceKind::kSegment;
    result.text = fmt::format("products {} to {} of {} count {} times{}",
                              begin * PartLength(),
                              std::min(end * PartLength(), a_.inner) - 1,
                              a_.inner,
                              std::abs(times) < 0.01 ? "0" : fmt::format("{:.3g}", times),
                              std::abs(times) < 0.01 ? " (they are left out)" : "");
  }

  const GemmOperand& a_;
  const GemmOperand& b_;
  std::span<const float> expected_, mine_;
  std::vector<Sample> samples_;
  std::vector<std::vector<double>> parts_;  // of each sample
  // Squared differences between mine and the sums that end before product k, or begin with it.
  std::vector<double> prefix_, suffix_;
  double error_ = 0, mine_square_ = 0, share_ = 0;
};

}  // namespace

Likeness ExplainDifference(const GemmOperand& a,
                           const GemmOperand& b,
                           std::span<const float> expected,
                           std::span<const float> mine) {
  CheckProduct(a, b, expected.size());
  RequireSize(mine.size(), expected.size(), "ExplainDifference", "mine");
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  return Examination(left, right, expected, mine).Result();
}

}  // namespace numsim
