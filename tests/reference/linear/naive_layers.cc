// The algorithms. Operations are named as in the pseudocode of [SwitchBack]; a product there is
// written A B.t(), here Product(A, B).
#include "tests/reference/linear/naive_linear.h"
#include "tests/reference/oracle.h"

namespace numsim::naive {
namespace {

class Algorithms {
 public:
  Algorithms(const Setup& setup, const Matrix& x, const Matrix& w, const Matrix& g)
      : s_(setup), x_(x), w_(w), g_(g), x16_(Cast(x, setup.high_precision).values) {}

  // Algorithm 5: torch.matmul(X, W.t()), (G, W), (G.t(), X), all in high precision.
  Results Standard() const {
    return {HighPrecision(x_, w_),
            HighPrecision(g_, Transposed(w_)),
            HighPrecision(Transposed(g_), Transposed(x_))};
  }

  // Algorithm 1. Its line for X_gradient dequantises with state_X; state_G is meant and taken here.
  Results SwitchBack() const {
    return {Quantised8(Forward(x_, EachRow()), Forward(w_, WholeTensor())),
            Quantised8(InputGradient(EachRow()), Transposed(Forward(w_, WholeTensor()))),
            HighPrecision(Transposed(g_), Transposed(x_))};
  }

  // Algorithm 3: W_gradient from dequantize_row-wise(X_int8, state_X); W_int8 is kept.
  Results SwitchBackM() const {
    Results results = SwitchBack();
    const Matrix saved = Dequantised(Forward(x_, EachRow()));
    results.dw = HighPrecision(Transposed(g_), Transposed(saved));
    return results;
  }

  // Algorithm 4 and Eq. 4: W row-wise forward, column-wise and transposed backward.
  Results SwitchBackQ() const {
    return {Quantised8(Forward(x_, EachRow()), Forward(w_, EachRow())),
            Quantised8(InputGradient(EachRow()), Transposed(Forward(w_, EachColumn()))),
            HighPrecision(Transposed(g_), Transposed(x_))};
  }

  // Section 2.2.3: Algorithm 4 with the weight gradient quantised row- and column-wise too. X is
  // kept in high precision.
  Results LlmInt8() const {
    Results results = SwitchBackQ();
    results.dw = Quantised8(Transposed(WeightGradient(EachColumn())),
                            Transposed(Forward(x16_, EachColumn())));
    return results;
  }

  // One scale a tensor, all three products.
  Results TensorWise() const {
    const Operand w8 = Forward(w_, WholeTensor());
    const Operand saved = Forward(s_.keeps_quantized ? x_ : x16_, WholeTensor());
    return {Quantised8(Forward(x_, WholeTensor()), w8),
            Quantised8(InputGradient(WholeTensor()), Transposed(w8)),
            Quantised8(Transposed(WeightGradient(WholeTensor())), Transposed(saved))};
  }

  // experimental/fp8_linear.py of [Fishman]: X and W are cast to both formats; the backward
  // products take the copies in the format of the gradient.
  Results E5m2Backward() const {
    return {Quantised8(Forward(x_, WholeTensor()), Forward(w_, WholeTensor())),
            Quantised8(InputGradient(WholeTensor()), Transposed(Backward(w_))),
            Quantised8(Transposed(WeightGradient(WholeTensor())), Transposed(Backward(x16_)))};
  }

  // The scales of Algorithm 1, and the weight gradient of LLM.int8().
  Results LlmInt8TensorW() const {
    Results results = SwitchBack();
    results.dw = LlmInt8().dw;
    return results;
  }

  // torchao's rowwise_with_gw_hp: Algorithm 4 forward, Algorithm 1 backward.
  Results RowWiseGwHp() const {
    Results results = SwitchBackQ();
    results.dx = SwitchBack().dx;
    return results;
  }

  // Blocks of 1 x n for X and G along the inner dimension, tiles of n x n for W.
  Results Block() const {
    const size_t n = s_.block;
    return {
        Quantised8(Forward(x_, Tiles(1, n)), Forward(w_, Tiles(n, n)), n),
        Quantised8(InputGradient(Tiles(1, n)), Transposed(Forward(w_, Tiles(n, n))), n),
        Quantised8(
            Transposed(WeightGradient(Tiles(n, 1))), Transposed(Forward(x16_, Tiles(n, 1))), n)};
  }

  // Blocks of n along the inner dimension of each product, for every operand: X and X^T, W and W^T,
  // G and G^T are quantised apart.
  Results Mx() const {
    const size_t n = s_.block;
    return {
        Quantised8(Forward(x_, Tiles(1, n)), Forward(w_, Tiles(1, n)), n),
        Quantised8(InputGradient(Tiles(1, n)), Transposed(Forward(w_, Tiles(n, 1))), n),
        Quantised8(
            Transposed(WeightGradient(Tiles(n, 1))), Transposed(Forward(x16_, Tiles(n, 1))), n)};
  }

 private:
  Operand Forward(const Matrix& in, const Group& group) const {
    return Quantised(in, {.format = s_.format, .group = group, .rule = s_.rule});
  }
  Operand Backward(const Matrix& in) const {
    return Quantised(
        in, {.format = s_.gradient_format, .group = WholeTensor(), .rule = s_.gradient_rule});
  }
  Operand Gradient(const Group& group, uint64_t stream) const {
    return Quantised(g_,
                     {.format = s_.gradient_format,
                      .group = group,
                      .rule = s_.gradient_rule,
                      .rounding = s_.gradient_rounding,
                      .stream = {s_.seed, stream}});
  }
  Operand InputGradient(const Group& group) const { return Gradient(group, s_.dx_stream); }
  Operand WeightGradient(const Group& group) const { return Gradient(group, s_.dw_stream); }

  Matrix Quantised8(const Operand& a, const Operand& b, size_t segment = 0) const {
    const bool integers = a.format == "int8" && b.format == "int8";
    const std::string usual = integers ? "exact" : "fp32";
    const std::string mode = s_.accumulation.empty() ? usual : s_.accumulation;
    if (s_.container.empty()) return Product(a, b, mode, segment);
    return Product(Contained(a, segment != 0), Contained(b, segment != 0), mode);
  }
  // The values of the codes, with the scales of blocks in them, as numbers of the container.
  Operand Contained(const Operand& in, bool blocks) const {
    if (!blocks) return {s_.container, in.values, in.scales};
    return Cast(Dequantised(in), s_.container);
  }
  Matrix HighPrecision(const Matrix& a, const Matrix& b) const {
    return Product(
        Cast(a, s_.high_precision), Cast(b, s_.high_precision), s_.high_precision_accumulation);
  }

  const Setup& s_;
  const Matrix &x_, &w_, &g_;
  const Matrix x16_;
};

}  // namespace

Results Layer(const LinearOptions& options,
              const Setup& setup,
              const Matrix& x,
              const Matrix& w,
              const Matrix& g) {
  const Algorithms algorithms(setup, x, w, g);
  const std::string& kind = options.kind;
  if (kind == "standard") return algorithms.Standard();
  if (kind == "switchback") return algorithms.SwitchBack();
  if (kind == "switchback-m") return algorithms.SwitchBackM();
  if (kind == "switchback-q") return algorithms.SwitchBackQ();
  if (kind == "llm-int8") return algorithms.LlmInt8();
  if (kind == "llm-int8-tensor-w") return algorithms.LlmInt8TensorW();
  if (kind == "tensor-wise" || kind == "te-hybrid") return algorithms.TensorWise();
  if (kind == "e5m2-backward") return algorithms.E5m2Backward();
  if (kind == "row-wise-gw-hp") return algorithms.RowWiseGwHp();
  if (kind == "block") return algorithms.Block();
  return algorithms.Mx();
}

Setup SetupOf(const LinearOptions& options) {
  const auto either = [](const std::string& given, const std::string& usual) {
    return given.empty() ? usual : given;
  };
  const std::string& kind = options.kind;
  const bool paper =
      kind.starts_with("switchback") || kind.starts_with("llm-int8") || kind == "tensor-wise";
  const std::string format = either(options.format, paper ? "int8" : "e4m3fn");
  const bool copies = kind == "e5m2-backward";
  const bool wide_gradient =
      (copies && format == "e4m3") ||
      ((copies || kind == "te-hybrid" || kind == "tensor-wise") && format == "e4m3fn");
  const std::string rule = kind == "mx"                                  ? "e8m0"
                           : copies                                      ? "pow2-floor"
                           : kind == "block" || kind == "row-wise-gw-hp" ? "pow2-ceil"
                                                                         : "absmax";
  Setup setup;
  setup.format = format;
  setup.gradient_format = either(options.gradient_format, wide_gradient ? "e5m2" : format);
  setup.high_precision = either(options.high_precision, "bf16");
  setup.gradient_rounding = options.gradient_rounding;
  // Formats of more than 8 bits are not scaled.
  const auto scale_rule = [&](const std::string& of) {
    const bool wide = oracle::FindFormat(of).bits > 8;
    return ParseScaleRule(either(options.scale_rule, wide ? "none" : rule));
  };
  setup.rule = scale_rule(setup.format);
  setup.gradient_rule = scale_rule(setup.gradient_format);
  setup.accumulation = options.accumulate;
  setup.high_precision_accumulation = either(options.high_precision_accumulate, "fp32");
  setup.container = options.container;
  setup.block = options.block != 0 ? options.block : kind == "mx" ? 32 : 128;
  setup.keeps_quantized = kind == "te-hybrid";
  return setup;
}

}  // namespace numsim::naive
