// `numsim table`: results as a table for a paper.
#include <fmt/format.h>

#include <filesystem>

#include "apps/command.h"
#include "experiments/runner/paper_table.h"
#include "experiments/runner/result_directory.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/io/atomic_file.h"

namespace numsim::apps {
namespace {

using experiments::PaperTable;
using experiments::TableStyle;

struct TableOptions {
  std::string directory, out, style = "latex", name;
  std::vector<std::string> claims, rows, values, where;
};

TableStyle StyleOf(const std::string& name) {
  if (name == "latex") return TableStyle::kLatex;
  return name == "markdown" ? TableStyle::kMarkdown : TableStyle::kCsv;
}

// Returns the names of the tables of a result directory: "final, pairs, verdicts".
std::string TablesIn(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (name.ends_with(".csv")) names.push_back(name.substr(0, name.size() - 4));
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::filesystem::path FileOf(const std::filesystem::path& directory, const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored)) {
    throw Error::Format("{}: is no directory; expected the results of `numsim run`",
                        directory.string());
  }
  const std::filesystem::path file = directory / (name + ".csv");
  if (!HasCsv(file)) {
    throw Error::Format(
        "{}: {}", directory.string(), NotOneOf("table", name, TablesIn(directory)).what());
  }
  return file;
}

std::vector<std::pair<std::string, std::string>> Conditions(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> conditions;
  for (const std::string& text : texts) {
    const size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0) {
      throw Error::Format("--where {}: expected COLUMN=VALUE, such as epsilon=1e-5", text);
    }
    conditions.emplace_back(text.substr(0, sign), text.substr(sign + 1));
  }
  return conditions;
}

PaperTable TableOf(const TableOptions& options) {
  const TableStyle style = StyleOf(options.style);
  if (options.name == "verdicts") {
    if (!options.rows.empty() || !options.values.empty() || !options.where.empty()) {
      throw Error("--rows, --values and --where need --table NAME, a table with seeds");
    }
    return experiments::VerdictsOf(
        ReadCsv(FileOf(options.directory, options.name)), options.claims, style);
  }
  if (options.rows.empty() || options.values.empty()) {
    throw Error::Format("--table {}: --rows and --values are missing", options.name);
  }
  if (!options.claims.empty()) throw Error("--claim is for the verdicts, without --table");
  const std::filesystem::path file = FileOf(options.directory, options.name);
  return experiments::MeansOverSeeds(ReadCsv(file),
                                     {options.rows, options.values, Conditions(options.where)},
                                     style,
                                     file.string());
}

int RunTable(const TableOptions& options, const std::vector<std::string>& command) {
  const std::string text = ToText(
      TableOf(options), StyleOf(options.style), fmt::format("numsim {}", fmt::join(command, " ")));
  if (options.out.empty()) {
    fmt::print("{}", text);
  } else {
    WriteFileAtomically(options.out, text);
  }
  return 0;
}

}  // namespace

void AddTableCommand(Program& program) {
  auto options = std::make_shared<TableOptions>();
  options->name = "verdicts";
  CLI::App* sub = program.app.add_subcommand(
      "table", "Print results as a table for a paper: verdicts, or means over seeds");
  sub->add_option("RESULT_DIR",
                  options->directory,
                  "Result directory of `numsim run`, or one of experiments/published")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "--style", options->style, "latex (a tabular of the package booktabs), markdown or csv")
      ->check(CLI::IsMember({"latex", "markdown", "csv"}))
      ->capture_default_str();
  sub->add_option("--claim",
                  options->claims,
                  "Name of a claim whose verdict to show, such as v-e4m3-fails; repeatable "
                  "(default: all that were tested)");
  sub->add_option("--table", options->name, "Name of a CSV file of the results, without extension")
      ->check(NotEmpty())
      ->capture_default_str();
  sub->add_option("--rows", options->rows, "Columns whose values name a row, as in m,v")
      ->delimiter(',');
  sub->add_option("--values",
                  options->values,
                  "Columns of numbers, as in valid_loss; shown as the mean over seeds with half of "
                  "its 95 % interval")
      ->delimiter(',');
  sub->add_option(
      "--where", options->where, "COLUMN=VALUE: only records with that value; repeatable");
  sub->add_option("--out", options->out, "Output file (default: print)")->check(NotEmpty());
  Example(sub,
          "numsim table results/moment-formats --table final --rows m,v --values valid_loss "
          "--where epsilon=1e-5 --where update_from=fresh");
  Choose(program, sub, [options, &program] {
    const std::vector<std::string>& line = program.command_line;
    return RunTable(*options, {line.begin() + 1, line.end()});
  });
}

}  // namespace numsim::apps
