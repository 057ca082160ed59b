// One point of `linear-error`: the operands, three reference products, and every way of computing
// the layer.
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

// Of stochastic rounding in the layers, above the streams of the operands.
constexpr uint64_t kLayerStream = 16;

LinearShape ShapeOf(const Point& point) {
  const auto size = [&](const char* name) -> size_t {
    return std::stoull(point.parameters.at(name));
  };
  return {size("tokens"), size("in"), size("out")};
}

// Y, dX and dW.
struct Products {
  std::vector<float> y, dx, dw;

  std::span<const float> Of(Product product) const {
    return product == Product::kForward ? y : product == Product::kInputGradient ? dx : dw;
  }
};

size_t InnerDimension(Product product, LinearShape shape) {
  return product == Product::kForward         ? shape.in
         : product == Product::kInputGradient ? shape.out
                                              : shape.tokens;
}

// Products of two float32 matrices are exact in float64; only their sums are rounded, and the
// result to float32.
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
  Gemm(left, right, {.kind = AccumulatorKind::kFloat64}, out);
  return out;
}

Products ReferenceProducts(const LinearOperands& operands, LinearShape shape) {
  return {Reference(operands.x, false, operands.w, false, shape.in),
          Reference(operands.g, false, operands.w, true, shape.out),
          Reference(operands.g, true, operands.x, true, shape.tokens)};
}

// The layer exactly as a caller would run it.
void Compute(const LinearRecipe& recipe,
             const LinearOperands& operands,
             LinearShape shape,
             uint64_t seed,
             Products& products) {
  products.y.resize(shape.tokens * shape.out);
  products.dx.resize(shape.tokens * shape.in);
  products.dw.resize(shape.out * shape.in);
  Linear layer(recipe);
  LinearKept kept;
  const RandomStream random{seed, kLayerStream};
  layer.Forward(operands.x, operands.w, shape, products.y, kept, random);
  layer.Backward(operands.g, operands.w, kept, products.dx, products.dw, random);
}

std::vector<std::string> RowOf(const Point& point,
                               const Treatment& treatment,
                               Product product,
                               LinearShape shape,
                               const ProductError& error) {
  std::vector<std::string> cells = {
      point.parameters.at("operands"),
      treatment.kind,
      treatment.format,
      std::string(Name(product)),
      point.parameters.at("sweep"),
      Cell(uint64_t{shape.tokens}),
      Cell(uint64_t{shape.in}),
      Cell(uint64_t{shape.out}),
      Cell(uint64_t{InnerDimension(product, shape)}),
      Cell(point.seed),
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
    cells.push_back(Cell(value));
  }
  return cells;
}

}  // namespace

Rows Measure(const Settings& settings, const Point& point) {
  const LinearShape shape = ShapeOf(point);
  const LinearOperands operands =
      MakeOperands(settings, point.parameters.at("operands"), shape, point.seed);
  const Products reference = ReferenceProducts(operands, shape);
  Products computed;
  Rows rows;
  for (const Treatment& treatment : Treatments(settings)) {
    Compute(treatment.recipe, operands, shape, point.seed, computed);
    for (const Product product : kProducts) {
      const size_t cols = product == Product::kForward ? shape.out : shape.in;
      const ProductError error =
          CompareProduct<float>(reference.Of(product), computed.Of(product), cols);
      rows[std::string(kErrorsTable)].push_back(RowOf(point, treatment, product, shape, error));
    }
  }
  return rows;
}

}  // namespace numsim::experiments::linear_error
