// `numsim inspect`: shows one value in one format with every rounding mode.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "apps/command.h"
#include "apps/inspection.h"
#include "apps/profile_lines.h"
#include "numsim/io/table_file.h"

namespace numsim::apps {
namespace {

struct InspectOptions {
  std::string format, value, profile;
  int random_bits = 32;
  bool json = false;
};

void PrintOne(const InspectOptions& options, const Format& format, const std::string& value) {
  const Inspection x = Inspect(format, value, options.random_bits);
  if (options.json) {
    fmt::print("{}\n", InspectionJson(x));
    return;
  }
  const std::string profiles =  // before any output, as it may throw
      options.profile.empty() ? "" : ProfileLines(options.profile, x.format, x.value);
  fmt::print("{}{}", InspectionText(x), profiles);
}

int PrintInspections(const InspectOptions& options) {
  const Format format = ParseCastFormat(options.format);
  if (options.value != "-") {
    PrintOne(options, format, options.value);
    return 0;
  }
  std::string value;
  for (size_t line = 1; std::getline(std::cin, value); ++line) {
    if (line > 1 && !options.json) fmt::print("\n");
    PrintOne(options, format, value);
  }
  return 0;
}

}  // namespace

void AddInspectCommand(Program& program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "inspect", "Show the code, neighbours and roundings of one value in one format");
  sub->add_option("FORMAT", options->format, "Format: a name, a custom format or table:FILE")
      ->required();
  sub->add_option(
         "VALUE",
         options->value,
         "A number (decimal or hexadecimal, of any length), a sum A+B, or a code:0x..; "
         "rounded once, from its exact value; or - to read one per line from standard input")
      ->required();
  sub->add_option("--sr-bits", options->random_bits, "Number of random bits of stochastic rounding")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  sub->add_option("--profile",
                  options->profile,
                  "Also show the result of this profile (see `oracle profiles`), or of all")
      ->check(NotEmpty());
  sub->add_flag("--json", options->json, "Print JSON, one line per value")->excludes("--profile");
  sub->allow_extras(false);
  Example(sub, "numsim inspect e4m3fn 0.78\n  numsim inspect e4m3fn 0.75+0.03 --sr-bits 8");
  Choose(program, sub, [options] { return PrintInspections(*options); });
}

}  // namespace numsim::apps
