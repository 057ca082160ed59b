// Operands of `linear-error`: X, W and G of one trial, drawn at random or read from files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments::linear_error {

// How operands are drawn. W is standard normal, and so are X and G except for
//   student-t3       X and G follow Student's t with 3 degrees of freedom, scaled to variance 1
//   outlier-columns  some columns of X, the same for all tokens, are larger by a factor
//   outlier-tokens   some rows of X and, independently, of G are larger by a factor
//   coherent         X and G are sqrt(1 - c) z + sqrt(c) u, with z normal and u one vector of signs
//                    for all tokens, so that a part of dW adds up over tokens
// With the same width and seed, a shorter batch is the beginning of a longer one.
enum class OperandKind : uint8_t {
  kNormal,
  kStudentT3,
  kOutlierColumns,
  kOutlierTokens,
  kCoherent,
};
std::string_view ToString(OperandKind kind);
// Throws Error listing the valid names for any other text.
OperandKind ParseOperandKind(std::string_view text);

struct LinearOperands {
  std::vector<float> x, w, g;  // tokens x in, out x in, tokens x out
};

// Returns true if there are tensors of --input.
bool HasTensors(const Settings& settings);
// Returns true if every path of --input contains "{seed}", which stands for the seed of a trial:
// each seed then has the tensors of a training of its own. Requires HasTensors.
bool TensorsDifferBySeed(const Settings& settings);
// The element of --operands that stands for these tensors, and their name in those of claims. With
// --input they are always included.
inline const std::string kTensors = "tensors";
// Returns true for the value of the column `operands` that names them.
inline bool AreTensors(std::string_view operands) { return operands.starts_with("file "); }

// Returns the values of the column `operands`: those of --operands, and for tensors
// "file x=NAME w=NAME g=NAME".
std::vector<std::string> OperandNames(const Settings& settings);

// The dimensions that the tensors of --input determine.
struct FileShape {
  size_t in = 0, out = 0;  // 0: not determined
  size_t rows = 0;         // number of tokens in the files; 0: not determined

  friend bool operator==(const FileShape&, const FileShape&) = default;
};
// Throws Error naming the tensors whose shapes do not fit together, or files whose shapes differ by
// seed.
FileShape ShapeOfFiles(const Settings& settings);

// Checks the options that control the operands. Throws Error naming a bad option.
void CheckOperandOptions(const Settings& settings);

// Draws or reads the operands of a trial. Reads `shape.tokens` rows of X and G from a random row
// on, wrapping around at the end; operands without a tensor are normal. Throws Error naming the
// file for values that are not finite.
LinearOperands MakeOperands(const Settings& settings,
                            const std::string& operands,
                            LinearShape shape,
                            uint64_t seed);

}  // namespace numsim::experiments::linear_error
