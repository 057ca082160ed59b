// The sum of the gradients of a batch's parts.
#pragma once

#include <cstddef>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/models/parameter.h"

namespace numsim {

// The parts of a batch are the leaves of a balanced binary tree: the tree of n parts has that of
// the first ceil(n / 2) parts on its left and that of the others on its right. So if R divides n
// and is a power of two, each of R equal shares of consecutive parts is a subtree. Each node is the
// float32 sum of its left and its right child.

// Returns the number of nodes whose last part is `part` of `parts`: those that can be added up once
// it is there.
size_t NodesCompletedBy(size_t part, size_t parts);

// Adds up gradients along that tree, in the order of the parts. Elements are added one by one, so
// the sum does not depend on the number of threads.
class GradientTree {
 public:
  // Takes the gradients of a part from the parameters. Parts come in ascending order from 0. After
  // the last one the parameters have the sum; between parts their gradients may be overwritten.
  // Keeps at most log2(parts) copies of all gradients, and the memory for the next batch.
  void Add(size_t part, size_t parts, ParameterList<float>& parameters);

 private:
  using Sums = std::vector<Buffer<float>>;  // one per parameter
  std::vector<Sums> left_;                  // left children that wait for their right ones
  size_t waiting_ = 0;                      // of left_
};

}  // namespace numsim
