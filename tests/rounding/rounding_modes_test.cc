// The list of modes: what it holds, and that oracle and docs/rounding.md have the same.
#include "numsim/rounding/rounding_modes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode_plan.h"
#include "tests/reference/oracle.h"
#include "tests/support/doc_page.h"
#include "tests/support/error_of.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

TEST(RoundingModes, NamesAndNumbersAreDistinct) {
  std::set<std::string_view> names;
  std::set<RoundingMode> modes;
  for (const RoundingModeRow& row : kRoundingModes) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(modes.insert(row.mode).second) << row.name;
  }
}

// Code elsewhere that needs random bits asks for kStochastic.
TEST(RoundingModes, OneDrawsRandomBits) {
  for (const RoundingModeRow& row : kRoundingModes) {
    EXPECT_EQ(row.draws, row.mode == RoundingMode::kStochastic) << row.name;
  }
  EXPECT_EQ(std::size(kDeterministicModes), std::size(kRoundingModes) - 1);
}

TEST(RoundingModes, OtherNumbersAreNone) {
  std::set<int64_t> numbers;
  for (const RoundingModeRow& row : kRoundingModes) numbers.insert(static_cast<int64_t>(row.mode));
  for (int64_t number = -300; number < 600; ++number) {
    EXPECT_EQ(IsRoundingMode(number), numbers.count(number) != 0) << number;
  }
  EXPECT_FALSE(IsRoundingMode(INT64_MIN));
  EXPECT_FALSE(IsRoundingMode(INT64_MAX));
}

TEST(RoundingModes, NoPlanIsMadeForAnother) {
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec;
  EXPECT_EQ(ErrorOf([&] { MakeEncodePlan(e4m3fn, {.mode = static_cast<RoundingMode>(200)}); }),
            "MakeEncodePlan: there is no rounding mode 200");
}

TEST(RoundingModes, OracleJudgesEachUnderEveryName) {
  std::set<RoundingMode> judged;
  for (const oracle::Setting& setting : oracle::AllSettings()) {
    const RoundingMode mode = ToLibrary(setting.mode);
    judged.insert(mode);
    EXPECT_TRUE(oracle::Describe(setting).starts_with(std::string(ToString(mode)) + ' '))
        << oracle::Describe(setting);
  }
  for (const RoundingModeRow& row : kRoundingModes) {
    EXPECT_TRUE(judged.count(row.mode)) << row.name << " is not in tests/reference/settings.cc";
  }
}

std::string ModeTable() {
  std::string table = "| name | rounds | at a tie |\n| --- | --- | --- |\n";
  for (const RoundingModeRow& row : kRoundingModes) {
    table += fmt::format("| `{}` | {} | {} |\n", row.name, row.rounds, row.at_tie);
  }
  return table;
}

TEST(RoundingDoc, TableOfModesEqualsTheList) {
  EXPECT_EQ(TableOf(SourceText("docs/rounding.md"), "modes"), ModeTable())
      << "put this table between the marks of docs/rounding.md";
}

// The entry of the table of overflows for a mode under `nonsaturate`.
std::string OverflowCell(RoundingMode mode) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("e5m2").spec, {.mode = mode});
  const bool up = plan.overflow_ordinal[0] != plan.max_ordinal;
  const bool down = plan.overflow_ordinal[1] != plan.max_ordinal;
  if (up && down) return "`overflow_to`";
  if (!up && !down) return "largest value";
  return fmt::format("`overflow_to` if {}, else the largest value", up ? "positive" : "negative");
}

TEST(RoundingDoc, TableOfOverflowsHasEveryMode) {
  const std::string table = TableOf(SourceText("docs/rounding.md"), "overflow");
  for (const RoundingModeRow& row : kRoundingModes) {
    std::istringstream lines(table);
    std::string line, found;
    int times = 0;
    while (std::getline(lines, line)) {
      const size_t cell = line.find(" | ");
      if (line.substr(0, cell).find(fmt::format("`{}`", row.name)) == std::string::npos) continue;
      ++times;
      found = line.substr(cell + 3, line.find(" | ", cell + 3) - cell - 3);
    }
    EXPECT_EQ(times, 1) << row.name << " in\n" << table;
    EXPECT_EQ(found, OverflowCell(row.mode)) << row.name;
  }
}

}  // namespace
}  // namespace numsim
