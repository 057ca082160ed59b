// The effect of Smooth-SwiGLU by itself: in exact arithmetic, and once it is merged into the weights.
#pragma once

#include <string_view>

namespace numsim::experiments::fp8_outliers {

// Returns the norm of the difference between the gradients of a small llama with the code's
// Smooth-SwiGLU and with SwiGLU, over the norm of the latter, all in float64.
double GradientDifference();

// The logits of a small llama with Smooth-SwiGLU per channel, and with SwiGLU after its scales have been
// merged into w1 and w3 ([Fishman] section 4.4).
struct Merging {
  size_t logits = 0, different = 0;  // of which that many have other bits
  double relative = 0;               // norm of the difference, over the norm
};
// `recipe` is that of the linear layers (TrainRecipes).
Merging MergeScales(std::string_view recipe);

}  // namespace numsim::experiments::fp8_outliers
