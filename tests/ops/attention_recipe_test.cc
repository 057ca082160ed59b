// Attention in every kind of recipe against plain loops: products by the reference of linear
// layers, which rounds and adds exact numbers, and the softmax between them written out here once
// more.
#include "numsim/ops/attention_recipe.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/parallel.h"
#include "numsim/ops/shared/attention.h"
#include "numsim/random/distributions.h"
#include "tests/ops/rows_simd.h"
#include "tests/reference/accumulate.h"
#include "tests/reference/linear/naive_linear.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

using naive::Matrix;
using naive::Operand;
using Precision = AttentionPrecision;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// Inputs and results: tokens x heads * head_dim each, log_sums tokens x heads.
struct Tensors {
  AttentionShape shape;
  Matrix q, k, v, g, out, dq, dk, dv, log_sums;

  Tensors(const AttentionShape& of, float spread, uint64_t seed) : shape(of) {
    const size_t tokens = of.batch * of.length, width = of.heads * of.head_dim;
    uint64_t stream = 0;
    for (Matrix* const x : {&q, &k, &v, &g, &out, &dq, &dk, &dv}) {
      *x = {tokens, width, std::vector<float>(tokens * width)};
      FillNormal({seed, stream++}, 0, x->data);
    }
    for (Matrix* const x : {&q, &k, &v}) {
      for (float& value : x->data) value *= spread;
    }
    log_sums = {tokens, of.heads, std::vector<float>(tokens * of.heads)};
  }
};

MatrixSpan<float> View(Matrix& x) { return {x.data.data(), x.rows, x.cols}; }

void Solve(const AttentionRecipe& recipe, Tensors& t) {
  Attention<float>(t.shape, View(t.q), View(t.k), View(t.v), View(t.log_sums), View(t.out), recipe);
  AttentionGradient<float>(t.shape,
                           View(t.g),
                           View(t.q),
                           View(t.k),
                           View(t.v),
                           View(t.log_sums),
                           View(t.out),
                           View(t.dq),
                           View(t.dk),
                           View(t.dv),
                           recipe);
}

// The reference.

float Fma(float a, float b, float c) { return std::fma(a, b, c); }

// 2^x as docs/attention.md has it.
float Exp2(float x) {
  if (std::isnan(x)) return x;
  if (x < -126) return 0;
  if (x >= 128) return kInf;
  const float k = std::nearbyint(x), r = x - k;
  float p = 0x1.41fbbcp-13f;
  for (const float c :
       {0x1.5f3e52p-10f, 0x1.3b2d4cp-7f, 0x1.c6aee8p-5f, 0x1.ebfbdcp-3f, 0x1.62e43p-1f, 1.0f}) {
    p = Fma(p, r, c);
  }
  return std::ldexp(p, static_cast<int>(k));
}

float ExpE(float x) {
  float y;
  ExpOf(&x, 1, &y);  // judged by rows_test.cc
  return y;
}

// A sum of 16 lanes.
float SumOfLanes(const std::vector<float>& terms) {
  float lanes[16] = {};
  for (size_t i = 0; i < terms.size(); ++i) lanes[i % 16] += terms[i];
  for (const size_t half : {8, 4, 2, 1}) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

class Reference {
 public:
  Reference(const Precision& precision, const AttentionShape& shape)
      : precision_(precision),
        shape_(shape),
        unfused_(precision.accumulate == "fp32:unfused"),
        scale_(static_cast<float>(1 / std::sqrt(double(shape.head_dim)))),
        factor_(unfused_ ? scale_
                         : static_cast<float>(1 / std::sqrt(double(shape.head_dim)) /
                                              0.69314718055994531)) {}

  void Solve(Tensors& t) const {
    for (size_t b = 0; b < shape_.batch; ++b) {
      for (size_t h = 0; h < shape_.heads; ++h) SolveHead(b, h, t);
    }
  }

 private:
  bool Sees(size_t t, size_t j) const { return !shape_.causal || j <= t; }

  Matrix Part(const Matrix& x, size_t b, size_t h) const {
    Matrix head{shape_.length, shape_.head_dim, {}};
    for (size_t t = 0; t < head.rows; ++t) {
      for (size_t c = 0; c < head.cols; ++c) {
        head.data.push_back(x.At(b * shape_.length + t, h * shape_.head_dim + c));
      }
    }
    return head;
  }
  void Put(const Matrix& head, size_t b, size_t h, Matrix& x) const {
    for (size_t t = 0; t < head.rows; ++t) {
      for (size_t c = 0; c < head.cols; ++c) {
        x.data[(b * shape_.length + t) * x.cols + h * shape_.head_dim + c] = head.At(t, c);
      }
    }
  }

  // `x` has the vectors of the inner dimension as rows.
  Operand Enter(const Matrix& x, bool gradient, bool p = false) const {
    const std::string& format = gradient && !precision_.gradient_format.empty()
                                    ? precision_.gradient_format
                                    : precision_.format;
    if (precision_.scale_rule.empty() &&
        (format == "fp32" || format == "bf16" || format == "fp16")) {
      return naive::Cast(x, format);
    }
    naive::Quantiser quantiser{.format = format, .group = naive::WholeTensor()};
    if (!precision_.scale_rule.empty()) quantiser.rule = ParseScaleRule(precision_.scale_rule);
    if (p) {
      const float scale = precision_.p_scale != 0 ? static_cast<float>(precision_.p_scale)
                          : format == "int8"      ? 1 / 127.0f
                          : quantiser.rule == ScaleRule::kAbsmax ? 1 / 448.0f
                                                                 : 0x1p-8f;
      const float inverse = precision_.p_scale != 0                ? 1 / scale
                            : format == "int8"                     ? 127.0f
                            : quantiser.rule == ScaleRule::kAbsmax ? 448.0f
                                                                   : 0x1p8f;
      quantiser.given = Scale{scale, inverse};
    } else if (precision_.scaling == "row") {
      quantiser.group = naive::EachRow();
    } else if (Block() != 0) {
      quantiser.group = naive::Tiles(1, Block());
    }
    return naive::Quantised(x, quantiser);
  }
  size_t Block() const {
    const std::string& text = precision_.scaling;
    return text.starts_with("block:") ? std::stoul(text.substr(6)) : 0;
  }

  Matrix Product(const Operand& a, const Operand& b) const {
    const bool scaled_inside = precision_.accumulate == "mxf8f6f4";
    if (!unfused_) {
      return naive::Product(a, b, precision_.accumulate, scaled_inside ? 0 : Block());
    }
    Matrix product{a.values.rows, b.values.rows, {}};
    const size_t inner = a.values.cols;
    for (size_t i = 0; i < product.rows; ++i) {
      for (size_t j = 0; j < product.cols; ++j) {
        float sum = 0;
        for (size_t x = 0; x < inner; ++x) sum += a.values.At(i, x) * b.values.At(j, x);
        product.data.push_back(sum);
      }
    }
    return product;
  }

  // A product over tokens, row by row: what a row does not see is zero, whatever it is.
  template <typename SeesToken>
  Matrix ProductOfTokens(const Operand& a, const Operand& b, const SeesToken& sees) const {
    Matrix product{a.values.rows, b.values.rows, {}};
    const size_t tokens = a.values.cols;
    for (size_t row = 0; row < product.rows; ++row) {
      Operand one = a, seen = b;
      for (Matrix* const part : {&one.values, &one.scales}) {
        const auto from = part->data.begin() + static_cast<std::ptrdiff_t>(row * tokens);
        *part = {1, tokens, {from, from + static_cast<std::ptrdiff_t>(tokens)}};
      }
      for (size_t t = 0; t < tokens; ++t) {
        for (size_t c = 0; c < product.cols && !sees(row, t); ++c) {
          float& x = seen.values.data[c * tokens + t];
          if (!std::isfinite(x)) x = 0;
        }
      }
      for (const float x : Product(one, seen).data) product.data.push_back(x + 0.0f);
    }
    return product;
  }

  float Exp(float score, float offset) const {
    if (!unfused_) return Exp2(Fma(score, factor_, -offset));
    const float scaled = score * factor_;
    return ExpE(scaled - offset);
  }

  void SolveHead(size_t b, size_t h, Tensors& t) const {
    const Matrix q = Part(t.q, b, h), k = Part(t.k, b, h), v = Part(t.v, b, h), g = Part(t.g, b, h);
    const size_t length = shape_.length;
    const auto query_sees = [&](size_t row, size_t token) { return Sees(row, token); };
    const auto key_is_seen_by = [&](size_t row, size_t token) { return Sees(token, row); };
    const Matrix scores = Product(Enter(q, false), Enter(k, false));

    Matrix p = scores;
    std::vector<float> sums, log_sums;
    for (size_t row = 0; row < length; ++row) {
      float most = -kInf;
      for (size_t j = 0; j < length; ++j) {
        if (Sees(row, j) && !(scores.At(row, j) <= most)) most = scores.At(row, j);
      }
      const float offset = most * factor_;
      std::vector<float> terms;
      for (size_t j = 0; j < length; ++j) {
        float& x = p.data[row * length + j];
        x = Sees(row, j) ? Exp(x, offset) : 0;
        if (Sees(row, j)) terms.push_back(x);
      }
      sums.push_back(SumOfLanes(terms));
      const double log = Log(sums.back()) * (unfused_ ? 1 : 1.4426950408889634);
      const bool usual = sums.back() > 0 && std::isfinite(sums.back());
      log_sums.push_back(usual ? static_cast<float>(offset + log) : kNotANumber);
      t.log_sums.data[(b * length + row) * shape_.heads + h] = log_sums.back();
    }
    Matrix out =
        ProductOfTokens(Enter(p, false, true), Enter(naive::Transposed(v), false), query_sees);
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= 1 / sums[i / out.cols];
    Put(out, b, h, t.out);

    const Matrix dp = Product(Enter(g, true), Enter(v, false));
    Matrix ds = dp;
    p = scores;
    for (size_t row = 0; row < length; ++row) {
      std::vector<float> terms;
      for (size_t c = 0; c < g.cols; ++c) terms.push_back(g.At(row, c) * out.At(row, c));
      const float center = SumOfLanes(terms);
      for (size_t j = 0; j < length; ++j) {
        float& x = p.data[row * length + j];
        x = Sees(row, j) ? Exp(x, log_sums[row]) : 0;
        const float change = x * (dp.At(row, j) - center);
        ds.data[row * length + j] = Sees(row, j) ? change * scale_ : 0;
      }
    }
    Put(ProductOfTokens(Enter(naive::Transposed(p), false, true),
                        Enter(naive::Transposed(g), true),
                        key_is_seen_by),
        b,
        h,
        t.dv);
    Put(ProductOfTokens(Enter(ds, true), Enter(naive::Transposed(k), false), query_sees),
        b,
        h,
        t.dq);
    Put(ProductOfTokens(
            Enter(naive::Transposed(ds), true), Enter(naive::Transposed(q), false), key_is_seen_by),
        b,
        h,
        t.dk);
  }

  Precision precision_;
  AttentionShape shape_;
  bool unfused_;
  float scale_, factor_;
};

// Equal bits, or NaN twice.
void ExpectSame(const Matrix& given, const Matrix& expected, const std::string& what) {
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    const float x = given.data[i], y = expected.data[i];
    const bool same =
        std::isnan(x) ? std::isnan(y) : std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
    if (!same && wrong++ == 0) first = i;
  }
  EXPECT_EQ(wrong, 0u) << what << " [" << first << "]: " << given.data[first] << ", expected "
                       << expected.data[first];
}

void ExpectTheReference(const Precision& precision, const Tensors& inputs) {
  Tensors expected = inputs, given = inputs;
  Reference(precision, inputs.shape).Solve(expected);
  Solve(MakeAttentionRecipe(precision), given);
  ExpectSame(given.log_sums, expected.log_sums, "log_sums");
  ExpectSame(given.out, expected.out, "out");
  ExpectSame(given.dq, expected.dq, "dq");
  ExpectSame(given.dk, expected.dk, "dk");
  ExpectSame(given.dv, expected.dv, "dv");
}

std::string Describe(const Precision& p) {
  return p.format + " " + p.gradient_format + " " + p.accumulate + " " + p.scaling + " " +
         p.scale_rule + " " + std::to_string(p.p_scale);
}

const Precision kPrecisions[] = {
    {},
    {.accumulate = "fp32"},
    {.accumulate = "fp64"},
    {.format = "bf16", .accumulate = "trunc:25,16,128"},  // of tensor cores
    {.format = "bf16"},
    {.format = "bf16", .accumulate = "fp32"},
    {.format = "fp16", .gradient_format = "bf16", .accumulate = "fp32-chunked:8"},
    {.format = "e4m3fn", .accumulate = "fp32"},
    {.format = "e4m3fn",
     .gradient_format = "e5m2",
     .accumulate = "hopper-fp8",
     .scaling = "row",
     .scale_rule = "pow2-ceil"},
    {.format = "e4m3fn", .accumulate = "fp32", .scaling = "block:4", .p_scale = 0.00390625},
    {.format = "e4m3fn", .accumulate = "mxf8f6f4", .scaling = "block:32", .scale_rule = "e8m0"},
    {.format = "int8", .accumulate = "exact"},
};

const AttentionShape kShapes[] = {{1, 1, 1, 2, true},
                                  {2, 5, 2, 3, true},
                                  {1, 19, 2, 7, true},
                                  {1, 18, 1, 8, false},
                                  {1, 37, 1, 20, true}};

std::string Describe(const AttentionShape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.length) + " heads " +
         std::to_string(s.heads) + "x" + std::to_string(s.head_dim) + (s.causal ? " causal" : "");
}

TEST(AttentionRecipe, HasTheBitsOfPlainLoops) {
  for (const Precision& precision : kPrecisions) {
    for (const AttentionShape& shape : kShapes) {
      SCOPED_TRACE(Describe(precision) + ", " + Describe(shape));
      ExpectTheReference(precision, Tensors(shape, 1.5f, 7));
    }
  }
}

// Longer than a part of 128 tokens, which are then added in float32.
TEST(AttentionRecipe, AddsPartsOf128Tokens) {
  ExpectTheReference({.format = "bf16", .accumulate = "trunc:25,16,128"},
                     Tensors({1, 141, 1, 3, true}, 1.0f, 8));
}

// Values that are not finite in q, k, v and g: what reaches which token.
TEST(AttentionRecipe, ValuesThatAreNotFiniteReachThoseThatSeeThem) {
  for (const Precision& precision : kPrecisions) {
    for (const bool causal : {true, false}) {
      for (const size_t j : {0, 4, 11}) {
        SCOPED_TRACE(Describe(precision) + (causal ? " causal " : " ") + std::to_string(j));
        Tensors t({1, 12, 1, 5, causal}, 1.0f, 9);
        t.v.data[j * 5 + 1] = kInf;
        t.v.data[(j + 1) / 2 * 5 + 2] = kNotANumber;
        ExpectTheReference(precision, t);
        t = Tensors({1, 12, 1, 5, causal}, 1.0f, 9);
        t.g.data[j * 5] = kNotANumber;
        t.g.data[j / 2 * 5] = kInf;
        t.q.data[(11 - j) * 5] = kNotANumber;
        t.k.data[(j + 3) % 12 * 5] = kNotANumber;
        ExpectTheReference(precision, t);
      }
    }
  }
}

bool SameRow(const Matrix& a, const Matrix& b, size_t t) {
  for (size_t c = 0; c < a.cols; ++c) {
    const uint32_t x = std::bit_cast<uint32_t>(a.At(t, c)), y = std::bit_cast<uint32_t>(b.At(t, c));
    if (x != y) return false;
  }
  return true;
}

// Without the reference: in no recipe does a value reach a token that does not attend to it. Where
// tokens share a scale, that of a head, they stay finite.
TEST(AttentionRecipe, NothingReachesEarlierTokens) {
  for (const Precision& precision : kPrecisions) {
    const AttentionRecipe recipe = MakeAttentionRecipe(precision);
    const bool apart = recipe.forward.Unscaled();  // else a scale has another absolute maximum
    Tensors before({1, 14, 1, 5, true}, 1.0f, 10);
    Solve(recipe, before);
    for (const float bad : {kInf, kNotANumber}) {
      for (Matrix Tensors::*const part : {&Tensors::q, &Tensors::k, &Tensors::v}) {
        Tensors after({1, 14, 1, 5, true}, 1.0f, 10);
        (after.*part).data[9 * 5 + 2] = bad;
        Solve(recipe, after);
        for (size_t t = 0; t < 9; ++t) {
          for (Matrix Tensors::*const result : {&Tensors::out, &Tensors::dq}) {
            EXPECT_TRUE(!apart || SameRow(after.*result, before.*result, t))
                << Describe(precision) << ", token " << t;
            for (size_t c = 0; c < 5; ++c) EXPECT_TRUE(std::isfinite((after.*result).At(t, c)));
          }
        }
      }
      // The gradients of later keys and values do not have that of an earlier output.
      Tensors after({1, 14, 1, 5, true}, 1.0f, 10);
      after.g.data[4 * 5 + 2] = bad;
      Solve(recipe, after);
      for (size_t t = 5; t < 14; ++t) {
        for (Matrix Tensors::*const result : {&Tensors::dk, &Tensors::dv}) {
          EXPECT_TRUE(!apart || SameRow(after.*result, before.*result, t)) << Describe(precision);
          for (size_t c = 0; c < 5; ++c) EXPECT_TRUE(std::isfinite((after.*result).At(t, c)));
        }
      }
    }
  }
}

TEST(AttentionRecipe, BitsDependOnNeitherTargetNorThreads) {
  const int threads = ThreadCount();
  for (const Precision& precision : kPrecisions) {
    const AttentionRecipe recipe = MakeAttentionRecipe(precision);
    for (const AttentionShape& shape : {AttentionShape{2, 21, 3, 6, true}, {1, 9, 2, 33, false}}) {
      SCOPED_TRACE(Describe(precision) + ", " + Describe(shape));
      Tensors expected(shape, 2.0f, 11);
      Solve(recipe, expected);
      WithEachBackend([&] {
        for (const int count : {1, 3}) {
          SetThreadCount(count);
          Tensors given(shape, 2.0f, 11);
          Solve(recipe, given);
          ExpectSame(given.out, expected.out, "out");
          ExpectSame(given.log_sums, expected.log_sums, "log_sums");
          ExpectSame(given.dq, expected.dq, "dq");
          ExpectSame(given.dk, expected.dk, "dk");
          ExpectSame(given.dv, expected.dv, "dv");
        }
      });
      SetThreadCount(threads);
    }
  }
}

// Tensor cores in bf16 stay near float32, and 8 bits further off, but not far.
TEST(AttentionRecipe, ErrorsAreThoseOfTheFormat) {
  const AttentionShape shape{1, 40, 2, 16, true};
  Tensors exact(shape, 1.0f, 12);
  Solve(AttentionRecipe(), exact);
  const auto error = [&](const Precision& precision, Matrix Tensors::*result) {
    Tensors given(shape, 1.0f, 12);
    Solve(MakeAttentionRecipe(precision), given);
    double squares = 0, of = 0;
    for (size_t i = 0; i < (exact.*result).data.size(); ++i) {
      const double x = (exact.*result).data[i], d = (given.*result).data[i] - x;
      squares += d * d;
      of += x * x;
    }
    return std::sqrt(squares / of);
  };
  for (Matrix Tensors::*const result : {&Tensors::out, &Tensors::dq, &Tensors::dk, &Tensors::dv}) {
    EXPECT_LT(error({.accumulate = "fp32"}, result), 1e-6);
    const double bf16 = error({.format = "bf16", .accumulate = "trunc:25,16,128"}, result);
    EXPECT_GT(bf16, 5e-4);
    EXPECT_LT(bf16, 1e-2);
    const double fp8 = error({.format = "e4m3fn", .accumulate = "fp32"}, result);
    EXPECT_GT(fp8, 5 * bf16);
    EXPECT_LT(fp8, 0.15);
  }
}

TEST(Exp2Row, IsLessThanOneUlpOffAndHasItsLimits) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(126.0f); bits += 4001) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  const size_t usual = x.size();
  for (const float other : {-126.0f, 127.99999f, -126.00001f, -kInf, 128.0f, kInf, kNotANumber}) {
    x.push_back(other);
  }
  std::vector<float> y(x.size());
  WithEachBackend([&] {
    Exp2Of(x.data(), x.size(), y.data());
    double worst = 0;
    for (size_t i = 0; i < usual + 2; ++i) {
      const double exact = Exp(double{x[i]} * 0.69314718055994531);
      int exponent;
      std::frexp(exact, &exponent);
      const double error = std::abs(y[i] - exact) / std::ldexp(1.0, exponent - 24);
      if (!(error <= worst)) worst = error;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(Exp2(x[i]))) << x[i];
    }
    EXPECT_LT(worst, 1);
    EXPECT_EQ(std::bit_cast<uint32_t>(y[usual + 2]), 0u);
    EXPECT_EQ(std::bit_cast<uint32_t>(y[usual + 3]), 0u);
    EXPECT_EQ(y[usual + 4], kInf);
    EXPECT_EQ(y[usual + 5], kInf);
    EXPECT_TRUE(std::isnan(y[usual + 6]));
  });
}

void ExpectKeyError(const Precision& precision,
                    const std::string& key,
                    const std::vector<std::string>& words) {
  const std::string error = ErrorOf([&] { MakeAttentionRecipe(precision); });
  EXPECT_TRUE(error.starts_with(key + ": ")) << error;
  for (const std::string& word : words) EXPECT_NE(error.find(word), std::string::npos) << error;
}

TEST(MakeAttentionRecipe, NamesWhatIsWrong) {
  ExpectKeyError({.accumulate = "library"}, "accumulate", {"'library'", "order", "fp32:unfused"});
  ExpectKeyError({.accumulate = "fp33"}, "accumulate", {"fp33", "did you mean fp32?"});
  ExpectKeyError({.accumulate = "hoper-bf16"}, "accumulate", {"did you mean hopper-bf16?"});
  ExpectKeyError({.format = "bf61"}, "format", {"bf61"});
  ExpectKeyError({.format = "ue4m3"}, "format", {"no sign"});
  ExpectKeyError(
      {.format = "e4m3fn", .gradient_format = "e8m0fnu"}, "gradient_format", {"no sign"});
  ExpectKeyError({.scale_rule = "absmax"}, "format", {"fp32", "32 bits", "16"});
  ExpectKeyError({.format = "bf16", .scaling = "row"}, "scaling", {"none"});
  ExpectKeyError(
      {.format = "e4m3fn", .scaling = "rows"}, "scaling", {"head, row", "did you mean row?"});
  ExpectKeyError({.format = "e4m3fn", .scaling = "block:0"}, "scaling", {"block"});
  ExpectKeyError({.format = "e2m1fn", .scale_rule = "nvfp4"}, "scale_rule", {"nvfp4", "pow2-ceil"});
  ExpectKeyError({.format = "e4m3fn", .p_scale = 1e-45}, "p_scale", {"finite"});
  ExpectKeyError({.p_scale = 0.5}, "p_scale", {"fp32"});
  ExpectKeyError({.format = "e4m3fn", .accumulate = "mxf8f6f4"}, "accumulate", {"absmax"});
  ExpectKeyError({.format = "bf16", .accumulate = "mxf8f6f4"}, "accumulate", {"not for bf16"});
  ExpectKeyError(
      {.format = "e4m3fn", .accumulate = "mxf8f6f4", .scaling = "block:24", .scale_rule = "e8m0"},
      "accumulate",
      {"32", "24"});
  ExpectKeyError({.format = "e4m3fn",
                  .accumulate = "mxf8f6f4",
                  .scaling = "block:32",
                  .scale_rule = "e8m0",
                  .p_scale = 0.003},
                 "p_scale",
                 {"e8m0fnu"});
}

TEST(MakeAttentionRecipe, ThePScaleIsThatOfAnAbsoluteMaximumOfOne) {
  const auto scale = [](const Precision& precision) {
    return MakeAttentionRecipe(precision).p_scale.scale;
  };
  EXPECT_EQ(scale({}), 1);
  EXPECT_EQ(scale({.format = "bf16"}), 1);
  EXPECT_EQ(scale({.format = "e4m3fn"}), 1 / 448.0f);
  EXPECT_EQ(scale({.format = "e4m3fn", .scale_rule = "pow2-ceil"}), 0x1p-8f);
  EXPECT_EQ(scale({.format = "e4m3fn", .scale_rule = "none"}), 1);
  EXPECT_EQ(scale({.format = "e4m3fn", .scale_rule = "none", .p_scale = 0x1p-8}), 0x1p-8f);
}

}  // namespace
}  // namespace numsim
