// Measures one trial of `linear-error`: makes the operands, computes three reference GEMMs, and
// compares them with every treatment of the layer.
#include <span>
#include <string>
#include <vector>

#include "experiments/linear_error/linear_error.h"
#include "experiments/linear_error/operands.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/linear/linear.h"
#include "numsim/stats/product_error.h"

namespace numsim::experiments::linear_error {
namespace {

// First stream of stochastic rounding in the layers, above the streams of the operands.
constexpr uint64_t kLayerStream = 16;

LinearShape ShapeOf(const Trial& trial) {
  const auto size = [&](const char* name) -> size_t {
    return std::stoull(trial.parameters.at(name));
  };
  return {size("tokens"), size("in"), size("out")};
}

// The results of the three GEMMs: Y, dX and dW.
struct Products {
  std::vector<float> y, dx, dw;

  std::span<const float> Of(LinearGemm product) const {
    return product == LinearGemm::kForward ? y : product == LinearGemm::kInputGradient ? dx : dw;
  }
};

size_t InnerDimension(LinearGemm product, LinearShape shape) {
  return product == LinearGemm::kForward         ? shape.in
         : product == LinearGemm::kInputGradient ? shape.out
                                                 : shape.tokens;
}

// Computes a reference GEMM of two float32 matrices. Products of their elements are exact in
// float64; only the float64 sums and the final conversion to float32 round.
std::vector<float> Reference(std::span<const float> a,
                             bool a_transposed,
                             std::span<const float> b,
                             bool b_transposed,
                             size_t inner) {
  GemmOperand left, right;
  left.format = right.format = FindFormat("fp32")->spec;
  left.values = a;
  right.values = b;
  left.inner = right.inner = inner;
  left.rows = a.size() / inner;
  right.rows = b.size() / inner;
  left.transposed = a_transposed;
  right.transposed = b_transposed;
  std::vector<float> out(left.rows * right.rows);
  Gemm(left, right, {.kind = AccumulationKind::kFloat64}, out);
  return out;
}

Products ReferenceProducts(const LinearOperands& operands, LinearShape shape) {
  return {Reference(operands.x, false, operands.w, false, shape.in),
          Reference(operands.g, false, operands.w, true, shape.out),
          Reference(operands.g, true, operands.x, true, shape.tokens)};
}

// Runs forward and backward of the layer as any user of numsim would.
void Compute(const LinearRecipe& recipe,
             const LinearOperands& operands,
             LinearShape shape,
             uint64_t seed,
             Products& products) {
  products.y.resize(shape.tokens * shape.out);
  products.dx.resize(shape.tokens * shape.in);
  products.dw.resize(shape.out * shape.in);
  Linear layer(recipe);
  LinearSaved kept;
  const RandomStream random{seed, kLayerStream};
  layer.Forward(HostMatrix(operands.x, shape.X()),
                HostMatrix(operands.w, shape.W()),
                products.y,
                kept,
                random);
  layer.Backward(operands.g, operands.w, kept, products.dx, products.dw, random);
}

Row RowOf(const Trial& trial,
          const Treatment& treatment,
          LinearGemm product,
          LinearShape shape,
          const ProductError& error) {
  Row cells = {
      trial.parameters.at("operands"),
      treatment.kind,
      treatment.format,
      std::string(ToString(product)),
      trial.parameters.at("sweep"),
      uint64_t{shape.tokens},
      uint64_t{shape.in},
      uint64_t{shape.out},
      uint64_t{InnerDimension(product, shape)},
      trial.seed,
  };
  for (const double value : {error.error_variance,
                             error.signal_variance,
                             error.relative_error,
                             error.row_error,
                             error.column_error,
                             error.bias,
                             error.gain,
                             error.sqnr_db,
                             error.cosine}) {
    cells.push_back(value);
  }
  return cells;
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const LinearShape shape = ShapeOf(trial);
  const LinearOperands operands =
      MakeOperands(settings, trial.parameters.at("operands"), shape, trial.seed);
  const Products reference = ReferenceProducts(operands, shape);
  Products computed;
  Rows rows;
  for (const Treatment& treatment : Treatments(settings)) {
    Compute(treatment.recipe, operands, shape, trial.seed, computed);
    for (const LinearGemm product : kProducts) {
      const size_t cols = product == LinearGemm::kForward ? shape.out : shape.in;
      const ProductError error =
          CompareProduct<float>(reference.Of(product), computed.Of(product), cols);
      rows["errors"].push_back(RowOf(trial, treatment, product, shape, error));
    }
  }
  return rows;
}

}  // namespace numsim::experiments::linear_error
