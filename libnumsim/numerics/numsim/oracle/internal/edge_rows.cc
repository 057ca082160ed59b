#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/case_makers.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the code of x rounded toward zero, saturating.
uint64_t CodeOf(const FormatSpec& format, double x) {
  return Encode(format, x, {.mode = RoundingMode::kTowardZero}, Overflow::kPropagate);
}

// Returns zeros of both signs, the ends of the range, infinities and NaN, as far as the format has
// them.
std::vector<uint64_t> SpecialCodes(const FormatSpec& format) {
  CodeList list(format.Bits());
  for (const double x : {0.0, -0.0}) list.Add(CodeOf(format, x));
  for (const uint32_t magnitude : {uint32_t{1}, format.MaxFiniteCode()}) {
    list.Add(SignedCode(format, magnitude, false));
    list.Add(SignedCode(format, magnitude, true));
  }
  if (format.HasInfinity()) {
    list.Add(CodeOf(format, kInfinite));
    list.Add(CodeOf(format, -kInfinite));
  }
  if (format.HasNan()) list.Add(format.NanCode());
  return list.codes();
}

class Rows {
 public:
  explicit Rows(size_t width) : width_(width) {}

  // Appends a row in which every number is `everywhere`. The returned span is valid until the next
  // call.
  std::span<uint64_t> New(uint64_t everywhere) {
    rows_.insert(rows_.end(), width_, everywhere);
    return Last();
  }
  std::span<uint64_t> Last() { return std::span(rows_).last(width_); }
  std::vector<uint64_t> Take() { return std::move(rows_); }

 private:
  size_t width_;
  std::vector<uint64_t> rows_;
};

// Returns the first, middle and last index.
std::vector<size_t> Places(size_t length) {
  std::vector<size_t> places = {0, length / 2, length - 1};
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// --- Blocks

class BlockEdges {
 public:
  explicit BlockEdges(const Operation& operation)
      : source_(operation.inputs()[0].format->spec),
        scale_(operation.results()[0].format->spec),
        element_(operation.results()[1].format->spec),
        length_(operation.length()),
        has_tensor_scale_(operation.operands() > operation.length()),
        rows_(operation.operands()) {}

  std::vector<uint64_t> Make() {
    AddSpecials();
    AddMaxima();
    AddElements();
    if (has_tensor_scale_) AddTensorScales();
    return rows_.Take();
  }

 private:
  std::span<uint64_t> New(uint64_t everywhere) {
    const std::span<uint64_t> row = rows_.New(everywhere);
    if (has_tensor_scale_) row[length_] = CodeOf(kFp32, 1);
    return row;
  }

  void AddSpecials() {
    const uint64_t one = CodeOf(source_, 1);
    for (const uint64_t special : SpecialCodes(source_)) {
      New(special);
      for (const uint64_t others : {uint64_t{0}, one}) {
        for (const size_t place : Places(length_)) New(others)[place] = special;
      }
    }
    if (!source_.HasNan() || !source_.HasInfinity()) return;
    const std::span<uint64_t> row = New(one);
    row[0] = source_.NanCode();
    row[length_ - 1] = CodeOf(source_, -kInfinite);
  }

  // Adds a row with maximum `code` and further elements that are fractions of it, of both signs.
  void AddMaximum(uint64_t code) {
    const double maximum = Decode(source_, static_cast<uint32_t>(code));
    const std::span<uint64_t> row = New(code);
    for (size_t i = 1; i < length_; ++i) {
      const double fraction =
          std::ldexp(1 - 0.03125 * static_cast<double>(i % 32), -static_cast<int>(i % 5));
      row[i] = CodeOf(source_, (i % 2 != 0 ? -fraction : fraction) * maximum);
    }
  }

  // Returns the absmax of a block whose scale is 1.
  double Unit() const {
    return scale_.zero == Zero::kNone ? std::ldexp(1.0, element_.MaxExponent())
                                      : MaxFinite(element_);
  }

  void AddMaxima() {
    CodeList codes(source_.Bits());
    for (uint32_t code = 0; code <= scale_.MaxFiniteCode(); ++code) {
      const double value = Decode(scale_, code);
      const double next = code < scale_.MaxFiniteCode() ? Decode(scale_, code + 1) : 2 * value;
      AddAroundProduct(value, codes);
      if (scale_.mantissa_bits > 0) AddAroundProduct((value + next) / 2, codes);
    }
    for (const uint64_t code : codes.codes()) AddMaximum(code);
  }

  void AddAroundProduct(double scale, CodeList& codes) {
    const uint64_t below = CodeOf(source_, scale * Unit());
    for (uint64_t code = below - std::min<uint64_t>(below, 1); code <= below + 1; ++code) {
      if (code <= source_.MaxFiniteCode()) codes.Add(code);
    }
  }

  // Adds rows with every value and midpoint of the element format. The first element of each row is
  // a maximum for which the block's scale is `scale`.
  void AddElements() {
    if (element_.Bits() > 8) return;
    for (const double scale : {1.0, 0x1p-6, 0x1p6, 0x1p-120, 0x1p100}) {
      CodeList list(source_.Bits());
      for (uint32_t code = 0; code <= element_.MaxFiniteCode(); ++code) {
        const double value = Decode(element_, code);
        const double next = code < element_.MaxFiniteCode() ? Decode(element_, code + 1) : value;
        AddElement(value * scale, list);
        AddElement((value + next) / 2 * scale, list);
      }
      AddChunks(list.codes(), CodeOf(source_, MaxFinite(element_) * scale));
      if (source_.Bits() <= 8) return;
    }
  }

  void AddElement(double value, CodeList& list) {
    const uint64_t below = CodeOf(source_, value);
    for (uint64_t code = below - std::min<uint64_t>(below, 1); code <= below + 1; ++code) {
      if (code > source_.MaxFiniteCode()) continue;
      list.Add(code);
      list.Add(SignedCode(source_, static_cast<uint32_t>(code), true));
    }
  }

  void AddChunks(const std::vector<uint64_t>& elements, uint64_t maximum) {
    if (length_ < 2) return;
    for (size_t first = 0; first < elements.size(); first += length_ - 1) {
      const std::span<uint64_t> row = New(0);
      row[0] = maximum;
      for (size_t i = 1; i < length_ && first + i - 1 < elements.size(); ++i) {
        row[i] = elements[first + i - 1];
      }
    }
  }

  void AddTensorScales() {
    for (const double tensor : {0.0,
                                -0.0,
                                -1.0,
                                3.0,
                                0x1p-10,
                                0x1p-149,
                                0x1.fffffep127,
                                0x1p127,
                                kInfinite,
                                -kInfinite,
                                kNan}) {
      for (const double maximum : {0.0, 1.0, 2688.0, 0x1p-140, 0x1.fffffep127}) {
        AddMaximum(CodeOf(source_, maximum));
        rows_.Last()[length_] = CodeOf(kFp32, tensor);
      }
    }
  }

  FormatSpec source_, scale_, element_;
  size_t length_;
  bool has_tensor_scale_;
  Rows rows_;
};

// --- Dot products

class DotEdges {
 public:
  explicit DotEdges(const Operation& operation)
      : a_(operation.inputs()[0].format->spec),
        b_(operation.inputs()[operation.length()].format->spec),
        result_(operation.results()[0].format->spec),
        length_(operation.length()),
        rows_(2 * operation.length()) {}

  std::vector<uint64_t> Make() {
    AddSpecials();
    AddCancellation();
    AddTies();
    AddSlopes();
    return rows_.Take();
  }

 private:
  std::span<uint64_t> New(double a, double b) {
    const std::span<uint64_t> row = rows_.New(0);
    for (size_t i = 0; i < length_; ++i) Set(row, i, a, b);
    return row;
  }
  void Set(std::span<uint64_t> row, size_t i, double a, double b) const {
    if (i >= length_) return;
    row[i] = CodeOf(a_, a);
    row[length_ + i] = CodeOf(b_, b);
  }

  // Adds every pair of special codes: in all places, and as one product among zeros or ones.
  void AddSpecials() {
    for (const uint64_t a : SpecialCodes(a_)) {
      for (const uint64_t b : SpecialCodes(b_)) {
        const std::span<uint64_t> row = rows_.New(a);
        std::fill(row.begin() + static_cast<std::ptrdiff_t>(length_), row.end(), b);
        for (const double others : {0.0, 1.0}) {
          for (const size_t place : Places(length_)) {
            const std::span<uint64_t> one = New(others, others);
            one[place] = a;
            one[length_ + place] = b;
          }
        }
      }
    }
  }

  // Large products that cancel and leave a small one; infinities of both signs.
  void AddCancellation() {
    const double large_a = MaxFinite(a_), large_b = MaxFinite(b_);
    const double small_a = MinPositive(a_), small_b = MinPositive(b_);
    for (const double large : {large_a, 1.0, kInfinite}) {
      for (const double small : {0.0, small_a, -small_a, 1.0}) {
        for (const size_t apart : {size_t{1}, length_ / 2, length_ - 1}) {
          const std::span<uint64_t> row = New(small, small_b);
          Set(row, 0, large, large_b);
          if (apart != 0) Set(row, apart, -large, large_b);
        }
      }
    }
    const std::span<uint64_t> row = New(large_a, large_b);
    for (size_t i = 1; i < length_; i += 2) Set(row, i, -large_a, large_b);
  }

  // Adds sums base + half an ulp of the result, exactly and with the smallest product of either
  // sign added.
  void AddTies() {
    const int precision = result_.mantissa_bits + 1;
    for (const double base : {1.0, 1.5, 0x1p-3, 4.0}) {
      for (const double tiny : {0.0, 1.0, -1.0}) {
        for (const int below : {precision, precision + 1}) {
          const std::span<uint64_t> row = New(0, 0);
          Set(row, 0, base, 1);
          Set(row, 1, std::ldexp(base, -below / 2), std::ldexp(1, below / 2 - below));
          Set(row, 2, tiny * MinPositive(a_), MinPositive(b_));
        }
      }
    }
  }

  // Adds powers of two in falling and rising order, with equal and with alternating signs.
  void AddSlopes() {
    for (const int step : {-2, -1, 1, 2}) {
      for (const double sign : {1.0, -1.0}) {
        const std::span<uint64_t> row = New(0, 0);
        for (size_t i = 0; i < length_; ++i) {
          const double power = std::ldexp(1.0, step * static_cast<int>(i) / 2);
          Set(row, i, i % 2 != 0 ? sign * power : power, 1.0 + static_cast<double>(i % 4) / 4);
        }
      }
    }
  }

  FormatSpec a_, b_, result_;
  size_t length_;
  Rows rows_;
};

// Returns the rows of DotEdges with scales, and rows that try the scales.
std::vector<uint64_t> ScaledDotEdges(const Operation& operation) {
  const size_t elements = 2 * operation.length(), scales = operation.scales();
  const auto format = [&](size_t c) { return operation.inputs()[c].format->spec; };
  Rows rows(operation.operands());
  // Adds a row with scales of 1 whose elements are set later, and returns it.
  const auto add = [&] {
    const std::span<uint64_t> row = rows.New(0);
    for (size_t c = elements; c < row.size(); ++c) row[c] = CodeOf(format(c), 1);
    return row;
  };
  const std::vector<uint64_t> plain = DotEdges(operation).Make();
  for (size_t at = 0; at < plain.size(); at += elements) {
    std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(at), elements, add().begin());
  }
  const auto ones = [&] {
    const std::span<uint64_t> row = add();
    for (size_t c = 0; c < elements; ++c) row[c] = CodeOf(format(c), 1);
    return row;
  };
  const FormatSpec scale = format(elements);
  std::vector<uint64_t> codes = SpecialCodes(scale);
  if (scale.Bits() <= 8) {
    codes.clear();
    for (uint64_t code = 0; code <= scale.CodeMask(); ++code) codes.push_back(code);
  }
  for (const uint64_t code : codes) {
    for (const size_t block : Places(scales / 2)) {
      ones()[elements + block] = code;
      ones()[elements + scales / 2 + block] = code;
    }
  }
  for (size_t c = elements + scales; c < operation.operands(); ++c) {  // tensor scales
    for (const uint64_t code : SpecialCodes(format(c))) ones()[c] = code;
  }
  return rows.Take();
}

// --- Rows

// Returns the columns of operands that have one name, such as a[0] to a[31], one list per name.
std::vector<std::vector<size_t>> ColumnsByName(const Operation& operation) {
  std::vector<std::vector<size_t>> groups;
  std::string_view last;
  for (size_t c = 0; c < operation.operands(); ++c) {
    const std::string_view name = operation.inputs()[c].name;
    const std::string_view stem = name.substr(0, name.find('['));
    if (groups.empty() || stem != last) groups.emplace_back();
    groups.back().push_back(c);
    last = stem;
  }
  return groups;
}

// Returns rows of ones in which a special code is everywhere in one block or scale, or in one place.
std::vector<uint64_t> RowEdges(const Operation& operation) {
  Rows rows(operation.operands());
  const auto ones = [&] {
    const std::span<uint64_t> row = rows.New(0);
    for (size_t c = 0; c < row.size(); ++c) row[c] = CodeOf(operation.inputs()[c].format->spec, 1);
    return row;
  };
  for (const std::vector<size_t>& group : ColumnsByName(operation)) {
    for (const uint64_t code : SpecialCodes(operation.inputs()[group[0]].format->spec)) {
      const std::span<uint64_t> everywhere = ones();
      for (const size_t c : group) everywhere[c] = code;
      if (group.size() == 1) continue;
      for (const size_t place : Places(group.size())) ones()[group[place]] = code;
    }
  }
  return rows.Take();
}

}  // namespace

std::vector<uint64_t> EdgeRows(const Operation& operation) {
  if (operation.shape() == CaseShape::kRow) return RowEdges(operation);
  if (operation.scales() > 0) return ScaledDotEdges(operation);
  if (operation.shape() == CaseShape::kDot) return DotEdges(operation).Make();
  return BlockEdges(operation).Make();
}

}  // namespace numsim
