// Every kind of layer against its algorithm (naive_layers.cc says which), bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"

namespace numsim {
namespace {

// Dimensions that are no multiples of anything.
constexpr LinearShape kShape{37, 29, 23};

LinearOptions Options(const std::string& kind, const std::string& format = "") {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  return options;
}

void ExpectDefinition(const LinearOptions& options, const LinearProblem& p) {
  SCOPED_TRACE(options.kind + " " + options.format + " " + options.gradient_format + " " +
               options.accumulate);
  Linear layer(MakeLinearRecipe(options));
  naive::Setup setup = naive::SetupOf(options);
  if (options.kind == "tensor-wise") {
    // Both are in use; the recipe says which.
    setup.keeps_quantized = layer.recipe().saves == LinearSaves::kQuantized;
  }
  ExpectSameBits(Step(layer, p), naive::Layer(options, setup, p.x, p.w, p.g));
}

void ExpectDefinition(const LinearOptions& options, LinearShape shape = kShape) {
  ExpectDefinition(options, UnevenProblem(shape));
}

// A number near x that lies halfway between two of that many significant bits.
float Tie(float x, int bits) {
  const float half = std::ldexp(1.0f, std::ilogb(x) - bits);
  return (2 * std::floor(x / (2 * half)) + 1) * half;
}

// The same operands with ties of 3 to 8 significant bits, which scales that are powers of two keep.
LinearProblem TiedProblem() {
  LinearProblem p = UnevenProblem(kShape);
  for (naive::Matrix* m : {&p.x, &p.w, &p.g}) {
    for (size_t i = 0; i < m->data.size(); ++i) {
      m->data[i] = Tie(m->data[i], 3 + static_cast<int>(i % 6));
    }
  }
  return p;
}

TEST(Linear, StandardIsAlgorithm5InEachHighPrecision) {
  for (const char* high_precision : {"", "bf16", "fp16", "fp32"}) {
    SCOPED_TRACE(high_precision);
    LinearOptions options = Options("standard");
    options.high_precision = high_precision;
    ExpectDefinition(options);
  }
}

TEST(Linear, TheHighPrecisionAccumulatorIsThatOfTheOptions) {
  for (const char* kind : {"standard", "switchback", "row-wise-gw-hp"}) {
    for (const char* rule : {"fp64", "fp16", "fp32-chunked:8", "hopper-bf16", "trunc:25,16,16"}) {
      SCOPED_TRACE(rule);
      LinearOptions options = Options(kind);
      options.high_precision_accumulate = rule;
      ExpectDefinition(options);
    }
  }
}

// The same operands with an outlier of 2^15 in each row of X, which meets a zero of W: under its scale
// the other elements are subnormals of an 8-bit format, and the sums are of these alone.
LinearProblem SubnormalProblem(LinearShape shape) {
  LinearProblem p = UnevenProblem(shape);
  for (size_t row = 0; row < p.x.rows; ++row) p.x.data[row * p.x.cols] = 0x1p15f;
  for (size_t row = 0; row < p.w.rows; ++row) p.w.data[row * p.w.cols] = 0;
  return p;
}

// The accumulation mode sees the exponents of the container: those of subnormals of e4m3 are smaller
// there, so that a mode that keeps few bits cuts its sums elsewhere.
TEST(Linear, TheModeSeesTheExponentsOfTheContainer) {
  const LinearProblem p = SubnormalProblem({16, 96, 80});
  for (const char* kind : {"switchback", "llm-int8", "tensor-wise"}) {
    for (const char* format : {"e4m3fn", "e4m3"}) {
      LinearOptions options = Options(kind, format);
      options.gradient_format = format;
      options.accumulate = "hopper-fp8";  // 13 fraction bits
      const naive::Matrix own = Step(options, p).y;
      options.container = "bf16";
      ExpectDefinition(options, p);
      EXPECT_FALSE(SameBits(own.data, Step(options, p).y.data)) << kind << " " << format;
    }
  }
}

TEST(Linear, OperandsEnterInTheirContainer) {
  for (const char* kind :
       {"switchback", "switchback-m", "llm-int8", "tensor-wise", "block", "mx"}) {
    for (const char* format : {"e4m3fn", "e3m4", "e5m2", "e2m1fn"}) {
      for (const char* rule : {"hopper-bf16", "fp32", "fp64"}) {
        SCOPED_TRACE(std::string(kind) + " " + format + " " + rule);
        LinearOptions options = Options(kind, format);
        options.container = "bf16";
        options.accumulate = rule;
        ExpectDefinition(options);
      }
    }
  }
  // Scales that are powers of two enter a container that is the operands' own format without a trace.
  const LinearProblem p = UnevenProblem(kShape);
  for (const char* const kind : {"block", "mx"}) {
    LinearOptions own = Options(kind, "bf16");
    own.container = "bf16";
    own.accumulate = "fp32";
    ExpectDefinition(own, p);
    for (const char* const rule : {"pow2-ceil", "e8m0"}) {
      SCOPED_TRACE(std::string(kind) + " " + rule);
      LinearOptions scaled = own;
      scaled.scale_rule = rule;
      ExpectSameBits(Step(scaled, p), Step(own, p));
    }
  }
  LinearOptions fp16 = Options("switchback", "fp16");
  fp16.gradient_format = "e5m2";
  fp16.container = "fp16";
  fp16.accumulate = "fp32";
  ExpectDefinition(fp16);
}

// Products of quantised operands: int8 sums are exact, the others are fp32.
TEST(Linear, SwitchBackIsAlgorithm1) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2", "e2m1fn", "fp16"}) {
    ExpectDefinition(Options("switchback", format));
  }
}

TEST(Linear, SwitchBackMIsAlgorithm3) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2", "e3m4"}) {
    for (const char* high_precision : {"bf16", "fp16", "fp32"}) {
      SCOPED_TRACE(high_precision);
      LinearOptions options = Options("switchback-m", format);
      options.high_precision = high_precision;
      ExpectDefinition(options);
    }
  }
}

TEST(Linear, SwitchBackQIsAlgorithm4) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2", "e4m3fnuz"}) {
    ExpectDefinition(Options("switchback-q", format));
  }
}

TEST(Linear, LlmInt8IsAlgorithm4WithAnEightBitWeightGradient) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2", "e4m3"}) {
    for (const char* high_precision : {"bf16", "fp32"}) {
      SCOPED_TRACE(high_precision);
      LinearOptions options = Options("llm-int8", format);
      options.high_precision = high_precision;
      ExpectDefinition(options);
    }
  }
}

TEST(Linear, LlmInt8TensorWIsAlgorithm1WithAnEightBitWeightGradient) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2"}) {
    ExpectDefinition(Options("llm-int8-tensor-w", format));
  }
}

TEST(Linear, TensorWiseHasOneScaleATensorInAllProducts) {
  for (const char* format : {"", "int8", "e4m3fn", "e5m2", "bnb-e4m3"}) {
    ExpectDefinition(Options("tensor-wise", format));
  }
}

TEST(Linear, TensorWiseGradientsAreE5m2OrE4m3) {
  LinearOptions options = Options("tensor-wise", "e4m3fn");
  for (const char* gradient : {"e5m2", "e4m3fn"}) {
    options.gradient_format = gradient;
    ExpectDefinition(options);
  }
  // The default is e5m2 with e4m3fn, and the format itself with any other.
  options.gradient_format = "";
  EXPECT_EQ(MakeLinearRecipe(options)[LinearGemm::kInputGradient].a.format.name, "e5m2");
  EXPECT_EQ(MakeLinearRecipe(options)[LinearGemm::kWeightGradient].a.format.name, "e5m2");
  EXPECT_EQ(MakeLinearRecipe(Options("tensor-wise"))[LinearGemm::kInputGradient].a.format.name,
            "int8");
}

TEST(Linear, AGradientFormatOfItsOwnIsUsedForGAlone) {
  for (const char* kind :
       {"switchback", "switchback-m", "switchback-q", "llm-int8", "block", "mx"}) {
    LinearOptions options = Options(kind, "e4m3fn");
    options.gradient_format = "e5m2";
    if (options.kind == "block" || options.kind == "mx") options.block = 8;
    ExpectDefinition(options);
  }
  // One side int8, the other not: sums are those of rule fp32.
  LinearOptions mixed = Options("llm-int8", "int8");
  mixed.gradient_format = "e5m2";
  ExpectDefinition(mixed);
}

TEST(Linear, RowWiseGwHpIsRowWiseForwardAndTensorWiseInTheInputGradient) {
  for (const char* format : {"", "e4m3fn", "e5m2", "int8", "e3m4"}) {
    ExpectDefinition(Options("row-wise-gw-hp", format));
  }
}

TEST(Linear, TeHybridWithCurrentScalingIsTensorWiseE4m3AndE5m2) {
  for (const char* format : {"", "e4m3fn", "e4m3fnuz"})
    ExpectDefinition(Options("te-hybrid", format));
}

TEST(Linear, BlockHasBlocksForXAndGAndTilesForW) {
  for (const char* format : {"", "e4m3fn", "e5m2", "int8", "e4m3"}) {
    for (size_t block : {1, 8, 16, 128}) {
      SCOPED_TRACE(block);
      LinearOptions options = Options("block", format);
      options.block = block;
      ExpectDefinition(options);
    }
  }
}

// Two blocks and a part of one along each inner dimension.
TEST(Linear, BlocksOf128AreTheDefaultOfBlock) {
  ExpectDefinition(Options("block"), {270, 260, 257});
}

TEST(Linear, MxHasE8m0BlocksAlongEveryInnerDimension) {
  for (const char* format : {"", "e4m3fn", "e5m2", "int8", "e2m1fn"}) {
    for (size_t block : {1, 8, 16, 32}) {
      SCOPED_TRACE(block);
      LinearOptions options = Options("mx", format);
      options.block = block;
      ExpectDefinition(options);
    }
  }
}

// NVFP4: a scale of e4m3fn per 16 elements, for W also per 16 x 16, under a scale of the tensor.
TEST(Linear, Nvfp4IsAScaleRuleOfBlocks) {
  for (const char* kind : {"mx", "block"}) {
    for (const char* format : {"e2m1fn", "e4m3fn"}) {
      LinearOptions options = Options(kind, format);
      options.block = 16;
      options.scale_rule = "nvfp4";
      ExpectDefinition(options);
      ExpectDefinition(options, {70, 67, 65});
    }
  }
}

TEST(Linear, BlocksOf32AreTheDefaultOfMx) { ExpectDefinition(Options("mx"), {70, 67, 65}); }

TEST(Linear, TheAccumulatorIsThatOfTheOptions) {
  for (const char* kind : {"switchback", "llm-int8", "tensor-wise", "te-hybrid", "block", "mx"}) {
    for (const char* rule : {"fp64", "bf16", "fp32-chunked:8", "hopper-fp8"}) {
      LinearOptions options = Options(kind, "e4m3fn");
      options.accumulate = rule;
      ExpectDefinition(options);
    }
    // 37 products of e4m3fn are multiples of 2^-18 below 2^24: float64 adds them exactly.
    LinearOptions options = Options(kind, "e4m3fn");
    options.gradient_format = "e4m3fn";
    options.accumulate = "exact";
    ExpectDefinition(options);
    options = Options(kind, "int8");
    options.gradient_format = "int8";
    options.accumulate = "fp32";
    ExpectDefinition(options);
  }
}

// The scales of blocks enter the sums of block-scaled units.
TEST(Linear, BlockScaledModesTakeTheScalesOfMx) {
  struct Way {
    const char* format;
    const char* mode;
    const char* rule;
    size_t block;
  };
  for (const Way& way : {Way{"e4m3fn", "mxf8f6f4", "", 32},
                         {"e5m2", "mxf8f6f4", "pow2-ceil", 64},
                         {"e2m3fn", "mxf8f6f4", "e8m0", 32},
                         {"e2m1fn", "mxf8f6f4", "", 32},
                         {"e2m1fn", "mxf4", "", 32},
                         {"e2m1fn", "mxf4nvf4", "nvfp4", 16}}) {
    LinearOptions options = Options("mx", way.format);
    options.accumulate = way.mode;
    options.scale_rule = way.rule;
    options.block = way.block;
    ExpectDefinition(options);
    ExpectDefinition(options, {70, 67, 65});
  }
  LinearOptions mixed = Options("mx", "e4m3fn");
  mixed.gradient_format = "e5m2";
  mixed.accumulate = "mxf8f6f4";
  ExpectDefinition(mixed);
}

TEST(Linear, TheScaleRuleIsThatOfTheOptions) {
  for (const char* kind :
       {"switchback", "switchback-q", "llm-int8", "tensor-wise", "block", "mx"}) {
    for (const char* rule : {"absmax",
                             "pow2-floor",
                             "pow2-ceil",
                             "e8m0",
                             "nvfp4",
                             "e8m0-even",
                             "e8m0-ulp",
                             "e8m0-three-eighths",
                             "e8m0-ceil",
                             "e4m3"}) {
      SCOPED_TRACE(rule);
      LinearOptions options = Options(kind, "e4m3fn");
      options.scale_rule = rule;
      ExpectDefinition(options);
    }
  }
}

TEST(Linear, TiesAreRoundedByTheDefinition) {
  const LinearProblem p = TiedProblem();
  ExpectDefinition(Options("standard"), p);
  for (const char* kind :
       {"switchback", "switchback-q", "llm-int8", "tensor-wise", "block", "mx"}) {
    for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
      for (const char* rule : {"pow2-ceil", "e8m0"}) {
        LinearOptions options = Options(kind, format);
        options.scale_rule = rule;
        ExpectDefinition(options, p);
      }
    }
  }
}

// A cast without scales, unless a rule is given; beside it 8-bit gradients have scales.
TEST(Linear, AFormatOfSixteenBitsCanBeQuantisedTo) {
  for (const char* kind : {"switchback-m", "llm-int8", "tensor-wise", "block", "mx"}) {
    for (const char* format : {"fp16", "bf16"}) {
      LinearOptions options = Options(kind, format);
      ExpectDefinition(options);
      options.gradient_format = "e4m3fn";
      ExpectDefinition(options);
    }
    for (const char* rule : {"absmax", "pow2-ceil", "e8m0"}) {
      SCOPED_TRACE(rule);
      LinearOptions options = Options(kind, "fp16");
      options.scale_rule = rule;
      ExpectDefinition(options);
    }
  }
}

TEST(Linear, AShapeLongInEachDimensionFollowsTheDefinition) {
  for (const std::string& kind : KindNames()) {
    for (const LinearShape shape : {LinearShape{200, 3, 5}, {3, 200, 5}, {5, 3, 200}}) {
      ExpectDefinition(Options(kind), shape);
    }
  }
}

}  // namespace
}  // namespace numsim
