// Studies that train nothing: trials that functions measure, tables with kinds of cells, claims on rows of
// tables, templates of claims, figures, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "experiments/study/cell_kinds.h"
#include "experiments/study/study_digest.h"
#include "experiments/study/study_file.h"
#include "tests/experiments/result_tables.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::study::measurements {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFile = R"(name = "measured"
title = "a study for tests"
reproduces = "nothing"
description = "Measures."
measure = "points"
timed = true
scale = "{sizes}, {$rows}"
settings = [
  { name = "sizes", help = "sizes" },
  { name = "pairs", help = "pairs", limits = [2, 100], cuda = "50" }]
[presets.quick]
seeds = 2
study.sizes = "1,2"
study.pairs = 4
[presets.paper]
study.sizes = "1,2,4"
[[tables]]
name = "points"
[tables.columns]
shape.text = "round or not"
size.whole = "its size"
seed.whole = "seed"
value = { number = "what is measured", interval = true }
drawn = "beside it"
[[tables]]
name = "times"
timed = true
same_as = { table = "points", columns = ["size", "seed"] }
[tables.columns]
ns = "time"
[[derived]]
name = "means"
rows = "averages"
as_in = { table = "points", columns = ["shape"] }
[derived.columns]
mean = { number = "over seeds", over_seeds = true }
[outcomes]
value.column = "value"
shape.column = "shape"
[words]
round = "round"
[every_claim]
items = ["nowhere"]
scale = "any"
[templates.of-shape]
table = "points"
where = { shape = "{round}" }
missing = "no {shape} of {--sizes}"
margin = { value = 0.5, unit = "units", reason = "half" }
[[claims]]
name = "at-{of}"
of = ["of-shape"]
each = [{ of = "1" }, { of = "2" }]
statement = "It is above 1."
contrast = "value minus 1"
where = { size = "{of}" }
arm = "{shape} {size} of all"
outcome = "value"
reference = 1
[[claims]]
name = "grows"
of = ["of-shape"]
statement = "It grows."
contrast = "2 minus 1"
arm = "{size}"
arms = ["size=2", "size=1"]
absent = "no {shape} {size}"
outcome = "value"
[[figures]]
draw = "lines"
name = "values"
title = "Values"
table = "points"
where = { size = "$shown" }
panel = "shape"
panel_title = "{} {size}"
line = "shape"
x = "size"
y = "value"
x_label = "size"
y_label = "value"
log2_x = true
same_y = true
interval = true
dotted = "drawn"
dotted_label = "drawn"
[[figures]]
draw = "both"
)";

Functions MadeUp() {
  Functions functions;
  functions.measurements["points"] = {
      .trials =
          [](const Settings& settings) {
            std::vector<Trial> trials;
            for (const std::string& size : settings.GetList("sizes")) {
              trials.push_back({.label = size, .parameters = {{"size", size}}});
            }
            return trials;
          },
      .measure = [](const Settings&, const Trial& trial) -> Rows {
        return {{"points", {{"round", trial.parameters.at("size"), 0, 1, 0.5, 2, 3}}}};
      }};
  functions.values["shown"] = [](const Settings&) { return "*"; };
  functions.values["two"] = [](const Settings&) { return "2"; };
  functions.scales["rows"] = [](const Results& results) {
    return fmt::format("{} rows", results.Of("points").Size());
  };
  functions.tables["averages"] = [](const Results& results) {
    std::vector<Row> rows;
    for (const Frame& shape : results.Of("points").By({"shape"})) {
      rows.push_back({shape.Text("shape"), shape.Mean("value"), 0, 1});
    }
    return rows;
  };
  functions.several_figures["both"] = [](const Results&) {
    Figure empty{.name = "empty"};
    Figure one{.name = "one", .panels = {Panel()}}, two{.name = "two", .panels = {Panel()}};
    return std::vector<Figure>{empty, one, two};
  };
  functions.rows["first-seed"] = [](const Results&, const Frame& rows) {
    return rows.Where("seed", 0);
  };
  functions.unfit["too-small"] = [](const Results&, const Frame& rows) {
    return rows.Distinct("size").size() < 3 ? fmt::format("{} sizes", rows.Size()) : "";
  };
  functions.judges["exact"] = [](const Results&, const Frame& rows) {
    return Evidence{.exact = rows.Size() == 2};
  };
  functions.bounds["at-least"] = [](const Frame& rows, Evidence evidence) {
    evidence.bound = 1;
    evidence.bound_reason = fmt::format("{} rows", rows.Size());
    return evidence;
  };
  return functions;
}

std::string Changed(std::string file, const std::string& text, const std::string& by) {
  const size_t at = file.find(text);
  EXPECT_NE(at, file.npos) << text;
  return file.replace(at, text.size(), by);
}

Experiment Made(const std::string& file = kFile) {
  return MakeExperiment(ReadStudy(file, "measured.toml", MadeUp()));
}

// The file whose last claim has more keys.
std::string WithKeys(const std::string& keys) {
  return Changed(
      kFile, "absent = \"no {shape} {size}\"\n", "absent = \"no {shape} {size}\"\n" + keys);
}

class Points : public ::testing::Test {
 protected:
  void Read(const std::string& file) { results_ = ResultTables(Made(file), {}, 2); }
  void Add(const std::string& shape, int size, int seed, double value) {
    results_.Add("points",
                 {{"shape", shape},
                  {"size", size},
                  {"seed", seed},
                  {"value", value},
                  {"value_low", value - 0.25},
                  {"value_high", value + 0.5},
                  {"drawn", 7}});
  }
  // Values of sizes 1 and 2 and of both seeds.
  void AddAll(const std::string& shape, double first) {
    Add(shape, 1, 0, first);
    Add(shape, 1, 1, first + 0.25);
    Add(shape, 2, 0, first + 2);
    Add(shape, 2, 1, first + 2.75);
  }
  Evidence EvidenceOf(const std::string& name) { return results_.ClaimOf(name).evidence; }
  std::vector<std::string> ArmsOf(const std::string& name) {
    return EvidenceOf(name).outcomes.arms;
  }

  ResultTables results_{Made(), {}, 2};
};

// ---- options and trials

TEST(Measurements, HaveOptionsAndTrialsButNoKeysOfTrainings) {
  const Experiment experiment = Made();
  ASSERT_EQ(experiment.options.size(), 2u);
  EXPECT_EQ(experiment.options[0].paper, "1,2,4");
  EXPECT_EQ(experiment.options[1].cuda, "50");
  EXPECT_TRUE(experiment.timed);
  EXPECT_TRUE(experiment.rows.table.empty());
  EXPECT_FALSE(experiment.trained);
  const auto trials = [&](const std::string& pairs) {
    return experiment.trials(MakeSettings(experiment, "quick", 0, 1, {{"pairs", pairs}}));
  };
  EXPECT_EQ(trials("2").size(), 2u);
  EXPECT_THAT(ErrorOf([&] { trials("1"); }), HasSubstr("--pairs"));
}

TEST(Measurements, HaveTheColumnsOfTheFile) {
  const Experiment experiment = Made();
  const auto texts = [&](size_t table) {
    std::vector<std::string> all;
    for (const Column& column : experiment.tables[table].columns) {
      all.push_back(column.name + ": " + column.meaning);
    }
    return all;
  };
  EXPECT_THAT(texts(0),
              ElementsAre("shape: round or not",
                          "size: its size",
                          "seed: seed",
                          "value: what is measured",
                          "value_low: 95 % interval of value",
                          "value_high: 95 % interval of value",
                          "drawn: beside it"));
  EXPECT_THAT(texts(1), ElementsAre("size: its size", "seed: seed", "ns: time"));
  EXPECT_THAT(texts(2),
              ElementsAre("shape: as in points.csv",
                          "mean: over seeds",
                          "mean_low: 95 % interval over seeds (Student's t)",
                          "mean_high: 95 % interval over seeds"));
  EXPECT_FALSE(experiment.tables[0].timed);
  EXPECT_TRUE(experiment.tables[1].timed);
  EXPECT_EQ(experiment.tables[0].columns[1].kind, CellKind::kWhole);
  EXPECT_EQ(experiment.tables[2].columns[0].kind, CellKind::kText);
}

TEST(CellKinds, AreThoseOfTheColumns) {
  const std::vector<Column> columns = {
      {"a", "", CellKind::kText}, {"b", "", CellKind::kWhole}, {"c", "", CellKind::kNumber}};
  const auto message = [&](const Row& row) {
    return ErrorOf([&] { CheckCells("points", columns, {row}); });
  };
  EXPECT_EQ(message({"x", 3, 0.5}), "no error");
  EXPECT_EQ(message({"x", "3", "1e-05"}), "no error");  // numbers as texts
  EXPECT_EQ(message({"x", "nan", "inf"}), "no error");
  EXPECT_EQ(message({"x", 2.5, 1}), "points: b '2.5': expected a whole number");
  EXPECT_EQ(message({"x", 2, "much"}), "points: c 'much': expected a number");
  EXPECT_EQ(message({"x", 2}), "points: a row has 2 cells, expected 3");
  EXPECT_EQ(ErrorOf([] { CheckCells("any", {{"a", ""}}, {{1, 2}}); }), "no error");
}

TEST(Measurements, OfOtherCellsThanTheFileSaysAreErrors) {
  Functions functions = MadeUp();
  functions.measurements["points"].measure = [](const Settings&, const Trial&) -> Rows {
    return {{"points", {{"round", 1, 0, "large", 0, 0, 0}}}};
  };
  const Experiment experiment = MakeExperiment(ReadStudy(kFile, "measured.toml", functions));
  const Settings settings = MakeSettings(experiment, "quick", 0, 1, {});
  EXPECT_EQ(ErrorOf([&] { experiment.run(settings, Trial()); }),
            "points: value 'large': expected a number");
}

TEST_F(Points, GiveTheScale) {
  AddAll("round", 3);
  EXPECT_EQ(results_.experiment().scale(results_.settings(), results_.Finish()), "1,2, 4 rows");
}

// ---- claims

TEST_F(Points, AreComparedWithANumberSeedBySeed) {
  AddAll("square", -9);
  AddAll("round", 3);
  const Evidence evidence = EvidenceOf("at-1");
  EXPECT_THAT(evidence.outcomes.arms, ElementsAre("round 1 of all", "reference"));
  EXPECT_THAT(evidence.outcomes.values, ElementsAre(3, 3.25, 1, 1));
  EXPECT_THAT(EvidenceOf("at-2").outcomes.values, ElementsAre(5, 5.75, 1, 1));
  EXPECT_EQ(results_.ClaimOf("at-1").margin, 0.5);
}

TEST_F(Points, OfSettingsAreComparedWithTheNumberThatTheyDecide) {
  Read(Changed(kFile, "reference = 1\n", "reference_of = \"two\"\n"));
  AddAll("round", 3);
  EXPECT_THAT(EvidenceOf("at-1").outcomes.values, ElementsAre(3, 3.25, 2, 2));
}

TEST_F(Points, AreComparedBetweenArms) {
  AddAll("round", 3);
  Add("round", 4, 0, 100);
  const Evidence evidence = EvidenceOf("grows");
  EXPECT_THAT(evidence.outcomes.arms, ElementsAre("1", "2", "4"));
  ASSERT_EQ(evidence.contrasts.size(), 1u);
  EXPECT_EQ(NameOf(evidence.contrasts[0]), "2 - 1");
  EXPECT_NEAR(results_.ClaimOf("grows").result.contrasts.at(0).value, 2.25, 1e-12);
}

TEST_F(Points, OfArmsAloneLeaveOutTheOthers) {
  Read(WithKeys("arms_alone = true\n"));
  AddAll("round", 3);
  Add("round", 4, 0, 100);
  EXPECT_THAT(ArmsOf("grows"), ElementsAre("1", "2"));
}

TEST_F(Points, AreComparedInEachCombinationOfColumns) {
  Read(Changed(Changed(WithKeys("each_of = [\"shape\"]\n"), "shape = \"{round}\"", "shape = \"*\""),
               "arm = \"{size}\"",
               "arm = \"{shape} / {size}\""));
  AddAll("round", 3);
  AddAll("square", 7);
  const Evidence evidence = EvidenceOf("grows");
  ASSERT_EQ(evidence.contrasts.size(), 2u);
  EXPECT_EQ(NameOf(evidence.contrasts[0]), "round / 2 - round / 1");
  EXPECT_EQ(NameOf(evidence.contrasts[1]), "square / 2 - square / 1");
}

TEST_F(Points, OfTheControlMeetItsConditionsInPlaceOfTheClaims) {
  Read(WithKeys(
      "kind = \"equivalence\"\ncontrol = { text = \"of squares\", where = { shape = \"sq*\" } }\n"));
  AddAll("round", 3);
  AddAll("square", 7);
  const Evidence evidence = EvidenceOf("grows");
  EXPECT_EQ(NameOf(evidence.control), "2 of the control - 1 of the control");
  ASSERT_EQ(evidence.outcomes.arms.size(), 4u);
  EXPECT_THAT(evidence.outcomes.values, ElementsAre(3, 3.25, 5, 5.75, 9, 9.75, 7, 7.25));
}

TEST_F(Points, OfSeveralContrastsHaveTheirMeanAsTheControl) {
  Read(Changed(Changed(WithKeys("each_of = [\"shape\"]\nkind = \"equivalence\"\n"
                                "control = { text = \"back\", arms = [\"size=1\", \"size=2\"] }\n"),
                       "shape = \"{round}\"",
                       "shape = \"*\""),
               "arm = \"{size}\"",
               "arm = \"{shape} / {size}\""));
  AddAll("round", 3);
  AddAll("square", 7);
  const Contrast control = EvidenceOf("grows").control;
  ASSERT_EQ(control.size(), 4u);
  EXPECT_EQ(control[0].arm, "round / 1 of the control");
  EXPECT_EQ(control[0].weight, 0.5);
  EXPECT_EQ(control[3].arm, "square / 2 of the control");
  EXPECT_EQ(control[3].weight, -0.5);
}

TEST_F(Points, ThatAreMissingTestNothing) {
  EXPECT_EQ(EvidenceOf("grows").not_tested, "no round of 1,2");
  Add("round", 1, 0, 3);
  EXPECT_EQ(EvidenceOf("grows").not_tested, "no round 2");
  Read(WithKeys("unfit = \"too-small\"\n"));
  AddAll("round", 3);
  EXPECT_EQ(EvidenceOf("grows").not_tested, "4 sizes");
}

TEST_F(Points, AreThoseThatAFunctionLeaves) {
  Read(WithKeys("rows = \"first-seed\"\nbound = \"at-least\"\n"));
  AddAll("round", 3);
  const Evidence evidence = EvidenceOf("grows");
  EXPECT_THAT(evidence.outcomes.values, ElementsAre(3, 5));
  EXPECT_EQ(evidence.bound, 1);
  EXPECT_EQ(evidence.bound_reason, "2 rows");
}

TEST_F(Points, MayHaveAJudge) {
  Read(Changed(kFile,
               "arm = \"{size}\"\narms = [\"size=2\", \"size=1\"]\nabsent = \"no {shape} {size}\"\n"
               "outcome = \"value\"\n",
               "kind = \"exact\"\njudge = \"exact\"\nrows = \"first-seed\"\n"));
  AddAll("round", 3);
  EXPECT_EQ(EvidenceOf("grows").exact, true);
}

TEST(Templates, AreOneClaimEachForEachRow) {
  const std::string file =
      Changed(kFile,
              "[[claims]]\nname = \"grows\"\nof = [\"of-shape\"]\n",
              "[templates.up]\nname = \"up-{to}\"\nside = 1\n"
              "[templates.down]\nname = \"down-{to}\"\nof = [\"falling\"]\n"
              "[templates.falling]\nside = -1\nscale = \"its own\"\n"
              "[[claims]]\ntemplates = [\"up\", \"down\"]\nof = [\"of-shape\"]\n"
              "each = [{ to = \"a\" }, { to = \"b\" }]\n");
  const Experiment experiment = Made(file);
  std::vector<std::string> ids;
  for (const ClaimSpec& claim : experiment.claims) ids.push_back(claim.id);
  EXPECT_THAT(ids,
              ElementsAre("measured/at-1",
                          "measured/at-2",
                          "measured/up-a",
                          "measured/down-a",
                          "measured/up-b",
                          "measured/down-b"));
  EXPECT_EQ(experiment.claims[2].side, 1);
  EXPECT_EQ(experiment.claims[3].side, -1);
  EXPECT_EQ(experiment.claims[2].scale, "any");
  EXPECT_EQ(experiment.claims[3].scale, "its own");
}

TEST(Templates, CountForTheDigestOfClaimsAndNotForThatOfRows) {
  const Node before = Node::Read(kFile, "a.toml");
  const Node after = Node::Read(Changed(kFile, "value = 0.5", "value = 0.25"), "b.toml");
  EXPECT_EQ(DigestOfRows(before), DigestOfRows(after));
  EXPECT_NE(DigestOfClaims(before), DigestOfClaims(after));
}

// ---- figures

TEST_F(Points, AreDrawnWithTheirIntervalsAndAColumnBesideThem) {
  AddAll("round", 3);
  AddAll("square", 7);
  const std::vector<Figure> figures =
      results_.experiment().figures(results_.settings(), results_.Finish());
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[1].name, "one");
  EXPECT_EQ(figures[2].name, "two");
  EXPECT_TRUE(figures[0].same_y);
  ASSERT_EQ(figures[0].panels.size(), 2u);
  const Panel& panel = figures[0].panels[0];
  EXPECT_EQ(panel.title, "round 1");
  EXPECT_TRUE(panel.x.log2);
  ASSERT_GE(panel.series.size(), 2u);
  const Series &line = panel.series[0], &dotted = panel.series[1];
  EXPECT_THAT(line.x, ElementsAre(1, 2));
  EXPECT_THAT(line.y, ElementsAre(3.125, 5.375));
  EXPECT_THAT(line.low, ElementsAre(2.75, 4.75));
  EXPECT_THAT(line.high, ElementsAre(3.75, 6.25));
  EXPECT_EQ(dotted.label, "drawn");
  EXPECT_TRUE(dotted.dashed);
  EXPECT_EQ(dotted.style, line.style);
  EXPECT_THAT(dotted.y, ElementsAre(7, 7));
}

// ---- what is refused

struct Mistake {
  const char *text, *by, *message;
};

class BadFile : public ::testing::TestWithParam<Mistake> {};

TEST_P(BadFile, IsRefusedWithTheNearestName) {
  const Mistake& mistake = GetParam();
  EXPECT_THAT(ErrorOf([&] { Made(Changed(kFile, mistake.text, mistake.by)); }),
              HasSubstr(mistake.message));
}

INSTANTIATE_TEST_SUITE_P(
    Measurements,
    BadFile,
    ::testing::Values(
        Mistake{
            "\"points\"\ntimed",
            "\"pionts\"\ntimed",
            "measured.toml:5: measure: the name 'pionts' is not one of points; did you mean points?"},
        Mistake{
            "measure = \"points\"\n", "", "axes: is missing; or 'measure', if nothing is trained"},
        Mistake{
            "timed = true\nscale", "timde = true\nscale", "measured.toml:6: timde: is no key here"},
        Mistake{"[[tables]]\nname = \"points\"",
                "[[axes]]\nname = \"a\"\n[[tables]]\nname = \"points\"",
                "axes: is no key here"},
        Mistake{"{$rows}", "{$row}", "scale: there is no function '$row'"},
        Mistake{"limits = [2, 100]",
                "keys = [\"train.steps=$\"]",
                "pairs: keys: the study trains nothing"},
        Mistake{"shape.text", "shape.txt", "expected text, whole or number"},
        Mistake{"interval = true }\ndrawn",
                "intervall = true }\ndrawn",
                "intervall: is no key here; did you mean interval?"},
        Mistake{"same_as = { table = \"points\"",
                "same_as = { table = \"point\"",
                "table: the name 'point' is not one of points; did you mean points?"},
        Mistake{"columns = [\"shape\"]",
                "columns = [\"shap\"]",
                "columns: the column 'shap' is not one of"},
        Mistake{
            "rows = \"averages\"",
            "rows = \"average\"",
            "rows: the name 'average' is not one of averages, means, outcomes; did you mean averages?"},
        Mistake{"table = \"points\"\nwhere = { shape",
                "table = \"ponts\"\nwhere = { shape",
                "table: the name 'ponts' is not one of means, points, times; did you mean points?"},
        Mistake{"where = { shape = \"{round}\" }",
                "where = { shap = \"{round}\" }",
                "where: the column 'shap' is not one of"},
        Mistake{"where = { shape = \"{round}\" }",
                "where = { shape = \"$round\" }",
                "there is no function '$round'"},
        Mistake{"missing = \"no {shape} of {--sizes}\"\n", "", "missing: is missing"},
        Mistake{"no {shape} of {--sizes}",
                "no {shape} of {--size}",
                "missing: the option 'size' is not one of sizes, pairs; did you mean sizes?"},
        Mistake{"no {shape} of {--sizes}",
                "no {shap} of {--sizes}",
                "missing: the condition 'shap' is not one of"},
        Mistake{"absent = \"no {shape} {size}\"",
                "absent = \"no {shape} {value}\"",
                "absent: the condition 'value' is not one of size, shape"},
        Mistake{"of = [\"of-shape\"]\neach",
                "of = [\"of-shap\"]\neach",
                "of: the template 'of-shap' is not one of of-shape; did you mean of-shape?"},
        Mistake{"[templates.of-shape]\n",
                "[templates.of-shape]\nof = [\"of-shape\"]\n",
                "of: the template 'of-shape' is part of itself"},
        Mistake{"{shape} {size} of all",
                "{shape} {sise} of all",
                "arm: the column 'sise' is not one of"},
        Mistake{"outcome = \"value\"\nreference",
                "outcome = \"valu\"\nreference",
                "outcome: the name 'valu' is not one of shape, value; did you mean value?"},
        Mistake{"outcome = \"value\"\nreference",
                "outcome = \"shape\"\nreference",
                "outcome: the column 'shape' holds texts"},
        Mistake{"value.column = \"value\"",
                "value.column = \"vlue\"",
                "outcome: the column 'vlue' is not one of"},
        Mistake{"outcome = \"value\"\nreference", "reference", "outcome: is missing"},
        Mistake{"reference = 1\n", "", "arms: expected either these or a reference"},
        Mistake{"reference = 1\n",
                "reference_of = \"tow\"\n",
                "reference_of: the name 'tow' is not one of shown, two"},
        Mistake{"\"size=2\", \"size=1\"",
                "\"sise=2\", \"size=1\"",
                "arms: the column 'sise' is not one of"},
        Mistake{"absent = \"no {shape} {size}\"\n", "", "absent: is missing"},
        Mistake{"absent = \"no",
                "each_of = [\"sed\"]\nabsent = \"no",
                "each_of: the column 'sed' is not one of"},
        Mistake{"absent = \"no",
                "judge = \"exat\"\nabsent = \"no",
                "judge: the name 'exat' is not one of exact; did you mean exact?"},
        Mistake{"absent = \"no",
                "unfit = \"small\"\nabsent = \"no",
                "unfit: the name 'small' is not one of too-small"},
        Mistake{"absent = \"no",
                "rows = \"seed\"\nabsent = \"no",
                "rows: the name 'seed' is not one of first-seed"},
        Mistake{"absent = \"no",
                "bound = \"atleast\"\nabsent = \"no",
                "bound: the name 'atleast' is not one of at-least; did you mean at-least?"},
        Mistake{"absent = \"no",
                "kind = \"equivalence\"\ncontrol.text = \"x\"\nabsent = \"no",
                "claim grows: control: expected where or arms"},
        Mistake{
            "absent = \"no",
            "kind = \"equivalence\"\ncontrol = { text = \"x\", where = { sise = \"1\" } }\nabsent = \"no",
            "control: the column 'sise' is not one of"},
        Mistake{"where = { size = \"$shown\" }",
                "where = { sise = \"$shown\" }",
                "where: the column 'sise' is not one of"},
        Mistake{"y = \"value\"", "y = \"shape\"", "y: the column 'shape' holds texts"},
        Mistake{"y = \"value\"", "y = \"drawn\"", "interval: the column 'drawn_low' is not one of"},
        Mistake{
            "dotted = \"drawn\"", "dotted = \"drown\"", "dotted: the column 'drown' is not one of"},
        Mistake{"draw = \"both\"", "draw = \"botj\"", "draw: the name 'botj' is not one of both"}));

}  // namespace
}  // namespace numsim::experiments::study::measurements
