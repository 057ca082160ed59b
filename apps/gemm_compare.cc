#include "apps/gemm_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "apps/code_array.h"
#include "apps/format_text.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {
namespace {

const FormatSpec& Fp32() { return FindFormat("fp32")->spec; }

uint32_t BitsAt(const Array& array, size_t i) {
  return std::bit_cast<uint32_t>(array.Data<float>()[i]);
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

std::string VectorsText(const std::vector<WorstVector>& worst, double median) {
  std::string text;
  for (const WorstVector& vector : worst) {
    text += fmt::format("{}{} ({:.3g})", text.empty() ? "" : ", ", vector.index, vector.error);
  }
  return text + fmt::format("; the median is {:.3g}", median);
}

}  // namespace

Array ReadMine(const std::string& file,
               const std::vector<size_t>& shape,
               const std::optional<Format>& format) {
  Array mine = ReadNpy(file);
  if (format && format->spec.Bits() <= 16 && mine.type == CodeType(format->spec)) {
    mine = DecodedArray(mine, *format, file);
  }
  if (mine.type == ElementType::kF64 || mine.type == ElementType::kF16) {
    const std::vector<float> values = ToFloat32(mine, file);
    mine = ArrayLike(mine, ElementType::kF32);
    std::copy(values.begin(), values.end(), mine.Data<float>());
  }
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

std::string DifferenceText(const ProductDifference& difference,
                           const Likeness& likeness,
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
  const auto pair = [&](size_t i) {
    return fmt::format("{}: expected {}, got {}",
                       PlaceText(i, expected),
                       NumberText(expected, i),
                       NumberText(mine, i));
  };
  if (difference.first) line("first difference", pair(*difference.first));
  if (difference.largest_at) {
    line("largest", pair(*difference.largest_at));
    line("",
         fmt::format("{:.3g}, that is {:.3g} of the root mean square of the expected elements",
                     difference.largest,
                     difference.largest / difference.rms));
  }
  if (difference.ulps_at) {
    line("in ulps",
         fmt::format("at most {} float32 ulps, at {}{}",
                     difference.ulps,
                     PlaceText(*difference.ulps_at, expected),
                     difference.other_sign > 0 ? ", among elements of one sign" : ""));
  }
  if (difference.other_sign > 0) {
    line("other sign", fmt::format("{} elements", difference.other_sign));
  }
  if (difference.largest_at) {
    line("relative norm",
         fmt::format("{:.3g} (||got - expected|| / ||expected||), gain {:.6g}",
                     difference.relative_norm,
                     difference.gain));
    line("worst rows", VectorsText(difference.rows, difference.median_row));
    line("worst columns", VectorsText(difference.columns, difference.median_column));
  }
  if (!likeness.text.empty()) line("looks like", likeness.text);
  if (difference.incomparable > 0) {
    line("not comparable",
         fmt::format("{} differing elements with an infinity or NaN on a side",
                     difference.incomparable));
  }
  return text;
}

}  // namespace numsim::apps
