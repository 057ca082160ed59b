// `numsim oracle pack`: writes a directory of test vectors that a project can check in.
#include <fmt/format.h>

#include "apps/oracle_command.h"
#include "numsim/oracle/pack.h"

namespace numsim::apps {
namespace {

struct PackOptions {
  std::string directory;
  std::string set = "standard";
  std::string as = "hex";
};

int Write(const PackOptions& options) {
  WritePack(options.directory, options.set, FindPackForm(options.as));
  const std::vector<PackFile> files = ReadPack(options.directory).files;
  uint64_t cases = 0;
  for (const PackFile& file : files) cases += file.cases;
  fmt::print("{}: {} files, {} cases\n", options.directory, files.size(), cases);
  return 0;
}

}  // namespace

void AddOraclePackCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "pack", "Write test vectors with a manifest to a new directory, for use in other projects");
  sub->add_option("DIR", options->directory, "Directory to create; it may exist if it is empty")
      ->required()
      ->check(NotEmpty());
  std::string sets;
  for (const PackSetInfo& info : PackSets()) {
    sets += fmt::format("{}{} ({})", sets.empty() ? "" : ", ", info.name, info.summary);
  }
  sub->add_option("--set", options->set, "Set of files: " + sets)->capture_default_str();
  std::string forms;
  for (const PackForm& form : PackForms()) {
    forms += fmt::format("{}{}", forms.empty() ? "" : ", ", form.name);
  }
  sub->add_option("--as", options->as, "Form of the files: " + forms)->capture_default_str();
  Example(sub, "numsim oracle pack vectors --set p3109-minimal --as readmemh");
  Choose(program, sub, [options] { return Write(*options); });
}

}  // namespace numsim::apps
