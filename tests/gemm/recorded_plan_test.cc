// Recorded plans of cuBLASLt against the published tables.
#include "numsim/gemm/recorded_plan.h"

#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "tests/support/doc_page.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

size_t NumberOf(const std::string& text) {
  size_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  EXPECT_EQ(end, text.data() + text.size()) << text;
  return number;
}

Table Published(const std::string& name) {
  return ReadCsv(SourceRoot() / "experiments/published/cuda" / ("cublaslt-" + name + ".csv"));
}

ProductShape ShapeOf(const Table& table, size_t row) {
  return {NumberOf(table.Text(row, "M")),
          NumberOf(table.Text(row, "N")),
          NumberOf(table.Text(row, "K"))};
}

// "e4m3-fast-bf16" and MiB.
RecordedPlans PlansOf(const std::string& kind, size_t workspace_mib) {
  const bool fp8 = kind.starts_with("e4m3");
  const std::string result = kind.substr(kind.rfind('-') + 1);
  return {ParseFormat(fp8 ? "e4m3fn" : kind.substr(0, 4)).spec,
          ParseFormat(result).spec,
          kind.find("fast") != std::string::npos,
          workspace_mib};
}

std::string WordOf(const std::string& text, int index) {
  size_t begin = 0;
  for (int i = 0; i < index; ++i) begin = text.find(' ', begin) + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

TEST(RecordedPlan, HasTheSplitOfEveryPublishedPlan) {
  const Table table = Published("plans");
  std::map<std::string, size_t> checked;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const ProductShape shape = ShapeOf(table, row);
    std::string cell;
    for (const std::string& name : std::span(table.columns).subspan(3)) {
      const std::string kind = name.substr(0, name.find('@'));
      const size_t mib = name.ends_with("@1MiB") ? 1 : 32;
      if (table.Text(row, name) != "=") cell = table.Text(row, name);
      if (kind == "int8-int32") continue;
      const size_t parts = NumberOf(WordOf(cell, 2));
      ASSERT_EQ(RecordedParts(PlansOf(kind, mib), shape), parts) << name << " " << row;
      ++checked[name];
    }
  }
  EXPECT_EQ(checked.size(), 16u);
  for (const auto& [name, count] : checked) EXPECT_EQ(count, 5246u) << name;
}

TEST(RecordedPlan, HasTheSplitOfEveryProductWithATail) {
  const Table table = Published("tails");
  size_t checked = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string kind = table.Text(row, "kind");
    if (kind == "int8-int32" || table.Text(row, "splits") != "0") continue;
    const size_t parts = NumberOf(table.Text(row, "split"));
    ASSERT_EQ(RecordedParts(PlansOf(kind, 32), ShapeOf(table, row)), parts) << kind << " " << row;
    ++checked;
  }
  EXPECT_EQ(checked, 2522u);
}

const RecordedPlans kBf16Plans = PlansOf("bf16-bf16", 32);

TEST(RecordedPlan, OtherShapesHaveNone) {
  EXPECT_EQ(RecordedParts(kBf16Plans, {1, 16, 11528}), 9u);
  EXPECT_EQ(RecordedParts(PlansOf("bf16-bf16", 1), {1, 16, 11528}), std::nullopt);
  EXPECT_EQ(RecordedParts(kBf16Plans, {1, 16, 11527}), std::nullopt);
  EXPECT_EQ(RecordedParts(kBf16Plans, {16, 1, 11528}), std::nullopt);
}

TEST(RecordedPlan, TheNearestShapeIsTheOneWithTheSmallestRatios) {
  const auto itself = NearestRecorded(kBf16Plans, {1, 16, 11528}, 1);
  ASSERT_EQ(itself.size(), 1u);
  EXPECT_EQ(itself[0].shape, (ProductShape{1, 16, 11528}));
  EXPECT_EQ(itself[0].parts, 9u);
  const auto nearest = NearestRecorded(kBf16Plans, {8192, 30000, 140000}, 3);
  ASSERT_EQ(nearest.size(), 3u);
  EXPECT_EQ(nearest[0].shape, (ProductShape{8192, 28672, 131072}));
  EXPECT_EQ(NearestRecorded(PlansOf("e4m3-fp32", 1), {5, 5, 5}, 100000).size(), 5246u);
}

TEST(RecordedPlan, ModesOfPartsAreThoseOfTheKind) {
  EXPECT_EQ(AccumulationModeOf(PlansOf("e4m3-bf16", 1)), "hopper-fp8");
  EXPECT_EQ(AccumulationModeOf(PlansOf("e4m3-fast-fp32", 1)), "hopper-fp8-fast");
  EXPECT_EQ(AccumulationModeOf(PlansOf("fp16-fp32", 32)), "hopper-fp16");
  EXPECT_EQ(AccumulationModeOf(kBf16Plans), "hopper-bf16");
}

TEST(RecordedPlan, WhatIsNotRecordedThrows) {
  const auto error = [](RecordedPlans plans) {
    return ErrorOf([&] { RecordedParts(plans, {1, 16, 512}); });
  };
  RecordedPlans plans = kBf16Plans;
  plans.results = ParseFormat("fp16").spec;
  EXPECT_EQ(error(plans),
            "recorded plans: results of fp16, expected bf16 or fp32 for operands of bf16");
  plans = kBf16Plans;
  plans.operands = ParseFormat("int8").spec;
  EXPECT_EQ(error(plans), "recorded plans: operands of int8, expected e4m3fn, bf16 or fp16");
  plans = kBf16Plans;
  plans.workspace_mib = 2;
  EXPECT_EQ(error(plans), "recorded plans: a workspace of 2 MiB, expected 1 or 32");
  plans = kBf16Plans;
  plans.fast_accumulation = true;
  EXPECT_EQ(error(plans),
            "recorded plans: fast accumulation is for operands of e4m3fn, not of bf16");
  EXPECT_EQ(ErrorOf([] {
              NearestRecorded(kBf16Plans, {1, 0, 1}, 1);
            }),
            "recorded plans: a shape of 1 x 0 x 1, expected no zero");
}

}  // namespace
}  // namespace numsim
