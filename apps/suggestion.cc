#include "apps/suggestion.h"

#include <fmt/format.h>

#include <vector>

#include "numsim/base/nearest_name.h"

namespace numsim::apps {
namespace {

constexpr std::string_view kDashes = "--";

// Returns `app` and the commands given, the last one last: numsim, oracle, gen.
std::vector<const CLI::App*> GivenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> given = {&app};
  while (!given.back()->get_subcommands().empty()) {
    given.push_back(given.back()->get_subcommands().front());
  }
  return given;
}

// Returns the long names, without dashes, of the options of these commands.
std::vector<std::string> OptionNames(const std::vector<const CLI::App*>& given) {
  std::vector<std::string> names;
  for (const CLI::App* command : given) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

}  // namespace

std::string Suggestion(const CLI::App& app) {
  const std::vector<const CLI::App*> given = GivenCommands(app);
  const std::vector<std::string> options = OptionNames(given);
  const std::vector<std::string> commands = CommandNames(*given.back());
  for (const std::string& text : app.remaining(true)) {
    const bool option = text.starts_with(kDashes);
    const std::string wrong =
        option ? text.substr(kDashes.size(), text.find('=') - kDashes.size()) : text;
    const std::string name = NearestName(wrong, option ? options : commands);
    if (!name.empty()) return fmt::format("did you mean {}{}?", option ? kDashes : "", name);
  }
  return {};
}

}  // namespace numsim::apps
