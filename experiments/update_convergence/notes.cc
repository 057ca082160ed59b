// The notes of `update-convergence`: the cheapest rules, and what was left out.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/claims/frame.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

std::string ChoiceText(const std::string& rule, double bytes) {
  return rule == "none" ? rule : fmt::format("{} {:g}", rule, bytes);
}

// Returns the cheapest rules as text, with one line per problem, optimiser and format.
std::string CheapestText(const Frame& cheapest, const char* rule, const char* bytes) {
  std::string text = fmt::format("\n  {:<9} {:<9} {:<8}", "lr", "", "");
  for (const std::string& rate : cheapest.Distinct("lr")) text += fmt::format(" {:<22}", rate);
  for (const Frame& rates : cheapest.By({"problem", "optimiser", "format"})) {
    text += fmt::format("\n  {:<9} {:<9} {:<8}",
                        rates.Text("problem"),
                        rates.Text("optimiser"),
                        rates.Text("format"));
    rates.ForEach([&](const Frame& row) {
      text += fmt::format(" {:<22}", ChoiceText(row.Text(rule), row.Number(bytes)));
    });
  }
  return text;
}

// Returns the rules of --rules that were left out for some formats, as text.
std::string LeftOut(const Settings& settings) {
  std::string text;
  for (const Format& format : Formats(settings)) {
    const std::vector<UpdateRule> used = RulesFor(settings, format);
    for (const UpdateRule& rule : ParseUpdateRuleList(settings.Get("rules"))) {
      const bool there = std::any_of(used.begin(), used.end(), [&](const UpdateRule& u) {
        return ToString(u) == ToString(rule);
      });
      if (!there) {
        text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", ToString(rule), format.name);
      }
    }
  }
  return text.empty() ? "none" : text;
}

// Returns how many trainings of a rule fall further behind, by the interval of gap_growth over
// seeds: wholly above kWithin, wholly below, or neither.
std::string FrequencyText(const Frame& final_table, const std::string& rule) {
  size_t behind = 0, level = 0, all = 0;
  final_table.Where("rule", rule).ForEach([&](const Frame& row) {
    if (row.Text("format") == kBaselineFormat || row.Text("falls_behind") == "none") return;
    ++all;
    behind += row.Number("gap_growth_low") > kWithin ? 1 : 0;
    level += row.Number("gap_growth_high") < kWithin ? 1 : 0;
  });
  return fmt::format(
      "\n  {:<19} {:>8} {:>8} {:>10} {:>9}", rule, behind, level, all - behind - level, all);
}

// Returns the table of frequencies over all problems, optimisers, formats and learning rates.
std::string FrequencyTable(const Frame& final_table) {
  std::string text = fmt::format(
      "\n  {:<19} {:>8} {:>8} {:>10} {:>9}", "rule", "behind", "not", "undecided", "trainings");
  for (const std::string& rule : final_table.Distinct("rule")) {
    text += FrequencyText(final_table, rule);
  }
  return text;
}

// Returns the number of trainings in a small format in which fp32 makes no progress.
size_t WithoutProgress(const Frame& final_table) {
  const Frame none = final_table.Where([](const Frame& row) {
    return row.Text("format") != kBaselineFormat && row.Text("falls_behind") == "none";
  });
  return none.By({"problem", "optimiser", "format", "lr"}).size();
}

}  // namespace

std::string Notes(const study::Results& results) {
  const Frame cheapest = results.Of("cheapest"), final_table = results.Of("final");
  return fmt::format(
      "Trainings over all problems, optimisers, formats and learning rates in which a rule falls "
      "further behind fp32 (exploratory): its gap grows by more than {:g} % of fp32's progress from "
      "half-time to the end, by the 95 % interval over seeds.{}\n\n"
      "The cheapest rule that stays within {:g} % of fp32 at half-time and at the end, with its "
      "bytes per weight (fp32 itself: 4; a rule of 4 or more saves no memory, but the weights that "
      "a GEMM reads are small), the first of --rules among equals. note-as-printed is no "
      "candidate: its target makes it train at the learning rate sqrt(lr), which may be better "
      "or worse than lr but is another training.{}\n\n"
      "The cheapest rule within {:g} % of master-fp32 in the same format, whose weights are as "
      "good as that format can hold:{}\n\n"
      "Rules left out because they do not serve the format or are the same as kahan: {}. "
      "Configurations in which fp32 makes no progress, so that nothing is compared: {}.",
      100 * kWithin,
      FrequencyTable(final_table),
      100 * kWithin,
      CheapestText(cheapest, "rule", "bytes"),
      100 * kWithin,
      CheapestText(cheapest, "rule_master", "bytes_master"),
      LeftOut(results.settings),
      WithoutProgress(final_table));
}

}  // namespace numsim::experiments::update_convergence
