// Names that the claims of `linear-error` share.
#pragma once

#include <string>
#include <vector>

#include "experiments/linear_error/linear_error.h"
#include "experiments/linear_error/operands.h"

namespace numsim::experiments::linear_error {

// The layer kind that quantises all three GEMMs with the scales of the paper, as LLM.int8() does,
// and the paper's own, which does not quantise dW.
inline const std::string kAllQuantized = "llm-int8", kRemedy = "switchback";
// The operands of D.1, independent and of mean zero.
inline const std::string kOwnOperands = "normal";
// Operands that the paper does not name, with which claims are judged too.
inline const std::vector<std::string> kOtherOperands = {
    "student-t3", "outlier-tokens", "outlier-columns", "coherent", kTensors};

// The noise of these grows faster than their inner dimension: the largest of many heavy-tailed
// operands grows as a power of their number, and with it the spacing of int8. Equivalences have them
// as their control.
inline constexpr const char *kControlOperands = "student-t3", *kControlFormat = "int8";
inline constexpr const char* kControl = "the same of student-t3 operands in int8";

// Returns Y, dX or dW.
std::string Symbol(const std::string& product);

// Returns a claim with the id linear-error/NAME-FORMAT, or linear-error/NAME-FORMAT-OPERANDS and
// exploratory for operands that the paper does not name.
ClaimSpec ClaimAbout(const std::string& name,
                     const std::string& operands,
                     const std::string& format);
// Returns the sentence of a statement that names the operands.
std::string Here(const std::string& operands, const std::string& format);

// Returns the rows of errors.csv about these operands and a format.
Frame RowsOf(const Tables& tables, const std::string& operands, const std::string& format);
// Returns the evidence of a run without such rows.
Evidence LeftOut();

// Return the claims about power laws, and those that compare GEMMs and layer kinds.
std::vector<ClaimSpec> LawClaims();
std::vector<ClaimSpec> GemmClaims();

}  // namespace numsim::experiments::linear_error
