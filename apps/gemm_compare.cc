#include "apps/gemm_compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "apps/format_text.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/npy.h"
#include "numsim/oracle/kappa.h"

namespace numsim::apps {
namespace {

const FormatSpec& Fp32() { return FindFormat("fp32")->spec; }

uint32_t BitsAt(const Array& array, size_t i) {
  return std::bit_cast<uint32_t>(array.Data<float>()[i]);
}

double RelativeError(double mine, double expected) {
  const double error = std::fabs(mine - expected);
  if (error == 0) return 0;
  return expected == 0 ? std::numeric_limits<double>::infinity() : error / std::fabs(expected);
}

// Adds two finite elements with different bits.
void AddFinite(size_t i, float mine, float expected, MatrixDifference& difference) {
  const uint64_t ulps =
      ValueSteps(Fp32(), std::bit_cast<uint32_t>(mine), std::bit_cast<uint32_t>(expected)).value();
  const double relative = RelativeError(mine, expected);
  if (!difference.ulps_at || ulps > difference.ulps) {
    difference.ulps = ulps;
    difference.ulps_at = i;
  }
  if (!difference.relative_at || relative > difference.relative) {
    difference.relative = relative;
    difference.relative_at = i;
  }
}

// Returns a text such as "(0, 3)".
std::string PlaceText(size_t i, const Array& array) {
  const size_t cols = array.shape[1];
  return fmt::format("({}, {})", i / cols, i % cols);
}

// Returns a text such as "332.5 (0x43A64000)".
std::string NumberText(const Array& array, size_t i) {
  return fmt::format(
      "{} ({})", ValueText(array.Data<float>()[i]), CodeText(Fp32(), BitsAt(array, i)));
}

}  // namespace

MatrixDifference Compare(const Array& mine, const Array& expected, bool any_nan) {
  MatrixDifference difference;
  difference.elements = expected.Elements();
  for (size_t i = 0; i < difference.elements; ++i) {
    const float x = mine.Data<float>()[i], y = expected.Data<float>()[i];
    const bool same =
        BitsAt(mine, i) == BitsAt(expected, i) || (any_nan && std::isnan(x) && std::isnan(y));
    if (same) continue;
    ++difference.differing;
    if (!difference.first) difference.first = i;
    if (std::isfinite(x) && std::isfinite(y)) {
      AddFinite(i, x, y, difference);
    } else {
      ++difference.incomparable;
    }
  }
  return difference;
}

Array ReadMine(const std::string& file, const std::vector<size_t>& shape) {
  Array mine = ReadNpy(file);
  if (mine.type == ElementType::kU32) mine.type = ElementType::kF32;  // the same bytes
  if (mine.type != ElementType::kF32) {
    throw Error::Format(
        "{}: element type is {}, but --compare takes float32, or its bits as uint32 (`numsim cast "
        "--decode` gives the float32 values of codes)",
        file,
        ToString(mine.type));
  }
  if (mine.shape != shape) {
    throw Error::Format("{}: shape {}, but the result has shape {}",
                        file,
                        ShapeToString(mine.shape),
                        ShapeToString(shape));
  }
  return mine;
}

std::string DifferenceText(const MatrixDifference& difference,
                           const Array& mine,
                           const Array& expected) {
  const size_t equal = difference.elements - difference.differing;
  const double share = difference.elements == 0
                           ? 1.0
                           : static_cast<double>(equal) / static_cast<double>(difference.elements);
  std::string text = fmt::format("equal             {} of {} elements ({:.4g} %), {} differ\n",
                                 equal,
                                 difference.elements,
                                 100 * share,
                                 difference.differing);
  const auto line = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("{:<17} {}\n", key, value);
  };
  if (difference.first) {
    line("first difference",
         fmt::format("{}: expected {}, got {}",
                     PlaceText(*difference.first, expected),
                     NumberText(expected, *difference.first),
                     NumberText(mine, *difference.first)));
  }
  if (difference.ulps_at) {
    line("worst difference",
         fmt::format("{} float32 ulps at {}; relative {:.3g} at {}",
                     difference.ulps,
                     PlaceText(*difference.ulps_at, expected),
                     difference.relative,
                     PlaceText(*difference.relative_at, expected)));
  }
  if (difference.incomparable > 0) {
    line("not comparable",
         fmt::format("{} differing elements with an infinity or NaN on a side",
                     difference.incomparable));
  }
  return text;
}

}  // namespace numsim::apps
