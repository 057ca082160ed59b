// Matrix products for the tests of gemm/gemm.h: operands in every way in which they can be
// stored, and the result by its definition, an Accumulate for each element.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "tests/support/dot_operands.h"
#include "tests/support/every_backend.h"

namespace numsim {

enum class Storage { kValues, kCodes };

// A factor, held row by row as codes, with the memory that a GemmOperand refers to. That memory
// begins one element after the start of an array.
class Factor {
 public:
  Factor(const FormatSpec& format, size_t rows, size_t inner, std::vector<uint32_t> codes)
      : format_(format), rows_(rows), inner_(inner), codes_(std::move(codes)) {
    values_ = ValuesOf(format_, codes_);
    Store(Storage::kValues, false);
  }
  static Factor Random(const FormatSpec& format,
                       size_t rows,
                       size_t inner,
                       Spread spread,
                       Side side,
                       oracle::TestRandom& random) {
    std::vector<uint32_t> codes;
    for (size_t row = 0; row < rows; ++row) {
      const auto more = SpreadCodes(format, spread, side, inner, random);
      codes.insert(codes.end(), more.begin(), more.end());
    }
    return {format, rows, inner, codes};
  }

  const FormatSpec& format() const { return format_; }
  size_t rows() const { return rows_; }
  size_t inner() const { return inner_; }
  std::span<const float> Row(size_t row) const {
    return std::span(values_).subspan(row * inner_, inner_);
  }
  const GemmScales& scales() const { return scales_; }

  void SetCode(size_t row, size_t k, uint32_t code) {
    codes_[row * inner_ + k] = code;
    values_[row * inner_ + k] = Decode(format_, code);
    Store(storage_, transposed_, gap_);
  }
  void SetRow(size_t row, uint32_t code) {
    for (size_t k = 0; k < inner_; ++k) {
      codes_[row * inner_ + k] = code;
      values_[row * inner_ + k] = Decode(format_, code);
    }
    Store(storage_, transposed_, gap_);
  }
  // Codes are possible for formats of up to 16 bits. `gap` elements lie between the rows.
  void Store(Storage storage, bool transposed, size_t gap = 0) {
    storage_ = storage;
    transposed_ = transposed;
    gap_ = gap;
    stored_values_.assign(1, 0);
    stored8_.assign(1, 0);
    stored16_.assign(1, 0);
    const size_t length = transposed ? rows_ : inner_;
    for (size_t i = 0; i < codes_.size(); ++i) {
      const size_t at = transposed ? i % rows_ * inner_ + i / rows_ : i;
      stored_values_.push_back(values_[at]);
      stored8_.push_back(static_cast<uint8_t>(codes_[at]));
      stored16_.push_back(static_cast<uint16_t>(codes_[at]));
      if ((i + 1) % length != 0) continue;
      stored_values_.insert(stored_values_.end(), gap, std::nanf(""));
      stored8_.insert(stored8_.end(), gap, uint8_t{0x5A});
      stored16_.insert(stored16_.end(), gap, uint16_t{0x7FFF});
    }
  }
  void SetScales(std::vector<float> data, GemmScales scales) {
    scale_data_ = std::move(data);
    scales_ = scales;
    scales_.data = scale_data_;
  }

  GemmOperand Get() const {
    GemmOperand operand;
    operand.format = format_;
    operand.rows = rows_;
    operand.inner = inner_;
    operand.transposed = transposed_;
    operand.scales = scales_;
    operand.scales.data = scale_data_;
    const auto matrix = [&](const auto& stored) {
      const auto [height, length] = operand.Stored();
      return MatrixSpan(stored.data() + 1, height, length, length + gap_);
    };
    if (storage_ == Storage::kValues) {
      operand.values = matrix(stored_values_);
    } else if (format_.StorageBytes() == 1) {
      operand.codes8 = matrix(stored8_);
    } else {
      operand.codes16 = matrix(stored16_);
    }
    return operand;
  }

  std::string Describe() const {
    return fmt::format(
        "{} {} x {}{}, gaps of {}, scales: {}, group {}, stride {}, segment {}, stride {}",
        ToString(format_),
        rows_,
        inner_,
        storage_ == Storage::kValues ? " values" : " codes",
        transposed_ ? " transposed" : "",
        gap_,
        scale_data_.size(),
        scales_.row_group,
        scales_.row_stride,
        scales_.segment,
        scales_.segment_stride);
  }

 private:
  FormatSpec format_;
  size_t rows_, inner_;
  std::vector<uint32_t> codes_;
  std::vector<float> values_;
  std::vector<float> scale_data_;
  GemmScales scales_;
  Storage storage_ = Storage::kValues;
  bool transposed_ = false;
  size_t gap_ = 0;
  std::vector<float> stored_values_;
  std::vector<uint8_t> stored8_;
  std::vector<uint16_t> stored16_;
};

// To odd, as a float64. Finite numbers of Accumulate lie far inside the range of float64.
inline double OddFloat64(Unrounded x) {
  if (x.kind == NumberKind::kNan) return std::numeric_limits<double>::quiet_NaN();
  double magnitude = std::numeric_limits<double>::infinity();
  if (x.kind == NumberKind::kFinite) {
    while (x.significand >> 53 != 0) {
      x.significand = x.significand >> 1 | (x.significand & 1);
      ++x.exponent;
    }
    magnitude = std::ldexp(static_cast<double>(x.significand), x.exponent);
  }
  return x.negative ? -magnitude : magnitude;
}

// Elements of the inner dimension that share scales on both sides.
inline size_t SegmentLength(const Factor& a, const Factor& b) {
  const size_t segment = std::max(a.scales().segment, b.scales().segment);
  return segment == 0 ? a.inner() : segment;
}

// out(i, j) as the header defines it.
inline float DefinedElement(
    const Factor& a, const Factor& b, const AccumulationMode& mode, size_t i, size_t j) {
  const size_t length = SegmentLength(a, b);
  const GemmOperand operand_a = a.Get(), operand_b = b.Get();
  float sum = 0;
  for (size_t k = 0; k < a.inner(); k += length) {
    const size_t n = std::min(length, a.inner() - k);
    const double s = OddFloat64(Accumulate(
        mode, {a.format(), a.Row(i).subspan(k, n)}, {b.format(), b.Row(j).subspan(k, n)}));
    const size_t sa = a.scales().segment == 0 ? 0 : k / length;
    const size_t sb = b.scales().segment == 0 ? 0 : k / length;
    const double scale = static_cast<double>(operand_a.scales.At(i, sa)) *
                         static_cast<double>(operand_b.scales.At(j, sb));
    const auto t = static_cast<float>(s * scale);
    sum = k == 0 ? t : sum + t;
  }
  return std::isnan(sum) ? std::bit_cast<float>(NanResult(mode)) : sum;
}

inline std::vector<float> DefinedProduct(const Factor& a,
                                         const Factor& b,
                                         const AccumulationMode& mode) {
  std::vector<float> out(a.rows() * b.rows());
  for (size_t i = 0; i < a.rows(); ++i) {
    for (size_t j = 0; j < b.rows(); ++j) {
      out[i * b.rows() + j] = DefinedElement(a, b, mode, i, j);
    }
  }
  return out;
}

// Gemm into the middle of an array. Fails the test when it writes beside that.
inline std::vector<float> GemmResult(const Factor& a,
                                     const Factor& b,
                                     const AccumulationMode& mode) {
  constexpr size_t kStrip = 65;
  constexpr float kCanary = 12345;
  const size_t n = a.rows() * b.rows();
  std::vector<float> memory(n + 2 * kStrip, kCanary);
  Gemm(a.Get(), b.Get(), mode, std::span(memory).subspan(kStrip, n));
  for (size_t i = 0; i < kStrip; ++i) {
    EXPECT_EQ(memory[i], kCanary) << "written before the result";
    EXPECT_EQ(memory[kStrip + n + i], kCanary) << "written behind the result";
  }
  return {memory.begin() + kStrip, memory.end() - kStrip};
}

// The same bits.
inline testing::AssertionResult SameMatrix(const std::vector<float>& got,
                                           const std::vector<float>& want,
                                           size_t columns) {
  size_t different = 0;
  std::string first;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want[i])) continue;
    if (different++ > 0) continue;
    first = fmt::format("({}, {}) is {:a} ({:#x}), not {:a} ({:#x})",
                        i / columns,
                        i % columns,
                        got[i],
                        std::bit_cast<uint32_t>(got[i]),
                        want[i],
                        std::bit_cast<uint32_t>(want[i]));
  }
  if (different == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << different << " of " << want.size() << ": " << first;
}

// Every backend gives the product by its definition, with any of these numbers of threads.
inline void ExpectDefinedProduct(const Factor& a,
                                 const Factor& b,
                                 const AccumulationMode& mode,
                                 std::initializer_list<int> thread_counts = {1}) {
  const std::vector<float> want = DefinedProduct(a, b, mode);
  WithEachBackend([&] {
    for (const int threads : thread_counts) {
      SetThreadCount(threads);
      ASSERT_TRUE(SameMatrix(GemmResult(a, b, mode), want, b.rows()))
          << threads << " threads, " << ToString(mode) << "\na: " << a.Describe()
          << "\nb: " << b.Describe();
    }
  });
}

}  // namespace numsim
