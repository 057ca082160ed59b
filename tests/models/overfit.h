// Training of a model on one batch, by Adam in a plain loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "numsim/models/model.h"

namespace numsim {

// The mean loss after `steps` steps at a constant learning rate.
inline double Overfit(Model<float>& model, const Batch& batch, size_t steps, double rate) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.99;
  std::vector<std::vector<double>> m, v;
  for (const Parameter<float>& parameter : model.parameters()) {
    m.emplace_back(parameter.Elements());
    v.emplace_back(parameter.Elements());
  }
  Pass<float> pass;
  for (; pass.step < steps; ++pass.step) {
    model.Forward(pass, batch);
    model.Backward(pass);
    const double t = static_cast<double>(pass.step + 1);
    for (size_t p = 0; p < m.size(); ++p) {
      const std::span<float> values = model.parameters()[p].value.View().Span();
      const std::span<float> gradient = model.parameters()[p].gradient.View().Span();
      for (size_t i = 0; i < values.size(); ++i) {
        const double g = gradient[i];
        m[p][i] = kBeta1 * m[p][i] + (1 - kBeta1) * g;
        v[p][i] = kBeta2 * v[p][i] + (1 - kBeta2) * g * g;
        const double mean = m[p][i] / (1 - std::pow(kBeta1, t));
        const double square = v[p][i] / (1 - std::pow(kBeta2, t));
        values[i] -= static_cast<float>(rate * mean / (std::sqrt(square) + 1e-8));
      }
    }
  }
  return model.Forward(pass, batch).Mean();
}

}  // namespace numsim
