// The text form of formats: ParseFormat, ToString and the validation of custom formats.
#include <charconv>
#include <optional>
#include <set>

#include "numsim/base/keyword.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_list.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/internal/name_lookup.h"
#include "numsim/formats/value_table.h"

namespace numsim {
namespace {

constexpr std::string_view kIeeePrefix = "ieee-";

constexpr Keyword<Infinity> kInfinities[] = {
    {"none", Infinity::kNone}, {"ieee", Infinity::kIeee}, {"top", Infinity::kTopCode}};
constexpr Keyword<Nan> kNans[] = {{"none", Nan::kNone},
                                  {"ieee", Nan::kIeee},
                                  {"all-ones", Nan::kAllOnes},
                                  {"negative-zero", Nan::kNegativeZero}};
constexpr Keyword<Zero> kZeros[] = {{"signed", Zero::kSigned}, {"unsigned", Zero::kUnsigned}};
constexpr Keyword<bool> kRanges[] = {{"symmetric", false}, {"full", true}};
constexpr Keyword<bool> kSubnormals[] = {{"keep", false}, {"flush", true}};
constexpr Keyword<OverflowTo> kOverflows[] = {
    {"inf", OverflowTo::kInfinity}, {"nan", OverflowTo::kNan}, {"max", OverflowTo::kMax}};

std::optional<int> ParseInt(std::string_view text) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The widths of eXmY or ueXmY.
struct Widths {
  Sign sign;
  int exponent_bits;
  int mantissa_bits;
};

std::optional<Widths> ParseWidths(std::string_view base) {
  Widths widths{Sign::kSignMagnitude, 0, 0};
  if (base.starts_with('u')) {
    widths.sign = Sign::kUnsigned;
    base.remove_prefix(1);
  }
  const size_t m = base.find('m');
  if (!base.starts_with('e') || m == std::string_view::npos) return std::nullopt;
  const auto exponent_bits = ParseInt(base.substr(1, m - 1));
  const auto mantissa_bits = ParseInt(base.substr(m + 1));
  if (!exponent_bits || !mantissa_bits) return std::nullopt;
  widths.exponent_bits = *exponent_bits;
  widths.mantissa_bits = *mantissa_bits;
  return widths;
}

void CheckWidths(const Widths& widths, std::string_view whole) {
  if (widths.exponent_bits < 1 || widths.exponent_bits > 8) {
    throw Error::Format(
        "format '{}': {} exponent bits, expected 1 to 8", whole, widths.exponent_bits);
  }
  if (widths.mantissa_bits < 0 || widths.mantissa_bits > 23) {
    throw Error::Format(
        "format '{}': {} mantissa bits, expected 0 to 23", whole, widths.mantissa_bits);
  }
}

FormatSpec IeeeLike(const Widths& widths) {
  return {.exponent_bits = static_cast<int8_t>(widths.exponent_bits),
          .mantissa_bits = static_cast<int8_t>(widths.mantissa_bits),
          .bias = static_cast<int16_t>((1 << (widths.exponent_bits - 1)) - 1),
          .sign = widths.sign,
          .zero = widths.sign == Sign::kUnsigned ? Zero::kUnsigned : Zero::kSigned,
          .infinity = Infinity::kIeee,
          .nan = Nan::kIeee,
          .overflow_to = OverflowTo::kInfinity};
}

// Returns the result of a finite overflow for a format text without the key `overflow`.
OverflowTo DefaultOverflow(const FormatSpec& spec) {
  if (spec.HasInfinity()) return OverflowTo::kInfinity;
  return spec.HasNan() ? OverflowTo::kNan : OverflowTo::kMax;
}

// Applies one KEY=VALUE.
void ApplyKey(FormatSpec& spec,
              std::string_view key,
              std::string_view value,
              std::string_view whole) {
  const std::string what = fmt::format("format '{}': {}", whole, key);
  if (key == "bias") {
    const auto bias = ParseInt(value);
    if (!bias || *bias < -512 || *bias > 512) {
      throw Error::Format("format '{}': bias={} is not an integer within 512", whole, value);
    }
    spec.bias = static_cast<int16_t>(*bias);
  } else if (key == "inf") {
    spec.infinity = ParseKeyword(kInfinities, what, value);
  } else if (key == "nan") {
    spec.nan = ParseKeyword(kNans, what, value);
  } else if (key == "zero") {
    spec.zero = ParseKeyword(kZeros, what, value);
  } else if (key == "overflow") {
    spec.overflow_to = ParseKeyword(kOverflows, what, value);
  } else if (key == "subnormals") {
    spec.flush_subnormals = ParseKeyword(kSubnormals, what, value);
  } else {
    throw Error::Format(
        "format '{}': unknown key '{}', expected bias, inf, nan, zero, overflow or "
        "subnormals{}",
        whole,
        key,
        key == "range" ? "; range is for integers and fixed point with a sign" : "");
  }
}

// Applies one KEY=VALUE to integers or fixed point in two's complement.
void ApplyTwosComplementKey(FormatSpec& spec,
                            std::string_view key,
                            std::string_view value,
                            std::string_view whole) {
  if (key != "range") {
    throw Error::Format(
        "format '{}': unknown key '{}', integers and fixed point with a sign have the key range",
        whole,
        key);
  }
  spec.full_range = ParseKeyword(kRanges, fmt::format("format '{}': range", whole), value);
}

void ApplyKeys(FormatSpec& spec, std::string_view keys, std::string_view whole) {
  std::set<std::string_view> seen;
  for (size_t begin = 0; begin <= keys.size();) {
    const size_t end = std::min(keys.find(',', begin), keys.size());
    const std::string_view piece = keys.substr(begin, end - begin);
    const size_t equals = piece.find('=');
    if (equals == std::string_view::npos) {
      throw Error::Format("format '{}': '{}' is not of the form KEY=VALUE", whole, piece);
    }
    const std::string_view key = piece.substr(0, equals);
    if (!seen.insert(key).second) {
      throw Error::Format("format '{}': {} is given twice", whole, key);
    }
    const bool complement = spec.sign == Sign::kTwosComplement;
    (complement ? ApplyTwosComplementKey : ApplyKey)(spec, key, piece.substr(equals + 1), whole);
    begin = end + 1;
  }
  if (spec.nan == Nan::kNegativeZero && !seen.contains("zero")) spec.zero = Zero::kUnsigned;
  if (!seen.contains("overflow")) spec.overflow_to = DefaultOverflow(spec);
}

// Returns true for table formats with a property that no key expresses. A custom format based on
// one could not be written as text again.
bool TakesNoKeys(const FormatSpec& spec) {
  return spec.subnormal_shift != 0 || spec.zero == Zero::kNone;
}

// Parses fixedI.F, ufixedI.F, intN and uintN. Throws Error if the widths are out of range; returns
// nothing for a text of another form.
std::optional<FormatSpec> ParseFixedPoint(std::string_view base, std::string_view whole) {
  const bool is_signed = !base.starts_with('u');
  if (!is_signed) base.remove_prefix(1);
  std::optional<int> integer_bits, fraction_bits = 0;
  if (base.starts_with("int")) {
    integer_bits = ParseInt(base.substr(3));
  } else if (base.starts_with("fixed")) {
    base.remove_prefix(5);
    const size_t point = base.find('.');
    if (point == base.npos) return std::nullopt;
    integer_bits = ParseInt(base.substr(0, point));
    fraction_bits = ParseInt(base.substr(point + 1));
  }
  if (!integer_bits || !fraction_bits) return std::nullopt;
  const int least = is_signed ? 1 : 0, most = is_signed ? 25 : 24;
  if (*integer_bits < least || *integer_bits > most || *fraction_bits < 0 ||
      *fraction_bits > most || *integer_bits + *fraction_bits < 2 ||
      *integer_bits + *fraction_bits > most) {
    throw Error::Format(
        "format '{}': {} integer and {} fraction bits, expected at least {} and 0 "
        "and 2 to {} in all",
        whole,
        *integer_bits,
        *fraction_bits,
        least,
        most);
  }
  return format_list::FixedPoint(
      *integer_bits, *fraction_bits, is_signed ? Sign::kTwosComplement : Sign::kUnsigned);
}

// Returns the text that ParseFixedPoint parses to `spec`, or nothing if there is none.
std::optional<std::string> FixedPointText(const FormatSpec& spec) {
  if (!spec.IsFixedPoint()) return std::nullopt;
  const int fraction_bits = -spec.SubnormalExponent(), integer_bits = spec.Bits() - fraction_bits;
  const bool is_signed = spec.IsSigned();
  if (fraction_bits < 0 || integer_bits < (is_signed ? 1 : 0)) return std::nullopt;
  // int8 is the symmetric format of the table.
  const bool integers = fraction_bits == 0 && !(is_signed && integer_bits == 8);
  return fmt::format("{}{}{}{}",
                     is_signed ? "" : "u",
                     integers ? "int" : "fixed",
                     integers ? fmt::format("{}", integer_bits)
                              : fmt::format("{}.{}", integer_bits, fraction_bits),
                     is_signed && !spec.full_range ? ":range=symmetric" : "");
}

// Parses binaryKpP{s|u}{e|f} [P3109] of any width. Throws Error if the widths are impossible;
// returns nothing for a text of another form.
std::optional<FormatSpec> ParseP3109(std::string_view base, std::string_view whole) {
  constexpr std::string_view kPrefix = "binary";
  const size_t p = base.find('p');
  if (!base.starts_with(kPrefix) || p == base.npos || base.size() < p + 4) return std::nullopt;
  const char sign = base[base.size() - 2], domain = base.back();
  if ((sign != 's' && sign != 'u') || (domain != 'e' && domain != 'f')) return std::nullopt;
  const auto width = ParseInt(base.substr(kPrefix.size(), p - kPrefix.size()));
  const auto precision = ParseInt(base.substr(p + 1, base.size() - p - 3));
  if (!width || !precision) return std::nullopt;
  const int64_t exponent_bits = int64_t{*width} - *precision + (sign == 'u' ? 1 : 0);
  if (*precision < 1 || exponent_bits < 1) {
    throw Error::Format("format '{}': the precision leaves no exponent", whole);
  }
  if (exponent_bits > 8 || *precision > 24) {
    throw Error::Format("format '{}': {} exponent bits and precision {}, expected at most 8 and 24",
                        whole,
                        exponent_bits,
                        *precision);
  }
  return format_list::Binary(
      *width,
      *precision,
      sign == 'u' ? Sign::kUnsigned : Sign::kSignMagnitude,
      domain == 'e' ? format_list::Domain::kExtended : format_list::Domain::kFinite);
}

// Returns the format with which a text begins. `with_keys` says whether keys follow.
FormatSpec ParseBase(std::string_view base, bool with_keys, std::string_view whole) {
  std::string folded = FoldedName(base);
  const bool ieee = folded.starts_with(kIeeePrefix);
  if (ieee) folded.erase(0, kIeeePrefix.size());
  const auto widths = ParseWidths(folded);
  const FormatEntry* const entry = ieee ? nullptr : FindFoldedName(folded);
  // e8m0 is a format that takes no keys, and a shape that needs some.
  if (entry != nullptr && !(with_keys && widths && TakesNoKeys(entry->spec))) return entry->spec;
  if (const auto p3109 = ParseP3109(folded, whole); p3109 && !ieee) return *p3109;
  if (const auto fixed = ParseFixedPoint(folded, whole); fixed && !ieee) return *fixed;
  if (!widths) throw UnknownFormat(whole, base);
  CheckWidths(*widths, whole);
  return IeeeLike(*widths);
}

}  // namespace

Format ParseFormatWithoutNote(std::string_view text) {
  const size_t colon = text.find(':', text.find("::") == text.npos ? 0 : text.find("::") + 2);
  const bool with_keys = colon != std::string_view::npos;
  FormatSpec spec = ParseBase(text.substr(0, colon), with_keys, text);
  if (with_keys) {
    if (TakesNoKeys(spec)) {
      throw Error::Format("format '{}': {} takes no options", text, text.substr(0, colon));
    }
    ApplyKeys(spec, text.substr(colon + 1), text);
  }
  ValidateFormat(spec, text);
  return {ToString(spec), spec};
}

Format ParseFormat(std::string_view text) {
  Format format = ParseFormatWithoutNote(text);
  PassNoteOn(text);
  return format;
}

std::vector<Format> ParseFormatList(std::string_view text) {
  std::vector<Format> formats;
  for (const std::string& piece : SplitFormatList(text)) formats.push_back(ParseFormat(piece));
  return formats;
}

void ValidateFormat(const FormatSpec& spec, std::string_view text) {
  const auto fail = [text](std::string_view why) {
    throw Error::Format("format '{}': {}", text, why);
  };
  CheckWidths({spec.sign, spec.exponent_bits, spec.mantissa_bits}, text);
  if (spec.Bits() < 2) fail("a code of fewer than 2 bits");
  if ((spec.infinity == Infinity::kIeee) != (spec.nan == Nan::kIeee)) {
    fail("inf=ieee and nan=ieee share the top exponent and come only together");
  }
  if (spec.nan == Nan::kIeee && spec.mantissa_bits == 0) fail("nan=ieee needs a mantissa bit");
  if (spec.nan == Nan::kNegativeZero && (!spec.IsSigned() || spec.zero != Zero::kUnsigned)) {
    fail("nan=negative-zero needs a sign bit and zero=unsigned");
  }
  if (!spec.IsSigned() && spec.zero == Zero::kSigned) fail("zero=signed needs a sign bit");
  if (spec.zero == Zero::kUnsigned && spec.sign == Sign::kSignMagnitude &&
      spec.nan != Nan::kNegativeZero) {
    fail("zero=unsigned leaves the code of negative zero without a meaning: use nan=negative-zero");
  }
  if (spec.overflow_to == OverflowTo::kInfinity && !spec.HasInfinity()) {
    fail("overflow=inf needs an infinity");
  }
  if (spec.overflow_to == OverflowTo::kNan && !spec.HasNan()) fail("overflow=nan needs a NaN");
  const int special_codes =
      (spec.nan == Nan::kAllOnes ? 1 : 0) + (spec.infinity == Infinity::kTopCode ? 1 : 0);
  if (spec.MagnitudeMask() < 1u + static_cast<uint32_t>(special_codes) ||
      spec.MaxFiniteCode() == 0) {
    fail("no finite value besides zero");
  }
  const bool twos_complement = spec.sign == Sign::kTwosComplement;
  if (twos_complement && !spec.IsFixedPoint())
    fail("two's complement is for integers and fixed point");
  if (spec.full_range && !twos_complement) fail("range=full needs two's complement");
  if (spec.flush_subnormals) {
    const bool zeros =
        spec.zero == Zero::kSigned || (spec.zero == Zero::kUnsigned && !spec.IsSigned());
    if (!zeros || spec.subnormal_shift != 0) {
      fail("subnormals=flush needs zero=signed where there is a sign");
    }
    if (spec.MaxFiniteCode() >> spec.mantissa_bits == 0) fail("no finite value besides zero");
  }
  if (spec.MaxExponent() > 127) fail("its largest value exceeds float32's: raise bias");
  if (spec.SubnormalExponent() < -149) fail("its smallest value is below float32's: lower bias");
}

std::string ToString(const FormatSpec& spec) {
  for (const FormatEntry& entry : FormatTable()) {
    if (entry.spec == spec) return std::string(entry.name);
  }
  if (spec.IsTable()) return TableOf(spec).name;
  if (const auto text = FixedPointText(spec)) return *text;
  const Widths widths{spec.sign, spec.exponent_bits, spec.mantissa_bits};
  const FormatSpec base = IeeeLike(widths);
  std::string text = fmt::format("{}e{}m{}",
                                 spec.sign == Sign::kUnsigned ? "u" : "",
                                 widths.exponent_bits,
                                 widths.mantissa_bits);
  // The bare name of some shapes is another format. With the prefix, what is added below is
  // complete, and older texts become today's by the prefix alone (FromFormerNames).
  const FormatEntry* const bare = FindFoldedName(text);
  if (bare != nullptr && bare->spec != base && !TakesNoKeys(bare->spec))
    text.insert(0, kIeeePrefix);
  char separator = ':';
  const auto add = [&](std::string_view key, auto value) {
    text += fmt::format("{}{}={}", separator, key, value);
    separator = ',';
  };
  if (spec.bias != base.bias) add("bias", spec.bias);
  if (spec.infinity != base.infinity) add("inf", KeywordToString(kInfinities, spec.infinity));
  if (spec.nan != base.nan) add("nan", KeywordToString(kNans, spec.nan));
  const Zero implied = spec.nan == Nan::kNegativeZero ? Zero::kUnsigned : base.zero;
  if (spec.zero != implied) add("zero", KeywordToString(kZeros, spec.zero));
  if (spec.overflow_to != DefaultOverflow(spec)) {
    add("overflow", KeywordToString(kOverflows, spec.overflow_to));
  }
  if (spec.flush_subnormals) add("subnormals", KeywordToString(kSubnormals, true));
  return text;
}

}  // namespace numsim
