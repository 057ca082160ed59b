// Layers by finite differences: gradients of their inputs and of their parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/internal/attention_layer.h"
#include "numsim/models/internal/embedding_layer.h"
#include "numsim/models/internal/mlp_layer.h"
#include "numsim/models/internal/norm_layer.h"
#include "numsim/models/internal/transformer.h"
#include "tests/support/finite_differences.h"

namespace numsim {
namespace {

constexpr size_t kBatch = 2, kLength = 5, kRows = kBatch * kLength;
constexpr size_t kWidth = 12, kHeads = 3, kHidden = 7;
constexpr Initial kWeights{0, 0.4F};

// Normal draws.
std::vector<double> Draws(size_t n, uint64_t stream) {
  std::vector<float> draws(n);
  FillNormal({11, stream}, 0, draws);
  return {draws.begin(), draws.end()};
}

// A layer from `in` to `out` columns, and the loss sum(probe * y) with a random probe.
struct Problem {
  std::function<MatrixSpan<double>(In<double>)> forward;             // x -> y
  std::function<MatrixSpan<double>(MatrixSpan<double> g)> backward;  // -> dx
  size_t in = kWidth, out = kWidth;
};

void ExpectLayerGradients(ParameterList<double>& parameters, const Problem& problem) {
  Unsettle(parameters, 0.2F, 3);
  std::vector<double> x = Draws(kRows * problem.in, 0);
  const std::vector<double> probe = Draws(kRows * problem.out, 1);
  const In<double> x_view(x.data(), kRows, problem.in);
  const auto loss = [&] {
    const MatrixSpan<double> y = problem.forward(x_view);
    double sum = 0;
    for (size_t i = 0; i < probe.size(); ++i) sum += probe[i] * y.Span()[i];
    return sum;
  };
  loss();
  std::vector<double> g = probe;
  const MatrixSpan<double> dx = problem.backward({g.data(), kRows, problem.out});
  ASSERT_EQ(dx.Elements(), x.size());
  const std::vector<double> x_gradient(dx.Span().begin(), dx.Span().end());
  ExpectParameterGradients(parameters, loss);
  ExpectGradient("x", x, x_gradient, loss);
}

// The arguments that make a layer, and memory for its output.
struct Setting {
  ParameterList<double> parameters{5};
  LinearFactory<double> linears{parameters, {}};
  Pass<double> pass;
  Buffer<double> y, dx;
};

void CheckNorm(NormKind kind, size_t size) {
  Setting s;
  NormLayer<double> norm(s.parameters, "norm", {kind, size, 1e-5});
  EXPECT_EQ(s.parameters.size(), kind == NormKind::kLayer ? 2U : 1U);
  ExpectLayerGradients(s.parameters,
                       {.forward = [&](In<double> x) { return norm.Forward(s.pass, x); },
                        .backward =
                            [&](MatrixSpan<double> g) {
                              norm.Backward(s.pass, g, s.dx.Resize(g.rows, g.cols));
                              return s.dx.View();
                            }});
}

TEST(NormLayer, GradientsAreDifferenceQuotients) {
  CheckNorm(NormKind::kRms, kWidth);
  CheckNorm(NormKind::kLayer, kWidth);
}

TEST(NormLayer, VectorsOfARowShareTheirParameters) {
  CheckNorm(NormKind::kRms, kWidth / kHeads);
  CheckNorm(NormKind::kLayer, kWidth / kHeads);
}

TEST(MlpLayer, GradientsAreDifferenceQuotients) {
  for (const MlpKind kind : {MlpKind::kSwiglu,
                             MlpKind::kSmoothSwiglu,
                             MlpKind::kSmoothSwigluToken,
                             MlpKind::kClampedSwiglu,
                             MlpKind::kGelu}) {
    for (const bool biases : {false, true}) {
      if (biases && kind == MlpKind::kSmoothSwigluToken) continue;
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << ' ' << biases);
      Setting s;
      MlpLayer<double> mlp(s.linears,
                           "mlp",
                           {.kind = kind,
                            .width = kWidth,
                            .hidden = kHidden,
                            .rows = kLength,
                            .biases = biases,
                            .up = kWeights,
                            .down = kWeights});
      MlpScratch<double> scratch{Place()};
      ExpectLayerGradients(s.parameters,
                           {.forward =
                                [&](In<double> x) {
                                  mlp.Forward(s.pass, x, s.y.Resize(x.rows, kWidth));
                                  return s.y.View();
                                },
                            .backward =
                                [&](MatrixSpan<double> g) {
                                  mlp.Backward(s.pass, g, s.dx.Resize(g.rows, kWidth), scratch);
                                  return s.dx.View();
                                }});
    }
  }
}

struct AttentionCase {
  std::string name;
  bool causal = true, rotary = false, biases = false;
  std::optional<NormKind> norm{};
};

class AttentionLayerGradient : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionLayerGradient, IsADifferenceQuotient) {
  const AttentionCase& c = GetParam();
  AttentionOptions options{.width = kWidth,
                           .heads = kHeads,
                           .length = kLength + 2,
                           .causal = c.causal,
                           .rotary = c.rotary,
                           .rope_base = 10,
                           .biases = c.biases,

                           .qkv = kWeights,
                           .out = kWeights};
  if (c.norm) options.qk_norm = NormOptions{*c.norm, kWidth / kHeads, 1e-5};
  Setting s;
  AttentionLayer<double> attention(s.linears, "attention", options);
  AttentionScratch<double> scratch{Place()};
  ExpectLayerGradients(s.parameters,
                       {.forward =
                            [&](In<double> x) {
                              attention.Forward(
                                  s.pass, x, kBatch, kLength, s.y.Resize(x.rows, kWidth));
                              return s.y.View();
                            },
                        .backward =
                            [&](MatrixSpan<double> g) {
                              attention.Backward(s.pass, g, s.dx.Resize(g.rows, kWidth), scratch);
                              return s.dx.View();
                            }});
}

void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

INSTANTIATE_TEST_SUITE_P(
    Options,
    AttentionLayerGradient,
    testing::Values(AttentionCase{"Plain", true, false, false, {}},
                    AttentionCase{"NotCausal", false, false, false, {}},
                    AttentionCase{"Rotary", true, true, false, {}},
                    AttentionCase{"RotaryNotCausal", false, true, false, {}},
                    AttentionCase{"Biases", true, false, true, {}},
                    AttentionCase{"RmsOfHeads", true, false, false, NormKind::kRms},
                    AttentionCase{"RmsOfHeadsRotary", true, true, false, NormKind::kRms},
                    AttentionCase{"LayerNormOfHeads", true, false, true, NormKind::kLayer},
                    AttentionCase{"All", false, true, true, NormKind::kLayer}),
    [](const auto& param) { return param.param.name; });

TEST(EmbeddingLayer, GradientsAreDifferenceQuotients) {
  for (const size_t positions : {size_t{0}, kLength + 3}) {
    Setting s;
    EmbeddingLayer<double> embedding(s.parameters,
                                     "embedding",
                                     {.vocabulary = 6,
                                      .width = 4,
                                      .positions = positions,
                                      .token = kWeights,
                                      .position = kWeights});
    const std::vector<int32_t> tokens{0, 5, 2, 2, 1, 1, 2, 5, 0, 0};  // 3 and 4 do not occur
    std::vector<double> probe = Draws(kRows * 4, 0);
    const auto loss = [&] {
      const MatrixSpan<double> y = embedding.Forward(s.pass, tokens, kLength);
      double sum = 0;
      for (size_t i = 0; i < probe.size(); ++i) sum += probe[i] * y.Span()[i];
      return sum;
    };
    // Left over from an earlier batch: all of it has to be overwritten.
    for (Parameter<double>& p : s.parameters) {
      for (double& g : p.gradient.View().Span()) g = 7;
    }
    loss();
    embedding.Backward(s.pass, {probe.data(), kRows, 4});
    ExpectParameterGradients(s.parameters, loss, {.entries = 100});
  }
}

struct TransformerCase {
  std::string name;
  NormKind norm = NormKind::kRms;
  MlpKind mlp = MlpKind::kSwiglu;
  bool causal = true, rotary = false, biases = false, qk_norm = false;
  std::optional<float> layer_scale{};
};

class TransformerGradient : public testing::TestWithParam<TransformerCase> {};

TEST_P(TransformerGradient, IsADifferenceQuotient) {
  const TransformerCase& c = GetParam();
  Setting s;
  Transformer<double> blocks(s.linears,
                             "blocks",
                             {.layers = 2,
                              .width = kWidth,
                              .heads = kHeads,
                              .hidden = kHidden,
                              .length = kLength,
                              .norm = c.norm,
                              .mlp = c.mlp,
                              .causal = c.causal,
                              .rotary = c.rotary,
                              .biases = c.biases,
                              .qk_norm = c.qk_norm,
                              .layer_scale = c.layer_scale,
                              .rope_base = 10,
                              .qkv = kWeights,
                              .attention_out = kWeights,
                              .mlp_up = kWeights,
                              .mlp_down = kWeights});
  ExpectLayerGradients(
      s.parameters,
      {.forward =
           [&](In<double> x) {
             // Forward takes what a layer in front of it put out, and leaves it as it is.
             const MatrixSpan<double> input = s.y.Resize(x.rows, x.cols);
             std::copy(x.Span().begin(), x.Span().end(), input.Span().begin());
             const MatrixSpan<double> y = blocks.Forward(s.pass, input, kBatch, kLength);
             EXPECT_TRUE(std::equal(x.Span().begin(), x.Span().end(), input.Span().begin()));
             return y;
           },
       .backward = [&](MatrixSpan<double> g) { return blocks.Backward(s.pass, g); }});
}

void PrintTo(const TransformerCase& c, std::ostream* out) { *out << c.name; }

constexpr NormKind kRms = NormKind::kRms, kLayer = NormKind::kLayer;
constexpr MlpKind kSwiglu = MlpKind::kSwiglu, kGelu = MlpKind::kGelu;
INSTANTIATE_TEST_SUITE_P(
    Options,
    TransformerGradient,
    testing::Values(
        TransformerCase{"Llama", kRms, kSwiglu, true, true, false, false, {}},
        TransformerCase{"LlamaQkNorm", kRms, kSwiglu, true, true, false, true, {}},
        TransformerCase{"LlamaLayerScale", kRms, kSwiglu, true, true, false, false, 0.5F},
        TransformerCase{"Gpt", kLayer, kGelu, true, false, true, false, {}},
        TransformerCase{"GptQkNormLayerScale", kLayer, kGelu, true, false, true, true, 0.1F},
        TransformerCase{"Vit", kLayer, kGelu, false, false, true, false, {}}),
    [](const auto& param) { return param.param.name; });

TEST(Transformer, LayerScaleOfZeroIsTheIdentityAndLearns) {
  Setting s;
  Transformer<double> blocks(s.linears,
                             "blocks",
                             {.layers = 2,
                              .width = kWidth,
                              .heads = kHeads,
                              .hidden = kHidden,
                              .length = kLength,
                              .layer_scale = 0.0F,
                              .qkv = kWeights,
                              .attention_out = kWeights,
                              .mlp_up = kWeights,
                              .mlp_down = kWeights});
  std::vector<double> x = Draws(kRows * kWidth, 0), g = Draws(kRows * kWidth, 1);
  const std::vector<double> probe = g;
  const auto forward = [&] {
    return blocks.Forward(s.pass, {x.data(), kRows, kWidth}, kBatch, kLength);
  };
  const auto y = forward().Span();
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin()));
  const auto dx = blocks.Backward(s.pass, {g.data(), kRows, kWidth}).Span();
  EXPECT_TRUE(std::equal(probe.begin(), probe.end(), dx.begin()));
  for (const Parameter<double>& p : s.parameters) {
    const std::span<const double> gradient = p.gradient.View().Span();
    const bool zero =
        std::all_of(gradient.begin(), gradient.end(), [](double v) { return v == 0; });
    EXPECT_EQ(zero, !p.name.ends_with(".scale")) << p.name;
  }
  ExpectParameterGradients(s.parameters, [&] {
    double sum = 0;
    const auto values = forward().Span();
    for (size_t i = 0; i < probe.size(); ++i) sum += probe[i] * values[i];
    return sum;
  });
}

TEST(Transformer, FirstTokenSeesTheLastUnlessCausal) {
  for (const bool causal : {false, true}) {
    Setting s;
    Transformer<double> blocks(s.linears,
                               "blocks",
                               {.layers = 1,
                                .width = kWidth,
                                .heads = kHeads,
                                .hidden = kHidden,
                                .length = kLength,
                                .causal = causal,
                                .qkv = kWeights,
                                .attention_out = kWeights,
                                .mlp_up = kWeights,
                                .mlp_down = kWeights});
    std::vector<double> x = Draws(kLength * kWidth, 0);
    const auto first = [&] {
      return *blocks.Forward(s.pass, {x.data(), kLength, kWidth}, 1, kLength).Row(0);
    };
    const double before = first();
    x.back() += 1;
    EXPECT_EQ(first() == before, causal);
  }
}

TEST(Transformer, WithoutBlocksPassesXThrough) {
  Setting s;
  Transformer<double> blocks(
      s.linears, "blocks", {.layers = 0, .width = kWidth, .heads = kHeads, .length = kLength});
  std::vector<double> x(kRows * kWidth, 1.5);
  const MatrixSpan<double> view(x.data(), kRows, kWidth);
  EXPECT_EQ(blocks.Forward(s.pass, view, kBatch, kLength).data, x.data());
  EXPECT_EQ(blocks.Backward(s.pass, view).data, x.data());
}

}  // namespace
}  // namespace numsim
