#include "experiments/runner/arm_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/claims/parse.h"
#include "numsim/base/error.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {
namespace {

constexpr std::string_view kBetweenArms = "; ", kBeforeRate = ": ";

double Number(const std::string& rate) {
  double value = 0;
  if (!Parse(rate, value) || !(value > 0) || !std::isfinite(value)) {
    throw Error::Format("'{}' is no learning rate: expected a number above 0", rate);
  }
  return value;
}

// The losses of an arm at a rate.
struct AtRate {
  double number = 0;
  std::string text;
  double sum = 0, seeds = 0;

  double Mean() const { return sum / seeds; }
};

ArmRate ChooseRate(const std::string& arm, std::vector<AtRate> rates) {
  std::ranges::stable_sort(rates, {}, &AtRate::number);
  size_t best = 0;
  for (size_t i = 1; i < rates.size(); ++i) {
    if (rates[i].Mean() < rates[best].Mean()) best = i;
  }
  return {.arm = arm, .rate = rates[best].text, .at_end = best == 0 || best + 1 == rates.size()};
}

std::string ChosenText(const std::vector<ArmRate>& rates, const RateLoss& loss) {
  const auto of_arm = std::ranges::find(rates, loss.arm, &ArmRate::arm);
  if (of_arm == rates.end() || of_arm->rate != loss.rate) return "no";
  return of_arm->at_end ? std::string(kAtEnd) : "yes";
}

}  // namespace

std::vector<ArmRate> ChooseRates(const std::vector<RateLoss>& losses) {
  std::vector<std::pair<std::string, std::vector<AtRate>>> arms;
  for (const RateLoss& loss : losses) {
    auto arm = std::ranges::find_if(arms, [&](const auto& one) { return one.first == loss.arm; });
    if (arm == arms.end()) arm = arms.insert(arms.end(), {loss.arm, {}});
    const double number = Number(loss.rate);
    auto rate = std::ranges::find(arm->second, number, &AtRate::number);
    if (rate == arm->second.end()) {
      rate = arm->second.insert(rate, AtRate{.number = number, .text = loss.rate});
    }
    rate->sum += std::isnan(loss.loss) ? std::numeric_limits<double>::infinity() : loss.loss;
    rate->seeds += 1;
  }
  std::vector<ArmRate> rates;
  for (auto& [arm, at_rates] : arms) rates.push_back(ChooseRate(arm, std::move(at_rates)));
  return rates;
}

std::string RatesText(const std::vector<ArmRate>& rates) {
  std::string text;
  for (const ArmRate& rate : rates) {
    if (!text.empty()) text += kBetweenArms;
    text += fmt::format("{}{}{}", rate.arm, kBeforeRate, rate.rate);
    if (rate.at_end) text += fmt::format(" {}", kAtEnd);
  }
  return text;
}

std::vector<ArmRate> RatesOf(const Settings& settings) {
  std::vector<ArmRate> rates;
  const auto found = settings.options.find(std::string(kRatesOption));
  if (found == settings.options.end()) return rates;
  std::string_view text = found->second;
  while (!text.empty()) {
    const size_t end = std::min(text.find(kBetweenArms), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + kBetweenArms.size(), text.size()));
    const size_t colon = one.rfind(kBeforeRate);
    if (colon == one.npos || colon == 0) {
      throw Error::Format("--{}: '{}' is not ARM: RATE", kRatesOption, one);
    }
    ArmRate& rate = rates.emplace_back();
    rate.arm = one.substr(0, colon);
    std::string_view value = one.substr(colon + kBeforeRate.size());
    if (value.ends_with(kAtEnd)) {
      rate.at_end = true;
      value.remove_suffix(kAtEnd.size());
    }
    rate.rate = value.substr(0, value.find(' '));
    try {
      Number(rate.rate);
    } catch (const Error& error) {
      throw Error::Format("--{}: {}: {}", kRatesOption, rate.arm, error.what());
    }
  }
  return rates;
}

void WriteRates(const std::filesystem::path& path, const std::vector<RateLoss>& losses) {
  const std::vector<ArmRate> rates = ChooseRates(losses);
  Table table{{"arm", "rate", "seed", "loss", "chosen"}, {}};
  for (const RateLoss& loss : losses) {
    table.rows.push_back({loss.arm, loss.rate, loss.seed, loss.loss, ChosenText(rates, loss)});
  }
  WriteCsv(path, table);
}

std::vector<ArmRate> ReadRates(const std::filesystem::path& path) {
  const Table table = ReadCsv(path);
  std::vector<RateLoss> losses;
  try {
    for (size_t i = 0; i < table.rows.size(); ++i) {
      losses.push_back({.arm = table.Text(i, "arm"),
                        .rate = table.Text(i, "rate"),
                        .seed = static_cast<uint64_t>(table.Number(i, "seed")),
                        .loss = table.Number(i, "loss")});
    }
    const std::vector<ArmRate> rates = ChooseRates(losses);
    for (size_t i = 0; i < losses.size(); ++i) {
      const std::string expected = ChosenText(rates, losses[i]);
      if (table.Text(i, "chosen") == expected) continue;
      throw Error::Format("record {}: chosen is '{}', and its losses say '{}'",
                          i + 1,
                          table.Text(i, "chosen"),
                          expected);
    }
    return rates;
  } catch (const Error& error) {
    throw Error::Format("{}: {}", path.string(), error.what());
  }
}

}  // namespace numsim::experiments
