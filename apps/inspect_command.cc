// `numsim inspect`: shows one value in one format with every rounding mode.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/profile_lines.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim::apps {
namespace {

constexpr StochasticVariant kVariants[] = {
    StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC};

// Returns the number at the start of `text` and sets `rest` to the text after it. `whole` is the
// complete argument, for messages.
double ParseNumber(const std::string& text, std::string* rest, const std::string& whole) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  if (end == begin) {
    throw Error::Format(
        "VALUE '{}' is not a number, a sum A+B or code:0x..., e.g. 0.78, 0x1.8p-1, -inf, 0.75+0.03",
        whole);
  }
  *rest = end;
  return value;
}

uint32_t ParseCode(const FormatSpec& format, const std::string& text) {
  char* end = nullptr;
  const unsigned long long code = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || text[0] == '-' || code > format.CodeMask()) {
    throw Error::Format("VALUE 'code:{}' is not a code with {} bits", text, format.Bits());
  }
  return static_cast<uint32_t>(code);
}

// Parses a code, a number, or a sum of two numbers such as "0.75+0.03", computed in float64.
double ParseValue(const FormatSpec& format, const std::string& text) {
  if (text.starts_with("code:")) {
    return static_cast<double>(Decode(format, ParseCode(format, text.substr(5))));
  }
  std::string rest;
  const double value = ParseNumber(text, &rest, text);
  if (rest.empty()) return value;
  if (rest[0] != '+' && rest[0] != '-') ParseNumber("", &rest, text);  // throws
  std::string after;
  const double second = ParseNumber(rest, &after, text);
  if (!after.empty()) ParseNumber("", &rest, text);  // throws
  return value + second;
}

std::string Described(const FormatSpec& format, uint32_t code) {
  const ValueClass value_class = Classify(format, code);
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

// The neighbours of a finite value in the format: `low` toward zero and `high` away from it, with
// value == low + fraction * (high - low).
struct Neighbours {
  uint32_t low, high;
  double fraction;
};

// Returns the neighbours, or nothing if they are equal or do not enclose the value.
std::optional<Neighbours> FindNeighbours(const FormatSpec& format, double value) {
  const uint32_t low = Encode(format, value, {RoundingMode::kTowardZero}, Overflow::kSaturate);
  const RoundingMode away = value < 0 ? RoundingMode::kDown : RoundingMode::kUp;
  const uint32_t high = Encode(format, value, {away}, Overflow::kSaturate);
  const double low_value = static_cast<double>(Decode(format, low));
  const double high_value = static_cast<double>(Decode(format, high));
  const bool between = std::abs(low_value) <= std::abs(value) &&
                       std::abs(value) <= std::abs(high_value) && low != high;
  if (!between) return std::nullopt;
  return Neighbours{low, high, (value - low_value) / (high_value - low_value)};
}

void PrintNeighbours(const FormatSpec& format, double value, const Neighbours& n) {
  const double low = static_cast<double>(Decode(format, n.low));
  const double high = static_cast<double>(Decode(format, n.high));
  Line("toward zero", Described(format, n.low));
  Line("away from zero", Described(format, n.high));
  Line("gap", fmt::format("{}, midpoint {}", std::abs(high - low), low + (high - low) / 2));
  Line("distances",
       fmt::format("{} and {}: the value lies {} of the gap from {}",
                   std::abs(value - low),
                   std::abs(high - value),
                   n.fraction,
                   low));
}

// Returns the number of random words for which the value is rounded away from zero. Because
// rounding away is monotone in R, a binary search over the words with the encoder itself counts
// them exactly.
uint64_t CountAway(const FormatSpec& format,
                   double value,
                   const Rounding& rounding,
                   uint32_t high) {
  const EncodePlan plan = MakeEncodePlan(format, rounding, Overflow::kSaturate);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t low = 0, end = uint64_t{1} << rounding.random_bits;  // first word that rounds away
  const uint64_t words = end;
  while (low < end) {
    const uint64_t middle = (low + end) / 2;
    if (EncodeF64(plan, bits, static_cast<uint32_t>(middle)) == high) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return words - low;
}

void PrintStochastic(const FormatSpec& format, double value, const Neighbours& n, int random_bits) {
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
                   1 - n.fraction,
                   ValueText(Decode(format, n.high)),
                   n.fraction));
}

void PrintRoundings(const FormatSpec& format, double value) {
  fmt::print("\n{:<17}code, bits, value (nonsaturate; other policies where they differ)\n",
             "rounding");
  for (const RoundingMode mode : kDeterministicModes) {
    const uint32_t code = Encode(format, value, {mode}, Overflow::kNonsaturate);
    Line(fmt::format("  {}", ToString(mode)), Described(format, code));
    for (const Overflow overflow : {Overflow::kSaturate, Overflow::kPropagate}) {
      const uint32_t other = Encode(format, value, {mode}, overflow);
      if (other == code) continue;
      Line(fmt::format("  {} {}", ToString(mode), ToString(overflow)), Described(format, other));
    }
  }
}

int Inspect(const std::string& format_text,
            const std::string& value_text,
            int random_bits,
            const std::string& profile) {
  const Format format = ParseFormat(format_text);
  const double value = ParseValue(format.spec, value_text);
  const std::string profile_lines =
      profile.empty() ? "" : ProfileLines(profile, format, value);  // throws before any output
  Line("format", format.name);
  Line("value",
       fmt::format("{} = float64 {} ({:.17g})", value_text, fmt::format("{:a}", value), value));
  const auto neighbours = std::isfinite(value) ? FindNeighbours(format.spec, value) : std::nullopt;
  if (neighbours) {
    PrintNeighbours(format.spec, value, *neighbours);
  } else if (std::isfinite(value)) {
    const uint32_t code = Encode(format.spec, value, {}, Overflow::kSaturate);
    const bool exact = static_cast<double>(Decode(format.spec, code)) == value;
    Line("neighbours",
         exact ? "none: the value is exact" : "none: the value is outside the format's range");
  }
  PrintRoundings(format.spec, value);
  if (neighbours) PrintStochastic(format.spec, value, *neighbours, random_bits);
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
  sub->add_option("FORMAT", options->format, "Format: a name or a custom format")->required();
  sub->add_option(
         "VALUE", options->value, "A number, a sum A+B (computed in float64), or a code:0x..")
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
