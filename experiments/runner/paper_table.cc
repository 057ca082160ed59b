#include "experiments/runner/paper_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/claims/frame.h"
#include "experiments/claims/scale.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace {

constexpr int kDigitsOfHalf = 2;
constexpr int kDigitsOfMean = 4;  // of a mean without an interval

std::string Joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void RequireColumn(const Table& table, const std::string& name, const std::string& file) {
  if (std::find(table.columns.begin(), table.columns.end(), name) == table.columns.end()) {
    throw Error::Format("{}: {}", file, NotOneOf("column", name, Joined(table.columns)).what());
  }
}

// Returns how many decimals show half of the interval with kDigitsOfHalf significant digits; nothing without
// an interval.
std::optional<int> Decimals(const Estimate& estimate) {
  const double half = (estimate.high - estimate.low) / 2;
  if (!std::isfinite(half) || half <= 0) return std::nullopt;
  return std::max(0, kDigitsOfHalf - 1 - static_cast<int>(std::floor(std::log10(half))));
}

std::string WithoutInterval(const Estimate& estimate) {
  return fmt::format("{:.{}g}", estimate.value, kDigitsOfMean);
}

// Returns "2.110 +- 0.048".
std::string MeanText(const Estimate& mean) {
  const std::optional<int> decimals = Decimals(mean);
  if (!decimals) return WithoutInterval(mean);
  return fmt::format(
      "{:.{}f} +- {:.{}f}", mean.value, *decimals, (mean.high - mean.low) / 2, *decimals);
}

// Returns "-0.006 [-0.074, 0.062]".
std::string EstimateText(const Estimate& estimate) {
  const std::optional<int> decimals = Decimals(estimate);
  if (!decimals) return WithoutInterval(estimate);
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]",
                     estimate.value,
                     *decimals,
                     estimate.low,
                     *decimals,
                     estimate.high,
                     *decimals);
}

Frame Selected(const Table& table, const Selection& selection, const std::string& file) {
  for (const std::string& name : selection.rows) RequireColumn(table, name, file);
  for (const std::string& name : selection.values) RequireColumn(table, name, file);
  Frame frame(table);
  for (const auto& [column, value] : selection.where) {
    RequireColumn(table, column, file);
    const std::vector<std::string> known = frame.Distinct(column);
    frame = frame.Where(column, value);
    if (frame.Empty()) {
      throw Error::Format("{}: no record has {} = '{}'; those of the records left: {}{}",
                          file,
                          column,
                          value,
                          Joined(known),
                          DidYouMean(value, Joined(known)));
    }
  }
  return frame;
}

SeedValues ValuesOf(const Frame& row, const std::string& column, const std::string& file) {
  for (const Frame& of_seed : row.By({"seed"})) {
    if (of_seed.Size() == 1) continue;
    throw Error::Format(
        "{}: column '{}': seed {} has two values; name one more column for the rows",
        file,
        column,
        of_seed.Text("seed"));
  }
  try {
    return row.OverSeeds(column);
  } catch (const Error& error) {  // a text where a number is needed
    throw Error::Format("{}: {}", file, error.what());
  }
}

void AddValue(const Estimate& mean, TableStyle style, std::vector<std::string>& row) {
  if (style != TableStyle::kCsv) {
    row.push_back(MeanText(mean));
    return;
  }
  for (const double value : {mean.value, mean.low, mean.high}) row.push_back(FormatCell(value));
}

}  // namespace

PaperTable MeansOverSeeds(const Table& table,
                          const Selection& selection,
                          TableStyle style,
                          const std::string& file) {
  const Frame frame = Selected(table, selection, file);
  RequireColumn(table, "seed", file);
  PaperTable paper;
  for (const std::string& name : selection.rows) paper.columns.push_back({name, false});
  for (const std::string& name : selection.values) {
    paper.columns.push_back({name, true});
    if (style != TableStyle::kCsv) continue;
    for (const char* const end : {"low", "high"}) paper.columns.push_back({name + "_" + end, true});
  }
  paper.columns.push_back({"seeds", true});
  for (const Frame& group : frame.By(selection.rows)) {
    std::vector<std::string>& row = paper.rows.emplace_back();
    for (const std::string& name : selection.rows) row.push_back(group.Text(name));
    size_t seeds = 0;
    for (const std::string& name : selection.values) {
      const SeedValues values = ValuesOf(group, name, file);
      AddValue(MeanOf(values), style, row);
      seeds = values.size();
    }
    row.push_back(fmt::format("{}", seeds));
  }
  return paper;
}

namespace {

std::string NameOf(const Frame& verdict) {
  const std::string claim = verdict.Text("claim");
  return claim.substr(claim.find('/') + 1);
}

bool IsWanted(const Frame& verdict, const std::vector<std::string>& claims) {
  if (verdict.Text("role") == "control") return false;
  if (claims.empty()) return verdict.Text("verdict") != "not tested";
  return std::find(claims.begin(), claims.end(), NameOf(verdict)) != claims.end();
}

std::string EstimateOf(const Frame& verdict) {
  if (verdict.Text("estimate").empty()) return "";
  return EstimateText({verdict.Number("estimate"), verdict.Number("low"), verdict.Number("high")});
}

void RequireClaims(const Table& verdicts, const std::vector<std::string>& claims) {
  std::vector<std::string> known;
  Frame(verdicts).ForEach([&](const Frame& row) {
    const std::string name = NameOf(row);
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  });
  for (const std::string& claim : claims) {
    if (std::find(known.begin(), known.end(), claim) == known.end()) {
      throw NotOneOf("claim", claim, Joined(known));
    }
  }
}

}  // namespace

PaperTable VerdictsOf(const Table& verdicts,
                      const std::vector<std::string>& claims,
                      TableStyle style) {
  RequireClaims(verdicts, claims);
  PaperTable paper;
  paper.columns = {{"claim"}, {"contrast"}};
  const std::vector<std::string> numbers = {"estimate", "low", "high"};
  if (style == TableStyle::kCsv) {
    for (const std::string& name : numbers) paper.columns.push_back({name, true});
  } else {
    paper.columns.push_back({"difference", true});
  }
  for (const char* const name : {"confidence", "margin", "unit", "seeds", "verdict", "scale"}) {
    paper.columns.push_back({name, std::string_view(name) == "margin"});
  }
  Frame(verdicts).ForEach([&](const Frame& verdict) {
    if (!IsWanted(verdict, claims)) return;
    std::vector<std::string>& row = paper.rows.emplace_back();
    row = {NameOf(verdict), verdict.Text("contrast")};
    if (style == TableStyle::kCsv) {
      for (const std::string& name : numbers) row.push_back(verdict.Text(name));
    } else {
      row.push_back(EstimateOf(verdict));
    }
    const auto number = [&](const char* column) {
      return verdict.Text(column).empty() ? 0.0 : verdict.Number(column);
    };
    const double confidence = number("confidence");
    row.push_back(confidence > 0 ? fmt::format("{:g} %", 100 * confidence) : "");
    for (const char* const name : {"margin", "unit", "seeds", "verdict"}) {
      row.push_back(verdict.Text(name));
    }
    row.push_back(SizeText(verdict.Text("word"), number("parameters"), number("tokens")));
  });
  return paper;
}

namespace {

std::string EscapedLatex(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\textbackslash{}";
        break;
      case '~':
        escaped += "\\textasciitilde{}";
        break;
      case '^':
        escaped += "\\textasciicircum{}";
        break;
      case '<':
      case '>':
      case '|':
        escaped += fmt::format("${}$", c);
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        escaped += '\\';
        [[fallthrough]];
      default:
        escaped += c;
    }
  }
  return escaped;
}

// Returns a number for math mode: "2.1 \pm 0.1", "1.5 \times 10^{-8}", "\infty".
std::string MathText(std::string text) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace("+-", "\\pm");
  replace("inf", "\\infty");
  replace("nan", "\\mathrm{nan}");
  const size_t e = text.find_first_of('e');
  if (e != std::string::npos && text.find("\\") == std::string::npos) {
    const int exponent = std::stoi(text.substr(e + 1));
    text = fmt::format("{} \\times 10^{{{}}}", text.substr(0, e), exponent);
  }
  return text;
}

std::string LatexCell(const std::string& text, bool number) {
  if (text.empty()) return "";
  return number ? "$" + MathText(text) + "$" : EscapedLatex(text);
}

std::string Latex(const PaperTable& table, std::string_view origin) {
  std::string layout, header;
  for (const PaperTable::Column& column : table.columns) {
    layout += column.number ? 'r' : 'l';
    header += (header.empty() ? "" : " & ") + EscapedLatex(column.name);
  }
  std::string text = fmt::format(
      "% {}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{} \\\\\n\\midrule\n", origin, layout, header);
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += (i == 0 ? "" : " & ") + LatexCell(row[i], table.columns[i].number);
    }
    text += " \\\\\n";
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string MarkdownCell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\|");
  }
  const size_t at = text.find("+-");
  return at == std::string::npos ? text : text.replace(at, 2, "±");
}

std::string Markdown(const PaperTable& table) {
  std::string header = "|", rule = "|", text;
  for (const PaperTable::Column& column : table.columns) {
    header += " " + MarkdownCell(column.name) + " |";
    rule += column.number ? " ---: |" : " --- |";
  }
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + MarkdownCell(cell) + " |";
    text += "\n";
  }
  return header + "\n" + rule + "\n" + text;
}

std::string Csv(const PaperTable& table) {
  Table csv;
  for (const PaperTable::Column& column : table.columns) csv.columns.push_back(column.name);
  for (const auto& row : table.rows) csv.rows.emplace_back(row.begin(), row.end());
  return ToCsv(csv);
}

}  // namespace

std::string ToText(const PaperTable& table, TableStyle style, std::string_view origin) {
  if (style == TableStyle::kLatex) return Latex(table, origin);
  return style == TableStyle::kMarkdown ? Markdown(table) : Csv(table);
}

}  // namespace numsim::experiments
