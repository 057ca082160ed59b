#include "numsim/arith/shared/exact.h"
#include "numsim/formats/decode.h"
#include "numsim/oracle/internal/case_makers.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {
namespace {

Unrounded PowerOfTwo(int exponent) { return {NumberKind::kFinite, false, exponent, 1}; }

Unrounded Value(const FormatSpec& format, uint32_t magnitude) {
  const Dyadic value = MagnitudeValue(format, magnitude);
  return {NumberKind::kFinite, false, value.exponent, value.significand};
}

// Returns the magnitude code of x rounded toward zero. Requires x >= 0.
uint32_t MagnitudeBelow(const FormatSpec& format, const Unrounded& x) {
  const EncodePlan plan =
      MakeEncodePlan(format, {.mode = RoundingMode::kTowardZero}, Overflow::kSaturate);
  return EncodeUnrounded(plan, x).code;
}

// Adds magnitude codes to a list, each with both signs.
class Magnitudes {
 public:
  Magnitudes(const FormatSpec& format, CodeList& list) : format_(format), list_(list) {}

  void Add(int64_t magnitude) {
    if (magnitude < 0 || magnitude > format_.MagnitudeMask()) return;
    for (const bool negative : {false, true}) {
      list_.Add(SignedCode(format_, static_cast<uint32_t>(magnitude), negative));
    }
  }
  // Adds a value and, on request, its neighbours. Skips values that the format does not have.
  void AddValue(const Unrounded& x, bool with_neighbours = false) {
    const int64_t below = MagnitudeBelow(format_, x);
    const auto magnitude = static_cast<uint32_t>(below);
    if (exact::Sum(Value(format_, magnitude), exact::Negated(x), false).value.significand != 0) {
      return;
    }
    Add(below);
    if (!with_neighbours) return;
    Add(below - 1);
    Add(below + 1);
  }

 private:
  const FormatSpec& format_;
  CodeList& list_;
};

void AddSpecials(const FormatSpec& format, Magnitudes& magnitudes, CodeList& list) {
  magnitudes.Add(0);
  magnitudes.Add(1);
  magnitudes.Add(format.MaxFiniteCode());
  if (format.HasInfinity()) magnitudes.Add(format.InfinityCode());
  if (!format.HasNan()) return;
  list.Add(format.NanCode());
  if (format.NanHasSign()) list.Add(format.NanCode() | format.SignBit());
}

// Adds NaNs with a payload, signalling and quiet.
void AddNanPayloads(const FormatSpec& format, Magnitudes& magnitudes) {
  if (format.nan != Nan::kIeee) return;
  magnitudes.Add(int64_t{format.InfinityCode()} + 1);
  magnitudes.Add(int64_t{format.NanCode()} - 1);
  magnitudes.Add(format.MagnitudeMask());
}

void AddBinades(const FormatSpec& format, Magnitudes& magnitudes) {
  const int64_t step = int64_t{1} << format.mantissa_bits;
  for (int64_t first = step; first <= format.MaxFiniteCode(); first += step) {
    magnitudes.Add(first);
    magnitudes.Add(first - 1);
  }
}

}  // namespace

CodeList::CodeList(int bits) : mask_(~uint64_t{0} >> (64 - bits)) {}

void CodeList::Add(uint64_t code) {
  code &= mask_;
  if (seen_.insert(code).second) codes_.push_back(code);
}

void CodeList::Add(const std::vector<uint64_t>& codes) {
  for (const uint64_t code : codes) Add(code);
}

uint32_t SignedCode(const FormatSpec& format, uint32_t magnitude, bool negative) {
  if (!negative || !format.IsSigned()) return magnitude;
  if (format.sign == Sign::kTwosComplement) return (0u - magnitude) & format.CodeMask();
  return magnitude | format.SignBit();
}

void AddAround(const FormatSpec& format, const Unrounded& x, CodeList& list) {
  Magnitudes magnitudes(format, list);
  const int64_t below = MagnitudeBelow(format, x);
  for (int64_t magnitude = below - 1; magnitude <= below + 1; ++magnitude) {
    if (magnitude <= format.MaxFiniteCode()) magnitudes.Add(magnitude);
  }
}

std::vector<uint64_t> AwkwardCodes(const FormatSpec& format, int all_up_to) {
  CodeList list(format.Bits());
  Magnitudes magnitudes(format, list);
  AddSpecials(format, magnitudes, list);
  const int m = format.mantissa_bits;
  const int64_t min_normal = int64_t{1} << m;
  magnitudes.AddValue(PowerOfTwo(0));
  magnitudes.Add(min_normal);
  magnitudes.Add(min_normal - 1);
  AddNanPayloads(format, magnitudes);
  magnitudes.AddValue(PowerOfTwo(0), true);
  magnitudes.Add(int64_t{format.MaxFiniteCode()} - 1);
  magnitudes.AddValue(PowerOfTwo(m + 1), true);   // above it, some integers are missing
  magnitudes.AddValue(PowerOfTwo(-m - 1), true);  // half an ulp of 1
  magnitudes.Add(2);
  magnitudes.Add(min_normal + 1);
  magnitudes.AddValue({NumberKind::kFinite, false, -1, 3});
  magnitudes.AddValue(PowerOfTwo(1), true);
  magnitudes.AddValue({NumberKind::kFinite, false, 0, 3});
  magnitudes.AddValue(PowerOfTwo(-1));
  magnitudes.AddValue(PowerOfTwo(format.MaxExponent()), true);
  // Square roots of the ends of the range: products that just overflow or underflow.
  magnitudes.AddValue(PowerOfTwo((format.MaxExponent() + 1) / 2), true);
  magnitudes.AddValue(PowerOfTwo(format.SubnormalExponent() / 2), true);
  magnitudes.AddValue(PowerOfTwo(format.MinExponent() / 2), true);
  AddBinades(format, magnitudes);
  if (format.sign == Sign::kTwosComplement) list.Add(format.SignBit());  // the unused code
  if (format.Bits() <= all_up_to) {
    for (uint64_t code = 0; code <= format.CodeMask(); ++code) list.Add(code);
  }
  return list.codes();
}

std::vector<uint64_t> CodesAroundValues(const FormatSpec& source, const FormatSpec& target) {
  CodeList list(source.Bits());
  for (uint32_t magnitude = 0; magnitude <= target.MaxFiniteCode(); ++magnitude) {
    const Unrounded value = Value(target, magnitude);
    // Includes the value above the largest one, because rounding precedes the overflow test.
    const Unrounded next = Value(target, magnitude + 1);
    Unrounded midpoint = exact::Sum(value, next, false).value;
    --midpoint.exponent;
    AddAround(source, value, list);
    AddAround(source, midpoint, list);
  }
  return list.codes();
}

std::vector<uint64_t> CodesAroundIntegers(const FormatSpec& source) {
  CodeList list(source.Bits());
  for (uint64_t half = 0; half <= 16; ++half) {
    AddAround(source, {NumberKind::kFinite, false, -1, half}, list);
  }
  for (int power = 3; power <= 64; ++power) {
    const Unrounded center = PowerOfTwo(power);
    AddAround(source, center, list);
    for (const bool negative : {false, true}) {
      const Unrounded half{NumberKind::kFinite, negative, -1, 1};
      const Unrounded one{NumberKind::kFinite, negative, 0, 1};
      AddAround(source, exact::Sum(center, half, false).value, list);
      AddAround(source, exact::Sum(center, one, false).value, list);
    }
  }
  return list.codes();
}

std::vector<uint64_t> AwkwardIntegers(int bits, bool is_signed) {
  CodeList list(bits);
  const auto add = [&list, is_signed](uint64_t value) {
    list.Add(value);
    if (is_signed) list.Add(0 - value);
  };
  for (uint64_t value = 0; value <= 40; ++value) add(value);
  for (const uint64_t span : {126, 127, 128, 148, 149, 150, 253, 254, 276, 277, 278}) add(span);
  for (int power = 6; power < bits; ++power) {
    const uint64_t center = uint64_t{1} << power;
    for (const uint64_t value : {center - 1, center, center + 1}) add(value);
  }
  list.Add(~uint64_t{0});
  return list.codes();
}

std::vector<uint64_t> IntegersAroundTies(int bits, bool is_signed, const FormatSpec& target) {
  CodeList list(bits);
  const int m = target.mantissa_bits;
  for (int power = m + 1; power < bits; ++power) {
    const uint64_t ulp = uint64_t{1} << (power - m);
    const uint64_t first = uint64_t{1} << power;
    // Ties above an even code, above an odd one, and below the next binade.
    for (const uint64_t code : {first, first + ulp, 2 * first - ulp}) {
      const uint64_t tie = code + ulp / 2;
      for (const uint64_t value : {tie - 1, tie, tie + 1}) {
        list.Add(value);
        if (is_signed) list.Add(0 - value);
      }
    }
  }
  return list.codes();
}

std::vector<uint64_t> AwkwardRandomBits(int bits) {
  CodeList list(bits);
  const uint64_t half = uint64_t{1} << (bits - 1);
  for (const uint64_t value : {uint64_t{0}, ~uint64_t{0}, half, half - 1}) list.Add(value);
  return list.codes();
}

}  // namespace numsim
