// Stored moments against the oracle, code by code.
#include "numsim/moments/moment_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/moments/moment_cases.h"

namespace numsim::moment_test {
namespace {

constexpr RandomStream kRandom{42, 7};

void ExpectAsOracle(const std::string& text, const std::vector<float>& data, bool is_signed) {
  const MomentFormat format = ParseMomentFormat(text);
  MomentStore store(format, data.size(), is_signed);
  store.Store(data, kRandom);
  const oracle::StoredMoment expected =
      oracle::StoreMoment(OracleRule(format, is_signed), data, Draws(format, kRandom, data.size()));
  const Stored stored = ReadState(store);
  ASSERT_EQ(stored.scales.size(), expected.scales.size());
  for (size_t i = 0; i < stored.scales.size(); ++i) {
    ASSERT_EQ(stored.scales[i], expected.scales[i]) << "scale " << i;
  }
  ASSERT_EQ(stored.codes.size(), data.size());
  const std::vector<float> values = LoadAll(store);
  const int64_t ulps = format.scaling == MomentScaling::kCoat ? 1 : 0;
  for (size_t i = 0; i < data.size(); ++i) {
    ASSERT_EQ(stored.codes[i], expected.codes[i]) << i << ": " << data[i];
    ASSERT_LE(UlpsBetween(values[i], expected.values[i]), ulps)
        << i << ": " << values[i] << " " << expected.values[i];
  }
}

class MomentStoreOracle : public testing::TestWithParam<std::string> {};

TEST_P(MomentStoreOracle, StoresTheSameCodesAndScales) {
  for (const std::string& text : FormatTexts(GetParam())) {
    for (const std::string& kind : DataKinds()) {
      for (const size_t n : {0, 1, 127, 128, 129}) {
        for (const bool is_signed : {true, false}) {
          if (!is_signed && GetParam() != "dynamic") continue;  // means nothing there
          SCOPED_TRACE(testing::Message() << text << " " << kind << " " << n << " " << is_signed);
          ASSERT_NO_FATAL_FAILURE(ExpectAsOracle(text, MakeData(kind, n), is_signed));
        }
      }
    }
  }
}

TEST_P(MomentStoreOracle, StoresTheSameCodesOfManyElements) {
  for (const std::string& text : FormatTexts(GetParam())) {
    for (const char* kind : {"heavy-tailed", "specials"}) {
      SCOPED_TRACE(text + " " + kind);
      ASSERT_NO_FATAL_FAILURE(ExpectAsOracle(text, MakeData(kind, 5000), true));
    }
  }
}

// Elements that threads take in parts of 16384 each have random bits of their own.
TEST(MomentStore, RandomBitsDoNotRepeatInALargeTensor) {
  for (const char* text :
       {"bf16@none+sr", "int8@block+sr", "e2m1fn@block:7+sr", "e4m3fn@coat+sr", "dynamic+sr"}) {
    SCOPED_TRACE(text);
    ASSERT_NO_FATAL_FAILURE(ExpectAsOracle(text, MakeData("normal", 2 * 16384 + 5), true));
  }
  constexpr size_t kPart = 16384;
  MomentStore store(ParseMomentFormat("int8@tensor+sr"), 2 * kPart, true);
  std::vector<float> data(2 * kPart, 0.3f);
  data.front() = 1;  // so that 0.3 lies between two codes
  store.Store(data, kRandom);
  const std::vector<uint32_t> codes = ReadState(store).codes;
  EXPECT_FALSE(std::equal(codes.begin() + 1, codes.begin() + kPart, codes.begin() + kPart + 1));
}

INSTANTIATE_TEST_SUITE_P(Formats,
                         MomentStoreOracle,
                         testing::ValuesIn(TestedFormats()),
                         [](const auto& test) { return test.param; });

TEST(MomentStore, HoldsZerosAtFirst) {
  std::vector<std::string> texts = FormatTexts();
  texts.push_back("fp32");
  for (const std::string& text : texts) {
    for (const size_t n : {0, 1, 300}) {
      for (const bool is_signed : {true, false}) {
        const MomentStore store(ParseMomentFormat(text), n, is_signed);
        for (const float value : LoadAll(store)) ASSERT_TRUE(SameBits(value, 0.0f)) << text;
      }
    }
  }
}

TEST(MomentStore, KeepsEveryFloatInFp32) {
  for (const std::string& kind : DataKinds()) {
    const std::vector<float> data = MakeData(kind, 5000);
    MomentStore store(ParseMomentFormat("fp32"), data.size(), true);
    store.Store(data, kRandom);
    const std::vector<float> values = LoadAll(store);
    for (size_t i = 0; i < data.size(); ++i) ASSERT_TRUE(SameBits(values[i], data[i])) << data[i];
  }
}

TEST(MomentStore, ForgetsWhatWasStoredBefore) {
  for (const std::string& text : FormatTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    MomentStore fresh(format, 300, true), used(format, 300, true);
    used.Store(MakeData("specials", 300), {1, 1});
    used.Store(MakeData("heavy-tailed", 300), {1, 1});
    const std::vector<float> data = MakeData("normal", 300);
    fresh.Store(data, kRandom);
    used.Store(data, kRandom);
    EXPECT_EQ(fresh.Save(), used.Save()) << text;
  }
}

// One element that is not finite changes neither its neighbours nor their scale.
TEST(MomentStore, SpecialsDoNotTouchTheirNeighbours) {
  for (const std::string& text : FormatTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    for (const float special : {std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> data = MakeData("normal", 300);
      data[37] = 0;
      MomentStore store(format, 300, true);
      store.Store(data, kRandom);
      const std::vector<float> without = LoadAll(store);
      data[37] = special;
      store.Store(data, kRandom);
      const std::vector<float> with = LoadAll(store);
      for (size_t i = 0; i < data.size(); ++i) {
        ASSERT_TRUE(i == 37 || SameBits(with[i], without[i])) << text << " " << i;
      }
      const bool has_nan = format.scaling != MomentScaling::kDynamic && format.format.spec.HasNan();
      if (std::isnan(special)) {
        EXPECT_TRUE(has_nan ? std::isnan(with[37]) : with[37] == 0) << text << " " << with[37];
      } else {
        EXPECT_TRUE(std::isfinite(with[37]) && with[37] * special > 0) << text << " " << with[37];
      }
    }
  }
}

// Scales from a maximum leave every finite element finite, whatever its size.
TEST(MomentStore, FiniteStaysFinite) {
  for (const std::string& text : FormatTexts()) {
    for (const char* kind : {"huge", "wide", "tiny"}) {
      MomentStore store(ParseMomentFormat(text), 600, true);
      for (uint64_t seed = 1; seed < 4; ++seed) {
        store.Store(MakeData(kind, 600, seed), kRandom);
        for (const float value : LoadAll(store)) ASSERT_TRUE(std::isfinite(value)) << text;
      }
    }
  }
}

}  // namespace
}  // namespace numsim::moment_test
