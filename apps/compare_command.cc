// `numsim compare`: several trainings in one figure and one table.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "apps/command.h"
#include "apps/figure_options.h"
#include "numsim/base/error.h"
#include "numsim/train/comparison.h"

namespace numsim::apps {
namespace {

struct CompareOptions {
  std::vector<std::string> directories;
  std::string out;
  FigureArguments look;
};

// Throws Error for a result of `numsim run`, which a user may well give.
void RefuseExperiment(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory / "settings.json", ignored)) return;
  throw Error::Format(
      "{0}: is a result of `numsim run`, and compare takes directories of `numsim train`; "
      "`numsim plot {0}` draws its figures",
      directory.string());
}

int RunCompare(const CompareOptions& options) {
  const std::vector<std::filesystem::path> directories(options.directories.begin(),
                                                       options.directories.end());
  for (const std::filesystem::path& directory : directories) RefuseExperiment(directory);
  const TrainComparison comparison = CompareTrainings(directories);
  std::vector<std::filesystem::path> written;
  if (!options.out.empty())
    written = WriteComparison(comparison, options.out, StyleOf(options.look));
  fmt::print("{}", ComparisonText(comparison));
  if (!written.empty()) fmt::print("\nwritten:\n");
  for (const std::filesystem::path& path : written) fmt::print("  {}\n", path.string());
  return 0;
}

}  // namespace

void AddCompareCommand(Program& program) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "compare", "Compare trainings: their losses, the keys that differ, curves in one figure");
  sub->add_option("DIR", options->directories, "Result directories of `numsim train`, two or more")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--out",
                  options->out,
                  "Also draw the curves: NAME.svg, NAME.pdf and NAME.gp, with the data as NAME.csv "
                  "(default: only print)")
      ->check(NotEmpty());
  AddFigureOptions(sub, options->look);
  for (const char* const option : {"--width", "--font", "--panels"}) {
    sub->get_option(option)->needs("--out");
  }
  Example(sub, "numsim compare results/train/a results/train/b --out results/a-and-b");
  Choose(program, sub, [options] { return RunCompare(*options); });
}

}  // namespace numsim::apps
