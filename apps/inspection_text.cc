// The inspection of one value in one format, as text and as JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/format_text.h"
#include "apps/inspection.h"
#include "numsim/formats/decode.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string Described(const FormatSpec& format, uint32_t code) {
  const ValueClass value_class = ClassOf(format, code);
  return fmt::format("{}  {}  {:<14} {}",
                     CodeText(format, code),
                     BitsText(format, code),
                     ValueText(Decode(format, code)),
                     value_class == ValueClass::kNormal ? "" : ClassText(value_class));
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

// The numbers of the neighbours as text, signed as the value is.
struct NeighbourText {
  std::string gap, midpoint, from_low, to_high, fraction;
  double low;

  explicit NeighbourText(const Inspection& x) {
    const Neighbours& n = *x.neighbours;
    const double sign = x.value.negative() ? -1 : 1;
    const double magnitude = n.low_value.ToFloat64();
    low = sign * magnitude;
    gap = fmt::format("{}", n.Gap());
    midpoint = fmt::format("{}", sign * (magnitude + (n.high_value.ToFloat64() - magnitude) / 2));
    from_low = SmallText(n.FromLow().ToFloat64());
    to_high = SmallText(n.ToHigh().ToFloat64());
    fraction = FractionText(n);
  }
};

// The probabilities of the two neighbours as text.
struct ProbabilityText {
  std::string low, high;

  ProbabilityText(double p_low, double p_high)
      : low(fmt::format("{:.12g}", p_low)), high(fmt::format("{:.12g}", p_high)) {}
  ProbabilityText(const StochasticCount& count, int random_bits)
      : ProbabilityText((std::ldexp(1.0, random_bits) - static_cast<double>(count.away)) /
                            std::ldexp(1.0, random_bits),
                        static_cast<double>(count.away) / std::ldexp(1.0, random_bits)) {}
  explicit ProbabilityText(const Neighbours& n)  // of unlimited random bits
      : ProbabilityText(n.ToHigh().ToFloat64() / n.Gap(), n.Fraction()) {}
};

// Lines of a key and its text.
class Lines {
 public:
  void Add(const std::string& key, const std::string& value) {
    const std::string line = fmt::format("{:<17}{}", key, value);
    text_ += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  void AddTitle(const std::string& title) { text_ += "\n" + title + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void AddNeighbours(const Inspection& x, Lines& lines) {
  const FormatSpec& spec = x.format.spec;
  const NeighbourText text(x);
  lines.Add("toward zero", Described(spec, x.neighbours->low));
  lines.Add("away from zero", Described(spec, x.neighbours->high));
  lines.Add("gap", fmt::format("{}, midpoint {}", text.gap, text.midpoint));
  lines.Add("distances",
            fmt::format("{} and {}: the value lies {} of the gap from {}",
                        text.from_low,
                        text.to_high,
                        text.fraction,
                        text.low));
}

void AddRoundings(const Inspection& x, Lines& lines) {
  lines.AddTitle(fmt::format(
      "{:<17}code, bits, value (nonsaturate; other policies where they differ)", "rounding"));
  for (const RoundedCode& rounded : x.roundings) {
    const bool other = rounded.overflow != Overflow::kNonsaturate;
    lines.Add(fmt::format("  {}{}{}",
                          ToString(rounded.mode),
                          other ? " " : "",
                          other ? ToString(rounded.overflow) : ""),
              Described(x.format.spec, rounded.code));
  }
}

// Returns why a finite value has no neighbours.
std::string NoNeighbours(const Inspection& x) {
  if (x.exact) return "none: the value is exact";
  const FormatSpec& spec = x.format.spec;
  const bool flushed = spec.flush_subnormals && Decode(spec, x.roundings.front().code) == 0;
  return flushed ? "none: the value is flushed to zero"
                 : "none: the value is outside the format's range";
}

void AddStochastic(const Inspection& x, Lines& lines) {
  lines.AddTitle(fmt::format(
      "stochastic rounding with {} random bits: probability of each neighbour", x.random_bits));
  const std::string low = ValueText(Decode(x.format.spec, x.neighbours->low));
  const std::string high = ValueText(Decode(x.format.spec, x.neighbours->high));
  const auto text = [&](const ProbabilityText& p) {
    return fmt::format("P({}) = {}   P({}) = {}", low, p.low, high, p.high);
  };
  for (const StochasticCount& count : x.stochastic) {
    lines.Add(fmt::format("  variant {}", ToString(count.variant)),
              fmt::format("{} = {} / 2^{}",
                          text(ProbabilityText(count, x.random_bits)),
                          count.away,
                          x.random_bits));
  }
  lines.Add("  unlimited bits", text(ProbabilityText(*x.neighbours)));
}

Json CodeJson(const FormatSpec& format, uint32_t code) {
  return {{"code", CodeText(format, code)},
          {"bits", BitsText(format, code)},
          {"value", ValueText(Decode(format, code))},
          {"class", ClassText(ClassOf(format, code))}};
}

Json NeighboursJson(const Inspection& x) {
  if (!x.neighbours) return nullptr;
  const NeighbourText text(x);
  return {{"toward_zero", CodeJson(x.format.spec, x.neighbours->low)},
          {"away_from_zero", CodeJson(x.format.spec, x.neighbours->high)},
          {"gap", text.gap},
          {"midpoint", text.midpoint},
          {"from_toward_zero", text.from_low},
          {"to_away_from_zero", text.to_high},
          {"fraction", text.fraction}};
}

Json StochasticJson(const Inspection& x) {
  Json list = Json::array();
  const auto add = [&](const std::string& variant, const ProbabilityText& p, const Json& away) {
    list.push_back({{"variant", variant},
                    {"p_toward_zero", p.low},
                    {"p_away_from_zero", p.high},
                    {"words_away_from_zero", away}});
  };
  for (const StochasticCount& count : x.stochastic) {
    add(std::string(ToString(count.variant)), {count, x.random_bits}, count.away);
  }
  if (x.neighbours) add("unlimited bits", ProbabilityText(*x.neighbours), nullptr);
  return list;
}

}  // namespace

std::string InspectionText(const Inspection& x) {
  Lines lines;
  lines.Add("format", x.format.name);
  lines.Add("value", GivenText(x.text, x.value));
  if (x.neighbours) {
    AddNeighbours(x, lines);
  } else if (x.value.IsFinite()) {
    lines.Add("neighbours", NoNeighbours(x));
  }
  AddRoundings(x, lines);
  if (x.neighbours) AddStochastic(x, lines);
  return lines.text();
}

std::string InspectionJson(const Inspection& x) {
  Json roundings = Json::array();
  for (const RoundedCode& rounded : x.roundings) {
    Json item{{"mode", ToString(rounded.mode)}, {"overflow", ToString(rounded.overflow)}};
    item.update(CodeJson(x.format.spec, rounded.code));
    roundings.push_back(std::move(item));
  }
  const Json json{{"format", x.format.name},
                  {"value", GivenText(x.text, x.value)},
                  {"float64", fmt::format("{}", x.value.ToFloat64())},
                  {"exact", x.exact},
                  {"neighbours", NeighboursJson(x)},
                  {"roundings", std::move(roundings)},
                  {"random_bits", x.random_bits},
                  {"stochastic", StochasticJson(x)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace numsim::apps
