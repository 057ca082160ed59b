// The experiment `linear-speed`: what its tables hold, and what is computed from hand-made ones.
#include "experiments/linear_speed/linear_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "experiments/linear_speed/timing.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/base/parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::linear_speed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

const Overrides kTiny = {
    {"dims", "4,8"}, {"tokens", "6"}, {"repeats", "2"}, {"min-seconds", "0"}, {"product", "fp32"}};

Overrides Tiny(const Overrides& others) {
  Overrides all = others;
  all.insert(kTiny.begin(), kTiny.end());
  return all;
}

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(LinearSpeed(), "quick", 3, seeds, overrides);
}

// Without the figures: gnuplot takes longer than everything else.
Experiment WithoutFigures() {
  Experiment experiment = LinearSpeed();
  experiment.figures = nullptr;
  return experiment;
}

RunOptions OptionsFor(const fs::path& out, const Settings& settings) {
  RunOptions options;
  options.settings = settings;
  options.out = out;
  return options;
}

// One thread while it lives: on a busy machine the threads of tiny products wait for each other.
class OneThread {
 public:
  OneThread() { SetThreadCount(1); }
  ~OneThread() { SetThreadCount(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = ThreadCount();
};

// The tables of a run.
Tables TablesOf(const Overrides& overrides, int seeds = 1) {
  const OneThread thread;
  const TemporaryDirectory directory;
  const fs::path out = directory.Path() / "out";
  Run(WithoutFigures(), OptionsFor(out, SettingsWith(overrides, seeds)));
  return {{"operations", ReadCsv(out / "operations.csv")},
          {"layers", ReadCsv(out / "layers.csv")},
          {"crossings", ReadCsv(out / "crossings.csv")}};
}

Table EmptyTable(size_t index) {
  const Experiment experiment = LinearSpeed();
  Table table;
  for (const Column& column : experiment.tables[index].columns) {
    table.columns.push_back(column.name);
  }
  return table;
}

// The operations of a layer at one size, joined by commas.
std::string OperationsOf(const Table& table, const std::string& kind, const std::string& in) {
  std::string text;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "kind") != kind || table.Text(r, "in") != in) continue;
    if (table.Text(r, "dim") == "4") text += table.Text(r, "operation") + ",";
  }
  return text;
}

TEST(LinearSpeed, EveryOperationOfEveryLayerIsTimed) {
  const Tables tables = TablesOf(Tiny({{"formats", "int8,e4m3fn"}}));
  const Table& table = tables.at("operations");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    SCOPED_TRACE(table.Text(r, "kind") + " " + table.Text(r, "operation"));
    const bool other = table.Text(r, "part") == "other";
    EXPECT_GE(table.Number(r, "seconds"), 0);
    EXPECT_TRUE(table.Number(r, "seconds") > 0 || other);
    EXPECT_LE(table.Number(r, "seconds_low"), table.Number(r, "seconds"));
    EXPECT_GE(table.Number(r, "seconds_high"), table.Number(r, "seconds"));
    EXPECT_EQ(table.Number(r, "repeats"), 2);
    EXPECT_EQ(table.Number(r, "checked"), 0);
    EXPECT_EQ(table.Text(r, "threads"), "1");
    EXPECT_EQ(std::isnan(table.Number(r, "rate")), other);
    const double elements = table.Number(r, "in") * table.Number(r, "out");
    EXPECT_EQ(elements, 4 * table.Number(r, "dim") * table.Number(r, "dim"));
    if (table.Text(r, "part") == "product") {
      EXPECT_DOUBLE_EQ(table.Number(r, "giga"), 2e-9 * 6 * elements);
    } else if (table.Text(r, "operation") == "quantize W") {
      EXPECT_DOUBLE_EQ(table.Number(r, "giga"), 5e-9 * elements);
    } else if (table.Text(r, "operation") == "quantize X") {
      EXPECT_DOUBLE_EQ(table.Number(r, "giga"), 5e-9 * 6 * table.Number(r, "in"));
    } else if (table.Text(r, "operation") == "quantize G") {
      EXPECT_DOUBLE_EQ(table.Number(r, "giga"), 5e-9 * 6 * table.Number(r, "out"));
    }
  }
  for (const char* in : {"4", "16"}) {
    for (const char* operation :
         {"forward product", "input gradient product", "weight gradient product", "other"}) {
      EXPECT_THAT(OperationsOf(table, "standard", in), HasSubstr(operation));
      EXPECT_THAT(OperationsOf(table, "switchback", in), HasSubstr(operation));
    }
    EXPECT_THAT(OperationsOf(table, "standard", in), Not(HasSubstr("quantize")));
    for (const char* operation : {"quantize X,", "quantize W,", "quantize G,"}) {
      EXPECT_THAT(OperationsOf(table, "switchback", in), HasSubstr(operation));
    }
    EXPECT_THAT(OperationsOf(table, "switchback", in), Not(HasSubstr("quantize G^T")));
    EXPECT_THAT(OperationsOf(table, "llm-int8", in), HasSubstr("quantize G^T"));
    EXPECT_THAT(OperationsOf(table, "switchback-m", in), HasSubstr("dequantize X"));
  }
}

// Of 3 x 5 elements of X, 7 x 5 of W and 3 x 7 of G. A value has 4 bytes, or 2 on a device, an int8
// code one and bf16, the high precision, two.
TEST(LinearSpeed, WorkOfAConversionIsWhatItReadsAndWrites) {
  const Trial trial{
      .label = "",
      .seed = 0,
      .parameters = {{"width", "4"}, {"dim", "5"}, {"tokens", "3"}, {"in", "5"}, {"out", "7"}}};
  const std::vector<TimedLayer> layers = TimedLayers(SettingsWith(
      {{"kinds", "switchback,llm-int8"}, {"product", "fp32"}, {"high-precision", "bf16"}}));
  ASSERT_EQ(layers.size(), 2u);
  std::vector<LayerTimes> times(2);
  for (LayerTimes& layer : times) layer.samples.fill({1.0});
  const auto giga = [&](size_t layer, std::string_view operation, size_t value_bytes = 4) {
    Table table = EmptyTable(0);
    const TimedPlace place{.device = "cpu", .library = "", .value_bytes = value_bytes};
    table.rows = OperationRows(trial, place, layers, times).at("operations");
    for (size_t r = layer * (kSteps + 1); r < table.rows.size(); ++r) {
      if (table.Text(r, "operation") == operation) return table.Number(r, "giga");
    }
    return -1.0;
  };
  constexpr double kX = 15e-9, kW = 35e-9, kG = 21e-9;
  for (const size_t layer : {0, 1}) {
    SCOPED_TRACE(layers[layer].recipe.kind);
    EXPECT_DOUBLE_EQ(giga(layer, "keep X"), (4 + 2) * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "keep X", 2), (2 + 2) * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "quantize X"), (4 + 1) * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "dequantize X"), (4 + 1) * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "dequantize X", 2), (2 + 1) * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "quantize W"), (4 + 1) * kW);
    EXPECT_DOUBLE_EQ(giga(layer, "quantize W^T"), (4 + 1) * kW);
    EXPECT_DOUBLE_EQ(giga(layer, "quantize G"), (4 + 1) * kG);
    // The weight gradient is in high precision under switchback.
    const double bytes = layers[layer].recipe.kind == "switchback" ? 4 + 2 : 4 + 1;
    EXPECT_DOUBLE_EQ(giga(layer, "quantize G^T"), bytes * kG);
    EXPECT_DOUBLE_EQ(giga(layer, "quantize X^T"), bytes * kX);
    EXPECT_DOUBLE_EQ(giga(layer, "weight gradient product"), 2 * 3 * kW);
  }
}

TEST(LinearSpeed, SharesAddToOneAndStandardIsComparedWithItself) {
  const Table table = TablesOf(Tiny({{"product", "library,fp32"}}), 2).at("layers");
  ASSERT_EQ(table.rows.size(), 2u * 6 * 2);  // dims, kinds, products
  for (size_t r = 0; r < table.rows.size(); ++r) {
    double sum = 0;
    for (const Part part : kParts) {
      const double share = table.Number(r, std::string(ToString(part)) + "_share");
      EXPECT_GE(share, 0);
      sum += share;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_GT(table.Number(r, "seconds"), 0);
    EXPECT_NEAR(table.Number(r, "saved_percent"), 100 - 100 / table.Number(r, "speedup"), 1e-9);
    if (table.Text(r, "kind") == "standard") {
      EXPECT_EQ(table.Number(r, "speedup"), 1);
    }
  }
}

TEST(LinearSpeed, Keeps8BitCodesOnlyUnderSwitchbackM) {
  const Table table = TablesOf(Tiny({})).at("layers");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const double dim = table.Number(r, "dim");
    const double x = 6 * (dim + 4 * dim) / 2;  // mean of both layers
    if (table.Text(r, "kind") == "standard") {
      EXPECT_EQ(table.Number(r, "kept_bytes"), 4 * x);
    }
    if (table.Text(r, "kind") == "switchback-m") {
      // Codes of X and W, a scale for each token and one for W.
      EXPECT_EQ(table.Number(r, "kept_bytes"), x + 4 * dim * dim + 4 * 6 + 4);
    }
  }
}

// A row of a hand-made operations.csv.
struct Timed {
  std::string kind, product;
  int dim, in;
  std::string operation, part;
  double seconds;
  std::string tokens = "64";
};

Table HandMade(const std::vector<Timed>& rows) {
  Table table = EmptyTable(0);
  for (const Timed& row : rows) {
    const std::string format = row.kind == "standard" ? "fp32" : "int8";
    table.rows.push_back({"cpu",         "avx3",
                          "2",           "a library",
                          row.kind,      format,
                          "fp32",        row.product,
                          "4",           row.dim,
                          row.tokens,    "0",
                          row.in,        4 * row.dim * row.dim / row.in,
                          row.operation, row.part,
                          row.seconds,   "0",
                          "0",           "5",
                          "1",           "GOP",
                          "1",           "0",
                          row.in});
  }
  return table;
}

Tables Derived(const std::vector<Timed>& rows) {
  Tables tables = {
      {"operations", HandMade(rows)}, {"layers", EmptyTable(1)}, {"crossings", EmptyTable(2)}};
  LinearSpeed().derive(SettingsWith({}), tables);
  return tables;
}

TEST(LinearSpeed, SavedTimeIsThatOfTheMeanOfBothLayersOverTheStandardOfTheSameRule) {
  const Table layers = Derived({{"standard", "library", 8, 8, "forward product", "product", 3},
                                {"standard", "library", 8, 8, "other", "other", 1},
                                {"standard", "library", 8, 32, "forward product", "product", 11},
                                {"standard", "library", 8, 32, "other", "other", 1},
                                {"standard", "fp32", 8, 8, "other", "other", 32},
                                {"switchback", "library", 8, 8, "forward product", "product", 1},
                                {"switchback", "library", 8, 8, "quantize X", "quantize", 0.5},
                                {"switchback", "library", 8, 8, "keep X", "convert", 0.25},
                                {"switchback", "library", 8, 8, "other", "other", 0.25},
                                {"switchback", "library", 8, 32, "forward product", "product", 2},
                                {"switchback", "library", 8, 32, "quantize X", "quantize", 1.5},
                                {"switchback", "library", 8, 32, "other", "other", 0.5},
                                {"switchback", "fp32", 8, 8, "other", "other", 8},
                                {"switchback", "library", 16, 16, "other", "other", 1}})
                           .at("layers");
  ASSERT_EQ(layers.rows.size(), 5u);
  EXPECT_EQ(layers.Number(0, "seconds"), 8);
  EXPECT_EQ(layers.Number(0, "saved_percent"), 0);
  EXPECT_EQ(layers.Number(0, "kept_bytes"), 20);
  EXPECT_EQ(layers.Text(2, "kind"), "switchback");
  EXPECT_EQ(layers.Number(2, "seconds"), 3);
  EXPECT_EQ(layers.Number(2, "saved_percent"), 62.5);
  EXPECT_DOUBLE_EQ(layers.Number(2, "speedup"), 8.0 / 3);
  EXPECT_EQ(layers.Number(2, "product_share"), 0.5);
  EXPECT_DOUBLE_EQ(layers.Number(2, "quantize_share"), 2.0 / 6);
  EXPECT_DOUBLE_EQ(layers.Number(2, "convert_share"), 0.25 / 6);
  EXPECT_DOUBLE_EQ(layers.Number(2, "other_share"), 0.75 / 6);
  EXPECT_EQ(layers.Number(3, "speedup"), 4) << "against standard of mode fp32";
  EXPECT_TRUE(std::isnan(layers.Number(4, "speedup"))) << "no standard of that size";
}

// Layers whose products take `product` and whose other operations take `quantize` seconds.
void AddLayer(const std::string& kind,
              const std::string& tokens,
              int dim,
              double product,
              double quantize,
              std::vector<Timed>& rows) {
  for (const int in : {dim, 4 * dim}) {
    for (const char* name :
         {"forward product", "input gradient product", "weight gradient product"}) {
      rows.push_back({kind, "library", dim, in, name, "product", product, tokens});
    }
    if (quantize > 0) {
      rows.push_back({kind, "library", dim, in, "quantize X", "quantize", quantize, tokens});
    }
    rows.push_back({kind, "library", dim, in, "other", "other", 0, tokens});
  }
}

TEST(LinearSpeed, SubjectIsComparedWithTheFastestStandard) {
  std::vector<Timed> rows;
  for (const char* product : {"library", "fp32", "fp64"}) {
    for (const char* kind : {"standard", "llm-int8", "switchback"}) {
      const bool slow = std::string(kind) == "standard" && std::string(product) != "fp32";
      rows.push_back({kind, product, 8, 8, "other", "other", slow ? 2.0 : 1.0});
    }
  }
  const LayerKey subject = Subject(Derived(rows).at("layers"));
  EXPECT_EQ(subject.kind, "switchback");
  EXPECT_EQ(subject.product, "fp32");
  // Of two that are equally fast, the first.
  std::vector<Timed> equal;
  for (const char* product : {"library", "fp32"}) {
    for (const char* kind : {"standard", "switchback"}) {
      equal.push_back({kind, product, 8, 8, "other", "other", 1});
    }
  }
  EXPECT_EQ(Subject(Derived(equal).at("layers")).product, "library");
  const Timed llm = {"llm-int8", "library", 8, 8, "other", "other", 1};
  EXPECT_EQ(Subject(Derived({rows[0], llm}).at("layers")).kind, "llm-int8");
  EXPECT_EQ(Subject(Derived({rows[0]}).at("layers")).kind, "standard");
}

TEST(LinearSpeed, FiguresShowEachRuleAndNumberOfTokens) {
  std::vector<Timed> rows;
  for (const char* tokens : {"64", "128"}) {
    for (const int dim : {1024, 2048}) {
      AddLayer("standard", tokens, dim, 2, 0, rows);
      AddLayer("switchback", tokens, dim, 1, 0.5, rows);
      AddLayer("llm-int8", tokens, dim, 1, 0, rows);
    }
  }
  const Settings settings = SettingsWith({{"dims", "1024,2048"}, {"tokens", "128,64"}});
  const std::vector<Figure> figures = LinearSpeed().figures(settings, Derived(rows));
  ASSERT_EQ(figures.size(), 4u);
  ASSERT_EQ(figures[0].panels.size(), 2u);
  EXPECT_EQ(figures[0].panels[0].series.size(), 6u);  // three products of both
  EXPECT_EQ(figures[0].panels[0].series[0].y, (std::vector<double>{1000, 1000}));
  EXPECT_EQ(figures[0].panels[0].series[1].y, (std::vector<double>{2000, 2000}));
  EXPECT_EQ(figures[0].panels[1].series.size(), 1u);  // quantize X; other took no time
  ASSERT_EQ(figures[1].panels.size(), 2u);            // kinds, tokens
  ASSERT_EQ(figures[1].panels[0].series.size(), 3u);  // and a line at 0
  EXPECT_EQ(figures[1].panels[0].series[0].label, "switchback");
  EXPECT_EQ(figures[1].panels[0].series[1].y, (std::vector<double>{50, 50}));
  EXPECT_EQ(figures[1].panels[1].series[0].label, "64 tokens");
  ASSERT_EQ(figures[3].panels.size(), 2u);  // numbers of tokens
  EXPECT_EQ(figures[3].name, "linear-speed-saved-by-tokens");
  EXPECT_EQ(figures[3].panels[0].series.size(), 3u);
  EXPECT_NEAR(figures[2].panels[1].series[0].y[0], 100 * 0.5 / 3.5, 1e-12);
}

TEST(LinearSpeed, FiguresShowEachFormatOfTheSubjectAndNothingBelowZero) {
  std::vector<Timed> rows;
  for (const int dim : {1024, 2048}) {
    AddLayer("standard", "64", dim, 2, 0, rows);
    AddLayer("switchback", "64", dim, 1, 0.5, rows);
  }
  for (Timed& row : rows) {
    if (row.part == "other") row.seconds = row.dim == 1024 ? -0.1 : 0.1;
  }
  Table operations = HandMade(rows);
  const size_t count = operations.rows.size();
  for (size_t r = 0; r < count; ++r) {
    Row cells = operations.rows[r];
    if (cells[4] == "standard") continue;
    cells[5] = "e4m3fn";
    operations.rows.push_back(std::move(cells));
  }
  Tables tables = {
      {"operations", operations}, {"layers", EmptyTable(1)}, {"crossings", EmptyTable(2)}};
  const Settings settings = SettingsWith({{"dims", "1024,2048"}, {"tokens", "64"}});
  LinearSpeed().derive(settings, tables);
  const std::vector<Figure> figures = LinearSpeed().figures(settings, tables);
  ASSERT_EQ(figures.size(), 3u);
  ASSERT_EQ(figures[0].panels.size(), 4u);
  EXPECT_EQ(figures[0].panels[1].title, "Other operations, int8");
  EXPECT_EQ(figures[0].panels[2].title, "GEMMs, e4m3fn");
  const Series& other = figures[0].panels[1].series.back();
  EXPECT_EQ(other.x, std::vector<double>{2048});
  EXPECT_EQ(other.y, std::vector<double>{100});
}

// Trials measure operations alone; a journal that lacked the rows of another table would be refused.
TEST(LinearSpeed, OperationsAloneAreMeasured) {
  for (const TableSpec& spec : LinearSpeed().tables) {
    EXPECT_EQ(spec.derived, spec.name != "operations") << spec.name;
  }
}

TEST(LinearSpeed, ResumeKeepsWhatWasTimed) {
  const OneThread thread;
  const TemporaryDirectory directory;
  const fs::path out = directory.Path() / "out";
  RunOptions options = OptionsFor(out, SettingsWith(Tiny({})));
  Experiment failing = WithoutFigures();
  failing.run = [](const Settings& settings, const Trial& trial) {
    if (trial.label.starts_with("4 ->")) throw Error("made to fail");
    return Measure(settings, trial);
  };
  EXPECT_THROW(experiments::Run(failing, options), Error);
  const fs::path journal = out / "journal" / "0-of-1.jsonl";
  const std::vector<FinishedTrial> saved = ReadJournal(journal);
  ASSERT_GT(saved.size(), 0u);
  options.resume = true;
  EXPECT_EQ(experiments::Run(WithoutFigures(), options).trials_run, 4 - saved.size());
  const std::vector<FinishedTrial> all = ReadJournal(journal);
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_EQ(all[i].rows, saved[i].rows);
}

// Rounds of at least 10 ms: four of them take the least time of two layers, two do not.
TEST(LinearSpeed, RoundsGoOnForTheLeastTime) {
  using std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  const auto rounds_in = [](const std::string& min_seconds) {
    int rounds = 0;
    RepeatRounds(SettingsWith({{"repeats", "2"}, {"min-seconds", min_seconds}}), 2, [&] {
      ++rounds;
      std::this_thread::sleep_for(milliseconds(10));
    });
    return rounds;
  };
  EXPECT_EQ(rounds_in("0"), 2);
  const Clock::time_point begin = Clock::now();
  const int rounds = rounds_in("0.02");
  EXPECT_GE(Clock::now() - begin, milliseconds(39));
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 4);
}

// Rounds of at least 1 ms: no more than forty begin within the most time of two layers.
TEST(LinearSpeed, RoundsGoOnUpToTheMostTimeOfAllLayers) {
  using std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  int rounds = 0;
  const Clock::time_point begin = Clock::now();
  RepeatRounds(
      SettingsWith({{"repeats", "1000"}, {"min-seconds", "0"}, {"max-seconds", "0.02"}}), 2, [&] {
        ++rounds;
        std::this_thread::sleep_for(milliseconds(1));
      });
  EXPECT_GE(Clock::now() - begin, milliseconds(39));
  EXPECT_LE(rounds, 40);
}

TEST(LinearSpeed, LimitsOfRoundsAreThoseOfTheOptions) {
  const RoundLimits limits = RoundLimitsOf(
      SettingsWith({{"repeats", "7"}, {"min-seconds", "0.5"}, {"max-seconds", "0.5"}}));
  EXPECT_EQ(limits.repeats, 7);
  EXPECT_EQ(limits.least, 0.5);
  EXPECT_EQ(limits.most, 0.5);
}

TEST(LinearSpeed, TrialsAreBothLayersOfEachSize) {
  const Experiment experiment = LinearSpeed();
  EXPECT_TRUE(experiment.timed);
  std::string labels;
  for (const Trial& trial : experiment.trials(SettingsWith(Tiny({{"tokens", "6"}}), 2))) {
    labels += trial.label + "\n";
  }
  EXPECT_EQ(labels,
            "4 -> 16 tokens=6 seed=3\n16 -> 4 tokens=6 seed=3\n"
            "4 -> 16 tokens=6 seed=4\n16 -> 4 tokens=6 seed=4\n"
            "8 -> 32 tokens=6 seed=3\n32 -> 8 tokens=6 seed=3\n"
            "8 -> 32 tokens=6 seed=4\n32 -> 8 tokens=6 seed=4\n");
}

TEST(LinearSpeed, ASquareLayerIsOneTrial) {
  std::string labels;
  for (const Trial& trial : LinearSpeed().trials(SettingsWith(Tiny({{"widths", "1,2"}})))) {
    labels += trial.label + " " + trial.parameters.at("width") + "\n";
  }
  EXPECT_EQ(labels,
            "4 -> 4 tokens=6 seed=3 1\n4 -> 8 tokens=6 seed=3 2\n8 -> 4 tokens=6 seed=3 2\n"
            "8 -> 8 tokens=6 seed=3 1\n8 -> 16 tokens=6 seed=3 2\n16 -> 8 tokens=6 seed=3 2\n");
}

TEST(LinearSpeed, LayersOfOtherWidthsAreComparedWithTheirOwnStandard) {
  const Table table =
      TablesOf(Tiny({{"widths", "1,2"}, {"kinds", "standard,switchback"}})).at("layers");
  ASSERT_EQ(table.rows.size(), 2u * 2 * 2);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "kind") == "standard") {
      EXPECT_EQ(table.Number(r, "speedup"), 1);
    }
    EXPECT_FALSE(std::isnan(table.Number(r, "speedup")));
  }
}

TEST(LinearSpeed, NoRoundBeginsAfterTheMostTime) {
  const Table table = TablesOf({{"kinds", "standard"},
                                {"dims", "4"},
                                {"tokens", "6"},
                                {"product", "fp32"},
                                {"repeats", "1000"},
                                {"min-seconds", "0"},
                                {"max-seconds", "0.000001"}})
                          .at("operations");
  EXPECT_EQ(table.Number(0, "repeats"), 1);
}

TEST(LinearSpeed, StandardIsTimedOncePerRule) {
  std::string names;
  for (const TimedLayer& layer : TimedLayers(SettingsWith({{"kinds", "standard,switchback"},
                                                           {"formats", "int8,e4m3fn"},
                                                           {"product", "library,fp64"},
                                                           {"accumulate", "fp64"}}))) {
    names += layer.recipe.kind + " " + layer.format + " " + layer.product + " " +
             numsim::ToString(layer.recipe[LinearGemm::kForward].accumulation) + " " +
             numsim::ToString(layer.recipe[LinearGemm::kWeightGradient].accumulation) + "\n";
  }
  EXPECT_EQ(names,
            "standard fp32 library library library\n"
            "switchback int8 library exact library\n"
            "switchback e4m3fn library fp64 library\n"
            "standard fp32 fp64 fp64 fp64\n"
            "switchback int8 fp64 exact fp64\n"
            "switchback e4m3fn fp64 fp64 fp64\n");
}

TEST(LinearSpeed, BadOptionsAreNamed) {
  const Experiment experiment = LinearSpeed();
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { experiment.trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  for (const Overrides& bad : {Overrides{{"dims", "0"}},
                               Overrides{{"dims", "8,x"}},
                               Overrides{{"dims", "8,08"}},
                               Overrides{{"tokens", "-1"}},
                               Overrides{{"tokens", "8,8"}},
                               Overrides{{"repeats", "0"}},
                               Overrides{{"min-seconds", "nan"}},
                               Overrides{{"max-seconds", "-1"}},
                               Overrides{{"max-seconds", "0.05"}},
                               Overrides{{"widths", "17"}},
                               Overrides{{"widths", "4,4"}},
                               Overrides{{"kinds", "standard,standard"}},
                               Overrides{{"formats", "int8,int8"}},
                               Overrides{{"product", "fp32,fp32"}}}) {
    const auto& [name, value] = *bad.begin();
    EXPECT_THAT(message(bad), HasSubstr("--" + name)) << value;
  }
  for (const Overrides& bad : {Overrides{{"kinds", "magic"}},
                               Overrides{{"formats", "magic"}},
                               Overrides{{"product", "magic"}},
                               Overrides{{"accumulate", "magic"}},
                               Overrides{{"high-precision", "magic"}}}) {
    EXPECT_THAT(message(bad), HasSubstr("magic")) << bad.begin()->first;
  }
}

TEST(Label, NamesWhatDiffers) {
  const LayerKey a{"cpu", "avx3", "2", "lib", "switchback", "int8", "fp32", "library", "4"};
  LayerKey b = a;
  b.kind = "standard";
  EXPECT_EQ(Label(a, std::vector<LayerKey>{a, b}), "switchback");
  b = a.Standard();
  EXPECT_EQ(b.format, "fp32");
  EXPECT_EQ(Label(a, std::vector<LayerKey>{a, b}), "switchback int8");
  LayerKey c = a;
  c.product = "fp32";
  c.backend = "cuda";
  EXPECT_EQ(Label(a, std::vector<LayerKey>{a, b, c}), "switchback avx3 int8 (library)");
  c = a;
  c.width = "1";
  EXPECT_EQ(Label(a, std::vector<LayerKey>{a, c}), "switchback x4");
}

}  // namespace
}  // namespace numsim::experiments::linear_speed
