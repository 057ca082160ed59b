// A ranking as a table, a figure and text.
#include <fmt/format.h>

#include <algorithm>

#include "numsim/analysis/precision_ranking.h"

namespace numsim {
namespace {

std::string Title(const PrecisionRanking& ranking) {
  return fmt::format(
      "Effect of precision on the gradient of step {}, by {}", ranking.step, ToString(ranking.by));
}

Panel BarPanel(std::string title, std::string label, int style) {
  Panel panel;
  panel.title = std::move(title);
  panel.x.label = std::move(label);
  panel.series.emplace_back();
  panel.series[0].style = style;
  return panel;
}

void AddBar(Panel& panel, std::string name, double value) {
  panel.series[0].x.push_back(value);
  panel.series[0].y.push_back(static_cast<double>(panel.rows.size()));
  panel.rows.push_back(std::move(name));
}

std::string FullName(const RankedTensor& tensor) { return tensor.layer + " " + tensor.tensor; }

// Width of a column of names.
template <typename Text>
size_t Width(const PrecisionRanking& ranking, size_t count, std::string_view head, Text text) {
  size_t width = head.size();
  for (size_t i = 0; i < count; ++i) width = std::max(width, text(ranking.tensors[i]).size());
  return width;
}

std::string RankedLines(const PrecisionRanking& ranking, size_t count) {
  const auto format_of = [](const RankedTensor& tensor) { return tensor.format; };
  const size_t name_width = Width(ranking, count, "tensor", FullName);
  const size_t format_width = Width(ranking, count, "format", format_of);
  const auto line = [&](const std::string& rank,
                        const std::string& name,
                        const std::string& format,
                        const std::string& effect,
                        const std::string& without,
                        const std::string& alone) {
    return fmt::format("{:>4}  {:<{}}  {:<{}}  {:>9}  {:>10}  {:>9}\n",
                       rank,
                       name,
                       name_width,
                       format,
                       format_width,
                       effect,
                       without,
                       alone);
  };
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  std::string text = line("rank", "tensor", "format", "effect", "without it", "alone");
  for (size_t i = 0; i < count; ++i) {
    const RankedTensor& tensor = ranking.tensors[i];
    text += line(fmt::format("{}", i + 1),
                 FullName(tensor),
                 tensor.format,
                 number(tensor.effect),
                 number(tensor.error_without),
                 number(tensor.error_alone));
  }
  if (count < ranking.tensors.size()) {
    text += fmt::format("      and {} more\n", ranking.tensors.size() - count);
  }
  return text;
}

// Returns advice on how to keep the first tensor in high precision.
std::string Remedy(const PrecisionRanking& ranking) {
  const RankedTensor& first = ranking.tensors[0];
  if (!(first.effect > 0))
    return "Keeping any single one of them in high precision does not help.\n";
  if (first.linear_override.empty()) {
    return fmt::format(
        "The first one is stored in {}: see storage.{}s.\n", first.format, first.tensor);
  }
  return "To keep the first one in high precision, add this after any other overrides:\n\n" +
         first.linear_override;
}

}  // namespace

Table RankingTable(const PrecisionRanking& ranking) {
  Table table;
  table.columns = {"rank", "layer", "tensor", "format", "effect", "error_without", "error_alone"};
  for (const RankedTensor& tensor : ranking.tensors) {
    const auto rank = static_cast<uint64_t>(table.rows.size() + 1);
    table.rows.push_back({rank,
                          tensor.layer,
                          tensor.tensor,
                          tensor.format,
                          tensor.effect,
                          tensor.error_without,
                          tensor.error_alone});
  }
  return table;
}

Figure RankingFigure(const PrecisionRanking& ranking, size_t count) {
  Panel effect = BarPanel("Effect", "fraction of the squared error removed", 0);
  Panel alone = BarPanel("Alone", "relative error, only this one quantised", 1);
  for (size_t i = 0; i < std::min(count, ranking.tensors.size()); ++i) {
    const RankedTensor& tensor = ranking.tensors[i];
    AddBar(effect, FullName(tensor), tensor.effect);
    AddBar(alone, "", tensor.error_alone);
  }
  Figure figure;
  figure.name = "ranking";
  figure.title = Title(ranking);
  figure.columns = 2;
  figure.panels = {std::move(effect), std::move(alone)};
  figure.source_csv = "ranking.csv";
  return figure;
}

std::string Describe(const PrecisionRanking& ranking, size_t count) {
  std::string text = Title(ranking) + "\n\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<28}{}\n", name, value);
  };
  line("loss of the batch",
       fmt::format("{:.6g}, in float32 {:.6g}", ranking.loss, ranking.float32_loss));
  line("error of the gradient", fmt::format("{:.4g} of its norm", ranking.error));
  line("  all in high precision", fmt::format("{:.4g}", ranking.error_high));
  line("worst parameter",
       fmt::format("{}, error {:.4g}", ranking.worst_parameter, ranking.worst_error));
  if (ranking.tensors.empty()) return text + "\nNothing is quantised.\n";
  const size_t shown = std::min(count, ranking.tensors.size());
  return text + "\n" + RankedLines(ranking, shown) + "\n" + Remedy(ranking);
}

}  // namespace numsim
