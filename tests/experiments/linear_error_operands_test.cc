// The operands of `linear-error`: what is planted in them, and tensors of --input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/linear_error/linear_error.h"
#include "experiments/linear_error/operands.h"
#include "experiments/runner/settings.h"
#include "numsim/io/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::linear_error {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

Settings SettingsWith(const Overrides& overrides) {
  return MakeSettings(LinearError(), "quick", 0, 1, overrides);
}

TEST(LinearErrorOperands, ALongerBatchBeginsWithTheShorterOne) {
  const Settings settings = SettingsWith({{"outlier-tokens", "0.2"}});
  for (const std::string& kind : settings.GetList("operands")) {
    const LinearOperands a = MakeOperands(settings, kind, {8, 6, 4}, 1);
    const LinearOperands b = MakeOperands(settings, kind, {32, 6, 4}, 1);
    EXPECT_TRUE(std::equal(a.x.begin(), a.x.end(), b.x.begin())) << kind;
    EXPECT_TRUE(std::equal(a.g.begin(), a.g.end(), b.g.begin())) << kind;
    EXPECT_EQ(a.w, b.w) << kind;
    EXPECT_NE(MakeOperands(settings, kind, {8, 6, 4}, 2).x, a.x) << kind;
  }
}

TEST(LinearErrorOperands, OutliersAreRowsOrColumnsOfTheNormalOnesTimesTheFactor) {
  const LinearShape shape{40, 10, 5};
  const Settings settings = SettingsWith({{"outlier-columns", "0.2"},
                                          {"outlier-column-size", "8"},
                                          {"outlier-tokens", "0.25"},
                                          {"outlier-token-size", "4"}});
  const LinearOperands normal = MakeOperands(settings, "normal", shape, 3);
  const LinearOperands columns = MakeOperands(settings, "outlier-columns", shape, 3);
  const LinearOperands tokens = MakeOperands(settings, "outlier-tokens", shape, 3);
  std::vector<size_t> large_columns, large_rows, large_rows_of_g;
  for (size_t j = 0; j < shape.in; ++j) {
    const float factor = columns.x[j] / normal.x[j];
    if (factor != 1) large_columns.push_back(j);
    for (size_t t = 0; t < shape.tokens; ++t) {
      EXPECT_EQ(columns.x[t * shape.in + j], normal.x[t * shape.in + j] * factor);
    }
    EXPECT_TRUE(factor == 1 || factor == 8) << factor;
  }
  EXPECT_EQ(large_columns.size(), 2u);
  EXPECT_EQ(columns.g, normal.g);
  for (size_t t = 0; t < shape.tokens; ++t) {
    const float of_x = tokens.x[t * shape.in] / normal.x[t * shape.in];
    const float of_g = tokens.g[t * shape.out] / normal.g[t * shape.out];
    if (of_x != 1) large_rows.push_back(t);
    if (of_g != 1) large_rows_of_g.push_back(t);
    for (size_t j = 0; j < shape.in; ++j) {
      EXPECT_EQ(tokens.x[t * shape.in + j], normal.x[t * shape.in + j] * of_x);
    }
    EXPECT_TRUE(of_x == 1 || of_x == 4) << of_x;
    EXPECT_TRUE(of_g == 1 || of_g == 4) << of_g;
  }
  EXPECT_GT(large_rows.size(), 3u);
  EXPECT_LT(large_rows.size(), 20u);
  EXPECT_NE(large_rows, large_rows_of_g);
}

TEST(LinearErrorOperands, CoherentTokensShareAMeanOfTheGivenVariance) {
  const LinearShape shape{4096, 6, 4};
  const LinearOperands made =
      MakeOperands(SettingsWith({{"coherence", "0.36"}}), "coherent", shape, 0);
  const auto check = [&](const std::vector<float>& x, size_t cols) {
    double mean = 0, square = 0;
    for (size_t t = 0; t < shape.tokens; ++t) {
      const double value = static_cast<double>(x[t * cols]);
      mean += value / static_cast<double>(shape.tokens);
      square += value * value / static_cast<double>(shape.tokens);
    }
    EXPECT_NEAR(std::abs(mean), 0.6, 0.06);
    EXPECT_NEAR(square, 1, 0.1);
  };
  check(made.x, shape.in);
  check(made.g, shape.out);
}

// A file of float32 numbers, rows x cols.
std::string PutTensor(const TemporaryDirectory& directory,
                      const std::string& name,
                      std::vector<size_t> shape,
                      const std::vector<float>& values) {
  Array array;
  array.shape = std::move(shape);
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  const fs::path path = directory.Path() / (name + ".npy");
  WriteNpy(path, array);
  return path.string();
}

// Row r, column c holds 100 r + c.
std::vector<float> Numbered(size_t rows, size_t cols) {
  std::vector<float> values;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) values.push_back(static_cast<float>(100 * r + c));
  }
  return values;
}

// The settings with the tensors of --input alone.
Settings Alone(Settings settings) {
  settings.options["operands"] = "tensors";
  return settings;
}

TEST(LinearErrorInput, GivesTheSameTokensOfXAndGAndTheWholeOfW) {
  const TemporaryDirectory directory;
  const std::string x = PutTensor(directory, "x", {20, 3}, Numbered(20, 3));
  const std::string w = PutTensor(directory, "w", {2, 3}, Numbered(2, 3));
  const std::string g = PutTensor(directory, "g", {20, 2}, Numbered(20, 2));
  const Settings settings = SettingsWith({{"input", x + "," + w + "," + g},
                                          {"tensor-x", "x"},
                                          {"tensor-w", "w"},
                                          {"tensor-g", "g"},
                                          {"tokens-low", "8"}});
  EXPECT_EQ(LinearError().trials(settings).size(), 6 * 2u);  // beside five that are drawn
  const std::vector<Trial> trials = LinearError().trials(Alone(settings));
  ASSERT_EQ(trials.size(), 2u);  // 8 and 16: there are 20 rows
  EXPECT_EQ(trials[1].parameters.at("tokens"), "16");
  EXPECT_EQ(trials[1].parameters.at("in"), "3");
  EXPECT_EQ(trials[1].parameters.at("out"), "2");
  EXPECT_EQ(trials[1].parameters.at("operands"), "file x=x w=w g=g");
  bool wrapped = false, shifted = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const LinearOperands made = MakeOperands(settings, "file x=x w=w g=g", {16, 3, 2}, seed);
    EXPECT_EQ(made.w, Numbered(2, 3));
    const auto first = static_cast<size_t>(made.x[0] / 100);
    for (size_t t = 0; t < 16; ++t) {
      const auto expected = static_cast<float>((first + t) % 20 * 100);
      EXPECT_EQ(made.x[3 * t], expected);
      EXPECT_EQ(made.x[3 * t + 2], expected + 2);
      EXPECT_EQ(made.g[2 * t + 1], expected + 1);
    }
    shifted |= first != 0;
    wrapped |= first > 4;
  }
  EXPECT_TRUE(shifted && wrapped);
}

TEST(LinearErrorInput, WhatIsNotGivenIsNormal) {
  const TemporaryDirectory directory;
  const std::string w = PutTensor(directory, "w", {5, 2, 3}, Numbered(5, 6));
  const Overrides overrides = {{"input", w}, {"tensor-w", "w"}, {"tokens-high", "512"}};
  const Settings settings = SettingsWith(overrides);
  const std::vector<Trial> trials = LinearError().trials(Alone(settings));
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].parameters.at("in"), "6");
  EXPECT_EQ(trials[0].parameters.at("out"), "5");
  const LinearOperands made = MakeOperands(settings, "file w=w", {8, 6, 5}, 2);
  const LinearOperands normal = MakeOperands(SettingsWith({}), "normal", {8, 6, 5}, 2);
  EXPECT_EQ(made.x, normal.x);
  EXPECT_EQ(made.g, normal.g);
  EXPECT_EQ(made.w, Numbered(5, 6));
}

TEST(LinearErrorInput, EachSeedMayHaveItsOwn) {
  const TemporaryDirectory directory;
  const Overrides overrides = {{"input", (directory.Path() / "x{seed}.npy").string()},
                               {"tensor-x", "x"},
                               {"tokens-low", "16"}};
  EXPECT_THAT(ErrorOf([&] { LinearError().trials(SettingsWith(overrides)); }), HasSubstr("x0.npy"));
  std::vector<float> other = Numbered(20, 3);
  for (float& value : other) value += 5000;
  Array array;
  array.shape = {20, 3};
  array.bytes.resize(60 * sizeof(float));
  for (const auto& [seed, values] : {std::pair{4, Numbered(20, 3)}, std::pair{5, other}}) {
    fs::create_directory(directory.Path() / std::to_string(seed));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    WriteNpy(directory.Path() / std::to_string(seed) / "x.npy", array);
  }
  Settings settings = SettingsWith({{"input", (directory.Path() / "{seed}/x.npy").string()},
                                    {"tensor-x", "x"},
                                    {"tokens-low", "16"}});
  settings.seed = 4;
  settings.seeds = 2;
  EXPECT_EQ(LinearError().trials(Alone(settings)).size(), 2u);
  EXPECT_LT(MakeOperands(settings, "file x=x", {16, 3, 3}, 4).x[0], 2000);
  EXPECT_GE(MakeOperands(settings, "file x=x", {16, 3, 3}, 5).x[0], 5000);
  array.shape = {12, 5};
  WriteNpy(directory.Path() / "5" / "x.npy", array);
  EXPECT_THAT(ErrorOf([&] { LinearError().trials(settings); }),
              HasSubstr("seed 5 have other shapes"));
}

TEST(LinearErrorInput, ThatCannotBeUsedIsAnError) {
  const TemporaryDirectory directory;
  const std::string x = PutTensor(directory, "x", {20, 3}, Numbered(20, 3));
  const std::string g = PutTensor(directory, "g", {10, 2}, Numbered(10, 2));
  const std::string w = PutTensor(directory, "w", {2, 4}, Numbered(2, 4));
  const std::string flat = PutTensor(directory, "flat", {6}, Numbered(1, 6));
  std::vector<float> bad = Numbered(8, 3);
  bad[7] = std::numeric_limits<float>::infinity();
  const std::string infinite = PutTensor(directory, "infinite", {8, 3}, bad);
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { LinearError().trials(SettingsWith(overrides)); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_THAT(text, HasSubstr(part));
  };
  const std::string files = x + "," + g + "," + w + "," + flat + "," + infinite;
  expect(message({{"input", files}}), "--tensor-x");
  expect(message({{"input", files}, {"tensor-x", "nope"}}), "nope");
  expect(message({{"input", files}, {"tensor-x", "flat"}}), "dimensions");
  expect(message({{"input", files}, {"tensor-x", "x"}, {"tensor-w", "w"}}), "inputs is 3");
  expect(message({{"input", files}, {"tensor-x", "x"}, {"tensor-g", "g"}}), "tokens is 20");
  expect(message({{"input", files}, {"tensor-x", "x"}}), "--tokens-low");
  expect(message({{"tensor-x", "x"}}), "--input");
  expect(message({{"operands", "tensors"}}), "--operands: tensors needs --input");
  const Settings settings =
      SettingsWith({{"input", files}, {"tensor-x", "infinite"}, {"tokens-low", "8"}});
  expect(ErrorOf([&] { MakeOperands(settings, "file x=infinite", {8, 3, 3}, 0); }), "element 7");
}

}  // namespace
}  // namespace numsim::experiments::linear_error
