// The rules of one element that devices run, on the host, against ApplyUpdate there.
#include "numsim/updates/shared/element_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/shared/update_parts.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Case;
using update_reference::Result;

// A step as the rules take it.
struct HostStep {
  StepRule rule, own;
  float largest = 0;
  double limit = 0;
  float learning_rate = 0;
  float* values = nullptr;
  uint16_t* words = nullptr;
};

HostStep StepOf(const Case& c, Result& into) {
  const FormatSpec format = ParseFormat(c.format).spec;
  const bool stochastic = c.rule.kind == UpdateKind::kStochastic;
  const EncodePlan own = OwnPlan(c.rule, format);
  HostStep step;
  step.rule = MakeStepRule(stochastic ? own : WeightPlan(format));
  if (c.rule.kind == UpdateKind::kKahan) step.own = MakeStepRule(own);
  step.largest = MaxFinite(format);
  step.limit = static_cast<double>(step.largest);
  step.learning_rate = c.learning_rate;
  into.state = c.state;
  step.values = into.state.values.data();
  step.words = into.state.words.data();
  return step;
}

template <class Rule, class Step>
void RunRule(const Rule& rule, const Step& step, const Case& c, Result& result) {
  const size_t n = c.arrays.weights.size();
  const int bits = step.rule.plan.rounding.random_bits;
  for (size_t i = 0; i < n; ++i) {
    ElementState state;
    if (!result.state.values.empty()) state.value = step.values[i];
    if (!result.state.words.empty()) state.word = step.words[i];
    const uint32_t draw = RandomBits(c.random, i, bits);
    bool beyond = false;
    const float w = c.arrays.weights[i], u = c.arrays.update[i];
    result.weights.push_back(rule.Next(step, i, w, u, state, draw, beyond));
    result.outcome.saturated += beyond ? 1 : 0;
  }
}

template <template <StepPath> class Rule, class Step>
void RunOnPath(const Step& step, const Case& c, Result& result) {
  if (step.rule.path == StepPath::kGrid) {
    RunRule(Rule<StepPath::kGrid>{}, step, c, result);
  } else {
    RunRule(Rule<StepPath::kNearest>{}, step, c, result);
  }
}

Result TakeSteps(const Case& c) {
  Result result;
  const HostStep step = StepOf(c, result);
  switch (c.rule.kind) {
    case UpdateKind::kNaive:
      RunOnPath<NaiveRule>(step, c, result);
      break;
    case UpdateKind::kMasterFp32:
      RunOnPath<MasterFp32Rule>(step, c, result);
      break;
    case UpdateKind::kStochastic:
      RunRule(StochasticRule{}, step, c, result);
      break;
    case UpdateKind::kSplitMaster:
      RunRule(SplitMasterRule{}, step, c, result);
      break;
    case UpdateKind::kKahan:
      RunRule(KahanRule{}, step, c, result);
      break;
    default:
      ADD_FAILURE() << "no element rule for " << ToString(c.rule);
  }
  return result;
}

// The rules of a device that treat each weight by itself, and others of their kinds.
std::vector<std::string> Rules() {
  std::vector<std::string> rules{"stochastic:16", "stochastic:7", "kahan:bf16", "kahan:fp32"};
  for (const UpdateKind kind : UpdateKinds()) {
    const UpdateMethod& method = MethodOf(kind);
    if (method.traits.on_device && method.Elementwise() != nullptr) {
      rules.emplace_back(ToString(kind));
    }
  }
  return rules;
}

TEST(ElementRules, TakeTheStepsOfApplyUpdate) {
  for (const char* const format :
       {"bf16", "e4m3fn", "e5m2", "fp16", "e2m1fn", "binary8p3se", "int8", "fp32", "e4m3fnuz"}) {
    for (const std::string& rule : Rules()) {
      const FormatSpec spec = ParseFormat(format).spec;
      if (!Serves(ParseUpdateRule(rule), ParseFormat(format))) continue;
      if (!HasStepRule(OwnPlan(ParseUpdateRule(rule), spec))) continue;
      for (const float lr : {0.01f, 1.0f}) {
        Case c =
            update_cases::MakeCase(format, rule, update_cases::DrawHard(format, lr, 3000, 6), lr);
        for (int k = 0; k < 2; ++k) {
          SCOPED_TRACE(std::string(format) + " " + rule + " step " + std::to_string(k));
          const Result expected = update_cases::Apply(c);
          const Result actual = TakeSteps(c);
          update_cases::ExpectSameBits(actual.weights, expected.weights);
          update_cases::ExpectSameState(actual.state, expected.state);
          EXPECT_EQ(actual.outcome.saturated, expected.outcome.saturated);
          c.arrays.weights = expected.weights;
          c.state = expected.state;
          for (float& u : c.arrays.update) u *= -0.75f;
        }
      }
    }
  }
}

TEST(WantedBeyond, IsTheComparisonInFloat64) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr float kGreatest = std::numeric_limits<float>::max();
  for (const float largest : {6.0f, 448.0f, 0x1.FEp127f, kGreatest}) {
    for (const double limit : {static_cast<double>(largest), kInfinity}) {
      HostStep step;
      step.limit = limit;
      for (const float alpha : {1.0f, 0.01f, 3e-5f, 1e30f}) {
        for (int w = -40; w <= 40; ++w) {
          for (int k = -40; k <= 40; ++k) {
            for (const int ulp : {-1, 0, 1}) {
              const float weight = largest * (static_cast<float>(w) / 32);
              const float share =
                  static_cast<float>(k) / 32 * (1 + static_cast<float>(ulp) * 0x1p-23f);
              const float update = largest / alpha * share;
              if (!std::isfinite(weight) || !std::isfinite(update)) continue;
              const double wanted = static_cast<double>(weight) +
                                    static_cast<double>(alpha) * static_cast<double>(update);
              ASSERT_EQ(WantedBeyond(step, alpha, weight, update), std::fabs(wanted) > limit)
                  << weight << " + " << alpha << " * " << update;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace numsim
