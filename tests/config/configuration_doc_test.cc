// docs/configuration.md has every key with its default and meaning, and no other; the examples are
// configurations.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "tests/support/doc_page.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

std::string Row(const std::string& name, const ConfigKey& key) {
  return fmt::format("| `{}` | `{}` | {} |\n", name, key.value, key.meaning);
}

constexpr const char* kHead = "| key | default | meaning (valid values) |\n| --- | --- | --- |\n";

// The sections in order, each with its table.
std::vector<std::pair<std::string, std::string>> Sections() {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const ConfigKey& key : ConfigKeys(TrainConfig())) {
    const size_t dot = key.name.find('.');
    const std::string section = key.name.substr(0, dot);
    if (sections.empty() || sections.back().first != section) sections.emplace_back(section, kHead);
    sections.back().second += Row(key.name.substr(dot + 1), key);
  }
  return sections;
}

std::string PresetTable() {
  std::string table = "| preset | |\n| --- | --- |\n";
  for (const TrainPreset& preset : TrainPresets()) {
    table += fmt::format("| `{}` | {} |\n", preset.name, preset.meaning);
  }
  return table;
}

TEST(ConfigurationDoc, TableOfEachSectionIsTheCodes) {
  const std::string page = SourceText("docs/configuration.md");
  size_t rows = 0;
  for (const auto& [section, table] : Sections()) {
    EXPECT_EQ(TableOf(page, section), table) << "put this table into docs/configuration.md";
    rows += static_cast<size_t>(std::count(table.begin(), table.end(), '\n')) - 2;
  }
  EXPECT_EQ(rows, ConfigKeys(TrainConfig()).size());
}

TEST(ConfigurationDoc, HasNoOtherSection) {
  const std::string page = SourceText("docs/configuration.md");
  const std::string mark = "<!-- table: ";
  size_t tables = 0;
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) ++tables;
  EXPECT_EQ(tables, Sections().size() + 3);  // presets, recipes, linear.override
}

TEST(ConfigurationDoc, TableOfOverridesAddsThePattern) {
  TrainConfig config;
  config.linear.overrides.emplace_back();
  const std::string prefix = "linear.override.0.";
  for (const ConfigKey& key : ConfigKeys(config)) {
    if (key.name != prefix + "layers") continue;
    EXPECT_EQ(TableOf(SourceText("docs/configuration.md"), "linear.override"),
              kHead + Row("layers", key));
  }
}

TEST(ConfigurationDoc, TableOfPresetsIsTheCodes) {
  EXPECT_EQ(TableOf(SourceText("docs/configuration.md"), "presets"), PresetTable());
}

TEST(ConfigurationDoc, TableOfRecipesIsTheCodes) {
  std::string table = "| recipe | | sets in [linear] |\n| --- | --- | --- |\n";
  for (const TrainRecipe& recipe : TrainRecipes()) {
    const std::string settings =
        recipe.settings.empty() ? "" : fmt::format("`{}`", recipe.settings);
    table += fmt::format("| `{}` | {} | {} |\n", recipe.name, recipe.meaning, settings);
  }
  EXPECT_EQ(TableOf(SourceText("docs/configuration.md"), "recipes"), table);
}

TEST(TrainingDoc, ExamplesAreConfigurationsAndEachIsOnThePage) {
  const std::string page = SourceText("docs/training.md");
  size_t examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SourceRoot() / "docs/examples")) {
    if (entry.path().extension() != ".toml") continue;
    ++examples;
    EXPECT_NO_THROW(ReadTrainConfig(entry.path(), {})) << entry.path();
    const std::string name = "examples/" + entry.path().filename().string();
    EXPECT_THAT(page, HasSubstr(name));
  }
  EXPECT_GE(examples, 5u);
}

}  // namespace
}  // namespace numsim
