// A batch of training examples, on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numsim {

// Fields that a kind of data does not have stay empty. Memory is kept from batch to batch.
struct Batch {
  size_t examples = 0;
  // Text: examples x length tokens, one sequence after another.
  size_t length = 0;
  std::vector<int32_t> tokens;
  // Language models: the token that follows each token, or -1 where none is to be predicted.
  // Classifiers: a label for each example.
  std::vector<int32_t> targets;
  // Captions: the place in its sequence of each example's end token, whose row is the caption's.
  std::vector<int32_t> ends;
  // Captions: two examples of one concept have equal numbers; each counts as right for the other.
  std::vector<int32_t> concepts;
  // Images: examples x (height x width x channels), channels last, about mean 0 and deviation 1.
  // Students: examples x features.
  std::vector<float> values;
};

}  // namespace numsim
