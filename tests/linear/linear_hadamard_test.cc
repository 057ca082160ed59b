// Layers with Hadamard transforms: each GEMM is that of a plain layer whose operands were transformed
// by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "tests/linear/linear_problem.h"
#include "tests/reference/linear/naive_hadamard.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

constexpr LinearShape kShape{.tokens = 48, .in = 64, .out = 32};

LinearOptions Nvfp4(const std::string& gemms = "weight-gradient") {
  LinearOptions options;
  options.kind = "block";
  options.format = "nvfp4";
  options.gradient_rounding.mode = RoundingMode::kStochastic;
  options.hadamard = gemms;
  return options;
}

struct Transform {
  std::string gemms = "weight-gradient";
  size_t size = 16;
  std::string signs;
  naive::Negated negated = naive::ByMask(0);
};

naive::Matrix Rounded(const naive::Matrix& in, const std::string& format) {
  return naive::Cast(in, format.empty() ? "bf16" : format).values;
}

// Each result from a plain layer of its own, whose operands are transformed.
naive::Results ByHand(const LinearOptions& plain,
                      const Transform& transform,
                      const LinearProblem& p,
                      RandomStream random) {
  const auto rows = [&](const naive::Matrix& m) {
    return Rounded(naive::HadamardRows(m, transform.size, transform.negated), plain.high_precision);
  };
  const auto columns = [&](const naive::Matrix& m) {
    return Rounded(naive::HadamardColumns(m, transform.size, transform.negated),
                   plain.high_precision);
  };
  const auto has = [&](const char* gemm) {
    return transform.gemms.find(gemm) != std::string::npos;
  };
  naive::Results out = Step(plain, p, random);
  if (has("forward")) {
    out.y = Step(plain, {rows(p.x), rows(p.w), p.g}, random).y;
  }
  if (has("input-gradient")) {
    out.dx = Step(plain, {p.x, columns(p.w), rows(p.g)}, random).dx;
  }
  if (has("weight-gradient")) {
    const naive::Matrix saved = Rounded(p.x, plain.high_precision);
    out.dw = Step(plain, {columns(saved), p.w, columns(p.g)}, random).dw;
  }
  return out;
}

void ExpectByHand(LinearOptions plain, const Transform& transform, RandomStream random = {3, 5}) {
  SCOPED_TRACE(plain.kind + " " + transform.gemms + " " + transform.signs);
  plain.hadamard.clear();
  const LinearProblem p = UnevenProblem(kShape);
  const naive::Results expected = ByHand(plain, transform, p, random);
  LinearOptions options = plain;
  options.hadamard = transform.gemms;
  options.hadamard_size = transform.size == 16 ? 0 : transform.size;
  options.hadamard_signs = transform.signs;
  ExpectSameBits(Step(options, p, random), expected);
  // A transform that does nothing would agree with a reference that does nothing.
  EXPECT_FALSE(SameBits(Step(plain, p, random), expected));
}

TEST(LinearHadamard, TransformsBothOperandsOfEachNamedGemm) {
  for (const char* gemms : {"forward",
                            "input-gradient",
                            "weight-gradient",
                            "forward,weight-gradient",
                            "forward,input-gradient,weight-gradient"}) {
    ExpectByHand(Nvfp4(), {gemms, 16, "fixed"});
  }
}

TEST(LinearHadamard, SignsAreThoseOfTheMaskTheSeedOrTheStep) {
  const RandomStream random{77, 9};
  ExpectByHand(Nvfp4(), {"weight-gradient", 16, "0xD7E8", naive::ByMask(0xD7E8)}, random);
  for (const char* signs : {"", "random"}) {
    ExpectByHand(Nvfp4(), {"weight-gradient", 16, signs, naive::ByStream({77, 7})}, random);
  }
  ExpectByHand(Nvfp4(),
               {"input-gradient,weight-gradient", 16, "redrawn", naive::ByStream({77, 8 * 9 + 6})},
               random);
}

TEST(LinearHadamard, BlocksAreOfTheSize) {
  ExpectByHand(Nvfp4(), {"forward", 64, "random", naive::ByStream({3, 7})});
  ExpectByHand(Nvfp4(), {"forward,input-gradient", 32, "0xD7E8", naive::ByMask(0xD7E8)});
}

TEST(LinearHadamard, HasTheHighPrecisionOfTheLayer) {
  for (const char* high_precision : {"bf16", "fp16", "fp32"}) {
    SCOPED_TRACE(high_precision);
    LinearOptions plain = Nvfp4();
    plain.high_precision = high_precision;
    ExpectByHand(plain, {"forward,weight-gradient", 16, "fixed"});
  }
}

// Kinds that save the codes of one GEMM for another where the scales allow it.
TEST(LinearHadamard, CodesOfATransformedOperandServeNoOtherGemm) {
  LinearOptions plain;
  plain.kind = "tensor-wise";
  plain.high_precision = "fp32";
  for (const char* gemms : {"forward", "input-gradient", "weight-gradient"}) {
    ExpectByHand(plain, {gemms, 16, "fixed"});
  }
}

TEST(LinearHadamard, AnOperandInHighPrecisionIsTransformedToo) {
  for (const char* high_precision : {"bf16", "fp32"}) {
    LinearOptions plain = Nvfp4();
    plain.high_precision = high_precision;
    plain.high_operands = ParseOperandSet("weight-gradient.x,forward.w,input-gradient.g");
    ExpectByHand(plain, {"forward,input-gradient,weight-gradient", 16, "fixed"});
  }
}

TEST(LinearHadamard, AGemmInHighPrecisionIsNotTransformed) {
  LinearOptions options = Nvfp4("forward,weight-gradient");
  options.high_operands = ParseOperandSet("weight-gradient");
  const LinearRecipe recipe = MakeLinearRecipe(options);
  EXPECT_EQ(recipe[LinearOperand::kForwardX].hadamard.size, 16u);
  EXPECT_EQ(recipe[LinearOperand::kWeightGradientX].hadamard.size, 0u);
  options.high_operands = OperandSet::All();
  const LinearProblem p = UnevenProblem(kShape);
  ExpectSameBits(Step(options, p), Step(LinearOptions{.kind = "standard"}, p));
}

TEST(LinearHadamard, ServesTheUnitsOfBlackwellAndContainers) {
  LinearOptions plain = Nvfp4();
  plain.kind = "mx";
  plain.accumulate = "mxf4nvf4";
  ExpectByHand(plain, {"forward,input-gradient,weight-gradient", 16, "fixed"});
  LinearOptions contained;
  contained.kind = "mx";
  contained.format = "mxfp4";
  contained.container = "bf16";
  ExpectByHand(contained, {"forward,input-gradient", 32, "fixed"});
}

TEST(LinearHadamard, BitsAreThoseOfAnyBackendAndThreadCount) {
  const LinearProblem p = UnevenProblem(kShape);
  const LinearOptions options = Nvfp4("forward,input-gradient,weight-gradient");
  const naive::Results expected = Step(options, p, {1, 2});
  WithEachBackend([&] {
    for (const int threads : {1, 2, 5}) {
      SetThreadCount(threads);
      ExpectSameBits(Step(options, p, {1, 2}), expected);
    }
  });
}

// Rounding to bf16 leaves two to three digits; a transform of one operand alone would leave none.
TEST(LinearHadamard, LeavesTheProductWhatItWas) {
  const LinearProblem p = UnevenProblem(kShape);
  LinearOptions options;
  options.kind = "mx";
  options.format = "fp16";
  options.high_precision = "fp32";
  const naive::Results plain = Step(options, p);
  options.hadamard = "forward,input-gradient,weight-gradient";
  const naive::Results transformed = Step(options, p);
  const auto expect_near = [](const naive::Matrix& a, const naive::Matrix& b) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < a.data.size(); ++i) {
      const double d = static_cast<double>(a.data[i]) - static_cast<double>(b.data[i]);
      error += d * d;
      norm += static_cast<double>(a.data[i]) * static_cast<double>(a.data[i]);
    }
    EXPECT_LT(error, 1e-6 * norm);
    EXPECT_GT(error, 0);
  };
  expect_near(plain.y, transformed.y);
  expect_near(plain.dx, transformed.dx);
  expect_near(plain.dw, transformed.dw);
}

TEST(LinearHadamard, RefusesAnInnerDimensionOfOtherBlocks) {
  const auto error = [](const LinearOptions& options, LinearShape shape) {
    return ErrorOf([&] { Step(options, UnevenProblem(shape)); });
  };
  EXPECT_THAT(
      error(Nvfp4(), {.tokens = 40, .in = 16, .out = 16}),
      HasSubstr("kind 'block': the inner dimension of the weight-gradient GEMM is 40, which "
                "a hadamard_size of 16 does not divide"));
  EXPECT_THAT(error(Nvfp4("forward"), {.tokens = 40, .in = 17, .out = 16}),
              HasSubstr("forward GEMM is 17"));
  EXPECT_THAT(error(Nvfp4("input-gradient"), {.tokens = 40, .in = 17, .out = 18}),
              HasSubstr("input-gradient GEMM is 18"));
  const Linear layer(MakeLinearRecipe(Nvfp4()));
  EXPECT_THAT(ErrorOf([&] { layer.CheckShape({.tokens = 8, .in = 16, .out = 16}); }),
              HasSubstr("weight-gradient GEMM is 8"));
  layer.CheckShape({.tokens = 32, .in = 17, .out = 18});
}

TEST(LinearHadamard, ErrorsNameTheOption) {
  const auto error = [](const LinearOptions& options) {
    return ErrorOf([&] { MakeLinearRecipe(options); });
  };
  LinearOptions options = Nvfp4("weight-gradiant");
  EXPECT_THAT(error(options),
              testing::AllOf(HasSubstr("hadamard: "), HasSubstr("did you mean weight-gradient")));
  options = Nvfp4();
  options.hadamard_size = 24;
  EXPECT_THAT(error(options), HasSubstr("hadamard_size: 24 is not one of 16, 32, 64, 128"));
  options = Nvfp4();
  for (const char* signs : {"fix", "0x", "0x12345", "D7E8", "0xg", "-1", "0x1 "}) {
    options.hadamard_signs = signs;
    EXPECT_THAT(error(options), HasSubstr("hadamard_signs: ")) << signs;
  }
  options = Nvfp4("");
  options.hadamard_size = 16;
  EXPECT_THAT(error(options), HasSubstr("hadamard_size: no GEMM is transformed"));
  options = Nvfp4("");
  options.hadamard_signs = "fixed";
  EXPECT_THAT(error(options), HasSubstr("hadamard_signs: no GEMM is transformed"));
  options = {.kind = "switchback", .hadamard = "weight-gradient"};
  EXPECT_THAT(
      error(options),
      HasSubstr("hadamard: kind 'switchback' quantises no operand of the weight-gradient GEMM"));
  for (const char* kind : {"switchback-m", "te-hybrid"}) {
    options = {.kind = kind, .hadamard = "weight-gradient"};
    EXPECT_THAT(error(options), HasSubstr("saves codes")) << kind;
  }
  options = {.kind = "standard", .hadamard = "forward"};
  EXPECT_THAT(error(options), HasSubstr("kind 'standard' has no such option"));
}

TEST(LinearHadamard, ADeviceRefusesItByName) {
  EXPECT_THAT(ErrorOf([] { CheckOnDevice(ForDevice(MakeLinearRecipe(Nvfp4()))); }),
              HasSubstr("weight-gradient product: a device has no Hadamard transform"));
}

TEST(LinearHadamard, TextsAreOfTheOptions) {
  const auto text = [](const LinearOptions& options) {
    return HadamardText(MakeLinearRecipe(options)[LinearOperand::kWeightGradientX].hadamard);
  };
  LinearOptions options = Nvfp4();
  EXPECT_EQ(text(options), "hadamard:16:random");
  options.hadamard_size = 128;
  for (const char* signs : {"redrawn", "fixed", "0xD7E8"}) {
    options.hadamard_signs = signs;
    EXPECT_EQ(text(options), std::string("hadamard:128:") + signs);
  }
  EXPECT_EQ(text(Nvfp4("forward")), "");
  EXPECT_EQ(ParseGemms("weight-gradient,forward"), "forward,weight-gradient");
}

}  // namespace
}  // namespace numsim
