// Bytes of stored moments, their state for checkpoints, and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "tests/moments/moment_cases.h"
#include "tests/support/error_of.h"

namespace numsim::moment_test {
namespace {

using ::testing::HasSubstr;

constexpr RandomStream kRandom{3, 4};

std::vector<std::string> AllTexts() {
  std::vector<std::string> texts = FormatTexts();
  texts.insert(texts.end(), {"fp32", "e5m3", "e2m1fn@block:1", "e4m3fn@coat:1", "dynamic:1"});
  return texts;
}

TEST(MomentBytes, AreThoseOfTheStoreAndOfItsState) {
  for (const std::string& text : AllTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    for (const size_t n : {0, 1, 2, 127, 128, 129, 255, 256, 257, 1000, 1001}) {
      const MomentStore store(format, n, true);
      EXPECT_EQ(MomentBytes(format, n), static_cast<double>(store.Bytes())) << text << " " << n;
      EXPECT_EQ(store.Save().size(), store.Bytes()) << text << " " << n;
    }
  }
}

TEST(MomentBytes, CountCodesAndScales) {
  const std::pair<const char*, double> cases[] = {{"fp32", 4004},
                                                  {"bf16", 2002},
                                                  {"e4m3fn@none", 1001},
                                                  {"e4m3fn@tensor", 1005},
                                                  {"e4m3fn@block", 1033},
                                                  {"e4m3fn@block:1", 5005},
                                                  {"e4m3fn@coat", 1065},
                                                  {"dynamic", 1017},
                                                  {"dynamic:128", 1033},
                                                  {"e2m1fn@none", 501},
                                                  {"e2m1fn@block", 533},
                                                  {"e3m2fn@tensor", 1005},
                                                  {"int8@block:1001", 1005}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_EQ(MomentBytes(ParseMomentFormat(text), 1001), bytes) << text;
  }
}

// A parameter of a model of 7B: what an experiment reports.
TEST(MomentBytes, CountBillions) {
  EXPECT_EQ(MomentBytes(ParseMomentFormat("e4m3fn@coat"), 7000000000),
            7000000000 * (1 + 8.0 / 128));
}

TEST(MomentState, RestoresWhatWasSaved) {
  for (const std::string& text : AllTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    for (const size_t n : {0, 1, 129, 1001}) {
      MomentStore store(format, n, true), other(format, n, true);
      store.Store(MakeData("normal", n), kRandom);
      other.Store(MakeData("heavy-tailed", n), kRandom);
      other.Restore(store.Save());
      EXPECT_EQ(other.Save(), store.Save()) << text;
      EXPECT_EQ(LoadAll(other), LoadAll(store)) << text;
      other.Store(MakeData("squares", n), {5, 6});
      store.Store(MakeData("squares", n), {5, 6});
      EXPECT_EQ(other.Save(), store.Save()) << text;
    }
  }
}

std::string RestoreError(MomentStore& store, const std::vector<std::byte>& state) {
  return ErrorOf([&] { store.Restore(state); });
}

TEST(MomentState, RefusesAnotherLengthAndStaysAsItWas) {
  for (const std::string& text : AllTexts()) {
    MomentStore store(ParseMomentFormat(text), 129, true);
    store.Store(MakeData("normal", 129), kRandom);
    const std::vector<std::byte> before = store.Save();
    for (const int more : {-1, 1}) {
      std::vector<std::byte> state = before;
      state.resize(state.size() + static_cast<size_t>(more));
      EXPECT_THAT(RestoreError(store, state),
                  HasSubstr("129 elements in " + ToString(store.format())))
          << text;
    }
    EXPECT_EQ(store.Save(), before) << text;
  }
}

TEST(MomentState, RefusesScalesThatNoMomentHas) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const char* text : {"e4m3fn@tensor", "e4m3fn@block:64", "e4m3fn@coat:64", "dynamic:64"}) {
    MomentStore store(ParseMomentFormat(text), 129, true);
    store.Store(MakeData("normal", 129), kRandom);
    const std::vector<std::byte> before = store.Save();
    for (const float bad : {0.0f, -1.0f, kNan, kInfinity}) {
      std::vector<std::byte> state = before;
      std::memcpy(state.data() + state.size() - sizeof(float), &bad, sizeof(float));
      EXPECT_THAT(RestoreError(store, state), HasSubstr("has the invalid value")) << text;
      EXPECT_EQ(store.Save(), before) << text;
    }
  }
  // An exponent that is no multiple of 1/16.
  MomentStore store(ParseMomentFormat("e4m3fn@coat"), 10, true);
  std::vector<std::byte> state = store.Save();
  const float bad = 1.01f;
  std::memcpy(state.data() + state.size() - sizeof(float), &bad, sizeof(float));
  EXPECT_THAT(RestoreError(store, state), HasSubstr("scale 1 has the invalid value 1.01"));
}

class MomentThreads : public testing::Test {
 protected:
  ~MomentThreads() override { SetThreadCount(threads_); }
  const int threads_ = ThreadCount();
};

TEST_F(MomentThreads, ChangeNoBit) {
  constexpr size_t kElements = 70001;
  const std::vector<float> data = MakeData("heavy-tailed", kElements);
  for (const std::string& text : AllTexts()) {
    std::vector<std::byte> states[2];
    std::vector<float> values[2];
    MomentLoss losses[2];
    for (int run = 0; run < 2; ++run) {
      SetThreadCount(run == 0 ? 1 : 4);
      MomentStore store(ParseMomentFormat(text), kElements, true);
      losses[run] = store.Store(data, kRandom, true);
      states[run] = store.Save();
      values[run] = LoadAll(store);
    }
    EXPECT_EQ(states[0], states[1]) << text;
    EXPECT_EQ(values[0], values[1]) << text;
    EXPECT_EQ(losses[0].flushed, losses[1].flushed) << text;
    EXPECT_EQ(losses[0].signal_square, losses[1].signal_square) << text;
    EXPECT_EQ(losses[0].error_square, losses[1].error_square) << text;
  }
}

TEST_F(MomentThreads, AndBackendsChangeNoBit) {
  const std::vector<float> data = MakeData("heavy-tailed", 3001);
  const std::string active(BackendName());
  for (const std::string& text : AllTexts()) {
    std::vector<std::byte> expected;
    std::vector<float> values;
    for (const std::string& backend : AvailableBackends()) {
      ForceBackend(backend);
      MomentStore store(ParseMomentFormat(text), data.size(), true);
      store.Store(data, kRandom);
      if (expected.empty()) {
        expected = store.Save();
        values = LoadAll(store);
      }
      EXPECT_EQ(store.Save(), expected) << text << " " << backend;
      EXPECT_EQ(LoadAll(store), values) << text << " " << backend;
    }
    ForceBackend(active);
  }
}

// The stored values depend on the random bits, element by element.
TEST(MomentRandom, AnotherStreamGivesOtherCodes) {
  const std::vector<float> data = MakeData("single-zero", 1000);
  for (const std::string& text : FormatTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    MomentStore one(format, 1000, true), other(format, 1000, true);
    one.Store(data, {1, 1});
    other.Store(data, {1, 2});
    const bool stochastic = format.rounding.mode == RoundingMode::kStochastic;
    EXPECT_EQ(one.Save() != other.Save(), stochastic) << text;
    other.Store(data, {1, 1});
    EXPECT_EQ(one.Save(), other.Save()) << text;
  }
}

}  // namespace
}  // namespace numsim::moment_test
