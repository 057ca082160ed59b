// The coefficients of AdamW and StableAdamW in one step, on host and device.
#pragma once

#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/base/shared/elementary_text.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/optim/optimizer_rule.h"

namespace numsim {

// The coefficients of one step.
struct AdamRates {
  AverageRates m, v;
  float m_correction = 1;
  AdamDenominator denominator, previous;  // for this step's v, for the previous step's v
};

// The constants from which they are computed. beta1 and beta2 are memory, not locals of the
// functions: when g++ 12 packs two neighbours into a vector (-ftree-slp-vectorize), it drops their
// conversion float64 -> float32 -> float64.
struct AdamConstants {
  bool stable = false;  // the averages are stored with their bias corrected (StableAdamW)
  float beta1 = 0, beta2 = 0;
  float epsilon = 0;
  double beta2_decay = 0;
};

NUMSIM_INLINE AverageRates RatesKeeping(float keep) { return {keep, 1.0f - keep}; }

NUMSIM_HOST_DEVICE inline AdamRates AdamRatesOf(const AdamConstants& constants,
                                                const StepCount& before,
                                                const StepCount& now) {
  const double before1 = 1 - before.power1, before2 = 1 - before.power2;
  const double after1 = 1 - now.power1, after2 = 1 - now.power2;
  AdamRates rates;
  rates.denominator.epsilon = rates.previous.epsilon = constants.epsilon;
  if (constants.stable) {
    const double beta1 = static_cast<double>(constants.beta1);
    const double beta2 = static_cast<double>(constants.beta2);
    rates.m = RatesKeeping(static_cast<float>(beta1 * before1 / after1));
    rates.v = RatesKeeping(static_cast<float>(beta2 * before2 / after2));
  } else {
    rates.m = RatesKeeping(constants.beta1);
    rates.v = RatesKeeping(constants.beta2);
    rates.m_correction = static_cast<float>(after1);
    rates.denominator.correction = static_cast<float>(after2);
    // Before the first step v is zero, and so is v / 1.
    rates.previous.correction = before.steps == 0 ? 1 : static_cast<float>(before2);
  }
  if (constants.beta2_decay > 0) {
    // Both weights are rounded from the float64 t^-lambda, not `share` as 1 - keep: the rounding
    // error of `share` matters more than that of `keep`.
    const double share =
        elementary::Exp(-constants.beta2_decay * elementary::Log(static_cast<double>(now.steps)));
    rates.v = {static_cast<float>(1 - share), static_cast<float>(share)};
    rates.denominator.correction = rates.previous.correction = 1;
  }
  return rates;
}

}  // namespace numsim
