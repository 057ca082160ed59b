// `numsim inspect`: shows one value in one format with every rounding mode.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/profile_lines.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/table_file.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/exact_number.h"
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
  // A blank comes before "-inf", which would be an option.
  return ParseExactSum(
      std::string_view(text).substr(std::min(text.find_first_not_of(' '), text.size())), "VALUE");
}

std::string Described(const FormatSpec& format, uint32_t code) {
  const ValueClass value_class = ClassOf(format, code);
  return fmt::format("{}  {}  {:<14} {}",
                     CodeText(format, code),
                     BitsText(format, code),
                     ValueText(Decode(format, code)),
                     value_class == ValueClass::kNormal ? "" : ClassText(value_class));
}

void Line(const std::string& key, const std::string& value) {
  const std::string text = fmt::format("{:<17}{}", key, value);
  fmt::print("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
}

uint32_t Code(const FormatSpec& format,
              const Unrounded& value,
              RoundingMode mode,
              Overflow overflow = Overflow::kSaturate) {
  return EncodeUnrounded(MakeEncodePlan(format, {mode}, overflow), value).code;
}

// The neighbours of a finite value in the format: `low` toward zero and `high` away from it. The
// magnitudes are exact.
struct Neighbours {
  uint32_t low, high;
  ExactNumber value, low_value, high_value;

  ExactNumber FromLow() const { return value - low_value; }
  ExactNumber ToHigh() const { return high_value - value; }
  double Gap() const { return (high_value - low_value).ToFloat64(); }
  // The part of the gap from `low` to the value, right to about 2^-52 of itself.
  double Fraction() const { return FromLow().ToFloat64() / Gap(); }
};

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

// Returns a positive number as text.
std::string SmallText(double x) { return x == 0 ? "less than 4.94e-324" : fmt::format("{}", x); }

// Returns the fraction as text. Where its digits show 0.5 or 1 and it is neither, the rest is shown
// too, as in "0.5 + 1.6e-28".
std::string FractionText(const Neighbours& n) {
  const double fraction = n.Fraction(), gap = n.Gap();
  if (fraction == 1) return "1 - " + SmallText(n.ToHigh().ToFloat64() / gap);
  if (fraction != 0.5) return SmallText(fraction);
  const ExactNumber beyond = n.FromLow() - n.ToHigh();  // twice the distance to the midpoint
  if (beyond.IsZero()) return "0.5";
  return fmt::format("0.5 {} {}",
                     beyond.negative() ? '-' : '+',
                     SmallText(std::abs(beyond.ToFloat64()) / gap / 2));
}

void PrintNeighbours(const FormatSpec& format, double sign, const Neighbours& n) {
  const double low = n.low_value.ToFloat64(), high = n.high_value.ToFloat64();
  Line("toward zero", Described(format, n.low));
  Line("away from zero", Described(format, n.high));
  Line("gap", fmt::format("{}, midpoint {}", n.Gap(), sign * (low + (high - low) / 2)));
  Line("distances",
       fmt::format("{} and {}: the value lies {} of the gap from {}",
                   SmallText(n.FromLow().ToFloat64()),
                   SmallText(n.ToHigh().ToFloat64()),
                   FractionText(n),
                   sign * low));
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

void PrintStochastic(const FormatSpec& format,
                     const Unrounded& value,
                     const Neighbours& n,
                     int random_bits) {
  fmt::print("\nstochastic rounding with {} random bits: probability of each neighbour\n",
             random_bits);
  const double words = std::ldexp(1.0, random_bits);
  for (const StochasticVariant variant : kVariants) {
    const Rounding rounding{RoundingMode::kStochastic, variant, random_bits};
    const uint64_t away = CountAway(format, value, rounding, n.high);
    Line(fmt::format("  variant {}", ToString(variant)),
         fmt::format("P({}) = {:.12g}   P({}) = {:.12g} = {} / 2^{}",
                     ValueText(Decode(format, n.low)),
                     (words - static_cast<double>(away)) / words,
                     ValueText(Decode(format, n.high)),
                     static_cast<double>(away) / words,
                     away,
                     random_bits));
  }
  Line("  unlimited bits",
       fmt::format("P({}) = {:.12g}   P({}) = {:.12g}",
                   ValueText(Decode(format, n.low)),
                   n.ToHigh().ToFloat64() / n.Gap(),
                   ValueText(Decode(format, n.high)),
                   n.Fraction()));
}

void PrintRoundings(const FormatSpec& format, const Unrounded& value) {
  fmt::print("\n{:<17}code, bits, value (nonsaturate; other policies where they differ)\n",
             "rounding");
  for (const RoundingMode mode : kDeterministicModes) {
    const uint32_t code = Code(format, value, mode, Overflow::kNonsaturate);
    Line(fmt::format("  {}", ToString(mode)), Described(format, code));
    for (const Overflow overflow : {Overflow::kSaturate, Overflow::kPropagate}) {
      const uint32_t other = Code(format, value, mode, overflow);
      if (other == code) continue;
      Line(fmt::format("  {} {}", ToString(mode), ToString(overflow)), Described(format, other));
    }
  }
}

// Returns the value as given, and as float64.
std::string GivenText(const std::string& text, const ExactNumber& value) {
  constexpr size_t kShown = 60;
  const std::string given =
      text.size() <= kShown
          ? text
          : fmt::format("{}... ({} characters)", text.substr(0, kShown), text.size());
  const double nearest = value.ToFloat64();
  return fmt::format("{}{}float64 {:a} ({:.17g}){}",
                     given,
                     value.IsFloat64() ? " = " : " (exact; nearest ",
                     nearest,
                     nearest,
                     value.IsFloat64() ? "" : ")");
}

void PrintNoNeighbours(const FormatSpec& format,
                       const ExactNumber& value,
                       const Unrounded& rounded) {
  const uint32_t code = Code(format, rounded, RoundingMode::kNearestEven);
  const bool exact = (ExactNumber(ExactValue(format, code)) - value).IsZero();
  Line("neighbours",
       exact ? "none: the value is exact" : "none: the value is outside the format's range");
}

int Inspect(const std::string& format_text,
            const std::string& value_text,
            int random_bits,
            const std::string& profile) {
  const Format format = ParseCastFormat(format_text);
  const ExactNumber value = ParseValue(format.spec, value_text);
  const std::string profile_lines =
      profile.empty() ? "" : ProfileLines(profile, format, value);  // throws before any output
  const Unrounded rounded = value.Rounded();
  Line("format", format.name);
  Line("value", GivenText(value_text, value));
  const auto neighbours =
      value.IsFinite() ? FindNeighbours(format.spec, value, rounded) : std::nullopt;
  if (neighbours) {
    PrintNeighbours(format.spec, value.negative() ? -1 : 1, *neighbours);
  } else if (value.IsFinite()) {
    PrintNoNeighbours(format.spec, value, rounded);
  }
  PrintRoundings(format.spec, rounded);
  if (neighbours) PrintStochastic(format.spec, rounded, *neighbours, random_bits);
  fmt::print("{}", profile_lines);
  return 0;
}

}  // namespace

void AddInspectCommand(Program& program) {
  struct Options {
    std::string format, value, profile;
    int random_bits = 32;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "inspect", "Show the code, neighbours and roundings of one value in one format");
  sub->add_option("FORMAT", options->format, "Format: a name, a custom format or table:FILE")
      ->required();
  sub->add_option("VALUE",
                  options->value,
                  "A number (decimal or hexadecimal, of any length), a sum A+B, or a code:0x..; "
                  "rounded once, from its exact value")
      ->required();
  sub->add_option("--sr-bits", options->random_bits, "Number of random bits of stochastic rounding")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  sub->add_option("--profile",
                  options->profile,
                  "Also show the result of this profile (see `oracle profiles`), or of all")
      ->check(NotEmpty());
  sub->allow_extras(false);
  Example(sub, "numsim inspect e4m3fn 0.78\n  numsim inspect e4m3fn 0.75+0.03 --sr-bits 8");
  Choose(program, sub, [options] {
    return Inspect(options->format, options->value, options->random_bits, options->profile);
  });
}

}  // namespace numsim::apps
