// Operands of `linear-error`: X, W and G of one point, drawn or read from files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments::linear_error {

// W is standard normal. X and G are as well, apart from
//   student-t3       X and G of Student's t with 3 degrees of freedom, variance 1
//   outlier-columns  columns of X, the same for all tokens, are larger by a factor
//   outlier-tokens   rows of X, and independently of G, are larger by a factor
//   coherent         X and G are sqrt(1 - c) z + sqrt(c) u: z normal, u one vector of signs for all
//                    tokens, so that dW has a part that adds up over tokens
// The rows of a longer batch of the same width begin with those of a shorter one.
enum class OperandKind : uint8_t {
  kNormal,
  kStudentT3,
  kOutlierColumns,
  kOutlierTokens,
  kCoherent,
};
std::string_view ToString(OperandKind kind);
// Throws Error listing them.
OperandKind ParseOperandKind(std::string_view text);

struct LinearOperands {
  std::vector<float> x, w, g;  // tokens x in, out x in, tokens x out
};

// Whether operands come from --input.
bool FromFiles(const Settings& settings);

// What stands in the column `operands`: --operands, or "file x=NAME w=NAME g=NAME" of --input.
std::vector<std::string> OperandNames(const Settings& settings);

// What --input fixes of the shape. Throws Error naming the tensors that do not fit together.
struct FileShape {
  size_t in = 0, out = 0;  // 0: left open
  size_t rows = 0;         // tokens there are; 0: any number
};
FileShape ShapeOfFiles(const Settings& settings);

// Checks the options that say how operands are drawn.
void CheckOperandOptions(const Settings& settings);

// Throws Error naming the file for values that are not finite.
LinearOperands MakeOperands(const Settings& settings,
                            const std::string& operands,
                            LinearShape shape,
                            uint64_t seed);

}  // namespace numsim::experiments::linear_error
