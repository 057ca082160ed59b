// Tests how many bytes a layer saves for its backward pass, and that it saves nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/quantized_codes.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{37, 29, 23};
constexpr size_t kX = 37 * 29, kW = 23 * 29;

LinearSaved Kept(const LinearOptions& options, LinearShape shape = kShape) {
  Linear layer(MakeLinearRecipe(options));
  const LinearProblem p = UnevenProblem(shape);
  std::vector<float> y(shape.tokens * shape.out);
  LinearSaved saved;
  layer.Forward(HostMatrix(p.x.data, shape.X()), HostMatrix(p.w.data, shape.W()), y, saved);
  return saved;
}

LinearOptions Options(const std::string& kind, const char* high_precision = "") {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = high_precision;
  return options;
}

TEST(LinearSaved, XInHighPrecisionTakesTwoOrFourBytesAnElement) {
  for (const char* kind : {"standard",
                           "switchback",
                           "switchback-q",
                           "llm-int8",
                           "llm-int8-tensor-w",
                           "row-wise-gw-hp",
                           "block",
                           "mx"}) {
    EXPECT_EQ(Kept(Options(kind)).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "bf16")).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "fp16")).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "fp32")).Bytes(), 4 * kX) << kind;
  }
}

// Codes of X and W, a float32 state for each row of X and one for W.
TEST(LinearSaved, SwitchBackMKeepsCodesAndScalesAlone) {
  const LinearSaved saved = Kept(Options("switchback-m"));
  EXPECT_EQ(saved.Bytes(), kX + 4 * 37 + kW + 4);
  ASSERT_EQ(saved.matrices.size(), 2u);
  EXPECT_EQ(saved.matrices[0].name, "X");
  EXPECT_EQ(saved.matrices[0].Bytes(), kX + 4 * 37);
  EXPECT_EQ(saved.matrices[1].name, "W");
  EXPECT_EQ(saved.matrices[1].Bytes(), kW + 4);
  for (const SavedMatrix& matrix : saved.matrices) {
    EXPECT_EQ(matrix.format, "int8");
    ASSERT_EQ(matrix.kind, SavedKind::kCodes);
    EXPECT_FALSE(Codes8Of(matrix.codes).empty());
    EXPECT_TRUE(Codes16Of(matrix.codes).empty());
  }
  LinearOptions wide = Options("switchback-m");
  wide.format = "fp16";
  EXPECT_EQ(Kept(wide).Bytes(), 2 * kX + 2 * kW);  // not scaled
  wide.scale_rule = "absmax";
  EXPECT_EQ(Kept(wide).Bytes(), 2 * kX + 4 * 37 + 2 * kW + 4);
}

TEST(LinearSaved, TeHybridKeepsTheCodesOfXAndW) {
  EXPECT_EQ(Kept(Options("te-hybrid")).Bytes(), kX + 4 + kW + 4);
  LinearOptions delayed;
  delayed.kind = "te-hybrid";
  delayed.delayed = DelayedScalingOptions{};
  EXPECT_EQ(Kept(delayed).Bytes(), kX + 4 + kW + 4);
}

TEST(LinearSaved, TensorWiseKeepsWhatItsRecipeSays) {
  LinearOptions options = Options("tensor-wise");
  const bool codes = MakeLinearRecipe(options).saves == LinearSaves::kQuantized;
  EXPECT_EQ(Kept(options).Bytes(), codes ? kX + 4 + kW + 4 : 2 * kX);
}

TEST(LinearSaved, BytesAreThoseOfAllMatrices) {
  for (const std::string& kind : KindNames()) {
    const LinearSaved saved = Kept(Options(kind));
    size_t sum = 0;
    for (const SavedMatrix& matrix : saved.matrices) sum += matrix.Bytes();
    EXPECT_EQ(saved.Bytes(), sum) << kind;
    EXPECT_EQ(saved.shape.tokens, kShape.tokens) << kind;
    EXPECT_EQ(saved.shape.in, kShape.in) << kind;
    EXPECT_EQ(saved.shape.out, kShape.out) << kind;
  }
}

// Section 2.2.1 of [SwitchBack] recommends SwitchBackM where memory is limited: of long batches it
// keeps about half.
TEST(LinearSaved, SwitchBackMKeepsHalfOfWhatSwitchBackDoes) {
  const LinearShape shape{4096, 64, 64};
  const size_t m = Kept(Options("switchback-m"), shape).Bytes();
  const size_t plain = Kept(Options("switchback"), shape).Bytes();
  EXPECT_EQ(plain, Kept(Options("standard"), shape).Bytes());
  EXPECT_LT(static_cast<double>(m), 0.55 * static_cast<double>(plain));
}

TEST(LinearSaved, BackwardReadsNothingThatIsNotKept) {
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    LinearProblem p = UnevenProblem(kShape);
    Linear layer(MakeLinearRecipe(Options(kind)));
    const naive::Results expected = Step(layer, p);
    std::vector<float> y(p.g.data.size()), dx(kX), dw(kW);
    LinearSaved saved;
    layer.Forward(HostMatrix(p.x.data, kShape.X()), HostMatrix(p.w.data, kShape.W()), y, saved);
    std::ranges::fill(p.x.data, std::nanf(""));
    std::ranges::fill(y, std::nanf(""));
    if (layer.recipe().saves == LinearSaves::kQuantized) {
      std::ranges::fill(p.w.data, std::nanf(""));
      layer.Backward(p.g.data, {}, saved, dx, dw);
      EXPECT_TRUE(SameBits(dx, expected.dx.data));
      EXPECT_TRUE(SameBits(dw, expected.dw.data));
    }
    layer.Backward(p.g.data, p.w.data, saved, dx, dw);
    EXPECT_TRUE(SameBits(dx, expected.dx.data));
    EXPECT_TRUE(SameBits(dw, expected.dw.data));
  }
}

// A LinearSaved may be used again for another step.
TEST(LinearSaved, ForwardReplacesWhatWasKept) {
  Linear layer(MakeLinearRecipe(Options("switchback-m")));
  LinearSaved saved;
  for (const LinearShape shape : {LinearShape{5, 6, 7}, {3, 2, 4}}) {
    const LinearProblem p = UnevenProblem(shape);
    std::vector<float> y(shape.tokens * shape.out);
    layer.Forward(HostMatrix(p.x.data, shape.X()), HostMatrix(p.w.data, shape.W()), y, saved);
    EXPECT_EQ(saved.Bytes(), (shape.tokens + shape.out) * shape.in + 4 * shape.tokens + 4);
  }
}

// The pieces of memory that a caller lends for what Forward saves, with bytes behind them.
class LentPieces {
 public:
  LentPieces(const Linear& layer, ConstFloatSpan x, ConstFloatSpan w, bool x_stays)
      : bytes_(layer.SavedBytes(x, w, x_stays)) {
    for (const size_t bytes : bytes_) memory_.emplace_back(Place(), bytes + 2 * kBehind);
    for (Buffer<uint8_t>& piece : memory_) std::ranges::fill(piece.Span(), kCanary);
  }

  std::vector<MatrixSpan<uint8_t>> Views() {
    std::vector<MatrixSpan<uint8_t>> views;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      views.push_back(memory_[i].View().Columns(Begin(i), bytes_[i]));
    }
    return views;
  }
  size_t Total() const { return std::accumulate(bytes_.begin(), bytes_.end(), size_t{0}); }
  bool NothingElseWasWritten() const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const std::span<const uint8_t> all = memory_[i].Span();
      const auto is_canary = [](uint8_t byte) { return byte == kCanary; };
      if (!std::ranges::all_of(all.first(Begin(i)), is_canary) ||
          !std::ranges::all_of(all.subspan(Begin(i) + bytes_[i]), is_canary)) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kBehind = 256;
  static constexpr uint8_t kCanary = 0xA5;

  // Returns the first element at a multiple of 256 bytes.
  size_t Begin(size_t i) const {
    return -reinterpret_cast<uintptr_t>(memory_[i].View().data) % kBehind;
  }

  std::vector<size_t> bytes_;
  std::vector<Buffer<uint8_t>> memory_;
};

TEST(LinearSaved, TheCallersMemoryGivesTheSameBits) {
  for (const std::string& kind : KindNames()) {
    for (const bool stays : {false, true}) {
      SCOPED_TRACE(kind + (stays ? ", X stays" : ""));
      const LinearProblem p = UnevenProblem(kShape);
      Linear owner(MakeLinearRecipe(Options(kind, "fp32")));
      Linear layer(MakeLinearRecipe(Options(kind, "fp32")));
      const naive::Results expected = Step(owner, p);
      const auto x = HostMatrix(p.x.data, kShape.X()), w = HostMatrix(p.w.data, kShape.W());
      std::vector<float> y(expected.y.data.size()), dx(kX), dw(kW);
      LentPieces pieces(layer, x, w, stays), other(layer, x, w, stays);
      LinearSaved saved;
      layer.Attach(x, w, stays, pieces.Views(), saved);
      layer.Forward(x, w, y, saved, {}, nullptr, stays);
      EXPECT_TRUE(SameBits(y, expected.y.data));
      EXPECT_LE(saved.Bytes(), pieces.Total() + (stays ? 4 * kX : 0));
      // The bytes move elsewhere, as those of a tensor that was offloaded do.
      const auto from = pieces.Views(), to = other.Views();
      for (size_t i = 0; i < from.size(); ++i) {
        std::ranges::copy(from[i].Span(), to[i].data);
        std::ranges::fill(from[i].Span(), uint8_t{0xA5});
      }
      LinearSaved restored;
      layer.Attach(x, w, stays, to, restored);
      layer.Backward(p.g.data, w, restored, dx, dw);
      EXPECT_TRUE(SameBits(dx, expected.dx.data));
      EXPECT_TRUE(SameBits(dw, expected.dw.data));
      EXPECT_TRUE(pieces.NothingElseWasWritten() && other.NothingElseWasWritten());
    }
  }
}

TEST(LinearSaved, AnXThatStaysTakesNoMemory) {
  const Linear layer(MakeLinearRecipe(Options("switchback", "fp32")));
  const std::vector<float> values_x(kX), values_w(kW);
  const auto x = HostMatrix(values_x, kShape.X()), w = HostMatrix(values_w, kShape.W());
  EXPECT_EQ(layer.SavedBytes(x, w, true), std::vector<size_t>{0});
  EXPECT_EQ(layer.SavedBytes(x, w, false), std::vector<size_t>{4 * kX});
}

TEST(LinearSaved, MemoryThatDoesNotFitIsRefused) {
  const Linear layer(MakeLinearRecipe(Options("switchback-m")));
  const std::vector<float> values_x(kX), values_w(kW);
  const auto x = HostMatrix(values_x, kShape.X()), w = HostMatrix(values_w, kShape.W());
  LentPieces pieces(layer, x, w, false);
  LinearSaved saved;
  std::vector<MatrixSpan<uint8_t>> views = pieces.Views();
  views[1] = views[1].Columns(0, views[1].cols - 1);
  EXPECT_THROW(layer.Attach(x, w, false, views, saved), Error);
  views = pieces.Views();
  ++views[0].data;
  EXPECT_THROW(layer.Attach(x, w, false, views, saved), Error);
  EXPECT_THROW(layer.Attach(x, w, false, std::span(views).first(1), saved), Error);
}

// An observer that uses another layer in the middle of a call.
class Nested : public LinearObserver {
 public:
  void Begin(LinearOp) override {}
  void End(LinearOp) override {
    if (busy_) return;
    busy_ = true;
    Step(layer_, UnevenProblem({11, 31, 17}));
    busy_ = false;
  }

 private:
  Linear layer_{MakeLinearRecipe(Options("switchback"))};
  bool busy_ = false;
};

TEST(LinearWorkspace, ALayerUsedWithinACallOfAnotherOneLeavesItAlone) {
  for (const std::string& kind : KindNames()) {
    const LinearProblem p = UnevenProblem(kShape);
    Linear alone(MakeLinearRecipe(Options(kind))), disturbed(MakeLinearRecipe(Options(kind)));
    const naive::Results expected = Step(alone, p);
    Nested nested;
    const naive::Results found = Step(disturbed, p, {}, &nested);
    EXPECT_TRUE(SameBits(found.y.data, expected.y.data)) << kind;
    EXPECT_TRUE(SameBits(found.dx.data, expected.dx.data)) << kind;
    EXPECT_TRUE(SameBits(found.dw.data, expected.dw.data)) << kind;
  }
}

}  // namespace
}  // namespace numsim
