// docs/updates.md: its table of state bytes is the library's, every rule has a row in its tables,
// and its example is the one that runs here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/updates/update_rule.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

std::string SourceText(const std::filesystem::path& path) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  if (root == nullptr) return "NUMSIM_SOURCE_DIR is not set";
  std::ifstream file(std::filesystem::path(root) / path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the text between two marks, without the lines of the marks, or an empty text.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t mark = text.find(begin);
  if (mark == std::string::npos) return "";
  const size_t first = text.find('\n', mark) + 1;
  const size_t last = text.find(end, first);
  if (last == std::string::npos) return "";
  return text.substr(first, text.rfind('\n', last) + 1 - first);
}

// "0 (1)": bytes of state and, with them, of the weight; "-" where the rule does not serve it.
std::string BytesCell(const UpdateRule& rule, const Format& format) {
  if (ErrorOf([&] { CheckUpdateRule(rule, format); }) != kNoError) return "-";
  const double state = StateBytesPerWeight(rule, format.spec);
  return fmt::format("{} ({})", state, state + format.spec.StorageBytes());
}

std::string StateTable() {
  const std::vector<Format> formats = ParseFormatList("e4m3fn,fp16,bf16");
  std::string table = "| rule |";
  for (const Format& format : formats) table += " " + format.name + " |";
  table += "\n| --- | ---: | ---: | ---: |\n";
  for (const UpdateKind kind : UpdateKinds()) {
    UpdateRule rule;
    rule.kind = kind;
    table += fmt::format("| `{}` |", ToString(kind));
    for (const Format& format : formats) table += " " + BytesCell(rule, format) + " |";
    table += "\n";
  }
  return table;
}

TEST(UpdatesDoc, TableOfStateBytesEqualsTheLibrarys) {
  const std::string page = SourceText("docs/updates.md");
  EXPECT_EQ(Between(page, "<!-- table: state bytes -->", "<!-- end -->"), StateTable())
      << "put this table between the marks of docs/updates.md";
}

// A row of each of three tables: what it computes, bytes, what it preserves and loses.
TEST(UpdatesDoc, EveryRuleHasItsRows) {
  const std::string page = SourceText("docs/updates.md");
  for (const UpdateKind kind : UpdateKinds()) {
    const std::string begin = fmt::format("\n| `{}", ToString(kind));
    size_t rows = 0;
    for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
      const char next = page[at + begin.size()];
      rows += next == '`' || next == '[' ? 1 : 0;
    }
    EXPECT_EQ(rows, 3u) << ToString(kind);
  }
}

// Without a default: the compiler warns of an enumerator that is missing here.
bool IsUpdateStatus(UpdateStatus status) {
  switch (status) {
    case UpdateStatus::kOk:
    case UpdateStatus::kZeroUpdate:
    case UpdateStatus::kBelowMinStep:
    case UpdateStatus::kNotConverged:
    case UpdateStatus::kSaturated:
    case UpdateStatus::kNonfinite:
      return true;
  }
  return false;
}

TEST(UpdatesDoc, EveryStatusHasItsRowAndEveryRowItsStatus) {
  std::vector<std::string> names, rows;
  for (int i = 0; i <= UINT8_MAX; ++i) {
    const UpdateStatus status = static_cast<UpdateStatus>(i);
    if (IsUpdateStatus(status)) names.emplace_back(ToString(status));
  }
  std::istringstream table(Between(SourceText("docs/updates.md"), "| status | |", "\n\n"));
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with("| `")) rows.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  EXPECT_THAT(rows, UnorderedElementsAreArray(names));
}

// Every `rule` that the page writes with an argument or a scope reads back to itself.
TEST(UpdatesDoc, ExamplesOfRulesAreRules) {
  const std::string page = SourceText("docs/updates.md");
  for (const char* const text :
       {"stochastic:16", "kahan:bf16", "norm-matched@row", "projection-matched:none@block:128"}) {
    EXPECT_THAT(page, HasSubstr(fmt::format("`{}`", text)));
    EXPECT_EQ(ToString(ParseUpdateRule(text)), text);
  }
}

std::vector<float> Direction(const std::vector<float>& weights, uint64_t) {
  std::vector<float> direction;
  for (const float w : weights) direction.push_back(-w);
  return direction;
}

std::vector<float> RunExample(const std::vector<float>& initial, uint64_t steps) {
  const size_t rows = 1, cols = initial.size();
  // example begin
  const numsim::FormatSpec format = numsim::ParseFormat("bf16").spec;
  const numsim::UpdateRule rule = numsim::ParseUpdateRule("kahan");
  std::vector<float> weights(initial.size());
  const numsim::MatrixSpan<float> matrix = numsim::HostMatrix(weights, {rows, cols});
  numsim::UpdateState state =
      numsim::StartUpdates(rule, format, numsim::HostMatrix(initial, {rows, cols}), matrix);
  for (uint64_t t = 0; t < steps; ++t) {
    const std::vector<float> update = Direction(weights, t);  // e.g. minus the gradient
    numsim::WeightUpdate step;
    step.format = format;
    step.weights = matrix;
    step.update = numsim::HostMatrix(update, {rows, cols});
    step.learning_rate = 1e-3f;
    const numsim::RandomStream random{.seed = 1, .stream = t};
    const numsim::UpdateOutcome outcome = numsim::ApplyUpdate(rule, step, random, state, matrix);
    if (outcome.status == numsim::UpdateStatus::kNonfinite) break;
  }
  // example end
  return weights;
}

// 0.999^1000 = 0.3677; each step is a quarter of a gap of bf16 or less, which naive rounding loses.
TEST(UpdatesDoc, TheExampleMovesWeightsBelowTheirGaps) {
  const std::vector<float> weights = RunExample({1, -1, 0.5f}, 1000);
  EXPECT_NEAR(weights[0], 0.3677, 0.002);
  EXPECT_NEAR(weights[1], -0.3677, 0.002);
  EXPECT_NEAR(weights[2], 0.18385, 0.001);
}

std::string WithoutIndentation(const std::string& code) {
  std::istringstream lines(code);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos) result += line.substr(first) + "\n";
  }
  return result;
}

TEST(UpdatesDoc, TheExampleOfThePageIsTheOneThatRuns) {
  const std::string begin = "// example begin", end = "// example end";
  const std::string here =
      WithoutIndentation(Between(SourceText("tests/updates/updates_doc_test.cc"), begin, end));
  EXPECT_FALSE(here.empty());
  EXPECT_EQ(WithoutIndentation(Between(SourceText("docs/updates.md"), "```cpp", "```")), here);
}

}  // namespace
}  // namespace numsim
