// The claims of Appendix D of [SwitchBack] about the GEMMs of a layer: their list, what they have in
// common, and the notes below them.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "experiments/linear_error/claim_parts.h"
#include "experiments/linear_error/operands.h"

namespace numsim::experiments::linear_error {
namespace {

// Where SwitchBack is needed under these operands and format: the lists of the note.
struct Needed {
  std::string yes, no, not_enough;
};

void Append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : "; ") + item;
}

void AddCase(const Frame& quantized, const Frame& remedy, double level, Needed& needed) {
  const auto error = [](const Frame& rows, const std::string& product) {
    return rows.Where("product", product).Number("relative_error");
  };
  const std::string name = quantized.Text("operands") + " " + quantized.Text("format");
  if (error(remedy, kForward) > level || error(remedy, kInputGradient) > level) {
    Append(needed.not_enough, name);
  } else {
    Append(error(quantized, kWeightGradient) > level ? needed.yes : needed.no, name);
  }
}

// Compares errors at the longest inner dimensions with the first --threshold.
std::string NeededText(const Settings& settings, const Frame& products) {
  const double level = Thresholds(settings).front();
  Needed needed;
  for (const Frame& layer : products.Where("kind", kAllQuantized).By({"operands", "format"})) {
    const Frame remedy = products.Where("kind", kRemedy)
                             .Where("operands", layer.Text("operands"))
                             .Where("format", layer.Text("format"));
    if (!remedy.Empty()) AddCase(layer, remedy, level, needed);
  }
  const auto text = [](const std::string& list) { return list.empty() ? "none" : list; };
  return fmt::format(
      "SwitchBack is needed where dW's relative error is above {:g} % under llm-int8 and the "
      "errors of SwitchBack's Y and dX are not: {}. Not needed, because dW is not above it: {}. "
      "Not enough, because Y or dX is above it under SwitchBack too: {}.\n",
      100 * level,
      text(needed.yes),
      text(needed.no),
      text(needed.not_enough));
}

// Returns evidence of tensors, unless all seeds have those of one training: the seeds then differ in
// the choice of rows alone, and their scatter says nothing about other trainings.
auto OfTrainings(std::function<Evidence(const Settings&, const Tables&)> evidence) {
  return [evidence = std::move(evidence)](const Settings& settings, const Tables& tables) {
    if (!HasTensors(settings)) return evidence(settings, tables);
    for (const char* const option : {"tensor-x", "tensor-w", "tensor-g"}) {
      if (!settings.Get(option).empty()) continue;
      return NotTestedBecause(fmt::format("--{} is not given, so that operand is drawn", option));
    }
    if (!TensorsDifferBySeed(settings)) {
      return NotTestedBecause(
          "one training is an illustration; with {seed} in every path of --input each seed has its "
          "own");
    }
    return evidence(settings, tables);
  };
}

}  // namespace

std::string Symbol(const std::string& product) {
  return product == kForward ? "Y" : product == kInputGradient ? "dX" : "dW";
}

ClaimSpec ClaimAbout(const std::string& name,
                     const std::string& operands,
                     const std::string& format) {
  const bool own = operands == kOwnOperands;
  ClaimSpec claim;
  claim.id = fmt::format("linear-error/{}-{}{}", name, format, own ? "" : "-" + operands);
  claim.items = {"switchback/appendix-d.3"};
  claim.scale =
      "The paper: b = 65536 and widths of 1280 and 5120 (CLIP ViT-Huge). A run states its own.";
  claim.primary = own;  // the paper names no other operands
  return claim;
}
std::string Here(const std::string& operands, const std::string& format) {
  return fmt::format(" Here: {}, {}.",
                     format,
                     operands == kTensors ? "tensors of --input" : operands + " operands");
}

Frame RowsOf(const Tables& tables, const std::string& operands, const std::string& format) {
  const Frame rows = Frame(tables.at(std::string(kErrorsTable))).Where("format", format);
  if (operands != kTensors) return rows.Where("operands", operands);
  return rows.Where([](const Frame& row) { return AreTensors(row.Text("operands")); });
}

Evidence LeftOut() {
  return NotTestedBecause("--operands, --kinds or --formats leaves it out, or there is no --input");
}

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims = LawClaims();
  for (ClaimSpec& claim : GemmClaims()) claims.push_back(std::move(claim));
  for (ClaimSpec& claim : claims) {
    if (claim.id.ends_with("-" + kTensors)) claim.evidence = OfTrainings(claim.evidence);
  }
  return claims;
}

std::string Notes(const Settings& settings, const Tables& tables) {
  return NeededText(settings, tables.at(std::string(kProductsTable))) +
         "With independent tokens of mean zero, dW is itself sampling noise: quantisation adds to "
         "its variance the square of the relative error, the same share at any b as long as that "
         "error does not change. Frobenius errors are dominated by the largest rows and columns; "
         "row_error and column_error are medians, which are not. crossings.csv has the number of "
         "tokens from which dW exceeds a relative error.";
}

}  // namespace numsim::experiments::linear_error
