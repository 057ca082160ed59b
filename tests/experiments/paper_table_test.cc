#include "experiments/runner/paper_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Losses of two arms at two rates; the second arm has one seed and diverges at the larger rate.
Table Losses() {
  return {{"arm", "lr", "seed", "status", "loss"},
          {{"fp32", "1e-3", "0", "finished", "1"},
           {"fp32", "1e-3", "1", "finished", "2"},
           {"fp32", "1e-3", "2", "finished", "3"},
           {"e4m3_x", "1e-3", "0", "finished", "0.123456"},
           {"e4m3_x", "1e-2", "0", "diverged", "inf"}}};
}

PaperTable Means(const Selection& selection, TableStyle style = TableStyle::kMarkdown) {
  return MeansOverSeeds(Losses(), selection, style, "dir/final.csv");
}

// t of two degrees of freedom at 97.5 % is 4.302653, and the standard error of 1, 2, 3 is 1 / sqrt(3).
TEST(MeansOverSeeds, HaveHalfOfStudentsInterval) {
  const PaperTable table = Means({{"arm", "lr"}, {"loss"}, {}});
  EXPECT_THAT(table.rows,
              ElementsAre(ElementsAre("fp32", "1e-3", "2.0 +- 2.5", "3"),
                          ElementsAre("e4m3_x", "1e-3", "0.1235", "1"),
                          ElementsAre("e4m3_x", "1e-2", "inf", "1")));
  const PaperTable csv = Means({{"arm"}, {"loss"}, {{"arm", "fp32"}}}, TableStyle::kCsv);
  ASSERT_EQ(csv.rows.size(), 1u);
  ASSERT_EQ(csv.rows[0].size(), 5u);
  EXPECT_EQ(csv.rows[0][1], "2");
  EXPECT_NEAR(std::stod(csv.rows[0][2]), 2 - 2.4841377, 1e-6);
  EXPECT_NEAR(std::stod(csv.rows[0][3]), 2 + 2.4841377, 1e-6);
  EXPECT_EQ(ToText(csv, TableStyle::kCsv, "").substr(0, 32), "arm,loss,loss_low,loss_high,seed");
}

TEST(MeansOverSeeds, RefuseWhatTheTableDoesNotHave) {
  EXPECT_EQ(ErrorOf([] {
              Means({{"arm"}, {"los"}, {}});
            }),
            "dir/final.csv: column 'los' is not one of arm, lr, seed, status, loss; did you mean "
            "loss?");
  EXPECT_EQ(ErrorOf([] {
              Means({{"arm"}, {"loss"}, {{"arm", "fp33"}}});
            }),
            "dir/final.csv: no record has arm = 'fp33'; those of the records left: fp32, e4m3_x; "
            "did you mean fp32?");
  EXPECT_EQ(ErrorOf([] {
              Means({{"arm"}, {"loss"}, {}});
            }),
            "dir/final.csv: column 'loss': seed 0 has two values; name one more column for the "
            "rows");
  EXPECT_THAT(ErrorOf([] {
                Means({{"arm", "lr"}, {"status"}, {}});
              }),
              HasSubstr("'finished' is not a number"));
}

TEST(PaperTable, IsATabularWithEscapesAndNumbersInMathMode) {
  const PaperTable table{{{"a_b"}, {"x", true}, {"y", true}},
                         {{"50 % & #1 {$}", "2.0 +- 2.5", "1.5e-08"}, {"a^b~\\<", "inf", ""}}};
  EXPECT_EQ(ToText(table, TableStyle::kLatex, "numsim table dir"),
            "% numsim table dir\n"
            "\\begin{tabular}{lrr}\n"
            "\\toprule\n"
            "a\\_b & x & y \\\\\n"
            "\\midrule\n"
            "50 \\% \\& \\#1 \\{\\$\\} & $2.0 \\pm 2.5$ & $1.5 \\times 10^{-8}$ \\\\\n"
            "a\\textasciicircum{}b\\textasciitilde{}\\textbackslash{}$<$ & $\\infty$ &  \\\\\n"
            "\\bottomrule\n"
            "\\end{tabular}\n");
  EXPECT_EQ(ToText({{{"a"}, {"x", true}}, {{"b|c", "2.0 +- 2.5"}}}, TableStyle::kMarkdown, ""),
            "| a | x |\n| --- | ---: |\n| b\\|c | 2.0 ± 2.5 |\n");
}

// The table of a run about two claims, one of them an equivalence with its control.
Table Verdicts() {
  return {
      {"claim",
       "verdict",
       "seeds",
       "margin",
       "unit",
       "parameters",
       "tokens",
       "word",
       "role",
       "contrast",
       "estimate",
       "low",
       "high",
       "confidence"},
      {{"e/falls",
        "supported",
        "3",
        "0.02",
        "nats",
        "139584",
        "153600",
        "toy",
        "contrast",
        "a - b",
        "0.2404",
        "0.08",
        "0.4",
        "0.95"},
       {"e/same",
        "contradicted",
        "3",
        "0.02",
        "nats",
        "139584",
        "153600",
        "toy",
        "contrast",
        "c - b",
        "0.1",
        "0.05",
        "0.15",
        "0.9"},
       {"e/same",
        "contradicted",
        "3",
        "0.02",
        "nats",
        "139584",
        "153600",
        "toy",
        "control",
        "d - b",
        "1",
        "0.9",
        "1.1",
        "0.9"},
       {"e/exact", "exact: holds", "1", "", "", "", "", "", "contrast", "", "", "", "", ""},
       {"e/other", "not tested", "0", "0.02", "nats", "", "", "", "contrast", "", "", "", "", ""}}};
}

TEST(VerdictsOf, ShowEstimateScaleAndConfidenceWithoutControls) {
  const PaperTable table = VerdictsOf(Verdicts(), {}, TableStyle::kLatex);
  EXPECT_THAT(table.rows,
              ElementsAre(ElementsAre("falls",
                                      "a - b",
                                      "0.24 [0.08, 0.40]",
                                      "95 %",
                                      "0.02",
                                      "nats",
                                      "3",
                                      "supported",
                                      "toy, 0.14 M / 0.15 M tokens"),
                          ElementsAre("same",
                                      "c - b",
                                      "0.100 [0.050, 0.150]",
                                      "90 %",
                                      "0.02",
                                      "nats",
                                      "3",
                                      "contradicted",
                                      "toy, 0.14 M / 0.15 M tokens"),
                          ElementsAre("exact", "", "", "", "", "", "1", "exact: holds", "")));
  const PaperTable named = VerdictsOf(Verdicts(), {"other"}, TableStyle::kCsv);
  ASSERT_EQ(named.rows.size(), 1u);
  EXPECT_EQ(named.rows[0].size(), named.columns.size());
  EXPECT_EQ(ErrorOf([] { VerdictsOf(Verdicts(), {"fall"}, TableStyle::kCsv); }),
            "claim 'fall' is not one of falls, same, exact, other; did you mean falls?");
}

}  // namespace
}  // namespace numsim::experiments
