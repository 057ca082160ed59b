// docs/training.md: its tables of CSV columns are the telemetry's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "numsim/train/telemetry.h"
#include "tests/support/doc_page.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

TEST(TrainingDoc, TableOfColumnsOfEachCsvIsTheCodes) {
  const std::string page = SourceText("docs/training.md");
  for (const TelemetryTable& table : TelemetryTables()) {
    std::string rows = "| column | meaning |\n| --- | --- |\n";
    for (const auto& [column, meaning] : table.columns) {
      rows += fmt::format("| `{}` | {} |\n", column, meaning);
    }
    EXPECT_EQ(TableOf(page, fmt::format("{}.csv", table.name)), rows)
        << "put this table into docs/training.md";
    EXPECT_THAT(page, HasSubstr(fmt::format("`{}.csv`, {}", table.name, table.when)));
  }
}

}  // namespace
}  // namespace numsim
