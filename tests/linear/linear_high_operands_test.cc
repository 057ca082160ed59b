// Layers some of whose operands stay in high precision, against products written out
// (naive_linear.h), and against the kinds that they then are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{13, 11, 9};  // no multiples of a block
constexpr size_t kBlock = 4;

LinearOptions Options(const std::string& kind, const std::string& high_operands = "") {
  LinearOptions options;
  options.kind = kind;
  options.high_operands = ParseOperandSet(high_operands);
  return options;
}

std::vector<OperandSet> AllSets(bool of_tensors) {
  std::vector<OperandSet> sets;
  for (unsigned bits = 0; bits < 64; ++bits) {
    OperandSet set;
    for (int i = 0; i < kLinearOperands; ++i) {
      if ((bits >> i & 1u) != 0) set.Insert(static_cast<LinearOperand>(i));
    }
    if (!of_tensors || set.IsOfTensors()) sets.push_back(set);
  }
  return sets;
}

// A kind whose operands are all quantised: how the operands of X, W, G^T and so on share scales, in
// the order of LinearOperand. Groups are of the tensor as the caller has it.
struct QuantisedKind {
  const char* name;
  naive::Group groups[kLinearOperands];
  const char* format;
  const char* gradient_format;
  ScaleRule rule = ScaleRule::kAbsmax;
  size_t segment = 0;                     // of products with a quantised operand
  const char* backward_format = nullptr;  // of W^T and X^T, if it is not `format`
};

std::vector<QuantisedKind> QuantisedKinds() {
  const naive::Group row = naive::EachRow(), column = naive::EachColumn();
  const naive::Group all = naive::WholeTensor();
  const naive::Group along = naive::Tiles(1, kBlock), across = naive::Tiles(kBlock, 1);
  const naive::Group square = naive::Tiles(kBlock, kBlock);
  return {
      {"llm-int8", {row, row, row, column, column, column}, "int8", "int8"},
      {"tensor-wise", {all, all, all, all, all, all}, "e4m3fn", "e5m2"},
      {"te-hybrid", {all, all, all, all, all, all}, "e4m3fn", "e5m2"},
      {"e5m2-backward",
       {all, all, all, all, all, all},
       "e4m3fn",
       "e5m2",
       ScaleRule::kPow2Floor,
       0,
       "e5m2"},
      {"block",
       {along, square, along, square, across, across},
       "e4m3fn",
       "e4m3fn",
       ScaleRule::kPow2Ceil,
       kBlock},
  };
}

class ByHand {
 public:
  ByHand(const QuantisedKind& kind, const OperandSet& high, const std::string& high_precision)
      : kind_(kind), high_(high), high_precision_(high_precision) {}

  // `kept`: X as the weight gradient finds it.
  naive::Results Step(const LinearProblem& p, const naive::Matrix& saved) const {
    using O = LinearOperand;
    using naive::Transposed;
    return {Product(O::kForwardX, Make(O::kForwardX, p.x), Make(O::kForwardW, p.w)),
            Product(O::kInputGradientG,
                    Make(O::kInputGradientG, p.g),
                    Transposed(Make(O::kInputGradientW, p.w))),
            Product(O::kWeightGradientG,
                    Transposed(Make(O::kWeightGradientG, p.g)),
                    Transposed(Make(O::kWeightGradientX, saved)))};
  }

 private:
  naive::Operand Make(LinearOperand operand, const naive::Matrix& tensor) const {
    if (high_.Has(operand)) return naive::Cast(tensor, high_precision_);
    const bool gradient =
        operand == LinearOperand::kInputGradientG || operand == LinearOperand::kWeightGradientG;
    const bool copy =
        operand == LinearOperand::kInputGradientW || operand == LinearOperand::kWeightGradientX;
    const char* const format = copy && kind_.backward_format != nullptr ? kind_.backward_format
                               : gradient                               ? kind_.gradient_format
                                                                        : kind_.format;
    return naive::Quantised(
        tensor,
        {.format = format, .group = kind_.groups[static_cast<int>(operand)], .rule = kind_.rule});
  }

  // `first`: operand A of the product; B is the next one.
  naive::Matrix Product(LinearOperand first,
                        const naive::Operand& a,
                        const naive::Operand& b) const {
    const auto second = static_cast<LinearOperand>(static_cast<int>(first) + 1);
    const bool high = high_.Has(first) && high_.Has(second);
    const bool exact = a.format == "int8" && b.format == "int8";
    return naive::Product(a, b, exact ? "exact" : "fp32", high ? 0 : kind_.segment);
  }

  const QuantisedKind& kind_;
  OperandSet high_;
  std::string high_precision_;
};

TEST(HighOperands, EachOperandIsCastOrQuantisedAsTheSetSays) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const char* const high_precision : {"bf16", "fp32"}) {
    for (const QuantisedKind& kind : QuantisedKinds()) {
      const bool keeps_codes = std::string_view(kind.name) == "te-hybrid";
      for (const OperandSet& set : AllSets(keeps_codes)) {
        SCOPED_TRACE(fmt::format("{} {} {}", kind.name, high_precision, Text(set)));
        LinearOptions options = Options(kind.name);
        options.format = kind.format;
        options.high_precision = high_precision;
        options.high_operands = set;
        if (kind.segment != 0) options.block = kind.segment;
        const naive::Matrix saved = keeps_codes ? p.x : naive::Cast(p.x, high_precision).values;
        ExpectSameBits(Step(options, p), ByHand(kind, set, high_precision).Step(p, saved));
      }
    }
  }
}

TEST(HighOperands, AllOfThemMakeEveryKindTheStandardOne) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const std::string& kind : KindNames()) {
    if (kind == "standard") continue;
    for (const char* const high_precision : {"bf16", "fp16", "fp32"}) {
      SCOPED_TRACE(kind + " " + high_precision);
      LinearOptions options = Options(kind, "x,w,g"), standard = Options("standard");
      options.high_precision = standard.high_precision = high_precision;
      ExpectSameBits(Step(options, p), Step(standard, p));
    }
  }
}

void ExpectSameLayer(const LinearOptions& a, const LinearOptions& b) {
  SCOPED_TRACE(a.kind + " " + Text(a.high_operands) + " = " + b.kind + " " + Text(b.high_operands));
  const LinearProblem p = UnevenProblem(kShape);
  ExpectSameBits(Step(a, p), Step(b, p));
}

TEST(HighOperands, KindsThatDifferInAnOperandAloneAreOneWithoutIt) {
  ExpectSameLayer(Options("llm-int8", "weight-gradient.g,weight-gradient.x"),
                  Options("switchback-q"));
  ExpectSameLayer(Options("switchback", "w"), Options("switchback-q", "w"));
  ExpectSameLayer(Options("switchback-m", "x"), Options("switchback", "x"));
  ExpectSameLayer(Options("tensor-wise", "x,g"), Options("switchback", "x,g"));
  LinearOptions tensor_wise = Options("tensor-wise", "x");
  tensor_wise.format = "e4m3fn";
  ExpectSameLayer(tensor_wise, Options("te-hybrid", "x"));
}

TEST(HighOperands, WhatAKindDoesNotQuantiseMayBeNamedToo) {
  ExpectSameLayer(Options("switchback", "weight-gradient.g,weight-gradient.x"),
                  Options("switchback"));
  ExpectSameLayer(Options("switchback-m", ""), Options("switchback-m"));
}

TEST(HighOperands, OneQuantisedOperandTakesItsProductsRule) {
  LinearOptions options = Options("tensor-wise", "forward.x,input-gradient.g,input-gradient.w");
  options.accumulate = "fp64";
  options.high_precision_accumulate = "fp32-chunked:8";
  const LinearRecipe recipe = MakeLinearRecipe(options);
  EXPECT_EQ(ToString(recipe[LinearGemm::kForward].accumulation), "fp64");
  EXPECT_EQ(ToString(recipe[LinearGemm::kInputGradient].accumulation), "fp32-chunked:8");
  EXPECT_EQ(ToString(recipe[LinearGemm::kWeightGradient].accumulation), "fp64");
  options.accumulate = "";
  EXPECT_EQ(ToString(MakeLinearRecipe(options)[LinearGemm::kForward].accumulation), "fp32");
}

// Scales of the tensors that stay quantised go on as if nothing else had changed.
TEST(HighOperands, UnderDelayedScalingTheOtherTensorsScaleAsBefore) {
  for (const char* const high_precision : {"bf16", "fp32"}) {
    for (const OperandSet& set : AllSets(true)) {
      SCOPED_TRACE(std::string(high_precision) + " " + Text(set));
      LinearOptions options = Options("te-hybrid");
      options.high_precision = high_precision;
      options.delayed = DelayedScalingOptions{3, AmaxAlgorithm::kMax, 0};
      Linear plain(MakeLinearRecipe(options));
      options.high_operands = set;
      Linear layer(MakeLinearRecipe(options));
      for (int step = 0; step < 4; ++step) {
        LinearProblem p = UnevenProblem(kShape);
        for (float& x : p.x.data) x *= static_cast<float>(1 + step);
        for (float& g : p.g.data) g *= static_cast<float>(3 + step);
        const naive::Results results = Step(layer, p);
        for (const float y : results.y.data) ASSERT_TRUE(std::isfinite(y));
        const naive::Results expected = Step(plain, p);
        if (set.Empty()) ExpectSameBits(results, expected);
      }
      const std::vector<float> state = layer.SaveState(), all = plain.SaveState();
      ASSERT_EQ(state.size(), all.size());
      const LinearOperand firsts[] = {
          LinearOperand::kForwardX, LinearOperand::kForwardW, LinearOperand::kInputGradientG};
      for (size_t tensor = 0; tensor < 3; ++tensor) {
        if (set.Has(firsts[tensor])) continue;
        for (size_t i = 4 * tensor; i < 4 * tensor + 4; ++i) EXPECT_EQ(state[i], all[i]) << i;
      }
    }
  }
}

// x exempt: Y is that of X in bf16 and W under its delayed scale, the same scale at first.
TEST(HighOperands, UnderDelayedScalingAnExemptTensorIsCast) {
  const LinearProblem p = UnevenProblem(kShape);
  LinearOptions options = Options("te-hybrid", "x");
  options.delayed = DelayedScalingOptions{};
  const naive::Operand x = naive::Cast(p.x, "bf16");
  const auto first = [](const naive::Matrix& in, const char* format) {
    return naive::Quantised(
        in, {.format = format, .group = naive::WholeTensor(), .given = Scale{1, 1}});
  };
  const naive::Operand w = first(p.w, "e4m3fn"), g = first(p.g, "e5m2");
  ExpectSameBits(Step(options, p),
                 {naive::Product(x, w, "fp32"),
                  naive::Product(g, Transposed(w), "fp32"),
                  naive::Product(Transposed(g), Transposed(x), "fp32")});
}

TEST(HighOperands, AKindThatKeepsCodesHasWholeTensorsAlone) {
  for (const char* const kind : {"switchback-m", "te-hybrid"}) {
    for (const OperandSet& set : AllSets(false)) {
      LinearOptions options = Options(kind);
      options.high_operands = set;
      const std::string message = ErrorOf([&] { MakeLinearRecipe(options); });
      if (set.IsOfTensors()) {
        EXPECT_EQ(message, "no error") << kind << " " << Text(set);
      } else {
        ExpectMessage(message, {"high_operands", kind, "x, w, g"});
      }
    }
  }
}

TEST(HighOperands, StandardHasNoSuchOption) {
  ExpectMessage(ErrorOf([] { MakeLinearRecipe(Options("standard", "x")); }),
                {"high_operands", "standard"});
}

}  // namespace
}  // namespace numsim
