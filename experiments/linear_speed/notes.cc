// The notes of `linear-speed`: where it was timed, this project's goals for a GPU, the sizes from
// which a layer in 8 bits is faster, and a table of times.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr int kGoalDim = 4096, kGoalTokens = 65536, kGoalWidth = 4;
constexpr int kQuantizePercent = 15;

struct Goal {
  const char *kind, *format;
  double speedup;
};
constexpr Goal kGoals[] = {
    {"switchback", "e4m3fn", 1.30}, {"switchback", "int8", 1.15}, {"tensor-wise", "e4m3fn", 1.50}};

// Returns the start of the saving and the range of speedups: "from 1433 on (0.91 to 1.42 times)".
std::string Begin(const Frame& crossing) {
  const double between = crossing.Number("between");
  const std::string text = std::isnan(between) ? "at none"
                           : crossing.Number("always") == 1
                               ? "at all"
                               : fmt::format("from {:.0f} on", between);
  return fmt::format("{} ({:.2f} to {:.2f} times)",
                     text,
                     crossing.Number("speedup_low"),
                     crossing.Number("speedup_high"));
}

// Returns the table of times, shares and saved time as text.
std::string ShareTable(const Frame& layers) {
  const std::vector<LayerKey> keys = LayerKeys(layers);
  size_t width = 0;
  for (const LayerKey& key : keys) width = std::max(width, Label(key, keys).size());
  std::string text =
      fmt::format("  {:<{}} {:>6} {:>7} {:>10} {:>8} {:>8} {:>7} {:>5} {:>7} {:>8} {:>8}\n",
                  "layer",
                  width,
                  "dim",
                  "tokens",
                  "ms",
                  "GEMMs",
                  "quantise",
                  "convert",
                  "other",
                  "saved",
                  "speed-up",
                  "kept MB");
  layers.ForEach([&](const Frame& row) {
    text += fmt::format(
        "  {:<{}} {:>6} {:>7} {:>10.3f} {:>7.1f}% {:>7.1f}% {:>6.1f}% {:>4.1f}% {:>6.1f}% {:>8.2f} "
        "{:>8.2f}\n",
        Label(KeyOf(row), keys),
        width,
        row.Text("dim"),
        row.Text("tokens"),
        1e3 * row.Number("seconds"),
        100 * row.Number("product_share"),
        100 * row.Number("quantize_share"),
        100 * row.Number("convert_share"),
        100 * row.Number("other_share"),
        row.Number("saved_percent"),
        row.Number("speedup"),
        1e-6 * row.Number("kept_bytes"));
  });
  return text;
}

}  // namespace

std::string GoalNotes(const Frame& layers) {
  const Frame sized = layers.Where("backend", "cuda")
                          .Where("dim", kGoalDim)
                          .Where("tokens", kGoalTokens)
                          .Where("width", kGoalWidth);
  std::string text;
  for (const Goal& goal : kGoals) {
    const Frame found = sized.Where("kind", goal.kind).Where("format", goal.format);
    if (found.Empty()) continue;
    text += fmt::format("  {} {}: {:.3f} times (goal {:.2f}), quantising {:.1f} % (goal {})\n",
                        goal.kind,
                        goal.format,
                        found.Number("speedup"),
                        goal.speedup,
                        100 * found.Number("quantize_share"),
                        kQuantizePercent);
  }
  if (text.empty()) return text;
  return fmt::format(
             "This project's goals on an H200, at dim {} and {} tokens: the speed in units of three "
             "GEMMs of the library, and at most that share of the time for quantising:\n",
             kGoalDim,
             kGoalTokens) +
         text;
}

std::string CrossingNotes(const Frame& crossings) {
  const Frame on_device = crossings.Where("backend", "cuda");
  const std::vector<LayerKey> keys = LayerKeys(on_device);
  size_t width = 0;
  for (const LayerKey& key : keys) width = std::max(width, Label(key, keys).size());
  std::string text;
  on_device.ForEach([&](const Frame& row) {
    const std::string along = row.Text("along");
    text += fmt::format("  {:<{}} {:>6} {}: {:<6} {}\n",
                        Label(KeyOf(row), keys),
                        width,
                        row.Text("at"),
                        along == "dim" ? "tokens" : "dim   ",
                        along,
                        Begin(row));
  });
  if (text.empty()) return text;
  return "The size from which each layer is faster than standard at all greater sizes that were "
         "timed, interpolated: the smallest dim at a number of tokens, or the smallest number of "
         "tokens at a dim. In parentheses, the speed-up at the smallest and the greatest size:\n" +
         text;
}

std::string Notes(const study::Results& results) {
  const Frame layers = results.Of("layers");
  std::string text = fmt::format("Timed on {}, threads: {}, backend {}; library is {}.\n",
                                 layers.Text("device"),
                                 layers.Text("threads"),
                                 layers.Text("backend"),
                                 layers.Text("library"));
  if (results.settings.seeds == 1) text += "One measurement: --seeds N times every size N times.\n";
  text +=
      "llm-int8 has neither the outlier decomposition of LLM.int8() nor its kernels, and Figures 7 "
      "(right) and 8 are times of a whole training: none of this tests them.\n";
  text += GoalNotes(layers) + CrossingNotes(results.Of("crossings"));
  return text +
         "Time of the forward and the backward pass, mean of both layers, its shares, and the time "
         "saved over the standard layer of the same accumulation mode:\n" +
         ShareTable(layers);
}

}  // namespace numsim::experiments::linear_speed
