// The curvature of the loss along its gradient under Adam's preconditioner, as a predictor of loss
// spikes [AdamSpikes].
#pragma once

#include "numsim/train/trainer.h"

namespace numsim {

// The next step of a training with AdamW.
struct StepCurvature {
  // (1 - beta1) / ((1 + beta1) (1 - beta1^t)) times g^T D H g / g^T g: g and H are gradient and
  // Hessian of the loss of the step's batch, and D is the diagonal matrix of 1 / (sqrt(v) + epsilon),
  // with the bias-corrected v of this step. 0 if g is 0.
  double curvature = 0;
  double learning_rate = 0;

  // The step is predicted to be unstable above 2: gradient descent on a quadratic diverges there.
  double Times() const { return curvature * learning_rate; }
};

// Returns the curvature of the step that the trainer would take next, without changing the trainer.
// The product H g is a central difference of float64 gradients: three float64 passes in all, so this is
// for small models. Throws Error as StepReplay does, and naming optimizer.kind, optimizer.v, optimizer.clip_norm
// or optimizer.beta2_decay unless the optimiser is adamw with v in fp32, gradients that are not
// clipped, and a constant beta2.
StepCurvature CurvatureOfNextStep(const Trainer& trainer);

}  // namespace numsim
