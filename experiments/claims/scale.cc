#include "experiments/claims/scale.h"

#include <fmt/format.h>

#include <cmath>

namespace numsim::experiments {
namespace {

constexpr double kShareOfPaper = 0.1;  // below it a training is a toy

}  // namespace

std::string ScaleWord(const TrainedScale& scale) {
  if (scale.parameters == 0) return kMechanism;
  if (scale.paper_parameters == 0) return "";
  const bool small = scale.parameters < kShareOfPaper * scale.paper_parameters ||
                     scale.tokens < kShareOfPaper * scale.paper_tokens;
  return small ? kToy : kPaperScale;
}

std::string SizeText(const TrainedScale& scale) {
  return SizeText(ScaleWord(scale), scale.parameters, scale.tokens);
}

std::string SizeText(const std::string& word, double parameters, double tokens) {
  if (parameters == 0) return word;
  return fmt::format("{}{}{} / {} tokens",
                     word,
                     word.empty() ? "" : ", ",
                     CountText(parameters),
                     CountText(tokens));
}

double TwoDigits(double count) {
  if (count == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(count)) - 1);
  return std::round(count / unit) * unit;
}

std::string CountText(double count) {
  constexpr double kThousand = 1e3;
  if (count < kThousand) return fmt::format("{:g}", count);
  struct Unit {
    double below, size;
    const char* letter;
  };
  // From a tenth of a million on: 0.14 M rather than 140 k.
  for (const Unit& unit : {Unit{1e5, 1e3, "k"}, {1e9, 1e6, "M"}, {1e12, 1e9, "B"}}) {
    const double rounded = TwoDigits(count);
    if (rounded < unit.below) return fmt::format("{:g} {}", rounded / unit.size, unit.letter);
  }
  return fmt::format("{:g} T", TwoDigits(count) / 1e12);
}

}  // namespace numsim::experiments
