#include "numsim/models/parameter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

template <typename T>
std::vector<T> Values(const Parameter<T>& parameter) {
  const std::span<const T> values = parameter.value.View().Span();
  return {values.begin(), values.end()};
}

TEST(ParameterList, StartsFromDrawsOfItsSeedAndTheNumberOfTheParameter) {
  ParameterList<float> list(42);
  list.Add("a", ParameterRole::kMatrix, 3, 5, {.deviation = 1});
  const Parameter<float>& b =
      list.Add("b", ParameterRole::kMatrix, 7, 11, {.mean = 2, .deviation = 0.5f});
  std::vector<float> draws(77);
  FillNormal({DeriveSeed(42, RandomPurpose::kWeights), 1}, 0, draws);
  const std::vector<float> values = Values(b);
  for (size_t i = 0; i < 77; ++i) EXPECT_EQ(values[i], 2 + 0.5f * draws[i]) << i;
  EXPECT_EQ(b.value.View().rows, 7u);
  EXPECT_EQ(b.value.View().cols, 11u);
}

TEST(ParameterList, GradientsStartAsZeros) {
  ParameterList<double> list(1);
  const Parameter<double>& p = list.Add("p", ParameterRole::kGain, 1, 9, {.mean = 1});
  for (const double g : p.gradient.View().Span()) EXPECT_EQ(g, 0);
  for (const double x : p.value.View().Span()) EXPECT_EQ(x, 1);
}

TEST(ParameterList, OfMeansDrawsNothing) {
  ParameterList<float> list(42, InitialValues::kMeans);
  const Parameter<float>& a = list.Add("a", ParameterRole::kMatrix, 3, 5, {.deviation = 1});
  const Parameter<float>& b =
      list.Add("b", ParameterRole::kMatrix, 2, 4, {.mean = 0.25f, .deviation = 1});
  EXPECT_EQ(Values(a), std::vector<float>(15, 0));
  EXPECT_EQ(Values(b), std::vector<float>(8, 0.25f));
  for (const float g : b.gradient.View().Span()) EXPECT_EQ(g, 0);
}

TEST(ParameterList, OfFloat64StartsFromTheValuesOfFloat32) {
  ParameterList<float> narrow(3);
  ParameterList<double> wide(3);
  const Initial initial{.mean = 0.1f, .deviation = 0.3f};
  const auto a = Values(narrow.Add("p", ParameterRole::kMatrix, 20, 20, initial));
  const auto b = Values(wide.Add("p", ParameterRole::kMatrix, 20, 20, initial));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(double{a[i]}, b[i]) << i;
}

TEST(ParameterList, OtherSeedsAndOtherNumbersGiveOtherValues) {
  const Initial initial{.deviation = 1};
  ParameterList<float> one(1), two(2);
  std::set<std::vector<float>> all;
  for (ParameterList<float>* list : {&one, &two}) {
    for (const char* name : {"a", "b"}) {
      all.insert(Values(list->Add(name, ParameterRole::kMatrix, 2, 8, initial)));
    }
  }
  EXPECT_EQ(all.size(), 4u);
}

TEST(ParameterList, DoesNotDependOnThreads) {
  const ExecutionState state;
  std::vector<std::vector<float>> values;
  for (const int threads : {1, 2, 3}) {
    SetThreadCount(threads);
    ParameterList<float> list(5);
    values.push_back(Values(list.Add("p", ParameterRole::kMatrix, 101, 199, {.deviation = 1})));
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

TEST(ParameterList, KeepsOrderAndAddresses) {
  ParameterList<float> list(6);
  std::vector<Parameter<float>*> added;
  for (size_t i = 0; i < 100; ++i) {
    added.push_back(&list.Add("p" + std::to_string(i), ParameterRole::kBias, 1, i + 1, {}));
  }
  size_t i = 0;
  for (Parameter<float>& p : list) EXPECT_EQ(&p, added[i++]);
  EXPECT_EQ(list.size(), 100u);
  EXPECT_EQ(list.Elements(), 5050u);
  EXPECT_EQ(&list[57], added[57]);
  EXPECT_EQ(list.Find("p57"), added[57]);
  EXPECT_EQ(list.Find("p570"), nullptr);
  EXPECT_EQ(added[9]->Elements(), 10u);
}

TEST(ParameterList, NameTwiceThrows) {
  ParameterList<float> list(7);
  list.Add("head.weight", ParameterRole::kMatrix, 1, 1, {});
  EXPECT_EQ(ErrorOf([&] { list.Add("head.weight", ParameterRole::kMatrix, 1, 1, {}); }),
            "ParameterList::Add: parameter 'head.weight' twice");
}

TEST(ParameterRole, HasNames) {
  EXPECT_EQ(ToString(ParameterRole::kMatrix), "matrix");
  EXPECT_EQ(ToString(ParameterRole::kEmbedding), "embedding");
  EXPECT_EQ(ToString(ParameterRole::kGain), "gain");
  EXPECT_EQ(ToString(ParameterRole::kBias), "bias");
  EXPECT_EQ(ToString(ParameterRole::kScalar), "scalar");
}

}  // namespace
}  // namespace numsim
