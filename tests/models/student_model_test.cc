#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "numsim/models/model.h"
#include "tests/models/model_checks.h"
#include "tests/models/overfit.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig TinyStudent(size_t inputs) {
  ModelConfig config;
  config.kind = ModelKind::kMlp;
  config.layers = 2;
  config.width = 10;
  config.hidden = 14;
  config.inputs = inputs;
  config.norm_epsilon = 1e-3;
  return config;
}

// Features as many as the width, as in the paper, and other ones.
std::vector<ModelConfig> StudentConfigs() { return {TinyStudent(10), TinyStudent(7)}; }

Batch Features(const ModelConfig& config, size_t examples, uint64_t seed) {
  Batch batch;
  batch.examples = examples;
  batch.values = NormalDraws(examples * config.inputs, seed);
  return batch;
}

template <typename T>
std::unique_ptr<Model<T>> MakeUnsettledStudent(const ModelConfig& config) {
  auto model = MakeModel<T>(config, Float32Products(), 1);
  Unsettle(model->parameters(), 0.3F, 2);
  return model;
}

TEST(StudentModel, GradientsAreDifferenceQuotients) {
  for (const ModelConfig& config : StudentConfigs()) {
    const auto model = MakeUnsettledStudent<double>(config);
    ExpectModelGradients(*model, Features(config, 3, 6));
  }
}

TEST(StudentModel, FloatIsCloseToDouble) {
  for (const ModelConfig& config : StudentConfigs()) {
    ExpectFloatToBeCloseToDouble(*MakeUnsettledStudent<float>(config),
                                 *MakeUnsettledStudent<double>(config),
                                 Features(config, 5, 7),
                                 1e-5);
  }
}

TEST(StudentModel, HasTheSameBitsOnEveryTargetWithAnyThreads) {
  const ModelConfig config = TinyStudent(7);
  ExpectSameBitsEverywhere(
      *MakeUnsettledStudent<float>(config), Features(config, 4000, 8), Features(config, 5, 8));
}

TEST(StudentModel, LossScaleIsAFactorOfAllGradients) {
  const ModelConfig config = TinyStudent(7);
  ExpectLossScaleToBeAFactor(*MakeUnsettledStudent<float>(config), Features(config, 3, 9));
}

TEST(StudentModel, PassesTakeNoTensorsAfterTheFirst) {
  const ModelConfig config = TinyStudent(7);
  ExpectNoTensorsTaken(*MakeUnsettledStudent<float>(config), Features(config, 300, 10));
  ExpectNoTensorsTaken(*MakeUnsettledStudent<double>(config), Features(config, 300, 10));
}

TEST(StudentModel, LearnsFourExamplesByHeart) {
  for (const ModelConfig& config : StudentConfigs()) {
    const auto model = MakeModel<float>(config, Float32Products(), 1);
    const Batch batch = Features(config, 4, 11);
    const double before = model->Forward({}, batch).Mean();
    EXPECT_LT(Overfit(*model, batch, 300, 5e-3), 1e-3 * before);
    EXPECT_EQ(model->Forward({}, batch).counted, 4u);
    EXPECT_EQ(model->Forward({}, batch).correct, 0u);
  }
}

using Rows = std::vector<std::vector<double>>;

// Draw `number` of the teacher's list of parameters, as a matrix.
Rows TeacherMatrix(uint64_t seed, uint64_t number, size_t out, size_t in) {
  const uint64_t teacher = DeriveSeed(seed, RandomPurpose::kTeacher);
  std::vector<float> draws(out * in);
  FillNormal({DeriveSeed(teacher, RandomPurpose::kWeights), number}, 0, draws);
  const float deviation = static_cast<float>(1 / std::sqrt(3.0 * static_cast<double>(in)));
  Rows rows(out);
  for (size_t i = 0; i < draws.size(); ++i) rows[i / in].push_back(deviation * draws[i]);
  return rows;
}

std::vector<double> Apply(const Rows& matrix, const std::vector<double>& x) {
  std::vector<double> y;
  for (const std::vector<double>& row : matrix) {
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) sum += row[i] * x[i];
    y.push_back(sum);
  }
  return y;
}

// The teacher of TinyStudent by hand.
std::vector<double> Teach(uint64_t seed, std::vector<double> x) {
  const size_t inputs = x.size();
  const bool edges = inputs != 10;
  uint64_t number = 0;
  if (edges) x = Apply(TeacherMatrix(seed, number++, 10, inputs), x);
  for (size_t block = 0; block < 2; ++block) {
    std::vector<double> hidden = Apply(TeacherMatrix(seed, number++, 14, 10), x);
    for (double& h : hidden) {
      h *= 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (h + 0.044715 * h * h * h)));
    }
    const std::vector<double> branch = Apply(TeacherMatrix(seed, number++, 10, 14), hidden);
    for (size_t i = 0; i < 10; ++i) x[i] += branch[i];
  }
  return edges ? Apply(TeacherMatrix(seed, number++, inputs, 10), x) : x;
}

template <typename T>
std::vector<double> Results(Model<T>& model, const Batch& batch, const std::string& point) {
  Recorder<T> recorder;
  Pass<T> pass;
  pass.observer = &recorder;
  model.Forward(pass, batch);
  const std::vector<T>& shown = recorder.Activation(point);
  return {shown.begin(), shown.end()};
}

TEST(StudentModel, LossIsTheSquaredErrorAgainstTheTeacher) {
  for (const ModelConfig& config : StudentConfigs()) {
    SCOPED_TRACE(config.inputs);
    const auto model = MakeUnsettledStudent<double>(config);
    const Batch batch = Features(config, 4, 12);
    const std::vector<double> results =
        Results(*model, batch, config.inputs == 10 ? "blocks.1" : "head");
    double sum = 0;
    for (size_t r = 0; r < 4; ++r) {
      const auto begin = batch.values.begin() + static_cast<std::ptrdiff_t>(r * config.inputs);
      const std::vector<double> answer =
          Teach(1, {begin, begin + static_cast<std::ptrdiff_t>(config.inputs)});
      for (size_t c = 0; c < config.inputs; ++c) {
        const double error = results[r * config.inputs + c] - answer[c];
        sum += error * error / static_cast<double>(config.inputs);
      }
    }
    EXPECT_NEAR(model->Forward({}, batch).sum, sum, 1e-11);
  }
}

// A student whose MLPs are switched off passes its features on: what is left is the teacher.
double TeacherAlone(const LinearPrecision& precision, uint64_t seed) {
  const ModelConfig config = TinyStudent(10);
  const auto model = MakeModel<float>(config, precision, seed);
  for (const char* const name : {"blocks.0.mlp.down.weight", "blocks.1.mlp.down.weight"}) {
    for (float& w : model->parameters().Find(name)->value.View().Span()) w = 0;
  }
  return model->Forward({}, Features(config, 5, 13)).sum;
}

TEST(StudentModel, TeacherTakesNoNoticeOfThePrecisionOfTheStudent) {
  LinearPrecision mx;
  mx.all.kind = "mx";
  EXPECT_EQ(TeacherAlone(mx, 1), TeacherAlone({}, 1));
  EXPECT_NE(TeacherAlone(mx, 1), TeacherAlone(mx, 2));
}

TEST(StudentModel, TeacherIsNoneOfItsParametersAndSeenByNobody) {
  const ModelConfig config = TinyStudent(7);
  const auto model = MakeUnsettledStudent<double>(config);
  for (const Parameter<double>& parameter : model->parameters()) {
    EXPECT_THAT(parameter.name, Not(HasSubstr("teacher")));
  }
  Recorder<double> recorder;
  Pass<double> pass;
  pass.observer = &recorder;
  model->Forward(pass, Features(config, 2, 14));
  model->Backward(pass);
  const std::vector<std::string> points = {"input",
                                           "blocks.0.norm",
                                           "blocks.0.mlp.up",
                                           "blocks.0.mlp.hidden",
                                           "blocks.0.mlp.down",
                                           "blocks.0",
                                           "blocks.1.norm",
                                           "blocks.1.mlp.up",
                                           "blocks.1.mlp.hidden",
                                           "blocks.1.mlp.down",
                                           "blocks.1",
                                           "head"};
  EXPECT_EQ(recorder.order[TensorRole::kActivation], points);
  EXPECT_EQ(recorder.order[TensorRole::kGradient],
            std::vector<std::string>(points.rbegin(), points.rend()));
}

TEST(StudentModel, NamesItsLayersAndCountsTheirProducts) {
  const auto wide = MakeModel<float>(TinyStudent(10), {}, 1);
  EXPECT_EQ(wide->LinearLayers(),
            (std::vector<std::string>{
                "blocks.0.mlp.up", "blocks.0.mlp.down", "blocks.1.mlp.up", "blocks.1.mlp.down"}));
  EXPECT_EQ(wide->ForwardFlops(3), 3 * 2.0 * 4 * 140);
  const auto narrow = MakeModel<float>(TinyStudent(7), {}, 1);
  EXPECT_EQ(narrow->LinearLayers().front(), "input");
  EXPECT_EQ(narrow->LinearLayers().back(), "head");
  EXPECT_EQ(narrow->ForwardFlops(3), 3 * 2.0 * (4 * 140 + 2 * 70));
}

TEST(StudentModel, StartsAsThePaper) {
  ModelConfig config = TinyStudent(32);
  config.width = 64;
  config.hidden = 0;
  const auto model = MakeModel<float>(config, {}, 2);
  ExpectDeviation(*model, "input.weight", 1 / std::sqrt(3 * 32.0));
  ExpectDeviation(*model, "blocks.1.mlp.up.weight", 1 / std::sqrt(3 * 64.0));
  ExpectDeviation(*model, "blocks.1.mlp.down.weight", 1 / std::sqrt(3 * 256.0));
  ExpectDeviation(*model, "blocks.1.norm.gain", 1);
}

}  // namespace
}  // namespace numsim
