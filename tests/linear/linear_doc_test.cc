// docs/linear.md shows a table of the kinds that is made from the library's recipes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "numsim/linear/linear_recipe.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

// "int8 row", "e4m3fn block:32 e8m0", "bf16".
std::string OperandText(const OperandRecipe& operand) {
  if (operand.Unscaled()) return operand.format.name;
  const std::string text = fmt::format("{} {}", operand.format.name, ToString(operand.layout));
  if (operand.scale_rule == ScaleRule::kAbsmax) return text;
  return fmt::format("{} {}", text, ToString(operand.scale_rule));
}

// "int8 row x int8 tensor, exact".
std::string ProductText(const GemmRecipe& product) {
  return fmt::format("{} x {}, {}",
                     OperandText(product.a),
                     OperandText(product.b),
                     ToString(product.accumulation));
}

// "X bf16, 2".
std::string KeptText(const char* tensor, const Format& format) {
  return fmt::format("{} {}, {}", tensor, format.name, format.spec.StorageBytes());
}

std::string KeptText(const LinearRecipe& recipe) {
  if (recipe.saves == LinearSaves::kInputs) return KeptText("X", recipe.high_precision);
  const GemmRecipe& forward = recipe[LinearGemm::kForward];
  return KeptText("X", forward.a.format) + "; " + KeptText("W", forward.b.format);
}

// A markdown table with a row for each of LinearKinds(), made from its default recipe: the operands
// and the accumulator of each product, what Forward keeps with its bytes an element (scales apart),
// and the source.
std::string LinearTable() {
  std::string table =
      "| kind | forward X x W | input gradient G x W^T | "
      "weight gradient G^T x X^T | kept, bytes an "
      "element | source |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const LinearKind& kind : LinearKinds()) {
    LinearOptions options;
    options.kind = kind.name;
    const LinearRecipe recipe = MakeLinearRecipe(options);
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n",
                         kind.name,
                         ProductText(recipe[LinearGemm::kForward]),
                         ProductText(recipe[LinearGemm::kInputGradient]),
                         ProductText(recipe[LinearGemm::kWeightGradient]),
                         KeptText(recipe),
                         kind.source);
  }
  return table;
}

std::string DocsPage(const char* name) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  if (root == nullptr) return "NUMSIM_SOURCE_DIR is not set";
  std::ifstream file(std::filesystem::path(root) / "docs" / name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A markdown table of how ForDevice multiplies two operands of each format that an operand may
// have.
std::string DeviceTable() {
  std::vector<std::pair<std::string, std::string>> rows;  // container and mode, formats
  for (const FormatEntry& entry : FormatTable()) {
    if (!entry.spec.IsSigned() || entry.spec.Bits() > 16) continue;
    LinearOptions options;
    options.kind = "switchback";
    options.format = entry.name;
    const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options));
    const GemmRecipe& made = recipe[LinearGemm::kForward];
    const std::string how =
        fmt::format("{} | `{}`",
                    made.container.has_value() ? "`" + made.container->name + "`" : "none",
                    ToString(made.accumulation));
    const auto same = [&](const auto& row) { return row.first == how; };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) row = rows.insert(rows.end(), {how, ""});
    row->second += fmt::format("{}`{}`", row->second.empty() ? "" : ", ", entry.name);
  }
  std::string table = "| formats | container | mode |\n| --- | --- | --- |\n";
  for (const auto& [how, formats] : rows) table += fmt::format("| {} | {} |\n", formats, how);
  return table;
}

void ExpectTable(const std::string& name, const std::string& table) {
  const std::string page = DocsPage("linear.md");
  const std::string begin_mark = "<!-- table: " + name + " -->\n";
  const size_t begin = page.find(begin_mark);
  ASSERT_NE(begin, std::string::npos) << page.substr(0, 80);
  const size_t end = page.find("<!-- end -->", begin);
  ASSERT_NE(end, std::string::npos);
  const size_t first = begin + begin_mark.size();
  EXPECT_EQ(page.substr(first, end - first), table)
      << "put this table between the marks of docs/linear.md:\n"
      << table;
}

TEST(LinearDoc, TablesEqualTheLibrarys) {
  ExpectTable("LinearTable()", LinearTable());
  ExpectTable("DeviceTable()", DeviceTable());
}

TEST(LinearDoc, TableHasARowForEveryKind) {
  const std::string table = LinearTable();
  for (const LinearKind& kind : LinearKinds()) {
    EXPECT_THAT(table, HasSubstr("\n| `" + std::string(kind.name) + "` | "));
  }
}

}  // namespace
}  // namespace numsim
