// The tables of `linear-error`.
#include "experiments/linear_error/linear_error.h"

namespace numsim::experiments::linear_error {
namespace {

TableSpec ErrorsSpec() {
  return {std::string(kErrorsTable),
          false,
          {{"operands", "how X and G are drawn, or the tensors of --input"},
           {"kind", "layer kind"},
           {"format",
            "format of quantised operands (for e4m3fn, tensor-wise and te-hybrid take gradients in "
            "e5m2); for standard, format of all operands"},
           {"product", "GEMM: forward (Y), input-gradient (dX) or weight-gradient (dW)"},
           {"sweep", "tokens: over b at one width; width: over n = m at one b"},
           {"tokens", "number of tokens b"},
           {"in", "number of inputs n"},
           {"out", "number of outputs m"},
           {"inner", "inner dimension of the GEMM: n, m or b"},
           {"seed", "seed of operands and of stochastic rounding"},
           {"error_variance", "variance of the error of an element"},
           {"signal_variance", "variance of an element of the reference"},
           {"relative_error", "Frobenius norm of the error over that of the reference"},
           {"row_error", "relative error of a single row, median over rows"},
           {"column_error", "relative error of a single column, median over columns"},
           {"bias", "mean error of an element"},
           {"gain", "<result, reference> / <reference, reference>; below 1: shrunk"},
           {"sqnr_db", "signal to quantisation noise ratio, dB"},
           {"cosine", "cosine between result and reference"}}};
}

TableSpec GrowthSpec() {
  return {
      std::string(kGrowthTable),
      true,
      {{"operands", "as in errors.csv"},
       {"kind", "as in errors.csv"},
       {"format", "as in errors.csv"},
       {"product", "as in errors.csv"},
       {"sweep", "as in errors.csv"},
       {"points", "number of trials in the fit: lengths times seeds"},
       {"noise_growth", "d log error_variance / d log length; 1: Eq. 12 for the inner dimension"},
       {"noise_growth_low", "95 % interval of noise_growth"},
       {"noise_growth_high", "95 % interval of noise_growth"},
       {"signal_growth", "d log signal_variance / d log length"},
       {"signal_growth_low", "95 % interval of signal_growth"},
       {"signal_growth_high", "95 % interval of signal_growth"},
       {"relative_growth",
        "d log relative_error / d log length; 0.5: Eq. 12 against a constant signal"},
       {"relative_growth_low", "95 % interval of relative_growth"},
       {"relative_growth_high", "95 % interval of relative_growth"}}};
}

TableSpec CrossingsSpec() {
  return {std::string(kCrossingsTable),
          true,
          {{"operands", "as in errors.csv"},
           {"kind", "as in errors.csv"},
           {"format", "as in errors.csv"},
           {"threshold", "relative error of dW, percent"},
           {"tokens", "smallest b at which it is exceeded, interpolated; inf: not reached"},
           {"tokens_low", "minimum over seeds"},
           {"tokens_high", "maximum over seeds; inf: at least one seed did not reach it"},
           {"status", "whether and how the threshold was reached, in words"}}};
}

TableSpec ProductsSpec() {
  return {std::string(kProductsTable),
          true,
          {{"operands", "as in errors.csv"},
           {"kind", "as in errors.csv"},
           {"format", "as in errors.csv"},
           {"product", "as in errors.csv"},
           {"noise_growth", "as in growth.csv, against the GEMM's own inner dimension"},
           {"relative_growth", "as in growth.csv, against the GEMM's own inner dimension"},
           {"sweep", "the sweep over the inner dimension; tokens if there is no such sweep"},
           {"length", "longest length of that sweep, at which the errors below are measured"},
           {"relative_error", "geometric mean over seeds"},
           {"relative_error_low", "minimum over seeds"},
           {"relative_error_high", "maximum over seeds"},
           {"row_error", "geometric mean over seeds"},
           {"column_error", "geometric mean over seeds"},
           {"cosine", "geometric mean over seeds"}}};
}

}  // namespace

std::vector<TableSpec> TableSpecs() {
  return {ErrorsSpec(), GrowthSpec(), CrossingsSpec(), ProductsSpec()};
}

}  // namespace numsim::experiments::linear_error
