// The inspection of one value in one format, as data.
#include "apps/inspection.h"

#include <algorithm>
#include <cstdlib>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::apps {
namespace {

constexpr StochasticVariant kVariants[] = {
    StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC};

uint32_t ParseCode(const FormatSpec& format, const std::string& text) {
  char* end = nullptr;
  const unsigned long long code = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || text[0] == '-' || code > format.CodeMask()) {
    throw Error::Format("VALUE 'code:{}' is not a code with {} bits", text, format.Bits());
  }
  return static_cast<uint32_t>(code);
}

// Parses a code, a number, or a sum of two numbers such as "0.75+0.03".
ExactNumber ParseValue(const FormatSpec& format, const std::string& text) {
  if (text.starts_with("code:")) {
    return ExactNumber(ExactValue(format, ParseCode(format, text.substr(5))));
  }
  return ParseExactSum(text, "VALUE");
}

uint32_t Code(const FormatSpec& format,
              const Unrounded& value,
              RoundingMode mode,
              Overflow overflow = Overflow::kSaturate) {
  return EncodeUnrounded(MakeEncodePlan(format, {mode}, overflow), value).code;
}

ExactNumber Magnitude(const ExactNumber& x) { return x.negative() ? -x : x; }

// Returns the neighbours, or nothing if they are equal or do not enclose the value.
std::optional<Neighbours> FindNeighbours(const FormatSpec& format,
                                         const ExactNumber& value,
                                         const Unrounded& rounded) {
  const uint32_t low = Code(format, rounded, RoundingMode::kTowardZero);
  const uint32_t high =
      Code(format, rounded, value.negative() ? RoundingMode::kDown : RoundingMode::kUp);
  const Neighbours n{low,
                     high,
                     Magnitude(value),
                     Magnitude(ExactNumber(ExactValue(format, low))),
                     Magnitude(ExactNumber(ExactValue(format, high)))};
  const bool finite = n.low_value.IsFinite() && n.high_value.IsFinite();
  const bool between = finite && !n.FromLow().negative() && !n.ToHigh().negative();
  if (!between || low == high) return std::nullopt;
  return n;
}

// Returns the number of random words for which the value is rounded away from zero. Because
// rounding away is monotone in R, a binary search over the words with the encoder itself counts
// them exactly.
uint64_t CountAway(const FormatSpec& format,
                   const Unrounded& value,
                   const Rounding& rounding,
                   uint32_t high) {
  const EncodePlan plan = MakeEncodePlan(format, rounding, Overflow::kSaturate);
  uint64_t low = 0, end = uint64_t{1} << rounding.random_bits;  // first word that rounds away
  const uint64_t words = end;
  while (low < end) {
    const uint64_t middle = (low + end) / 2;
    if (EncodeUnrounded(plan, value, static_cast<uint32_t>(middle)).code == high) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return words - low;
}

std::vector<RoundedCode> Roundings(const FormatSpec& format, const Unrounded& value) {
  std::vector<RoundedCode> roundings;
  for (const RoundingMode mode : kDeterministicModes) {
    const uint32_t code = Code(format, value, mode, Overflow::kNonsaturate);
    roundings.push_back({mode, Overflow::kNonsaturate, code});
    for (const Overflow overflow : {Overflow::kSaturate, Overflow::kPropagate}) {
      const uint32_t other = Code(format, value, mode, overflow);
      if (other != code) roundings.push_back({mode, overflow, other});
    }
  }
  return roundings;
}

}  // namespace

Inspection Inspect(const Format& format, const std::string& value, int random_bits) {
  Inspection x{.format = format};
  // The program puts a blank before "-inf", which would be an option.
  x.text = value.substr(std::min(value.find_first_not_of(' '), value.size()));
  const FormatSpec& spec = x.format.spec;
  x.value = ParseValue(spec, x.text);
  x.random_bits = random_bits;
  const Unrounded rounded = x.value.Rounded();
  x.roundings = Roundings(spec, rounded);
  if (!x.value.IsFinite()) return x;
  x.neighbours = FindNeighbours(spec, x.value, rounded);
  if (!x.neighbours) {
    const uint32_t code = Code(spec, rounded, RoundingMode::kNearestEven);
    x.exact = (ExactNumber(ExactValue(spec, code)) - x.value).IsZero();
    return x;
  }
  for (const StochasticVariant variant : kVariants) {
    const Rounding rounding{RoundingMode::kStochastic, variant, random_bits};
    x.stochastic.push_back({variant, CountAway(spec, rounded, rounding, x.neighbours->high)});
  }
  return x;
}

}  // namespace numsim::apps
