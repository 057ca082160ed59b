#include "experiments/study/study_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/runner/arm_rates.h"
#include "numsim/base/error.h"

namespace numsim::experiments::study {

Option RatesOption() {
  return {
      .name = std::string(kRatesOption),
      .quick = "",
      .paper = "",
      .help =
          "peak learning rate of each arm, \"ARM: RATE; ARM: RATE\", as `numsim tune` chose it on "
          "other seeds (--rates-from reads its file); none: the rates of the other options",
      .optional = true};
}

std::string RateArm(const Study& study, const Arm& arm) {
  std::string text;
  for (size_t i = 0; i < arm.size(); ++i) {
    if (study.axes[i].name == study.rates->axis) continue;
    text += (text.empty() ? "" : " / ") + arm[i];
  }
  return text;
}

RateTuning TuningOf(const std::shared_ptr<const Study>& study) {
  if (!study->rates) return {};
  return {
      .options = study->rates->options, .table = study->runs, .arm = [study](const Trial& trial) {
        if (!trial.parameters.contains(study->axes.front().name)) return std::string();
        return RateArm(*study, ArmOf(*study, trial));
      }};
}

std::optional<std::string> ChosenRate(const Study& study,
                                      const Settings& settings,
                                      const Arm& arm) {
  const std::vector<ArmRate> rates = RatesOf(settings);
  if (rates.empty()) return std::nullopt;
  for (const Axis& axis : study.axes) {
    if (axis.name != study.rates->axis || ValuesOf(axis, settings).size() == 1) continue;
    throw Error::Format("--{}: every arm has a rate of its own there, and --{} lists several",
                        kRatesOption,
                        axis.options.front());
  }
  const std::string name = RateArm(study, arm);
  const auto found = std::ranges::find(rates, name, &ArmRate::arm);
  if (found != rates.end()) return found->rate;
  std::vector<std::string> names;
  for (const ArmRate& rate : rates) names.push_back(rate.arm);
  throw Error::Format("--{}: has no rate of the arm '{}', only of {}: tune with the same arms",
                      kRatesOption,
                      name,
                      fmt::join(names, ", "));
}

std::string RateObstacle(const Study& study,
                         const Settings& settings,
                         const std::vector<Arm>& arms) {
  if (!study.rates) return "";
  for (const ArmRate& rate : RatesOf(settings)) {
    const auto is_its = [&](const Arm& arm) { return RateArm(study, arm) == rate.arm; };
    if (!rate.at_end || std::ranges::none_of(arms, is_its)) continue;
    return fmt::format("the rate of {}, {}, is {}", rate.arm, rate.rate, kAtEnd);
  }
  return "";
}

}  // namespace numsim::experiments::study
